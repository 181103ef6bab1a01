"""Static models: tables of token vectors, held against sentence-transformers and against the obvious way."""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

import twinvec
from tiny import FAMILIES, VOCABULARY, WORDS, tiny_tokenizer, write_json
from twinvec.cli.app import main
from twinvec.engine import static as table_module
from twinvec.engine.batches import pad
from twinvec.engine.inspect import inspect_model
from twinvec.engine.static import mean_rows, write_static
from twinvec.engine.weights import pack_int8
from twinvec.errors import InputError, ModelFolderError, TextTooLongError, UnknownNameError, WeightsError
from twinvec.loading import StaticEncoder
from twinvec.model import hub
from twinvec.model import tokenizer as words_module
from twinvec.model.tokenizer import Tokenizer as OurTokenizer
from twinvec.model.tokenizer import WordReader, splits_at_spaces

WIDTH = 24
TABLE = np.random.default_rng(0).standard_normal((len(VOCABULARY), WIDTH)).astype(np.float32)
TEXTS = [
    "the cat sits on the mat",
    "A Dog!",
    "",
    "  the   rain,\tin the old\ncity ",
    "[MASK] 漢字 zzz [SEP]x naïve",
    " ".join(WORDS * 7),
]

texts_of_words = st.lists(st.lists(st.sampled_from([*WORDS, "", "Dog!", "漢", "x" * 70]), max_size=200).map(" ".join))


@pytest.fixture(scope="module")
def tokenizer_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    tiny_tokenizer(FAMILIES["bert"]).save(str(path))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tokenizer_file):
    path = tmp_path_factory.mktemp("static") / "model"
    write_static(path, tokenizer_file, TABLE)
    return path


@pytest.fixture(scope="module")
def static(folder):
    return twinvec.load(folder)


@pytest.fixture
def copy(folder, tmp_path):
    return shutil.copytree(folder, tmp_path / "copy")


def obvious(encoder, texts):
    """Means of rows, text by text."""
    rows = [TABLE[ids].mean(axis=0) if ids else np.zeros(WIDTH) for ids in encoder.tokenizer.ids(texts)]
    return twinvec.unit_rows(np.array(rows, dtype=np.float32))


def test_a_vector_is_the_mean_of_its_tokens_rows(static):
    assert isinstance(static, StaticEncoder)
    assert isinstance(static, twinvec.Encoder)
    assert (static.width, static.max_tokens, static.prompts) == (WIDTH, None, {})
    np.testing.assert_allclose(static.encode(TEXTS), obvious(static, TEXTS), atol=1e-6)
    assert static.encode([]).shape == (0, WIDTH)
    assert static.encode("a cat").shape == (WIDTH,)
    assert not static.encode(["", "   "]).any()


@settings(max_examples=30, deadline=None)
@given(texts=texts_of_words, seed=st.integers(0, 9))
def test_batch_and_order_change_no_bit(static, texts, seed):
    together = static.encode(texts)
    alone = [static.encode(text) for text in texts]
    assert np.array_equal(together, np.array(alone).reshape(together.shape))
    order = np.random.default_rng(seed).permutation(len(texts))
    assert np.array_equal(static.encode([texts[i] for i in order]), together[order])


def test_threads_and_blocks_change_no_bit(folder, static):
    texts = [" ".join(WORDS[: i % 46]) + f" {i}" for i in range(3000)]
    expected = twinvec.load(folder, threads=1).encode(texts)
    assert np.array_equal(twinvec.load(folder, threads=3).encode(texts), expected)
    assert np.array_equal(np.array(list(static.encode_iter(iter(texts)))), expected)
    assert np.array_equal(static.encode(texts[1500]), expected[1500])


@given(st.lists(st.integers(0, 300), max_size=20), st.integers(1, 5))
def test_means_of_runs_are_as_one_by_one(counts, width):
    table = np.random.default_rng(1).standard_normal((50, width)).astype(np.float32)
    ids = np.random.default_rng(2).integers(0, 50, sum(counts)).astype(np.int32)
    counts = np.array(counts, dtype=np.int64)
    starts = np.cumsum(counts) - counts
    found = mean_rows(table, ids, starts, counts)
    for row, start, count in zip(found, starts, counts, strict=True):
        expected = table[ids[start : start + count]].astype(np.float64).mean(axis=0) if count else 0
        np.testing.assert_allclose(row, np.broadcast_to(expected, width), atol=2e-6)


