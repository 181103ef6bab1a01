"""Fonts for plots and pages: Korean and other scripts without empty boxes.

The default font of matplotlib has no Hangul. A plot uses an installed font that has the missing characters; without
one, they are written as escapes, with one warning.
"""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from twinvec.extras import require

__all__ = ["PAGE_FONTS", "drawable", "families_for", "use_fonts"]

logger = logging.getLogger(__name__)

# Preferred fonts with Korean; then any installed font that has the characters.
KOREAN_FONTS = (
    *("Noto Sans KR", "Noto Sans CJK KR", "Noto Sans CJK JP", "Apple SD Gothic Neo", "Malgun Gothic"),
    *("NanumGothic", "Nanum Gothic", "NanumBarunGothic", "Pretendard", "AppleGothic", "UnDotum"),
)
# The font stack of pages and SVG files. A browser takes each character from the first font that has it.
PAGE_FONTS = ", ".join(
    f'"{name}"' if " " in name else name
    for name in ("Segoe UI", "Helvetica Neue", "Arial", *KOREAN_FONTS, "sans-serif")
)
PLACEHOLDERS = "Last Resort"  # fonts that have a box for every character
DEFAULT_FONT = "DejaVu Sans"  # comes with matplotlib


def drawable(text: str) -> str:
    r"""The text in composed characters (NFC); those that no installed font has are escaped, with one warning.

    >>> drawable("na\u0131\u0308ve \u1112\u1161")[:2]
    'na'
    """
    text = unicodedata.normalize("NFC", text)
    lacking = _missing(families_for([text])[1:], text)
    if not lacking:
        return text
    _warn_once()
    return "".join(f"\\u{ord(each):04x}" if each in lacking else each for each in text)


def families_for(texts: Iterable[str]) -> list[str]:
    """The font families that together have the characters of the texts, as far as they are installed.

    >>> families_for(["plain"])
    ['DejaVu Sans']
    """
    characters = frozenset(each for text in texts for each in text if not each.isascii())
    return [DEFAULT_FONT, *_others(frozenset(_missing([], "".join(sorted(characters)))))]


def use_fonts(figure: Any) -> None:  # noqa: ANN401 - matplotlib's
    """Give every text of a figure the fonts that its characters need."""
    text_kind = require("matplotlib.text", extra="eval", feature="Drawing plots").Text
    for text in figure.findobj(text_kind):
        if not text.get_text().isascii():
            text.set_fontfamily(families_for([text.get_text()]))


def _missing(families: Iterable[str], text: str) -> set[str]:
    """The printable characters that neither the default font nor these have."""
    known = frozenset[int]().union(*(_characters(_fonts()[name]) for name in (DEFAULT_FONT, *families)))
    return {each for each in text if each.isprintable() and ord(each) not in known and not each.isascii()}


@lru_cache(maxsize=1 << 10)
def _others(missing: frozenset[str]) -> tuple[str, ...]:
    """Installed fonts with the missing characters: the first with the most of them, and so on for the rest."""
    fonts = _fonts()
    names = [name for name in dict.fromkeys([*KOREAN_FONTS, *sorted(fonts)]) if name in fonts]
    wanted = frozenset(map(ord, missing))
    chosen: list[str] = []
    while wanted:
        best = max(names, key=lambda name: len(wanted & _characters(fonts[name])), default=DEFAULT_FONT)
        found = wanted & _characters(fonts[best])
        if not found:
            break
        chosen.append(best)
        wanted -= found
    return tuple(chosen)


@lru_cache(maxsize=1)
def _fonts() -> dict[str, str]:
    """The file of each installed family, upright and of normal weight if there is one."""
    manager = require("matplotlib.font_manager", extra="eval", feature="Drawing plots").fontManager
    ordered = sorted(manager.ttflist, key=lambda font: (font.style == "normal", font.weight in (400, "normal")))
    return {font.name: font.fname for font in ordered if not font.name.startswith(PLACEHOLDERS)}


@lru_cache(maxsize=1 << 9)
def _characters(file: str) -> frozenset[int]:
    """The code points of a font file; none if it cannot be read."""
    manager = require("matplotlib.font_manager", extra="eval", feature="Drawing plots")
    try:
        return frozenset(manager.get_font(file).get_charmap())
    except (OSError, RuntimeError):  # removed since matplotlib listed it, or damaged
        return frozenset()


@lru_cache(maxsize=1)
def _warn_once() -> None:
    logger.warning(
        "No installed font has all characters of the plot; the others are shown as escapes such as \\ud55c. Install a "
        "font with them, such as Noto Sans CJK."
    )
