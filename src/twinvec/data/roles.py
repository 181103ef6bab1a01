"""Kinds of training examples, the roles of their columns, and where they are read from."""

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

TargetValues = Literal["names", "numbers", "marks"]


@dataclass(frozen=True, slots=True)
class Kind:
    """What a row of examples holds.

    ``texts`` are the roles that hold one text each, ``many`` the role that may hold none, one or several. ``values``
    says what the target is: the name of a class, a number within a range, or a mark, 0 or 1. In a symmetric kind
    it does not matter which of the two texts comes first. Rows of a grouped kind that share texts may be trained on
    in one batch.
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
        """The roles that every row must fill."""
        return self.texts + ((self.target,) if self.target else ())

    @property
    def roles(self) -> tuple[str, ...]:
        """All roles, those of the texts first."""
        return self.text_roles + ((self.target,) if self.target else ())

    @property
    def text_roles(self) -> tuple[str, ...]:
        """The roles of texts, that of several texts last."""
        return self.texts + ((self.many,) if self.many else ())


# In the order in which a kind is guessed from column names: the first whose needed roles are all there.
KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("labelled_pairs", ("premise", "hypothesis"), target="label", values="names", is_grouped=True),
        Kind("scored_pairs", ("text1", "text2"), target="score", values="numbers", is_symmetric=True, is_grouped=True),
        Kind("marked_pairs", ("text1", "text2"), target="label", values="marks", is_symmetric=True, is_grouped=True),
        Kind("triplets", ("anchor", "positive", "negative"), is_grouped=True),
        Kind("ranked", ("anchor", "positive"), many="negative"),  # wants different texts in a batch
        Kind("texts", ("text",)),
    )
}
TEXT_ROLES: tuple[str, ...] = tuple(dict.fromkeys(role for kind in KINDS.values() for role in kind.text_roles))


def find_kind(name: str) -> Kind:
    """The kind of that name.

    >>> find_kind("triplets").texts
    ('anchor', 'positive', 'negative')
    """
    check_name("kind of examples", name, KINDS)
    return KINDS[name]


def guess_kind(columns: Collection[str], *, source: str) -> Kind:
    """The first kind whose roles all have a column of their name.

    >>> guess_kind(["genre", "score", "text1", "text2"], source="sts.tsv").name
    'scored_pairs'
    """
    for kind in KINDS.values():
        if set(kind.needed) <= set(columns):
            return kind
    needs = "; ".join(f"{kind.name} ({', '.join(kind.needed)})" for kind in KINDS.values())
    raise InputError(
        f"The columns of {source} fit no kind of examples: {', '.join(columns)}.",
        hint=f"Say which column plays which role, as in --columns premise=sentence1. Kinds and their roles: {needs}.",
    )


@dataclass(frozen=True)
class DataSource:
    """A file of examples. A role that ``columns`` does not mention is read from the column of its own name.

    Args:
        columns: role -> its column; for the role ``negative`` of ranked examples also several columns.
        format: csv, tsv, jsonl, parquet or lines; by default the ending of the file says it.
        labels: names of the classes, in the order of their numbers; by default those found, sorted.
        ignore_labels: rows with one of these labels are left out.
        score_range: the lowest and the highest possible score; scores are scaled from it to 0 .. 1.
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
        # Lists come from TOML and JSON; kept as tuples, they stay as they were checked.
        object.__setattr__(self, "columns", {role: _column(role, names) for role, names in self.columns.items()})
        if self.labels is not None:
            object.__setattr__(self, "labels", _names(self.labels, "labels"))
        object.__setattr__(self, "ignore_labels", _names(self.ignore_labels, "ignore_labels"))
        object.__setattr__(self, "score_range", _range(self.score_range))
        _check_columns(kind, self)
        _check_target(kind, self)

    def columns_of(self, role: str) -> tuple[str, ...]:
        """The columns of a role: those it was mapped to, or the one of its own name."""
        names = self.columns.get(role, role)
        return (names,) if isinstance(names, str) else names


def guess_source(
    file: str | Path, columns: Mapping[str, str | tuple[str, ...]], *, score_range: tuple[float, float]
) -> DataSource:
    """A file whose columns say what kind of examples it holds; the range is used if that kind has scores."""
    kind = guess_kind([*open_table(file).columns, *columns], source=str(file))
    return DataSource(
        file, kind.name, columns, score_range=score_range if kind.values == "numbers" else DEFAULT_SCORE_RANGE
    )


