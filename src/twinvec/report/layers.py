"""The report of the layer lab: a page with all plots and tables, the plots as files, and the data."""

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
ABOUT_COSINES = "The cosine between a token's states in two layers, averaged over all tokens except special ones."
ABOUT_WORDS = (
    "The variance of the cosines between a word's adjacent layers, SBERT-WK's measure of importance. "
    "Words of several tokens are left out."
)
ABOUT_PICTURES = (
    "Cells: the weight of each layer in a token's vector. Bars: the weight of each token in the text vector."
)


def write_layer_report(findings: LayerFindings, target: Path, *, replace: bool = False) -> None:
    """Write ``report.html``, ``layers.json`` and the plots into a folder, all or none."""
    plots = layer_plots(findings)
    page = layer_html(findings, plots)
    write_folder(target, page=page, files=plots, data=(LAYER_DATA, findings.as_dict()), replace=replace)


def layer_plots(findings: LayerFindings) -> dict[str, bytes]:
    """The content of every plot, by file name."""
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
    """The HTML page of the layer lab."""
    return document("What the layers do", _parts(findings, plots))


def _parts(findings: LayerFindings, plots: Mapping[str, bytes]) -> Iterator[str]:
    first = findings.surveys[0]
    yield element("p", "Layer lab", class_="eyebrow")
    yield element("h1", escape(", ".join(each.model for each in findings.surveys)))
    source = "standard input" if findings.source == "-" else Path(findings.source).name
    yield element("p", escape(f"What the layers do to the {first.n_texts:,} texts of {source}."), class_="lead")
    yield element("h2", "From layer to layer")
    yield element("p", ABOUT_COSINES, class_="note")
    yield picture(plots[DISTANCES], "Mean cosine of each layer with earlier layers")
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
        why = "fewer than three words occur often enough, or the model has too few layers"
        yield element("p", escape(f"{survey.model}: no ranking, because {why}."), class_="note")
        return
    yield picture(plots[_name("words", survey.model)], f"{survey.model}: words by variance")
    if groups is not None:
        names = "words", "count", "mean variance", "mean over distinct words"
        heads = [(survey.model, ""), *((name, "number") for name in names)]
        yield table(heads, group_rows(groups))
        yield element("p", escape(moves_more(groups)), class_="note")
    heads = [("word", ""), ("count", "number"), ("variance", "number"), ("", "")]
    yield table(heads, [_word_row(each) for part in found for each in part])


def group_rows(groups: WordGroups) -> list[list[str]]:
    """Rows for function and content words: distinct words, occurrences, mean variance over each of the two."""
    return [
        [name, f"{each.n_words:,}", f"{each.n_seen:,}", f"{each.variance:.4f}", f"{each.variance_of_words:.4f}"]
        for name, each in (("function words", groups.function), ("content words", groups.content))
    ]


def moves_more(groups: WordGroups) -> str:
    """A sentence that compares the two groups."""
    share = f"{100 * groups.content_moves_more:.0f} %"
    return f"Of a random content word and a random function word, the content word varies more in {share} of cases."


def _word_row(each: MovingWord) -> Sequence[str]:
    return each.word, f"{each.n_seen:,}", f"{each.variance:.4f}", "function word" if each.is_function else ""
