"""Options that several commands share. Each group of options reaches its command as one object."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from twinvec.choices import (
    DEFAULT_MODEL,
    DEVICES,
    FORMATS,
    LONG_POLICIES,
    MOST_ALL_PAIRS,
    PAIR_METHODS,
    PRECISIONS,
    READOUTS,
    RUNTIMES,
    UNKNOWN_POLICIES,
    PairMethod,
    parse_size,
)

if TYPE_CHECKING:
    from twinvec.embedder import Embedder

__all__ = [
    "METHOD_OPTIONS",
    "MODEL_VARIABLE",
    "Columns",
    "Decorator",
    "MethodChoice",
    "ModelChoice",
    "PromptChoice",
    "TextSource",
    "column_option",
    "columns_option",
    "csv_safe_option",
    "format_option",
    "is_given",
    "json_lines_option",
    "json_option",
    "layer_model_options",
    "method_choice",
    "method_options",
    "model_argument",
    "model_options",
    "option_group",
    "out_option",
    "prompt_options",
    "split_labels",
    "text_options",
]

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Any], Any]

MODEL_VARIABLE = "TWINVEC_MODEL"
Columns = dict[str, str | tuple[str, ...]]  # role -> one or more columns


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Which model to load, and how to run it."""

    name: str = DEFAULT_MODEL
    precision: str = "float32"
    threads: int | None = None
    device: str = "cpu"
    runtime: str = "auto"
    deterministic: bool = False
    long: str = "warn"
    unknown: str = "warn"
    truncate_dim: int | None = None
    readout: str | None = None
    trust_pickle: bool = False
    offline: bool = False

    def arguments(self) -> dict[str, Any]:
        """The arguments of ``twinvec.load``; click has checked their values."""
        return {name: value for name, value in asdict(self).items() if name != "name" and value is not None}

    def embedder(self, prompt: PromptChoice | None = None) -> Embedder:
        """The model with its prompt, which the library loads on first use; or a baseline."""
        from twinvec.embedder import as_embedder

        return as_embedder(self.name, self.arguments(), **({} if prompt is None else asdict(prompt)))

    def explicit(self) -> tuple[str | None, dict[str, Any]]:
        """The name and the settings given on the command line, for a collection that already has a model.

        TWINVEC_MODEL does not count: it sets a default, and must not change the model of a collection.
        """
        given = {name: value for name, value in asdict(self).items() if is_given(name)}
        return given.pop("name", None), given


def is_given(option: str) -> bool:
    """Whether an option is on the command line, rather than at its default or from an environment variable."""
    return click.get_current_context().get_parameter_source(option) is ParameterSource.COMMANDLINE


@dataclass(frozen=True, slots=True)
class TextSource:
    """Where the texts come from."""

    file: str
    column: str | None
    format: str | None

    def announce(self) -> None:
        """If the texts are typed on a terminal, tell the user how to enter them."""
        if self.file == "-" and sys.stdin.isatty():
            click.echo("Reading texts from the terminal, one per line; end with Ctrl-D.", err=True)

    def texts(self) -> Iterator[str]:
        """The texts, one at a time. The first is read right away, so that errors show early."""
        from twinvec.data.read import read_texts

        self.announce()
        return read_texts(self.file, self.column, format=self.format)


@dataclass(frozen=True, slots=True)
class PromptChoice:
    """The prompt put before every text."""

    prompt: str | None
    prompt_name: str | None

    def __post_init__(self) -> None:
        if self.prompt is not None and self.prompt_name is not None:
            raise click.UsageError("Give --prompt or --prompt-name, not both.")

    def arguments(self) -> dict[str, str]:
        """The arguments of ``Encoder.encode`` that are set."""
        return {name: value for name, value in asdict(self).items() if value is not None}