def parse_roles(pairs: Iterable[str]) -> dict[str, str | tuple[str, ...]]:
    """Columns by role from texts such as ``premise=sentence1``; a role given twice has several columns.

    >>> parse_roles(["premise=sentence1", "negative=n1", "negative=n2"])
    {'premise': 'sentence1', 'negative': ('n1', 'n2')}
    """
    found: dict[str, list[str]] = {}
    for pair in pairs:
        role, _, column = (part.strip() for part in pair.partition("="))
        if not role or not column:
            raise InputError(f"{pair!r} is not of the form ROLE=COLUMN.", hint="Write, for example, premise=sentence1.")
        found.setdefault(role, []).append(column)
    return {role: names[0] if len(names) == 1 else tuple(names) for role, names in found.items()}


def _check_columns(kind: Kind, source: DataSource) -> None:
    for role, names in source.columns.items():
        if role not in kind.roles:
            raise UnknownNameError(f"role of {kind.name}:", role, kind.roles)
        if len(source.columns_of(role)) > 1 and role != kind.many:
            raise InputError(
                f"The role {role!r} of {kind.name} was given {len(names)} columns: {', '.join(names)}.",
                hint="Name one; only 'negative' of the kind ranked may have several.",
            )
    taken: dict[str, str] = {}
    for role in (role for role in kind.roles if role != kind.many or role in source.columns):
        for column in source.columns_of(role):
            if column in taken:
                raise InputError(
                    f"The column {column!r} was given to the role {taken[column]!r} and to {role!r}.",
                    hint="Give every role a column of its own; one that is not mapped takes the column of its name.",
                )
            taken[column] = role


def _check_target(kind: Kind, source: DataSource) -> None:
    if source.labels is not None:
        if kind.values != "names":
            raise InputError(f"Examples of the kind {kind.name} have no named labels, but labels were given.")
        twice = [name for name, count in Counter(source.labels).items() if count > 1]
        both = sorted(set(source.labels) & set(source.ignore_labels))
        if not source.labels or twice or both:
            what = f"{twice[0]!r} twice" if twice else f"{both[0]!r}, which is also ignored" if both else "none"
            raise InputError(f"The labels name {what}: {source.labels}.", hint="Name each label once.")
    if source.ignore_labels and kind.target != "label":
        raise InputError(f"Examples of the kind {kind.name} have no labels, but ignore_labels were given.")
    if source.score_range != DEFAULT_SCORE_RANGE and kind.values != "numbers":
        raise InputError(f"Examples of the kind {kind.name} have no scores, but score_range was given.")


def _column(role: str, given: object) -> str | tuple[str, ...]:
    names = tuple(given) if isinstance(given, (list, tuple)) else (given,)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise InputError(
            f"The column of the role {role!r} must be a name, or several, got {given!r}.",
            hint='Write columns = {premise = "sentence1"}.',
        )
    return names if len(names) > 1 else names[0]


def _names(names: Iterable[object], what: str) -> tuple[str, ...]:
    if isinstance(names, (str, bytes)):
        raise InputError(f"{what} must be a list of names, got {names!r}.", hint=f"Write [{names!r}].")
    found = tuple(names)
    if not all(isinstance(name, (str, int, float)) for name in found):
        raise InputError(f"{what} must be a list of names, got {found!r:.80}.")
    return tuple(str(name) for name in found)


def _range(given: Sequence[float]) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in given if not isinstance(end, (str, bool)))
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"score_range must be two numbers, got {given!r}.", hint="Write (0, 5).") from error
    if not (low < high and math.isfinite(low) and math.isfinite(high)):
        raise InputError(f"score_range must go from a low number to a higher one, got {low:g} to {high:g}.")
    return low, high


# What others call the columns of a role. Only ever suggested, never read without being asked.
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
    "text": ("sentence", "content"),
}


def find_columns(source: DataSource, table: Table) -> dict[str, tuple[str, ...]]:
    """The columns of each role, roles in the order of the kind; ``negative`` of ranked examples only if it has any."""
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
        hint=f"Name it: columns = {{{recipe}}} in a recipe, {options} on the command line.",
    )


def _likely(role: str, column: str, *, free: Sequence[str]) -> str:
    """A column that may be the one meant, as an example to show; else a word in its place.

    >>> _likely("premise", "premise", free=["id", "sentence1", "sentence2"])
    'sentence1'
    """
    near = get_close_matches(column, free, n=1) or [name for name in OTHER_NAMES[role] if name in free]
    return near[0] if near else "COLUMN"
