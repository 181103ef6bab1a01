"""Made-up but plausible sentences of mixed length, the same on every machine."""

from __future__ import annotations

__all__ = ["sample_texts"]

WHO = (
    "The committee",
    "A young girl in a red coat",
    "My neighbor",
    "The new version of the program",
    "An old fisherman from the village",
    "Nobody",
    "The bank",
    "Our team of five engineers",
    "A large brown dog",
    "The museum near the station",
    "Her doctor",
)
WHAT = (
    "opened the door",
    "explained why prices rose so quickly last winter",
    "is waiting",
    "lost the keys to the car",
    "published a report about water, energy and food in dry regions",
    "plays the violin",
    "found an error in the third chapter",
    "asked how long the journey by train to the coast would take",
    "cooks soup",
    "was repaired within a week",
)
WHEN = (
    "",
    " today",
    " after the meeting in the city hall",
    " while it was raining",
    " although several experts had warned against it at the beginning of the year",
    " in 1998",
    ", and then everyone went home",
    " because the contract, which both sides had signed in March, left them no choice",
    " again",
)


def sample_texts(n: int) -> list[str]:
    """The first ``n`` of 990 different sentences, 15 words long on average.

    >>> sample_texts(3)[2], len(set(sample_texts(5000)))
    ('My neighbor is waiting after the meeting in the city hall.', 990)
    """
    # 11, 10 and 9 have no common factor: stepping through the three lists at once meets every mix once
    n = min(n, len(WHO) * len(WHAT) * len(WHEN))
    return [f"{WHO[i % len(WHO)]} {WHAT[i % len(WHAT)]}{WHEN[i % len(WHEN)]}." for i in range(n)]
