"""Options that several commands share, each group collected into one object."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from twinvec.choices import DEFAULT_MODEL, DEVICES, LONG_POLICIES, PRECISIONS, RUNTIMES, parse_size
from twinvec.cli.screen import say

if TYPE_CHECKING:
    from twinvec.encoder import Encoder
    from twinvec.search import Index
    from twinvec.types import Vectors

__all__ = [
    "METHODS",
    "METHOD_OPTIONS",
    "MODEL_VARIABLE",
    "Decorator",
    "MethodChoice",
    "ModelChoice",
    "PromptChoice",
    "TextSource",
    "WholeRows",
    "csv_safe_option",
    "gathered",
    "method_choice",
    "method_options",
    "model_options",
    "prompt_options",
    "read_whole_rows",
    "text_options",
]

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Any], Any]

MODEL_VARIABLE = "TWINVEC_MODEL"
READOUTS = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken", "wk")
FORMATS = ("lines", "csv", "tsv", "jsonl", "parquet")


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Which model to load, and how to run it."""

    name: str
    precision: str = "float32"
    threads: int | None = None
    device: str = "cpu"
    runtime: str = "auto"
    deterministic: bool = False
    long: str = "warn"
    truncate_dim: int | None = None
    readout: str | None = None
    trust_pickle: bool = False
    offline: bool = False

    def load(self) -> Encoder:
        """The encoder; imported only now, so that help is quick."""
        import twinvec

        settings: dict[str, Any] = asdict(self)  # click has checked the words
        return twinvec.load(settings.pop("name"), **settings)


@dataclass(frozen=True, slots=True)
class TextSource:
    """Where the texts come from."""

    file: str
    column: str | None
    format: str | None

    def texts(self) -> Iterator[str]:
        """The texts, one at a time; the first is read at once, so that errors show early."""
        from twinvec.data.read import read_texts

        if self.file == "-" and sys.stdin.isatty():
            click.echo("Reading texts from the terminal, one per line; end with Ctrl-D.", err=True)
        return read_texts(self.file, self.column, format=self.format)


@dataclass(frozen=True, slots=True)
class PromptChoice:
    """What stands before every text."""

    prompt: str | None
    prompt_name: str | None

    def __post_init__(self) -> None:
        if self.prompt is not None and self.prompt_name is not None:
            raise click.UsageError("Give --prompt or --prompt-name, not both.")


MODEL_OPTIONS: dict[str, Decorator] = {
    "name": click.option(
        "-m",
        "--model",
        "name",
        metavar="MODEL",
        default=DEFAULT_MODEL,
        show_default=True,
        envvar=MODEL_VARIABLE,
        show_envvar=True,
        help="Folder of the model, or its name.",
    ),
    "precision": click.option(
        "--precision",
        type=click.Choice(PRECISIONS),
        default="float32",
        show_default=True,
        help="Arithmetic inside the model. bfloat16 and int8 are faster on CPUs that have them.",
    ),
    "threads": click.option(
        "--threads", type=click.IntRange(min=1), help="Batches that run at once. Default: one per core."
    ),
    "device": click.option("--device", type=click.Choice(DEVICES), default="cpu", show_default=True, help="Device."),
    "runtime": click.option(
        "--runtime",
        type=click.Choice(RUNTIMES),
        default="auto",
        show_default=True,
        help="What runs the model.",
    ),
    "deterministic": click.option(
        "--deterministic", is_flag=True, help="The same bits for a text, whatever stands beside it."
    ),
    "long": click.option(
        "--long",
        type=click.Choice(LONG_POLICIES),
        default="warn",
        show_default=True,
        help="Texts beyond the model's limit: warn and cut, refuse, cut, or read them in chunks.",
    ),
    "truncate_dim": click.option(
        "--truncate-dim", type=click.IntRange(min=1), help="Keep this many of each vector's first values."
    ),
    "readout": click.option(
        "--readout",
        type=click.Choice(READOUTS),
        help="How states become a vector: a pooling, or wk for SBERT-WK over all layers. Default: the model's own.",
    ),
    "trust_pickle": click.option(
        "--trust-pickle", is_flag=True, help="Also read weights stored as a pickle, which can run code."
    ),
    "offline": click.option("--offline", is_flag=True, help="Never ask the network for a model."),
}
TEXT_OPTIONS: dict[str, Decorator] = {
    "file": click.argument("file", metavar="[FILE]", default="-"),
    "column": click.option(
        "--column", help="Column of the texts. Default: the only one, or text, sentence or content."
    ),
    "format": click.option(
        "--format", type=click.Choice(FORMATS), help="Format of FILE. Default: by its ending; lines for '-'."
    ),
}
csv_safe_option = click.option(
    "--csv-safe",
    is_flag=True,
    help="In csv and tsv, put a quote (') before cells that a spreadsheet would run as a formula.",
)
PROMPT_OPTIONS: dict[str, Decorator] = {
    "prompt": click.option("--prompt", help="Put this before every text."),
    "prompt_name": click.option("--prompt-name", help="Put this prompt of the model before every text."),
}


