"""Poly-encoders without torch: scores, stored vectors, bits, saved folders, re-ranking, and what is refused."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from click.testing import CliRunner
from safetensors.numpy import load_file, save_file

import twinvec
from fuzz_kinds import dense_model
from tiny import FAMILIES, WIDTH, WORDS, write_json, write_tiny_classifier, write_tiny_model, write_tiny_poly_encoder
from twinvec.cli.app import main
from twinvec.errors import InputError, ModelFolderError, TextTooLongError, WeightsError
from twinvec.metrics import spearman
from twinvec.pairs.cross_encoder import as_scorer

RNG = np.random.default_rng(0)


def random_text(longest):
    return " ".join(RNG.choice(WORDS, RNG.integers(0, longest + 1)))


TEXTS = [*dict.fromkeys(random_text(12) for _ in range(40)), "the cat sits"]
PAIRS = [(TEXTS[RNG.integers(12)], text) for text in TEXTS] + [("", ""), ("the cat", "")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_tiny_poly_encoder(tmp_path_factory.mktemp("poly") / "m")


@pytest.fixture(scope="module")
def scorer(folder):
    return twinvec.load_scorer(folder)


# --- scores


def plain_score(folder, query, text, *, is_cosine=True, scale=100.0):
    """The formula of the paper, one step after another, from the token states of the encoder."""
    encoder = twinvec.load(folder)
    codes = load_file(folder / "poly_encoder.safetensors")["codes"].astype(np.float64)
    states = encoder.encode_tokens(query)[0].astype(np.float64)
    attention = np.exp(codes @ states.T)
    vectors = (attention / attention.sum(axis=1, keepdims=True)) @ states
    candidate = encoder.encode(text).astype(np.float64)
    if is_cosine:
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        candidate /= np.linalg.norm(candidate)
    weights = np.exp(scale * (vectors @ candidate))
    return (weights / weights.sum()) @ vectors @ candidate


def test_scores_are_those_of_the_formula(folder, scorer):
    expected = [plain_score(folder, *pair) for pair in PAIRS]
    np.testing.assert_allclose(scorer.score(PAIRS), expected, atol=1e-5)
    assert np.std(expected) > 0.05  # scores that are all alike would prove nothing


@pytest.mark.parametrize("extra", [(), ("Normalize",)])
def test_cosines_do_not_depend_on_the_length_of_the_vectors(tmp_path, extra):
    folder = write_tiny_poly_encoder(tmp_path / "m", extra=extra)
    expected = [plain_score(folder, *pair) for pair in PAIRS[:10]]
    np.testing.assert_allclose(twinvec.load_scorer(folder).score(PAIRS[:10]), expected, atol=1e-5)


def test_dot_products_are_those_of_the_paper(tmp_path):
    folder = write_tiny_poly_encoder(tmp_path / "m", extra=())
    write_json(folder / "config_sentence_transformers.json", {"similarity_fn_name": "dot"})
    write_json(folder / "poly_encoder.json", {"version": 1, "codes": 4, "scale": 1.0})
    expected = [plain_score(folder, *pair, is_cosine=False, scale=1.0) for pair in PAIRS]
    np.testing.assert_allclose(twinvec.load_scorer(folder).score(PAIRS), expected, rtol=1e-5, atol=1e-5)


def test_one_code_is_attention_pooling(tmp_path):
    folder = write_tiny_poly_encoder(tmp_path / "m", n_codes=1)
    scorer = twinvec.load_scorer(folder)
    queries, vectors = (
        scorer.query_vectors([query for query, _ in PAIRS]),
        scorer.candidates.embed([t for _, t in PAIRS]),
    )
    np.testing.assert_allclose(scorer.score(PAIRS), (queries[:, 0] * vectors).sum(axis=1), atol=1e-6)


def test_codes_that_are_zero_give_the_cosines_of_the_sentence_model(tmp_path):
    folder = write_tiny_poly_encoder(tmp_path / "m")
    save_file({"codes": np.zeros((4, WIDTH), dtype=np.float32)}, folder / "poly_encoder.safetensors")
    queries, texts = (twinvec.load(folder).encode([pair[i] for pair in PAIRS]) for i in (0, 1))
    np.testing.assert_allclose(twinvec.load_scorer(folder).score(PAIRS), (queries * texts).sum(axis=1), atol=1e-5)


def test_the_modules_after_the_pooling_are_applied_to_both_sides(tmp_path):
    folder = dense_model(tmp_path / "m")
    save_file({"codes": np.zeros((3, WIDTH), dtype=np.float32)}, folder / "poly_encoder.safetensors")
    write_json(folder / "poly_encoder.json", {"version": 1, "codes": 3, "scale": 100.0})
    queries, texts = (twinvec.load(folder).encode([pair[i] for pair in PAIRS]) for i in (0, 1))
    np.testing.assert_allclose(twinvec.load_scorer(folder).score(PAIRS), (queries * texts).sum(axis=1), atol=1e-5)


def test_scores_are_not_symmetric(scorer):
    turned = scorer.score([(second, first) for first, second in PAIRS])
    assert not np.allclose(scorer.score(PAIRS), turned, atol=1e-3)


def test_a_score_does_not_depend_on_the_batch_or_the_threads(folder, scorer):
    together = scorer.score(PAIRS)
    np.testing.assert_allclose(np.concatenate([scorer.score([pair]) for pair in PAIRS]), together, atol=1e-5)
    np.testing.assert_allclose(twinvec.load_scorer(folder, threads=3).score(PAIRS[::-1])[::-1], together, atol=1e-5)
    assert scorer.score([]).shape == (0,)


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_the_deterministic_mode_gives_a_pair_the_same_bits_everywhere(folder, precision):
    first = twinvec.load_scorer(folder, deterministic=True, precision=precision, threads=1)
    other = twinvec.load_scorer(folder, deterministic=True, precision=precision, threads=2)
    together = first.score(PAIRS)
    assert np.array_equal(np.concatenate([first.score([pair]) for pair in PAIRS]), together)
    assert np.array_equal(other.score(PAIRS[::-1])[::-1], together)


@pytest.mark.parametrize("family", FAMILIES)
def test_int8_keeps_the_order_of_the_scores(tmp_path, family):
    folder = write_tiny_poly_encoder(tmp_path / "m", family)
    exact = twinvec.load_scorer(folder).score(PAIRS)
    assert spearman(exact, twinvec.load_scorer(folder, precision="int8").score(PAIRS)) > 0.97


def test_prompts_for_queries_and_documents_are_used(tmp_path):
    folder = write_tiny_poly_encoder(tmp_path / "m")
    plain = twinvec.load_scorer(folder).score([("the red cat", "a dog runs")])
    write_json(folder / "config_sentence_transformers.json", {"prompts": {"query": "the red ", "document": "a dog "}})
    assert np.array_equal(twinvec.load_scorer(folder).score([("cat", "runs")]), plain)


def test_a_truncated_width_holds_for_both_sides(tmp_path):
    folder = write_tiny_poly_encoder(tmp_path / "m", extra=())
    write_json(folder / "config_sentence_transformers.json", {"truncate_dim": 16})
    scorer = twinvec.load_scorer(folder)
    assert scorer.width == 16 and scorer.query_vectors(["the cat"]).shape == (1, 4, 16)
    np.testing.assert_allclose(
        scorer.score_vectors("the cat", scorer.candidates.embed(TEXTS)),
        scorer.score([("the cat", text) for text in TEXTS]),
        atol=1e-6,
    )


# --- stored vectors


def test_stored_vectors_give_the_same_scores_and_ranks(scorer, monkeypatch):
    monkeypatch.setattr("twinvec.pairs.poly_encoder.VECTORS_AT_ONCE", 7)
    vectors = scorer.candidates.embed(TEXTS, role="document")
    pairs = [("the old man", text) for text in TEXTS]
    np.testing.assert_allclose(scorer.score_vectors("the old man", vectors), scorer.score(pairs), atol=1e-6)
    for k in (1, 5, len(TEXTS), len(TEXTS) + 5, None):
        found, expected = scorer.rank_vectors("the old man", vectors, k), scorer.rank("the old man", TEXTS, k)
        assert found.rows.tolist() == expected.rows.tolist()
        np.testing.assert_allclose(found.scores, expected.scores, atol=1e-6)


def test_equal_scores_keep_their_order(scorer):
    vectors = np.repeat(scorer.candidates.embed(["the cat", "a dog"]), 20, axis=0)
    ranked = scorer.rank_vectors("a cat", vectors, 25).rows.tolist()
    assert ranked[:20] == sorted(ranked[:20]) and ranked[20:] == sorted(ranked[20:])


def test_a_memory_mapped_file_of_vectors_can_be_ranked(scorer, tmp_path):
    np.save(tmp_path / "vectors.npy", scorer.candidates.embed(TEXTS).astype(np.float16))
    mapped = np.load(tmp_path / "vectors.npy", mmap_mode="r")
    found = scorer.rank_vectors("the cat sits", mapped, 3)
    np.testing.assert_allclose(found.scores, scorer.rank("the cat sits", TEXTS, 3).scores, atol=1e-2)


def test_a_collection_and_a_list_are_reranked_with_the_vectors_they_have(folder, scorer, tmp_path, monkeypatch):
    pytest.importorskip("lancedb", reason="needs the extra 'search'")
    expected = scorer.rank("the old man", TEXTS, 5)
    collection = twinvec.Collection.create(tmp_path / "c", model=folder)
    collection.add(TEXTS)
    monkeypatch.setattr(type(scorer), "score", lambda *_: pytest.fail("the texts are embedded again"))
    for mode in ("dense", "text", "hybrid"):
        hits = collection.search("the old man", 5, mode=mode, rerank=scorer, candidates=100)
        assert hits == sorted(hits, key=lambda hit: -hit.score)
    hits = collection.search("the old man", 5, rerank=scorer, candidates=100)
    assert [hit.text for hit in hits] == [TEXTS[row] for row in expected.rows]
    np.testing.assert_allclose([hit.score for hit in hits], expected.scores, atol=1e-6)
    listed = twinvec.search_texts("the old man", TEXTS, 5, model=folder, rerank=scorer, candidates=100)
    assert [hit.row for hit in listed] == expected.rows.tolist()


def test_texts_embedded_by_another_model_are_reranked_by_their_texts(scorer, tiny_bert, tmp_path):
    expected = scorer.rank("the old man", TEXTS, 5).rows.tolist()
    prompted = twinvec.ModelEmbedder(scorer.candidates.folder, prompt="a ")
    for model in (tiny_bert, prompted):
        listed = twinvec.search_texts("the old man", TEXTS, 5, model=model, rerank=scorer, candidates=100)
        assert [hit.row for hit in listed] == expected


# --- folders


def test_the_folder_is_a_sentence_model_for_everything_else(folder, tmp_path):
    plain = write_tiny_model(tmp_path / "plain")
    assert np.array_equal(twinvec.load(folder).encode(TEXTS), twinvec.load(plain).encode(TEXTS))
    assert (
        twinvec.find_pairs(TEXTS, 3, model=folder).left.tolist()
        == twinvec.find_pairs(TEXTS, 3, model=plain).left.tolist()
    )


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_a_saved_model_gives_the_same_bits(folder, tmp_path, precision):
    scorer = twinvec.load_scorer(folder, precision=precision, deterministic=True)
    scorer.save(tmp_path / "out")
    again = twinvec.load_scorer(tmp_path / "out", precision=precision, deterministic=True)
    assert (again.n_codes, again.scale, again.width) == (4, 100.0, WIDTH)
    assert np.array_equal(again.score(PAIRS), scorer.score(PAIRS))
    with pytest.raises(InputError):
        scorer.save(tmp_path / "out")


def test_a_folder_that_changed_after_it_was_loaded_is_not_saved(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "m")
    scorer = twinvec.load_scorer(tmp_path / "m")
    write_json(tmp_path / "m/poly_encoder.json", {"version": 1, "codes": 4, "scale": 2.0})
    with pytest.raises(ModelFolderError, match="was changed"):
        scorer.save(tmp_path / "out")


def test_the_identity_follows_content_and_settings(folder, tmp_path):
    scorer = twinvec.load_scorer(folder)
    assert scorer.identity == twinvec.load_scorer(folder, threads=1, long="cut").identity
    others = [
        twinvec.load_scorer(folder, precision="int8"),
        twinvec.load_scorer(folder, deterministic=True),
        twinvec.load_scorer(write_tiny_poly_encoder(tmp_path / "m", seed=9)),
        twinvec.load_scorer(write_tiny_poly_encoder(tmp_path / "n", n_codes=5)),
    ]
    assert len({scorer.identity, *(other.identity for other in others)}) == 5


def test_inspecting_names_the_codes(folder):
    found = twinvec.inspect_model(folder)
    assert found.n_codes == 4 and ("kind", "poly-encoder, 4 codes: scores a query with candidates") in found.rows()
    result = CliRunner().invoke(main, ["inspect", str(folder)])
    assert result.exit_code == 0 and "poly-encoder, 4 codes" in result.output
    assert twinvec.inspect_model("twinvec-mini").n_codes is None


def test_the_commands_take_it_as_a_scorer(folder, scorer, tmp_path):
    value = scorer.score([("the cat", "a dog")])[0]
    result = CliRunner().invoke(main, ["score", "the cat", "a dog", "-m", str(folder)])
    assert result.exit_code == 0 and float(result.output) == pytest.approx(float(value), abs=1e-5)
    (tmp_path / "texts.txt").write_text("\n".join(text for text in TEXTS if text) + "\n")
    texts = [text for text in TEXTS if text]
    expected = [texts[row] for row in scorer.rank("the cat", texts, 3).rows]
    result = CliRunner().invoke(main, ["rank", "the cat", str(tmp_path / "texts.txt"), "-m", str(folder), "-k", "3"])
    assert [json.loads(line)["text"] for line in result.output.splitlines()] == expected
    arguments = [
        "search",
        str(tmp_path / "texts.txt"),
        "the cat",
        "-m",
        str(folder),
        "--rerank",
        str(folder),
        "-k",
        "3",
    ]
    result = CliRunner().invoke(main, arguments)
    assert [json.loads(line)["text"] for line in result.output.splitlines()] == expected


# --- what is refused


def test_bad_input_is_refused(scorer, folder):
    with pytest.raises(InputError, match="no texts to rank"):
        scorer.rank("a", [])
    with pytest.raises(InputError, match="no vectors to rank"):
        scorer.rank_vectors("a", np.zeros((0, WIDTH)))
    with pytest.raises(InputError, match=r"width 7, but .* has the width 32"):
        scorer.rank_vectors("a", np.zeros((3, 7)))
    with pytest.raises(InputError, match="NaN"):
        scorer.rank_vectors("a", np.full((3, WIDTH), np.nan))
    with pytest.raises(InputError, match="numbers of shape"):
        scorer.rank_vectors("a", ["a text"])
    with pytest.raises(InputError, match="k must be"):
        scorer.rank_vectors("a", np.zeros((3, WIDTH)), 0)
    with pytest.raises(InputError, match=r"pairs\[0\]"):
        scorer.score(["a text"])
    with pytest.raises(InputError, match="query"):
        scorer.rank_vectors(7, np.zeros((3, WIDTH)))
    for chosen in ({"label": "x"}, {"activation": "none"}, {"max_tokens": 12}):
        with pytest.raises(InputError, match="is for cross-encoders"):
            twinvec.load_scorer(folder, **chosen)
    with pytest.raises(InputError, match="chunk"):
        twinvec.load_scorer(folder, long="chunk")
    with pytest.raises(TextTooLongError):
        twinvec.load_scorer(folder, long="error").score([("the cat " * 40, "a")])


def test_a_sentence_model_without_codes_is_not_a_scorer(tiny_bert):
    with pytest.raises(ModelFolderError, match="is a sentence model, not a cross-encoder or a poly-encoder"):
        as_scorer(tiny_bert)


WRONG_SETTINGS = [
    ({"codes": 0}, "'codes' is 0"),
    ({"codes": -1}, "'codes' is -1"),
    ({"codes": 1.5}, "'codes' is 1.5"),
    ({"codes": 10**9}, "'codes'"),
    ({"scale": 0}, "'scale' is 0"),
    ({"scale": "20"}, "'scale' is '20'"),
    ({"version": 2}, "'version' is 2"),
    ({"more": 1}, "unknown key 'more'"),
    ({"codes": 5}, "must have 5 codes"),
]


@pytest.mark.parametrize(("changed", "message"), WRONG_SETTINGS)
def test_wrong_settings_are_refused(folder, tmp_path, changed, message):
    shutil.copytree(folder, tmp_path / "m")
    write_json(tmp_path / "m/poly_encoder.json", {"version": 1, "codes": 4, "scale": 20.0, **changed})
    with pytest.raises((ModelFolderError, WeightsError), match=message):
        twinvec.load_scorer(tmp_path / "m")


WRONG_CODES = [
    ({"codes": np.zeros((4, WIDTH + 1), dtype=np.float32)}, r"shape \(4, 33\), but the config requires \(4, 32\)"),
    ({"codes": np.zeros((4 * WIDTH), dtype=np.float32)}, r"float32 of shape \(128,\)"),
    ({"codes": np.zeros((4, WIDTH), dtype=np.int8)}, "has int8"),
    ({"codes": np.full((4, WIDTH), np.nan, dtype=np.float32)}, "NaN"),
    ({"other": np.zeros((4, WIDTH), dtype=np.float32)}, "has none"),
]


@pytest.mark.parametrize(("tensors", "message"), WRONG_CODES)
def test_wrong_codes_are_refused(folder, tmp_path, tensors, message):
    shutil.copytree(folder, tmp_path / "m")
    save_file(tensors, tmp_path / "m/poly_encoder.safetensors")
    with pytest.raises(WeightsError, match=message):
        twinvec.load_scorer(tmp_path / "m")


def test_a_missing_or_cut_file_of_codes_is_refused(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "m")
    file = tmp_path / "m/poly_encoder.safetensors"
    file.write_bytes(file.read_bytes()[:-8])
    with pytest.raises(WeightsError, match="not a complete safetensors file"):
        twinvec.load_scorer(tmp_path / "m")
    file.unlink()
    with pytest.raises(WeightsError, match=r"poly_encoder\.safetensors"):
        twinvec.load_scorer(tmp_path / "m")


def test_models_that_cannot_be_poly_encoders_are_refused(tmp_path):
    two = write_tiny_poly_encoder(tmp_path / "two", extra=(), pooling={"pooling_mode": ["mean", "max"]})
    with pytest.raises(ModelFolderError, match="does not have a single pooling"):
        twinvec.load_scorer(two)
    far = write_tiny_poly_encoder(tmp_path / "far")
    write_json(far / "config_sentence_transformers.json", {"similarity_fn_name": "euclidean"})
    with pytest.raises(ModelFolderError, match="compares vectors by euclidean"):
        twinvec.load_scorer(far)
    classifier = write_tiny_classifier(tmp_path / "cross")
    for name in ("poly_encoder.json", "poly_encoder.safetensors"):
        shutil.copy(far / name, classifier / name)
    with pytest.raises(ModelFolderError, match="cross-encoder"):
        twinvec.load(classifier)
