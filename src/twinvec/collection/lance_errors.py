"""Lance's errors in our words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from twinvec.errors import CollectionError, TwinvecError

__all__ = ["UNREACHED", "is_lances", "lance_errors", "reason_of"]

SOURCE_PLACE = re.compile(r",\s+\S+\.rs:\d+:\d+")
PREFIX = re.compile(
    r"^(?:lance error: |LanceError\(\w+\): |Invalid input, |External error: |.*Invalid user input: |"
    r"Query Execution error: |Error applying filter expression to batch: |Arrow error: |Cast error: |Compute error: )+"
)
LONGEST_REASON = 300  # of an object store it may hold whole answers of a server
UNREACHED = "Check the address, the network, and the options and rights of the store."
# what the reason says -> what to do about it; the first that is found
HINTS = {
    r"conflict|concurrent": "Another process has written at the same time; nothing was changed. Do it again.",
    r"os error (?:27|28|122)|No space|too large": "Make room on the disk; nothing was changed.",
    r"Generic (?:S3|GCS|MicrosoftAzure|HTTP)": UNREACHED,
    r"os error (?:1|13|30)\b|denied|read-only": "Check the rights to the folder.",
}
PANICS = ("RustPanic", "PanicException")  # what its Rust code raises on some damaged files; private classes
DAMAGED = "A file of the collection is missing or damaged; bring it back from a copy."


def reason_of(error: BaseException) -> str:
    """What an error of Lance says, without the places in its source.

    >>> reason_of(RuntimeError("lance error: LanceError(IO): file size is too small, /x/lance-io/src/utils.rs:172:20"))
    'file size is too small'
    """
    text = SOURCE_PLACE.sub("", str(error).splitlines()[0] if str(error) else type(error).__name__)
    reason = PREFIX.sub("", text).rstrip(". ")
    return reason if len(reason) <= LONGEST_REASON else f"{reason[:LONGEST_REASON]} ..."


def is_lances(error: BaseException) -> bool:
    """Whether an error is one that Lance raises, and not ours or Python's.

    >>> is_lances(RuntimeError("lance error: ...")), is_lances(KeyboardInterrupt())
    (True, False)
    """
    is_known = isinstance(error, (RuntimeError, OSError, ValueError)) or type(error).__name__ in PANICS
    return is_known and not isinstance(error, TwinvecError)


@contextmanager
def lance_errors(doing: str, *, hint: str | None = None) -> Iterator[None]:
    """Turn whatever Lance raises while ``doing`` something (such as "read /data/notes") into a CollectionError.

    Without a ``hint`` what it raises decides what to do about it.
    """
    try:
        yield
    except BaseException as error:
        if not is_lances(error):
            raise
        reason = reason_of(error)
        fitting = (what for pattern, what in HINTS.items() if re.search(pattern, reason, re.IGNORECASE))
        raise CollectionError(f"Cannot {doing}: {reason}.", hint=hint or next(fitting, DAMAGED)) from error