def test_a_text_longer_than_a_block_of_rows_is_read_whole(static):
    text = " ".join(WORDS * 60)
    assert static.count_tokens(text) > table_module.ROWS_AT_ONCE
    np.testing.assert_allclose(static.encode([text]), obvious(static, [text]), atol=1e-5)


def test_the_runtime_gives_the_same_from_padded_batches(static):
    ids = [row for row in static.tokenizer.ids(TEXTS) if row]
    vectors = static.engine.runtime.vectors(pad(ids))
    assert np.array_equal(vectors, static.encode([text for text in TEXTS if text]))
    states = static.encode_tokens("the cat")
    assert np.array_equal(states[0], TABLE[static.tokenizer.ids(["the cat"])[0]])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text() | st.text(alphabet=" abZÉß漢\u0301\u00a0\u2028\x1c\t[]SEPΣς.,'"), max_size=5))
def test_words_read_alone_give_the_ids_of_the_text(static, texts):
    texts = [text for text in texts if not any("\ud800" <= character <= "\udfff" for character in text)]
    reader = WordReader(static.tokenizer)
    for _ in range(2):  # the second time from memory
        ids, counts = reader.read(texts)
        expected = static.tokenizer.ids(texts)
        assert counts.tolist() == [len(row) for row in expected]
        assert ids.tolist() == [i for row in expected for i in row]
        assert reader.rows(texts) == expected


def test_the_memory_of_words_is_bounded(static, monkeypatch):
    monkeypatch.setattr(words_module, "N_REMEMBERED", 5)
    reader = WordReader(static.tokenizer)
    for start in range(0, 40, 10):
        texts = [" ".join(WORDS[start : start + 10]), "w" * 100]
        assert reader.read(texts).ids.tolist() == [i for row in static.tokenizer.ids(texts) for i in row]
        assert len(reader._known) <= 5


def test_tokenizers_that_look_beyond_spaces_read_whole_texts():
    fast = tiny_tokenizer(FAMILIES["bert"])
    assert splits_at_spaces(fast)
    fast.add_tokens([AddedToken("new york")])
    assert not splits_at_spaces(fast)
    letters = {letter: place for place, letter in enumerate(["a", "b", "\u0120a", "\u0120b", "\u0120"])}
    fast = Tokenizer(models.BPE(letters, [("\u0120", "a"), ("\u0120", "b")]))
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    fast.decoder = decoders.ByteLevel()
    assert not splits_at_spaces(fast)
    assert WordReader(OurTokenizer(fast, (), ())).read(["ab a", "", "b"]).ids.tolist() == [0, 1, 2, 1]


def test_others_may_read_what_was_saved(static, tmp_path):
    static.save(tmp_path / "saved")
    assert [file.name for file in (tmp_path / "saved").rglob("*") if not file.stat().st_mode & 0o004] == []


def test_int8_storage_stays_within_half_a_step(tmp_path, tokenizer_file, static):
    table = TABLE.copy()
    table[0] = 0  # no text has [PAD]
    write_static(tmp_path / "small", tokenizer_file, table, precision="int8")
    encoder = twinvec.load(tmp_path / "small")
    packed = pack_int8({"embedding.weight": table})
    scale = packed["embedding.weight.scale"]
    stored = load_file(tmp_path / "small/model.safetensors")
    assert np.array_equal(stored["embedding.weight"], packed["embedding.weight"])
    assert stored["embedding.weight.scale"].shape == (len(table),)
    difference = np.abs(encoder.runtime.table - table)
    assert (difference <= scale[:, None] * 0.5001).all()
    cosines = twinvec.similarity_pairwise(encoder.encode(TEXTS[:2]), static.encode(TEXTS[:2]))
    assert cosines.min() > 0.999
    encoder.save(tmp_path / "again")  # float32, for other tools
    assert load_file(tmp_path / "again/model.safetensors")["embedding.weight"].dtype == np.float32
    assert np.array_equal(twinvec.load(tmp_path / "again").encode(TEXTS), encoder.encode(TEXTS))