def gathered(options: dict[str, Decorator], into: str, *, build: Callable[..., object]) -> Callable[[Command], Command]:
    """A decorator that adds options to a command, which gets them as one object named ``into``."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def run(**given: object) -> object:
            chosen = {name: given.pop(name) for name in options}
            return command(**given, **{into: build(**chosen)})

        wrapped: Any = run
        for option in reversed(options.values()):
            wrapped = option(wrapped)
        return wrapped  # type: ignore[no-any-return]

    return decorate


def model_options(without: tuple[str, ...] = ()) -> Callable[[Command], Command]:
    """Options of the model, as ``model``; those left out keep their defaults."""
    kept = {each.name: MODEL_OPTIONS[each.name] for each in fields(ModelChoice) if each.name not in without}
    return gathered(kept, "model", build=ModelChoice)


text_options = gathered(TEXT_OPTIONS, "source", build=TextSource)
prompt_options = gathered(PROMPT_OPTIONS, "prompt", build=PromptChoice)


METHODS = ("auto", "exact", "index")
MOST_EXACT = 200_000  # texts; comparing all pairs of so many takes a minute
N_SAMPLE = 200

METHOD_OPTIONS: dict[str, Decorator] = {
    "method": click.option(
        "--method",
        type=click.Choice(METHODS),
        default=METHODS[0],
        show_default=True,
        help="Compare all pairs, or those that an index finds (extra: search). auto: an index from "
        f"{MOST_EXACT:,} texts on.",
    ),
    "max_memory": click.option(
        "--max-memory", metavar="SIZE", help="For an index: its memory, such as 4GB; a smaller kind is taken."
    ),
}


@dataclass(frozen=True, slots=True)
class MethodChoice:
    """How pairs are found, and the most bytes that an index may take (None: all that it wants)."""

    method: str
    max_memory: int | None

    def build(self, vectors: Vectors) -> Index | None:
        """The index to search by, with words about it and its recall on standard error; None for exact comparison."""
        if self.method == "exact" or (self.method == "auto" and len(vectors) <= MOST_EXACT):
            return None
        from twinvec.search import build_index, measure_recall
        from twinvec.search.approximate import sample_rows

        index = build_index(vectors, max_memory=self.max_memory)
        say(f"Index of {len(index):,} vectors: {index.settings.describe()}.")
        say(f"Its {measure_recall(index, sample_rows(vectors, N_SAMPLE), vectors).describe()}.")
        return index


def method_choice(method: str, max_memory: str | None) -> MethodChoice:
    """The choice; a size that is none, or that nothing would use, is told before anything is done."""
    if max_memory is not None and method == "exact":
        raise click.UsageError("--max-memory is for an index, not for --method exact.")
    return MethodChoice(method, None if max_memory is None else parse_size(max_memory))


method_options = gathered(METHOD_OPTIONS, "method", build=method_choice)


@dataclass(frozen=True, slots=True)
class WholeRows:
    """The texts of a file, and beside each the values of all columns."""

    texts: list[str]
    columns: tuple[str, ...]
    values: list[list[object]]
    format: str


def read_whole_rows(source: TextSource) -> WholeRows:
    """All rows of the file; refuses one without rows, and a row without a text."""
    from twinvec.data.read import open_table
    from twinvec.data.table import choose_column, read_format, text_of
    from twinvec.errors import InputError

    format = read_format(source.file, source.format)
    if source.column is not None and format == "lines":
        raise InputError(f"Plain lines have no columns, so there is no column {source.column!r}.")
    table = open_table(source.file, format=source.format)
    if not table.columns:
        raise InputError(f"{table.name} holds no texts.", hint="Give it at least one row.")
    column = choose_column(table.columns, source.column, source=table.name)
    texts, values = [], []
    for row in table.rows(table.columns):
        if isinstance(row, Exception):
            raise row
        texts.append(text_of(row.values[column], column, where=row.where))
        values.append(list(row.values.values()))
    if not texts:
        raise InputError(f"{table.name} holds no texts.", hint="Give it at least one row.")
    return WholeRows(texts, table.columns, values, format)
