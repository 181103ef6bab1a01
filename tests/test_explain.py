"""What a vector and a cosine are made of adds up to them."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import numpy as np
import pytest
from click.testing import CliRunner

import twinvec
from tiny import WORDS, write_tiny_model
from twinvec.cli import main
from twinvec.engine.static import write_static
from twinvec.errors import InputError, TextTooLongError
from twinvec.explanation import explain_pair
from twinvec.report.explanation import explanation_html
from twinvec.wk import WKSettings

LEFT, RIGHT = "the cat sits on the mat", "a small dog sleeps in the house"
READOUTS = ["mean", "wk", WKSettings("reference", layer_start=0)]


@pytest.fixture(scope="module", params=READOUTS, ids=["mean", "wk", "reference"])
def encoder(request, tiny_bert):
    return twinvec.load(tiny_bert, readout=request.param)


@pytest.fixture(scope="module")
def static(tmp_path_factory, tiny_bert):
    table = np.random.default_rng(0).standard_normal((200, 16)).astype(np.float32)
    folder = tmp_path_factory.mktemp("static") / "model"
    write_static(folder, tiny_bert / "tokenizer.json", table)
    return twinvec.load(folder)


def test_the_tokens_parts_sum_to_the_vector(encoder):
    found = encoder.explain(LEFT)
    assert found.tokens == ("[CLS]", "the", "cat", "sits", "on", "the", "mat", "[SEP]")
    assert found.word_vectors.shape == (8, 32) and found.importance.shape == (8,)
    np.testing.assert_allclose(twinvec.unit_rows(found.parts.sum(axis=0)), found.vector, atol=1e-6)
    np.testing.assert_allclose(found.vector, encoder.encode(LEFT), atol=1e-6)


def test_weights_are_shares_over_the_layers_and_the_tokens(encoder):
    found = encoder.explain(LEFT)
    for weights in (found.alignment, found.novelty, found.combined):
        assert weights.shape == (8, 4)
        np.testing.assert_allclose(weights.sum(axis=1), 1)
    np.testing.assert_allclose(found.importance.sum(), 1)


def test_mean_pooling_reads_the_last_layer_of_all_tokens_alike(tiny_bert):
    found = twinvec.load(tiny_bert).explain(LEFT)
    assert found.combined.tolist() == [[0, 0, 0, 1]] * 8
    np.testing.assert_allclose(found.importance, 1 / 8)


def test_contributions_sum_to_the_cosine(encoder):
    pair = encoder.explain_pair(LEFT, RIGHT)
    cosine = float(encoder.similarity(encoder.encode(LEFT), encoder.encode(RIGHT))[0, 0])
    assert pair.contributions.shape == (8, 9)
    for total in (pair.cosine, pair.of_left.sum(), pair.of_right.sum()):
        assert total == pytest.approx(cosine, abs=1e-6)
    assert encoder.explain_pair(LEFT, LEFT).cosine == pytest.approx(1, abs=1e-6)


def test_contributions_of_truncated_vectors_sum_to_their_cosine(tiny_bert):
    encoder = twinvec.load(tiny_bert, readout="wk", truncate_dim=8)
    cosine = float(encoder.similarity(encoder.encode(LEFT), encoder.encode(RIGHT))[0, 0])
    assert encoder.explain_pair(LEFT, RIGHT).cosine == pytest.approx(cosine, abs=1e-6)


def test_static_models_are_explained_too_and_a_text_without_tokens_contributes_nothing(static):
    cosine = float(static.similarity(static.encode(LEFT), static.encode(RIGHT))[0, 0])
    pair = static.explain_pair(LEFT, RIGHT)
    assert pair.left.tokens == tuple(LEFT.split())
    assert pair.cosine == pytest.approx(cosine, abs=1e-6)
    nothing = static.explain_pair("", RIGHT)
    assert nothing.cosine == 0 and nothing.contributions.shape == (0, 7)
    assert "Cosine 0.000" in explanation_html(nothing)


def test_a_prompt_counts_unless_the_pooling_leaves_it_out(tmp_path):
    pooling = {"pooling_mode_mean_tokens": True, "include_prompt": False}
    encoder = twinvec.load(write_tiny_model(tmp_path / "model", pooling=pooling), readout="wk")
    found = encoder.explain("sleeps", prompt="the man ")
    assert found.tokens == ("[CLS]", "the", "man", "sleeps", "[SEP]")
    assert found.importance[:3].tolist() == [0, 0, 0]
    np.testing.assert_allclose(found.vector, encoder.encode("sleeps", prompt="the man "), atol=1e-6)


def test_long_texts_follow_the_policy(tiny_bert):
    with pytest.raises(TextTooLongError, match="has 32 tokens"):
        twinvec.load(tiny_bert, long="error").explain("cat " * 30)
    assert len(twinvec.load(tiny_bert, long="cut").explain("cat " * 30).tokens) == 24


def test_other_poolings_are_refused(tiny_bert):
    with pytest.raises(InputError, match="has max pooling"):
        twinvec.load(tiny_bert, readout="max").explain("a cat")


def run(*arguments):
    return CliRunner().invoke(main, [str(each) for each in arguments], prog_name="twinvec")


def test_the_command_prints_a_plain_table_where_there_is_no_terminal(tiny_bert):
    result = run("explain", LEFT, RIGHT, "-m", tiny_bert, "--readout", "wk")
    assert result.exit_code == 0 and "\x1b" not in result.output
    pair = twinvec.load(tiny_bert, readout="wk").explain_pair(LEFT, RIGHT)
    lines = result.output.splitlines()
    assert lines[0] == f"cosine {pair.cosine:.4f}"
    assert f"A: {LEFT}" in lines and f"B: {RIGHT}" in lines
    assert next(line for line in lines if line.startswith("cat ")).split()[1] == f"{pair.of_left[2]:.4f}"


def test_the_command_prints_json_whose_contributions_sum_to_the_cosine(tiny_bert):
    result = run("explain", LEFT, RIGHT, "-m", tiny_bert, "--json")
    found = json.loads(result.output)
    for side in ("left", "right"):
        assert sum(row["contribution"] for row in found[side]["tokens"]) == pytest.approx(found["cosine"], abs=1e-4)
    assert [row["token"] for row in found["left"]["tokens"]][:2] == ["[CLS]", "the"]


def test_the_page_needs_no_other_file_and_escapes_what_it_shows(tiny_bert, tmp_path):
    page = tmp_path / "why.html"
    result = run("explain", "a <b>cat</b>", " ".join(WORDS[:15]), "-m", tiny_bert, "--html", page)
    assert result.exit_code == 0
    shown = page.read_text()
    assert "<b>" not in shown and "http" not in shown and "<script" not in shown
    HTMLParser().feed(shown)
    again = run("explain", "a", "b", "-m", tiny_bert, "--html", page)
    assert again.exit_code == 1 and "exists already" in again.output


def test_the_words_of_a_match_share_the_cosine_with_the_special_tokens(encoder):
    words = encoder.explain_match(LEFT, RIGHT)
    assert [RIGHT[start:end] for start, end, _ in words] == RIGHT.split()
    shares = encoder.explain_pair(LEFT, RIGHT).of_right
    np.testing.assert_allclose([share for *_, share in words], shares[1:-1], atol=1e-6)


def test_pieces_count_for_their_word_and_a_prompt_for_none(tmp_path):
    folder = write_tiny_model(tmp_path / "m")
    prompts = {"query": "the cat ", "document": "a dog "}
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": prompts}))
    encoder = twinvec.load(folder)
    text = "The dogs, the cats."
    words = encoder.explain_match("mat", text)
    assert [text[start:end] for start, end, _ in words] == ["The", "dogs", ",", "the", "cats", "."]
    asked, found = encoder.explain("mat", prompt_name="query"), encoder.explain(text, prompt_name="document")
    shares = explain_pair(asked, found).of_right[3:-1]  # after [CLS] and the prompt, before [SEP]
    assert sum(word.share for word in words) == pytest.approx(shares.sum(), abs=1e-6)