def test_half_precision_and_pickle_free_folders_below_the_root(copy, static):
    weights = load_file(copy / "model.safetensors")
    (copy / "0_StaticEmbedding").mkdir()
    (copy / "tokenizer.json").rename(copy / "0_StaticEmbedding/tokenizer.json")
    (copy / "model.safetensors").unlink()
    halves = {name: array.astype(np.float16) for name, array in weights.items()}
    save_file(halves, copy / "0_StaticEmbedding/model.safetensors")
    kinds = [
        "sentence_transformers.sentence_transformer.modules.static_embedding.StaticEmbedding",
        "sentence_transformers.base.modules.normalize.Normalize",
    ]
    paths = ["0_StaticEmbedding", "1_Normalize"]
    rows = [{"idx": i, "name": str(i), "path": paths[i], "type": kinds[i]} for i in range(2)]
    write_json(copy / "modules.json", rows)
    np.testing.assert_allclose(twinvec.load(copy).encode(TEXTS), static.encode(TEXTS), atol=2e-3)


def test_model2vec_tables_are_folded(copy, static):
    order = np.random.default_rng(3).permutation(len(TABLE))
    factors = np.linspace(0.5, 2, len(TABLE))
    tensors = {
        "embeddings": np.ascontiguousarray((TABLE / factors[:, None])[order], dtype=np.float32),
        "mapping": np.argsort(order),
        "weights": factors,
    }
    save_file(tensors, copy / "model.safetensors")
    write_json(copy / "config.json", {"model_type": "model2vec", "normalize": True})
    np.testing.assert_allclose(twinvec.load(copy).encode(TEXTS), static.encode(TEXTS), atol=1e-5)


def test_prompts_outputs_and_truncation(copy, static):
    content = {"prompts": {"query": "a good book ", "document": ""}, "default_prompt_name": "query"}
    write_json(copy / "config_sentence_transformers.json", content)
    encoder = twinvec.load(copy, truncate_dim=8)
    expected = static.encode(["a good book on rain"])[:, :8]
    assert np.array_equal(encoder.encode(["on rain"]), expected)
    assert np.array_equal(encoder.encode_query(["on rain"]), expected)
    assert np.array_equal(encoder.encode_document(["a good book on rain"]), expected)
    assert np.array_equal(encoder.encode(["on rain"], prompt=""), static.encode(["on rain"])[:, :8])
    for output, kind in (("int8", np.int8), ("ubinary", np.uint8)):
        found = encoder.encode(["on rain"], output=output)
        assert found.dtype == kind
        assert np.array_equal(found, twinvec.quantize_vectors(expected, output))
    encoder.save(copy.parent / "again")
    again = twinvec.load(copy.parent / "again")
    assert (again.prompts, again.width, again.folder.default_prompt) == (encoder.prompts, 8, "query")
    assert np.array_equal(again.encode(["on rain"]), expected)
    with pytest.raises(InputError, match="exists already"):
        encoder.save(copy)


def test_a_limit_of_the_tokenizer_is_followed_and_the_long_policy_with_it(copy, static, caplog):
    fast = Tokenizer.from_file(str(copy / "tokenizer.json"))
    fast.enable_truncation(3)
    fast.save(str(copy / "tokenizer.json"))
    texts = ["the cat", "the cat sits on the mat", "rain"]
    expected = static.encode(["the cat", "the cat sits", "rain"])
    encoder = twinvec.load(copy)
    assert encoder.max_tokens == 3
    assert inspect_model(copy).max_tokens == 3
    assert encoder.lengths(texts).is_cut.tolist() == [False, True, False]
    with caplog.at_level(logging.WARNING):
        assert np.array_equal(encoder.encode(texts), expected)
    assert "1 text is longer than the 3 tokens" in caplog.text
    assert np.array_equal(twinvec.load(copy, long="chunk").encode(texts), static.encode(texts))
    with pytest.raises(TextTooLongError, match=r"texts\[1\] has 6 tokens"):
        twinvec.load(copy, long="error").encode(texts)
    fast.enable_truncation(3, direction="left")
    fast.save(str(copy / "tokenizer.json"))
    cut = twinvec.load(copy, long="cut").encode(texts)
    assert np.array_equal(cut, static.encode(["the cat", "on the mat", "rain"]))


