"""Two evaluations side by side: which of their results are of the same task under the same protocol."""

from __future__ import annotations

from typing import NamedTuple

from twinvec.errors import InputError
from twinvec.evaluate.comparing import Comparison, compare_all
from twinvec.evaluate.result import Evaluation, Result

__all__ = ["Compared", "compare_evaluations"]


class Compared(NamedTuple):
    """What could be compared, and in words what could not."""

    comparisons: tuple[Comparison, ...]
    left_out: tuple[str, ...]


def compare_evaluations(left: Evaluation, right: Evaluation) -> Compared:
    """Compare all results that both have, item by item, with Holm's correction over them."""
    ones, others = _by_key(left), _by_key(right)
    both = [key for key in ones if key in others]
    defined = [key for key in both if ones[key].value is not None and others[key].value is not None]
    if not defined:
        raise InputError(
            f"{left.subject} and {right.subject} have no result in common.",
            hint="Evaluate both on the same tasks under the same protocol.",
        )
    names = (left.subject, right.subject) if left.subject != right.subject else ("the first", "the second")
    comparisons = compare_all(
        [ones[key].outcome for key in defined], [others[key].outcome for key in defined], names=names
    )
    left_out = [f"{key[0]}: undefined for one of the two ({key[1]})." for key in both if key not in defined]
    for name, mine in ((left.subject, ones), (right.subject, others)):
        left_out += [f"{key[0]}: only {name} has it ({key[1]})." for key in mine if key not in both]
    return Compared(comparisons, tuple(left_out))


def _by_key(evaluation: Evaluation) -> dict[tuple[str, str], Result]:
    return {(result.task, result.protocol): result for result in evaluation.results}
