"""Kinds of training examples, the roles of their columns, and the settings of a data file."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from twinvec.choices import DEFAULT_SCORE_RANGE, FORMATS, ExampleKind
from twinvec.data.read import open_table
from twinvec.data.table import Table, check_columns
from twinvec.errors import InputError, UnknownNameError, check_name

__all__ = [
    "TEXT_ROLES",
    "DataSource",
    "Kind",
    "TargetValues",
    "find_columns",
    "find_kind",
    "guess_kind",
    "guess_source",
    "parse_roles",
]

TargetValues = Literal["names", "numbers", "marks", "margins"]


@dataclass(frozen=True, slots=True)
class Kind:
    """The content of a row of examples.

    ``texts`` are the roles with one text each; ``many`` is a role with any number of texts. ``values`` is the type of
    the target: a class name, a number in a range, a mark (0 or 1), or a margin (any number). In a symmetric kind, the
    order of the two texts does not matter. In a grouped kind, rows that share texts may be in one training batch.
    """

    name: ExampleKind
    texts: tuple[str, ...]
    target: str | None = None
    values: TargetValues | None = None
    many: str | None = None
    is_symmetric: bool = False
    is_grouped: bool = False

    @property
    def needed(self) -> tuple[str, ...]:
        """The required roles."""
        return self.texts + ((self.target,) if self.target else ())

    @property
    def roles(self) -> tuple[str, ...]:
        """All roles, text roles first."""
        return self.text_roles + ((self.target,) if self.target else ())

    @property
    def text_roles(self) -> tuple[str, ...]:
        """The roles of texts; the one with several texts comes last."""
        return self.texts + ((self.many,) if self.many else ())


# Guessing a kind from column names takes the first whose required roles are all present.
KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("labelled_pairs", ("premise", "hypothesis"), target="label", values="names", is_grouped=True),
        Kind("scored_pairs", ("text1", "text2"), target="score", values="numbers", is_symmetric=True, is_grouped=True),
        Kind("marked_pairs", ("text1", "text2"), target="label", values="marks", is_symmetric=True, is_grouped=True),
        Kind(
            "scored_triplets",
            ("anchor", "positive", "negative"),
            target="margin",
            values="margins",
            is_grouped=True,
        ),
        Kind("triplets", ("anchor", "positive", "negative"), is_grouped=True),
        Kind("ranked", ("anchor", "positive"), many="negative"),  # needs distinct texts in a batch
        Kind("texts", ("text",)),
    )
}
TEXT_ROLES: tuple[str, ...] = tuple(dict.fromkeys(role for kind in KINDS.values() for role in kind.text_roles))


def find_kind(name: str) -> Kind:
    """Return the kind with this name.

    >>> find_kind("triplets").texts
    ('anchor', 'positive', 'negative')
    """
    check_name("kind of examples", name, KINDS)
    return KINDS[name]


def guess_kind(columns: Collection[str], *, source: str) -> Kind:
    """Return the first kind whose required roles are all names of columns.

    >>> guess_kind(["genre", "score", "text1", "text2"], source="sts.tsv").name
    'scored_pairs'
    """
    for kind in KINDS.values():
        if set(kind.needed) <= set(columns):
            return kind
    needs = "; ".join(f"{kind.name} ({', '.join(kind.needed)})" for kind in KINDS.values())
    raise InputError(
        f"The columns of {source} match no kind of examples: {', '.join(columns)}.",
        hint=f"Map columns to roles, for example --columns premise=sentence1. Kinds and their roles: {needs}.",
    )


@dataclass(frozen=True)
class DataSource:
    """A file of examples. A role that is not in ``columns`` is read from the column with the name of the role.

    Args:
        columns: role -> column; the role ``negative`` of ranked examples may have several columns.
        format: csv, tsv, jsonl, parquet or lines; by default, the file extension decides.
        labels: Class names in the order of their numbers; by default, those in the file, sorted.
        ignore_labels: Rows with one of these labels are skipped.
        score_range: The lowest and the highest possible score; scores are scaled from it to 0 .. 1.
    """

    file: str | Path
    kind: str
    columns: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    format: str | None = None
    labels: tuple[str, ...] | None = None
    ignore_labels: tuple[str, ...] = ()
    score_range: tuple[float, float] = DEFAULT_SCORE_RANGE

    def __post_init__(self) -> None:
        kind = find_kind(self.kind)
        if self.format is not None and self.format not in FORMATS:
            raise UnknownNameError("format", self.format, FORMATS)
        # TOML and JSON give lists; tuples cannot change after the check.
        object.__setattr__(self, "columns", {role: _column(role, names) for role, names in self.columns.items()})
        if self.labels is not None:
            object.__setattr__(self, "labels", _names(self.labels, "labels"))
        object.__setattr__(self, "ignore_labels", _names(self.ignore_labels, "ignore_labels"))
        object.__setattr__(self, "score_range", _range(self.score_range))
        _check_columns(kind, self)
        _check_target(kind, self)

    def columns_of(self, role: str) -> tuple[str, ...]:
        """The columns of a role: those it is mapped to, or the one with its name."""
        names = self.columns.get(role, role)
        return (names,) if isinstance(names, str) else names


def guess_source(
    file: str | Path, columns: Mapping[str, str | tuple[str, ...]], *, score_range: tuple[float, float]
) -> DataSource:
    """A file whose kind is guessed from its columns; ``score_range`` applies if that kind has scores."""
    kind = guess_kind([*open_table(file).columns, *columns], source=str(file))
    return DataSource(
        file, kind.name, columns, score_range=score_range if kind.values == "numbers" else DEFAULT_SCORE_RANGE
    )


def parse_roles(pairs: Iterable[str]) -> dict[str, str | tuple[str, ...]]:
    """Parse strings like ``premise=sentence1`` into columns by role; a repeated role has several columns.

    >>> parse_roles(["premise=sentence1", "negative=n1", "negative=n2"])
    {'premise': 'sentence1', 'negative': ('n1', 'n2')}
    """
    found: dict[str, list[str]] = {}
    for pair in pairs:
        role, _, column = (part.strip() for part in pair.partition("="))
        if not role or not column:
            raise InputError(f"{pair!r} does not have the form ROLE=COLUMN.", hint="Example: premise=sentence1.")
        found.setdefault(role, []).append(column)
    return {role: names[0] if len(names) == 1 else tuple(names) for role, names in found.items()}


def _check_columns(kind: Kind, source: DataSource) -> None:
    for role, names in source.columns.items():
        if role not in kind.roles:
            raise UnknownNameError(f"role of {kind.name}:", role, kind.roles)
        if len(source.columns_of(role)) > 1 and role != kind.many:
            raise InputError(
                f"The role {role!r} of {kind.name} is mapped to {len(names)} columns: {', '.join(names)}.",
                hint="Name only one; several are allowed only for 'negative' of the kind ranked.",
            )
    taken: dict[str, str] = {}
    for role in (role for role in kind.roles if role != kind.many or role in source.columns):
        for column in source.columns_of(role):
            if column in taken:
                raise InputError(
                    f"The column {column!r} is used twice, for the roles {taken[column]!r} and {role!r}.",
                    hint="Use a different column for each role; an unmapped role uses the column with its name.",
                )
            taken[column] = role


def _check_target(kind: Kind, source: DataSource) -> None:
    if source.labels is not None:
        if kind.values != "names":
            raise InputError(f"Examples of the kind {kind.name} have no class labels, but labels is set.")
        twice = [name for name, count in Counter(source.labels).items() if count > 1]
        both = sorted(set(source.labels) & set(source.ignore_labels))
        if not source.labels or twice or both:
            what = f"{twice[0]!r} twice" if twice else f"{both[0]!r}, which is also ignored" if both else "no names"
            raise InputError(f"labels has {what}: {source.labels}.", hint="List each label once.")
    if source.ignore_labels and kind.target != "label":
        raise InputError(f"Examples of the kind {kind.name} have no labels, but ignore_labels is set.")
    if source.score_range != DEFAULT_SCORE_RANGE and kind.values != "numbers":
        raise InputError(f"Examples of the kind {kind.name} have no scores, but score_range is set.")


def _column(role: str, value: object) -> str | tuple[str, ...]:
    names = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise InputError(
            f"The column of the role {role!r} must be a name or a list of names, got {value!r}.",
            hint='Example: columns = {premise = "sentence1"}.',
        )
    return names if len(names) > 1 else names[0]


def _names(names: Iterable[object], what: str) -> tuple[str, ...]:
    if isinstance(names, (str, bytes)):
        raise InputError(f"{what} must be a list of names, got {names!r}.", hint=f"Write [{names!r}].")
    found = tuple(names)
    if not all(isinstance(name, (str, int, float)) for name in found):
        raise InputError(f"{what} must be a list of names, got {found!r:.80}.")
    return tuple(str(name) for name in found)


def _range(value: Sequence[float]) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in value if not isinstance(end, (str, bool)))
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"score_range must be two numbers, got {value!r}.", hint="Example: (0, 5).") from error
    if not (low < high and math.isfinite(low) and math.isfinite(high)):
        raise InputError(f"score_range must be a low number and a higher one, both finite, got {low:g} and {high:g}.")
    return low, high


# Common names for the columns of a role. Only suggested, never used automatically.
OTHER_NAMES: dict[str, tuple[str, ...]] = {
    "premise": ("sentence1", "text1", "sentence_A"),
    "hypothesis": ("sentence2", "text2", "sentence_B"),
    "text1": ("sentence1", "sentence_A", "question1", "premise"),
    "text2": ("sentence2", "sentence_B", "question2", "hypothesis"),
    "label": ("gold_label", "is_duplicate", "class"),
    "score": ("similarity", "relatedness_score", "label"),
    "anchor": ("query", "question"),
    "positive": ("pos", "answer", "document"),
    "negative": ("neg", "hard_negative"),
    "margin": ("score", "label"),
    "text": ("sentence", "content"),
}


def find_columns(source: DataSource, table: Table) -> dict[str, tuple[str, ...]]:
    """The columns of each role, in the order of the kind; ``negative`` of ranked examples only if there are any."""
    kind = find_kind(source.kind)
    columns = {role: source.columns_of(role) for role in kind.roles if role != kind.many}
    is_free = kind.many in table.columns and (kind.many,) not in columns.values()
    if kind.many and (kind.many in source.columns or is_free):
        columns[kind.many] = source.columns_of(kind.many)
    missing = {role: column for role, names in columns.items() for column in names if column not in table.columns}
    if missing:
        raise _no_column(missing, source, table=table)
    check_columns(table.columns, [name for names in columns.values() for name in names], source=table.name)
    return columns


def _no_column(missing: dict[str, str], source: DataSource, *, table: Table) -> InputError:
    shown = ", ".join(
        f"{role} (mapped to {column!r})" if role in source.columns else role for role, column in missing.items()
    )
    free = [name for name in table.columns if name not in source.columns.values()]
    likely = {role: _likely(role, column, free=free) for role, column in missing.items()}
    recipe = ", ".join(f'{role} = "{column}"' for role, column in likely.items())
    options = " ".join(f"--columns {role}={column}" for role, column in likely.items())
    return InputError(
        f"{table.name} has no column for the role{'s' * (len(missing) > 1)} {shown} of {source.kind}; "
        f"its columns are: {', '.join(table.columns)}.",
        hint=f"Map it: columns = {{{recipe}}} in a recipe, {options} on the command line.",
    )


def _likely(role: str, column: str, *, free: Sequence[str]) -> str:
    """The most likely column for a role, to suggest in a hint; "COLUMN" if there is none.

    >>> _likely("premise", "premise", free=["id", "sentence1", "sentence2"])
    'sentence1'
    """
    near = get_close_matches(column, free, n=1) or [name for name in OTHER_NAMES[role] if name in free]
    return near[0] if near else "COLUMN"
