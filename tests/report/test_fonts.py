"""Plots and pages with Korean: a font that has it, or escapes, but never empty boxes."""

import unicodedata
import warnings

import numpy as np
import pytest

from twinvec.analysis.layers import TextPicture
from twinvec.progress import columns_of, shortened
from twinvec.report import fonts
from twinvec.report.html import document, drawing_file, figure
from twinvec.report.plots import draw_picture, new_figure, png_of

pytest.importorskip("matplotlib")

KOREAN = "비밀번호를 재설정하나요?"
HAS_KOREAN = len(fonts.families_for([KOREAN])) > 1


@pytest.fixture
def only_default(monkeypatch):
    """As on a machine where no font but matplotlib's own is installed."""
    import matplotlib.font_manager as manager

    own = [font for font in manager.fontManager.ttflist if font.name == fonts.DEFAULT_FONT]
    monkeypatch.setattr(manager.fontManager, "ttflist", own)
    for cached in (fonts._fonts, fonts._others, fonts._warn_once):
        cached.cache_clear()
    yield
    for cached in (fonts._fonts, fonts._others, fonts._warn_once):
        cached.cache_clear()


def picture(tokens):
    weights = np.full((2, len(tokens)), 0.5)
    return TextPicture("model", KOREAN, tuple(tokens), 1, weights, np.full(len(tokens), 1 / len(tokens)))


def test_without_a_font_the_characters_are_escaped_with_one_warning(only_default, caplog):
    assert fonts.drawable("pass 한") == "pass \\ud55c"
    assert fonts.drawable("한국 Σ é …") == "\\ud55c\\uad6d Σ é …"
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib warns of missing glyphs
        assert draw_picture(picture(["[CLS]", "비밀", "##번호", "[SEP]"])).startswith(b"\x89PNG")
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.mark.skipif(not HAS_KOREAN, reason="no font with Korean is installed")
def test_with_a_font_the_labels_are_drawn_as_they_are(caplog):
    assert fonts.drawable(KOREAN) == KOREAN
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = draw_picture(picture(["[CLS]", "비밀", "##번호", "[SEP]"]))
    assert drawn.startswith(b"\x89PNG") and not caplog.records


@pytest.mark.skipif(not HAS_KOREAN, reason="no font with Korean is installed")
def test_only_texts_that_need_another_font_get_one():
    drawing = new_figure(2, 1)
    korean, english = drawing.text(0, 0, "한국"), drawing.text(0, 0.5, "Korea")
    before = english.get_fontfamily()
    png_of(drawing)
    assert korean.get_fontfamily()[0] == fonts.DEFAULT_FONT and len(korean.get_fontfamily()) == 2
    assert english.get_fontfamily() == before


def test_jamo_are_joined_to_syllables(only_default):
    assert fonts.drawable(unicodedata.normalize("NFD", "한")) == "\\ud55c"


def test_pages_and_drawings_name_korean_fonts():
    page, drawing = document("title", ["body"]), drawing_file(figure("", width=1, height=1, label="x")).decode()
    for content in (page, drawing):
        assert '"Malgun Gothic"' in content and '"Noto Sans KR"' in content and "FONTS" not in content


def test_width_and_truncation_count_columns_and_keep_characters_whole():
    assert columns_of("abc 한국") == 8 and columns_of(unicodedata.normalize("NFD", "한국")) == 4
    for most in range(2, 20):
        cut = shortened(KOREAN, most)
        assert columns_of(cut) <= most and (cut == KOREAN or KOREAN.startswith(cut[:-1]))
    assert shortened(unicodedata.normalize("NFD", "한국어"), 5) == "한국…"
