"""How numbers, protocols and facts are written, the same in every report."""

from __future__ import annotations

from collections.abc import Iterator

from twinvec.evaluate.result import Evaluation, Result, Subset

__all__ = ["facts", "protocols", "show_interval", "show_value"]

UNDEFINED = "undefined"


def show_value(result: Result | Subset) -> str:
    """The number with two decimals; in words where it is undefined.

    >>> show_value(Subset("news", 20, 77.034)), show_value(Subset("news", 20, None, "all values are equal"))
    ('77.03', 'undefined')
    """
    return UNDEFINED if result.value is None else f"{result.value:.2f}"


def show_interval(result: Result) -> str:
    """The 95 % interval; empty where there is none."""
    return "" if result.low is None or result.high is None else f"{result.low:.2f} to {result.high:.2f}"


def protocols(evaluation: Evaluation) -> dict[str, list[Result]]:
    """The results by protocol, in the order in which protocols first appear."""
    found: dict[str, list[Result]] = {}
    for result in evaluation.results:
        found.setdefault(result.protocol, []).append(result)
    return found


def facts(evaluation: Evaluation) -> Iterator[tuple[str, str]]:
    """Label and value of what a report says of itself."""
    yield "model", evaluation.subject
    if evaluation.settings:
        yield "settings", ", ".join(f"{name}={value}" for name, value in evaluation.settings.items())
    yield "date", evaluation.date.replace("T", " ").replace("Z", " UTC")
    yield "versions", ", ".join(f"{name} {value}" for name, value in evaluation.versions.items())
    yield "identity", evaluation.identity