def test_without_a_limit_nothing_is_ever_cut(folder):
    encoder = twinvec.load(folder, long="error")
    assert not encoder.lengths([" ".join(WORDS * 100)]).is_cut.any()
    assert encoder.encode([" ".join(WORDS * 100)]).shape == (1, WIDTH)
    assert encoder.count_tokens("the cat") == 2


def test_a_table_without_normalize_gives_plain_means(tmp_path, tokenizer_file):
    write_static(tmp_path / "plain", tokenizer_file, TABLE, normalize=False)
    encoder = twinvec.load(tmp_path / "plain")
    ids = encoder.tokenizer.ids(["the cat"])[0]
    np.testing.assert_allclose(encoder.encode("the cat"), TABLE[ids].mean(axis=0), atol=1e-6)
    assert not inspect_model(tmp_path / "plain").is_normalized


def change_weights(folder, change):
    weights = load_file(folder / "model.safetensors")
    save_file(change(weights), folder / "model.safetensors")


BAD_WEIGHTS = {
    "contains no table of token vectors": lambda weights: {"other": weights["embedding.weight"]},
    r"has the shape \(24,\), not": lambda weights: {"embedding.weight": weights["embedding.weight"][0]},
    "contains NaN or infinity": lambda weights: {"embedding.weight": weights["embedding.weight"] * np.float32(np.nan)},
    r"contains no table of token vectors \(embedding": lambda weights: {
        "embedding.weight": weights["embedding.weight"].astype(np.int8)
    },
    r"scales of shape \(3,\), not one per row": lambda weights: {
        "embedding.weight": weights["embedding.weight"].astype(np.int8),
        "embedding.weight.scale": np.ones(3, dtype=np.float32),
    },
}


@pytest.mark.parametrize("message", BAD_WEIGHTS)
def test_bad_tables_are_refused(copy, message):
    change_weights(copy, BAD_WEIGHTS[message])
    with pytest.raises(WeightsError, match=message):
        twinvec.load(copy)


def test_other_bad_folders_are_refused(copy):
    change_weights(copy, lambda weights: {"embedding.weight": weights["embedding.weight"][:9]})
    with pytest.raises(ModelFolderError, match="has vectors for 9"):
        twinvec.load(copy)
    (copy / "model.safetensors").unlink()
    with pytest.raises(WeightsError, match="contains no weights"):
        twinvec.load(copy)
    (copy / "tokenizer.json").unlink()
    with pytest.raises(ModelFolderError, match=r"has no tokenizer\.json"):
        twinvec.load(copy)
    rows = json.loads((copy / "modules.json").read_text())
    rows[1]["type"] = "sentence_transformers.models.Pooling"
    write_json(copy / "modules.json", rows)
    write_json(copy / "1_Normalize/config.json", {"pooling_mode": "mean"})
    with pytest.raises(ModelFolderError, match="Only Normalize is supported"):
        twinvec.load(copy)


def test_bad_tables_are_not_written(tmp_path, tokenizer_file):
    for table in (TABLE[:5], TABLE[0], TABLE * np.nan):
        with pytest.raises(InputError, match="The table"):
            write_static(tmp_path / "bad", tokenizer_file, table)
    with pytest.raises(UnknownNameError, match="float16"):
        write_static(tmp_path / "bad", tokenizer_file, TABLE, precision="float16")
    assert not (tmp_path / "bad").exists()


def test_settings_of_other_engines_are_refused_or_said(folder, caplog):
    for setting in ({"runtime": "torch"}, {"device": "cuda"}):
        with pytest.raises(InputError, match="is a static model"):
            twinvec.load(folder, **setting)
    assert twinvec.load(folder, precision="int8").engine.precision == "float32"
    assert "has no effect" in caplog.text


def test_a_static_model_is_an_embedder(folder, static):
    pytest.importorskip("scipy")
    from twinvec.embedder import ModelEmbedder

    assert np.array_equal(ModelEmbedder(str(folder)).embed(TEXTS), static.encode(TEXTS))


def test_a_cached_static_model_counts_as_complete(copy):
    assert hub._is_whole(copy)
    (copy / "tokenizer.json").unlink()
    assert not hub._is_whole(copy)


