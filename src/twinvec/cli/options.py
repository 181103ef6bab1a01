"""Options that several commands share, each group collected into one object."""

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
    "gathered",
    "is_given",
    "label_list",
    "layer_model_options",
    "method_choice",
    "method_options",
    "model_argument",
    "model_options",
    "out_option",
    "prompt_options",
    "text_options",
]

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Any], Any]

MODEL_VARIABLE = "TWINVEC_MODEL"
Columns = dict[str, str | tuple[str, ...]]  # role -> its column, or several


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
    truncate_dim: int | None = None
    readout: str | None = None
    trust_pickle: bool = False
    offline: bool = False

    def arguments(self) -> dict[str, Any]:
        """The arguments of ``twinvec.load`` that were given; click has checked the words."""
        return {name: value for name, value in asdict(self).items() if name != "name" and value is not None}

    def embedder(self, prompt: PromptChoice | None = None) -> Embedder:
        """The model, loaded when the library needs it, with what stands before every text; or a baseline."""
        from twinvec.embedder import as_embedder

        return as_embedder(self.name, self.arguments(), **({} if prompt is None else asdict(prompt)))

    def given(self) -> tuple[str | None, dict[str, Any]]:
        """The name and the settings that stand in the command line, for a collection that has a model already.

        The variable for the model does not count: it says which one to take, not to change one.
        """
        found = {name: value for name, value in asdict(self).items() if is_given(name, ParameterSource.COMMANDLINE)}
        return found.pop("name", None), found


def is_given(option: str, *sources: ParameterSource) -> bool:
    """Whether the user has given an option, in one of some ways or in any, rather than left it to its default."""
    found = click.get_current_context().get_parameter_source(option)
    return found in sources if sources else found is not ParameterSource.DEFAULT


@dataclass(frozen=True, slots=True)
class TextSource:
    """Where the texts come from."""

    file: str
    column: str | None
    format: str | None

    def announce(self) -> None:
        """Say that the terminal is read, if it is."""
        if self.file == "-" and sys.stdin.isatty():
            click.echo("Reading texts from the terminal, one per line; end with Ctrl-D.", err=True)

    def texts(self) -> Iterator[str]:
        """The texts, one at a time; the first is read at once, so that errors show early."""
        from twinvec.data.read import read_texts

        self.announce()
        return read_texts(self.file, self.column, format=self.format)


@dataclass(frozen=True, slots=True)
class PromptChoice:
    """What stands before every text."""

    prompt: str | None
    prompt_name: str | None

    def __post_init__(self) -> None:
        if self.prompt is not None and self.prompt_name is not None:
            raise click.UsageError("Give --prompt or --prompt-name, not both.")

    def arguments(self) -> dict[str, str]:
        """The arguments of ``Encoder.encode`` that were given."""
        return {name: value for name, value in asdict(self).items() if value is not None}


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
column_option = click.option(
    "--column", help="Column of the texts. Default: the only one, or text, sentence or content."
)
format_option = click.option(
    "--format", type=click.Choice(FORMATS), help="Format of FILE. Default: by its ending; lines for '-'."
)
TEXT_OPTIONS: dict[str, Decorator] = {
    "file": click.argument("file", metavar="[FILE]", default="-"),
    "column": column_option,
    "format": format_option,
}
csv_safe_option = click.option(
    "--csv-safe",
    is_flag=True,
    help="In csv and tsv, put a quote (') before cells that a spreadsheet would run as a formula.",
)


def parse_columns(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> Columns:
    """A click callback: columns by role, from the library's parser."""
    if not given:
        return {}
    from twinvec.data.roles import parse_roles
    from twinvec.errors import InputError

    try:
        return parse_roles(given)
    except InputError as error:
        raise click.BadParameter(str(error)) from error


def label_list(_: click.Context, __: click.Parameter, given: str | None) -> tuple[str, ...] | None:
    """A click callback: names from one text with commas."""
    return None if given is None else tuple(name.strip() for name in given.split(","))


columns_option = click.option(
    "--columns",
    metavar="ROLE=COLUMN",
    multiple=True,
    callback=parse_columns,
    help="Read a role from this column; may be given several times. Default: the column named like the role.",
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


model_argument = click.argument("name", metavar="[MODEL]", default=DEFAULT_MODEL, envvar=MODEL_VARIABLE)
layer_model_options = model_options(without=("name", "deterministic", "long", "truncate_dim", "readout"))
text_options = gathered(TEXT_OPTIONS, "source", build=TextSource)
prompt_options = gathered(PROMPT_OPTIONS, "prompt", build=PromptChoice)


def out_option(metavar: str, help: str, **settings: Any) -> Decorator:  # noqa: ANN401 - as click has them
    """Where the result goes, called the same in every command."""
    return click.option("-o", "--out", "out", metavar=metavar, help=help, **settings)


METHOD_OPTIONS: dict[str, Decorator] = {
    "method": click.option(
        "--method",
        type=click.Choice(PAIR_METHODS),
        default=PAIR_METHODS[0],
        show_default=True,
        help="Compare all pairs, or those that an index finds (extra: search). auto: an index from "
        f"{MOST_ALL_PAIRS:,} texts on.",
    ),
    "max_memory": click.option(
        "--max-memory", metavar="SIZE", help="For an index: its memory, such as 4GB; a smaller kind is taken."
    ),
}


@dataclass(frozen=True, slots=True)
class MethodChoice:
    """How pairs are found, and the most bytes that an index may take (None: all that it wants)."""

    method: PairMethod
    max_memory: int | None


def method_choice(method: PairMethod, max_memory: str | None) -> MethodChoice:
    """The choice; an invalid size, or one that nothing would use, is reported before any work."""
    if max_memory is not None and method == "exact":
        raise click.UsageError("--max-memory is for an index, not for --method exact.")
    return MethodChoice(method, None if max_memory is None else parse_size(max_memory))


method_options = gathered(METHOD_OPTIONS, "method", build=method_choice)
