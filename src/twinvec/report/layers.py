"""The layer lab's report: a page with all plots and tables, the plots, and the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from twinvec.analysis import LayerSurvey
from twinvec.analysis.layers import LayerFindings
from twinvec.analysis.words import MovingWord, WordGroups
from twinvec.report.html import document, element, picture, slug, table, write_folder
from twinvec.report.plots import draw_cosines, draw_distances, draw_picture, draw_words

__all__ = ["LAYER_DATA", "group_rows", "moves_more", "write_layer_report"]

LAYER_DATA = "layers.json"
DISTANCES = "distances.png"
ABOUT_COSINES = "The cosine between a token's states in two layers, as a mean over all tokens but special ones."
ABOUT_WORDS = (
    "The variance of the cosines between a word's neighbour layers, SBERT-WK's measure of how much it counts. "
    "Words that are several tokens are left out."
)
ABOUT_PICTURES = (
    "Cells: how much each layer counts in a token's vector. Bars: how much each token counts in the text's."
)


def write_layer_report(findings: LayerFindings, target: Path, *, replace: bool = False) -> None:
    """Write ``report.html``, ``layers.json`` and the plots into a folder, all or none."""
    plots = layer_plots(findings)
    page = layer_html(findings, plots)
    write_folder(target, page=page, files=plots, data=(LAYER_DATA, findings.as_dict()), replace=replace)


def layer_plots(findings: LayerFindings) -> dict[str, bytes]:
    """The content of every plot by the name of its file."""
    plots = {DISTANCES: draw_distances(findings.surveys, findings.distances)}
    for survey in findings.surveys:
        plots[_name("cosines", survey.model)] = draw_cosines(survey)
        found = findings.extremes(survey)
        if found.lowest:
            plots[_name("words", survey.model)] = draw_words(survey, found)
    texts = list(dict.fromkeys(each.text for each in findings.pictures))
    for each in findings.pictures:
        plots[_name(f"text-{texts.index(each.text) + 1}", each.model)] = draw_picture(each)
    return plots


def _name(what: str, model: str) -> str:
    return f"{what}-{slug(model)}.png"


def layer_html(findings: LayerFindings, plots: Mapping[str, bytes]) -> str:
    """The whole page."""
    return document("What the layers do", _parts(findings, plots))


def _parts(findings: LayerFindings, plots: Mapping[str, bytes]) -> Iterator[str]:
    first = findings.surveys[0]
    yield element("p", "Layer lab", class_="eyebrow")
    yield element("h1", escape(", ".join(each.model for each in findings.surveys)))
    source = "standard input" if findings.source == "-" else Path(findings.source).name
    yield element("p", escape(f"What the layers do to the {first.n_texts:,} texts of {source}."), class_="lead")
    yield element("h2", "From layer to layer")
    yield element("p", ABOUT_COSINES, class_="note")
    yield picture(plots[DISTANCES], "Mean cosine of each layer to those before it")
    names = [(_name("cosines", each.model), f"{each.model}: cosines between layers") for each in findings.surveys]
    yield element("div", *(picture(plots[name], label) for name, label in names), class_="pair")
    yield element("h2", "Words")
    yield element("p", ABOUT_WORDS, class_="note")
    for survey in findings.surveys:
        yield from _words(findings, survey, plots)
    if findings.pictures:
        yield element("h2", "Texts")
        yield element("p", ABOUT_PICTURES, class_="note")
    for name, content in plots.items():
        if name.startswith("text-"):
            yield picture(content, "Weights of layers and tokens")


def _words(findings: LayerFindings, survey: LayerSurvey, plots: Mapping[str, bytes]) -> Iterator[str]:
    found, groups = findings.extremes(survey), findings.groups(survey)
    if not found.lowest:
        why = "fewer than three words were seen often enough, or there are fewer than two changes of layer"
        yield element("p", escape(f"{survey.model}: no ranking, as {why}."), class_="note")
        return
    yield picture(plots[_name("words", survey.model)], f"{survey.model}: words by variance")
    if groups is not None:
        names = "words", "seen", "mean variance", "each word once"
        heads = [(survey.model, ""), *((name, "number") for name in names)]
        yield table(heads, group_rows(groups))
        yield element("p", escape(moves_more(groups)), class_="note")
    heads = [("word", ""), ("seen", "number"), ("variance", "number"), ("", "")]
    yield table(heads, [_word_row(each) for part in found for each in part])


def group_rows(groups: WordGroups) -> list[list[str]]:
    """Function and content words: how many, how often seen, mean variance as seen, and of each word once."""
    named = ("function words", groups.function), ("content words", groups.content)
    return [
        [name, f"{each.n_words:,}", f"{each.n_seen:,}", f"{each.variance:.4f}", f"{each.variance_of_words:.4f}"]
        for name, each in named
    ]


def moves_more(groups: WordGroups) -> str:
    """The comparison in a sentence."""
    return (
        "Of one content word and one function word, drawn at random, the content word varies more in "
        f"{100 * groups.content_moves_more:.0f} % of the cases."
    )


def _word_row(each: MovingWord) -> Sequence[str]:
    return each.word, f"{each.n_seen:,}", f"{each.variance:.4f}", "function word" if each.is_function else ""