LINES = ["the cat sits", "the cat sleeps", "rain"]


@pytest.fixture
def run(folder, tmp_path):
    """Runs a command with the model, and gives what it printed; FILE is a file of lines."""
    (tmp_path / "texts.txt").write_text("\n".join(LINES) + "\n")

    def run(*command):
        words = [str(tmp_path / "texts.txt") if word == "FILE" else str(word) for word in command]
        result = CliRunner().invoke(main, [*words, "-m", str(folder)], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout

    return run


def test_similarity_and_pairs_accept_a_static_model(run, static):
    vectors = static.encode(LINES)
    assert float(run("similarity", *LINES[:2])) == pytest.approx(float(vectors[0] @ vectors[1]), abs=1e-5)
    rows = [json.loads(line) for line in run("pairs", "FILE").splitlines()]
    scores = {tuple(row["rows"]): row["score"] for row in rows}
    expected = {(i, j): float(vectors[i] @ vectors[j]) for i in range(3) for j in range(i + 1, 3)}
    assert scores == pytest.approx(expected, abs=1e-5)


def test_embed_accepts_a_static_model(run, static):
    rows = [json.loads(line) for line in run("embed", "FILE").splitlines()]
    assert [row["text"] for row in rows] == LINES
    np.testing.assert_allclose([row["vector"] for row in rows], static.encode(LINES), atol=1e-6)


def test_inspect_describes_a_static_model(folder, static):
    result = CliRunner().invoke(main, ["inspect", str(folder), "--json"], catch_exceptions=False)
    assert result.exit_code == 0
    assert f"static ({len(TABLE)} token vectors)" in result.stdout
    assert f"{static.width} wide" in CliRunner().invoke(main, ["inspect", str(folder)]).stdout


def test_bench_measures_a_static_model_only_in_float32(run):
    measured = [line.split() for line in run("bench").splitlines()[2:] if line.strip()]
    assert [row[0] for row in measured] == ["float32"]
    assert float(measured[0][1].replace(",", "")) > 0


def test_data_check_counts_its_tokens(run, static, tmp_path):
    pair = {"text1": "a cat and a dog", "text2": "rain", "score": 0.5}
    (tmp_path / "pairs.jsonl").write_text((json.dumps(pair) + "\n") * 3)
    report = json.loads(run("data", "check", tmp_path / "pairs.jsonl", "--json"))
    n_tokens = static.count_tokens([pair["text1"], pair["text2"]])
    assert report["tokens"]["longest"] == n_tokens.max() and report["tokens"]["mean"] == n_tokens.mean()


def test_a_static_model_starts_without_any_runtime(folder):
    code = (
        "import sys, twinvec\n"
        "twinvec.load(sys.argv[1]).encode('the cat')\n"
        "heavy = ('torch', 'transformers', 'onnx', 'onnxruntime', 'openvino', 'huggingface_hub', 'rich')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")  # the rival's own warnings
def test_sentence_transformers_gives_the_same_vectors(folder, static, tmp_path):
    st_package = pytest.importorskip("sentence_transformers")
    rival = st_package.SentenceTransformer(str(folder), device="cpu")
    np.testing.assert_allclose(static.encode(TEXTS), rival.encode(TEXTS), atol=1e-5)
    rival.save(str(tmp_path / "theirs"))
    again = twinvec.load(tmp_path / "theirs")
    assert np.array_equal(again.encode(TEXTS), static.encode(TEXTS))
    again.save(tmp_path / "ours")
    rival = st_package.SentenceTransformer(str(tmp_path / "ours"), device="cpu")
    np.testing.assert_allclose(static.encode(TEXTS), rival.encode(TEXTS), atol=1e-5)
    fast = Tokenizer.from_file(str(folder / "tokenizer.json"))
    fast.enable_truncation(3)
    fast.save(str(tmp_path / "theirs/tokenizer.json"))
    rival = st_package.SentenceTransformer(str(tmp_path / "theirs"), device="cpu")
    cut = twinvec.load(tmp_path / "theirs", long="cut")
    np.testing.assert_allclose(cut.encode(TEXTS), rival.encode(TEXTS), atol=1e-5)