MODEL_OPTIONS: dict[str, Decorator] = {
    "name": click.option(
        "-m",
        "--model",
        "name",
        metavar="MODEL",
        default=DEFAULT_MODEL,
        envvar=MODEL_VARIABLE,
        show_envvar=True,
        help="Model folder or name, or the address of a server, such as http://127.0.0.1:8080.",
    ),
    "precision": click.option(
        "--precision",
        type=click.Choice(PRECISIONS),
        default="float32",
        help="Arithmetic inside the model. bfloat16 and int8 are faster on CPUs that support them.",
    ),
    "threads": click.option(
        "--threads", type=click.IntRange(min=1), help="Number of batches to run in parallel. Default: one per core."
    ),
    "device": click.option("--device", type=click.Choice(DEVICES), default="cpu", help="Device to run on."),
    "runtime": click.option(
        "--runtime", type=click.Choice(RUNTIMES), default="auto", help="Library that runs the model."
    ),
    "deterministic": click.option(
        "--deterministic", is_flag=True, help="Return the same bits for a text, whatever other texts are in its batch."
    ),
    "long": click.option(
        "--long",
        type=click.Choice(LONG_POLICIES),
        default="warn",
        help="What to do with texts longer than the model's limit: cut with a warning, fail, cut silently, or embed in "
        "chunks.",
    ),
    "unknown": click.option(
        "--unknown",
        type=click.Choice(UNKNOWN_POLICIES),
        default="warn",
        help="What to do with texts in a script that the model has no words for, such as Hangul in an English model.",
    ),
    "truncate_dim": click.option(
        "--truncate-dim", type=click.IntRange(min=1), help="Keep only the first N values of each vector.", metavar="N"
    ),
    "readout": click.option(
        "--readout",
        type=click.Choice(READOUTS),
        help="How to turn token states into a vector: a pooling, or wk for SBERT-WK. Default: the model's own.",
    ),
    "trust_pickle": click.option(
        "--trust-pickle", is_flag=True, help="Allow weights stored as a pickle. Loading a pickle can run code."
    ),
    "offline": click.option("--offline", is_flag=True, help="Never download a model."),
}
column_option = click.option(
    "--column", help="Column with the texts. Default: the only column, or one named text, sentence or content."
)
format_option = click.option(
    "--format", type=click.Choice(FORMATS), help="Format of FILE. Default: from its extension; lines for '-'."
)
TEXT_OPTIONS: dict[str, Decorator] = {
    "file": click.argument("file", metavar="[FILE]", default="-"),
    "column": column_option,
    "format": format_option,
}
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
json_lines_option = click.option("--json", "as_json", is_flag=True, help="Print JSON lines, even on a terminal.")
csv_safe_option = click.option(
    "--csv-safe",
    is_flag=True,
    help="In csv and tsv output, put a quote (') before cells that a spreadsheet would run as a formula.",
)


def parse_columns(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> Columns:
    """A click callback that parses ROLE=COLUMN options."""
    if not given:
        return {}
    from twinvec.data.roles import parse_roles
    from twinvec.errors import InputError

    try:
        return parse_roles(given)
    except InputError as error:
        raise click.BadParameter(str(error)) from error


def split_labels(_: click.Context, __: click.Parameter, given: str | None) -> tuple[str, ...] | None:
    """A click callback that splits comma-separated labels."""
    return None if given is None else tuple(name.strip() for name in given.split(","))


columns_option = click.option(
    "--columns",
    metavar="ROLE=COLUMN",
    multiple=True,
    callback=parse_columns,
    help="Read this role from this column. Repeatable. Default: the column with the role's name.",
)
PROMPT_OPTIONS: dict[str, Decorator] = {
    "prompt": click.option("--prompt", help="Text to put before every input text."),
    "prompt_name": click.option(
        "--prompt-name", help="Name of one of the model's prompts to put before every input text."
    ),
}


def option_group(
    options: dict[str, Decorator], into: str, *, build: Callable[..., object]
) -> Callable[[Command], Command]:
    """A decorator that adds options to a command and passes them as one object, the argument ``into``."""

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
    """A decorator that adds the options of a model, passed as ``model``; omitted ones keep their defaults."""
    kept = {each.name: MODEL_OPTIONS[each.name] for each in fields(ModelChoice) if each.name not in without}
    return option_group(kept, "model", build=ModelChoice)


model_argument = click.argument("name", metavar="[MODEL]", default=DEFAULT_MODEL, envvar=MODEL_VARIABLE)
layer_model_options = model_options(without=("name", "deterministic", "long", "unknown", "truncate_dim", "readout"))
text_options = option_group(TEXT_OPTIONS, "source", build=TextSource)
prompt_options = option_group(PROMPT_OPTIONS, "prompt", build=PromptChoice)


def out_option(metavar: str, help: str, **settings: Any) -> Decorator:  # noqa: ANN401 - click's own settings
    """The option ``-o, --out`` of a command."""
    return click.option("-o", "--out", "out", metavar=metavar, help=help, **settings)


METHOD_OPTIONS: dict[str, Decorator] = {
    "method": click.option(
        "--method",
        type=click.Choice(PAIR_METHODS),
        default=PAIR_METHODS[0],
        help="exact: compare all pairs. index: compare only the pairs that an index finds (extra: search). auto: index "
        f"above {MOST_ALL_PAIRS:,} texts.",
    ),
    "max_memory": click.option(
        "--max-memory",
        metavar="SIZE",
        help="Memory limit for the index, such as 4GB. A tight limit selects a smaller kind of index.",
    ),
}


@dataclass(frozen=True, slots=True)
class MethodChoice:
    """How to find pairs, and the memory limit of an index in bytes (None: no limit)."""

    method: PairMethod
    max_memory: int | None


def method_choice(method: PairMethod, max_memory: str | None) -> MethodChoice:
    """Check and build the choice, before any work."""
    if max_memory is not None and method == "exact":
        raise click.UsageError("--max-memory is for an index, not for --method exact.")
    return MethodChoice(method, None if max_memory is None else parse_size(max_memory))


method_options = option_group(METHOD_OPTIONS, "method", build=method_choice)
