"""What a config may say: it is understood as transformers understands it, or refused by the name of the key."""

from __future__ import annotations

import errno
import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

import twinvec
from tiny import FAMILIES, WIDTH, write_json, write_plain_model, write_tiny_model
from twinvec.engine import known_values
from twinvec.engine.config import read_backbone
from twinvec.errors import InputError, ModelFolderError, ModelNotFoundError, TwinvecError, WeightsError
from twinvec.json_object import JsonObject

TEXTS = ["the cat sits on the mat", "rain", "", "[PAD] the [PAD] [PAD] dog runs [PAD]", "a [MASK] [PAD]", "[PAD]"]


def edit(path, **changes):
    write_json(path, json.loads(path.read_text()) | changes)


def torch_vectors(folder, texts=TEXTS):
    """What transformers gives, over the same tokens."""
    pytest.importorskip("transformers", reason="the reference")
    return twinvec.load(folder, runtime="torch").encode(texts)


@pytest.mark.parametrize("family", list(FAMILIES))
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_a_literal_padding_token_in_a_text_is_placed_as_transformers_places_it(tmp_path, family, pooling):
    folder = write_tiny_model(tmp_path / "model", family, pooling={"pooling_mode": pooling})
    expected = torch_vectors(folder)
    np.testing.assert_allclose(twinvec.load(folder).encode(TEXTS), expected, atol=2e-5)
    np.testing.assert_allclose(twinvec.load(folder, deterministic=True).encode(TEXTS), expected, atol=2e-5)


@pytest.mark.parametrize("family", ["roberta", "mpnet"])
def test_openvino_and_int8_place_a_literal_padding_token_too(tmp_path, family):
    pytest.importorskip("openvino")
    folder = write_tiny_model(tmp_path / "model", family)
    exact = twinvec.load(folder).encode(TEXTS)
    np.testing.assert_allclose(twinvec.load(folder, runtime="openvino").encode(TEXTS), exact, atol=1e-4)
    cosines = (twinvec.load(folder, precision="int8").encode(TEXTS) * exact).sum(axis=1)
    assert cosines.min() > 0.98


@pytest.mark.parametrize("family", ["roberta", "xlm-roberta", "bert"])
def test_training_places_a_literal_padding_token_as_transformers_does(tmp_path, family):
    torch = pytest.importorskip("torch")
    from twinvec.model_folder import read_model_folder
    from twinvec.text import load_tokenizer
    from twinvec.train.backbone import Backbone

    folder = write_tiny_model(tmp_path / "model", family)
    backbone = Backbone(read_model_folder(folder)).eval()
    assert backbone.is_packed
    tokenizer = load_tokenizer(folder)
    rows = [np.array(tokenizer.dress(ids)) for ids in tokenizer.ids(TEXTS)]
    with torch.no_grad():
        states, _ = backbone(rows)
        for row, found in zip(rows, states, strict=True):
            alone = backbone.model(input_ids=torch.from_numpy(row)[None]).last_hidden_state[0]
            assert (found[: len(row)] - alone).abs().max() < 1e-5


@pytest.mark.parametrize("pad", [0, 2, 7, None])
def test_mpnet_counts_positions_from_1_whatever_its_padding_is(tmp_path, pad):
    folder = write_tiny_model(tmp_path / "model", "mpnet")
    expected = twinvec.load(folder).encode(TEXTS)
    edit(folder / "config.json", pad_token_id=pad)
    assert np.array_equal(twinvec.load(folder).encode(TEXTS), expected)
    if pad is not None:
        np.testing.assert_allclose(torch_vectors(folder), expected, atol=2e-5)


def test_mpnets_buckets_are_32_also_of_a_larger_table(tmp_path):
    from safetensors.numpy import load_file, save_file

    folder = write_tiny_model(tmp_path / "model", "mpnet")
    weights = load_file(folder / "model.safetensors")
    table = weights["encoder.relative_attention_bias.weight"]
    weights["encoder.relative_attention_bias.weight"] = np.concatenate([table, table[:8] + 1])
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    edit(folder / "config.json", relative_attention_num_buckets=40)
    np.testing.assert_allclose(twinvec.load(folder).encode(TEXTS), torch_vectors(folder), atol=2e-5)


@pytest.mark.parametrize("pad", [0, 3, 10])
def test_roberta_counts_positions_from_its_padding(tmp_path, pad):
    folder = write_tiny_model(tmp_path / "model", "roberta")
    edit(folder / "config.json", pad_token_id=pad)
    np.testing.assert_allclose(twinvec.load(folder).encode(TEXTS), torch_vectors(folder), atol=2e-5)


def test_torch_cuts_texts_at_the_last_position_of_roberta(tmp_path):
    folder = write_plain_model(tmp_path / "model", "roberta")
    (folder / "tokenizer_config.json").unlink()
    encoder = twinvec.load(folder, long="cut")
    assert encoder.max_tokens == 40
    np.testing.assert_allclose(torch_vectors(folder, ["cat " * 60]), encoder.encode(["cat " * 60]), atol=2e-5)


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("modernbert", {"local_rope_theta": 20000.0, "local_attention": 4}),
        ("modernbert", {"layer_types": ["sliding_attention"] * 2 + ["full_attention"] * 2}),
        ("modernbert", {"rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 500.0}}}),
        ("modernbert", {"global_attn_every_n_layers": 2}),
        ("albert", {"num_hidden_layers": 7}),
        ("bert", {"num_attention_heads": 8, "layer_norm_eps": 0.1, "hidden_act": "relu"}),
        ("bert", {"embedding_size": 5, "pad_token_id": 3, "chunk_size_feed_forward": 0}),
        ("distilbert", {"sinusoidal_pos_embds": True, "hidden_size": WIDTH}),
    ],
)
def test_a_value_that_the_graph_knows_gives_transformers_vectors(tmp_path, family, changes):
    folder = write_tiny_model(tmp_path / "model", family)
    edit(folder / "config.json", **changes)
    np.testing.assert_allclose(twinvec.load(folder).encode(TEXTS), torch_vectors(folder), atol=2e-5)


def test_a_modernbert_without_a_theta_has_transformers_own(tmp_path):
    folder = write_tiny_model(tmp_path / "model", "modernbert")
    content = json.loads((folder / "config.json").read_text())
    del content["local_rope_theta"], content["global_rope_theta"]
    write_json(folder / "config.json", content)
    np.testing.assert_allclose(twinvec.load(folder).encode(TEXTS), torch_vectors(folder), atol=2e-5)


ROPE = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1e4}


@pytest.mark.parametrize(
    ("family", "key", "value"),
    [
        *((family, "is_decoder", True) for family in ("bert", "roberta", "electra", "albert")),
        ("bert", "add_cross_attention", True),
        ("bert", "is_encoder_decoder", True),
        ("bert", "position_embedding_type", "relative_key_query"),
        ("bert", "pruned_heads", {"0": [1]}),
        ("bert", "per_layer_config", {"1": {"num_attention_heads": 2}}),
        ("bert", "quantization_config", {"quant_method": "bitsandbytes"}),
        ("distilbert", "hidden_size", 16),
        ("distilbert", "num_hidden_layers", 1),
        ("modernbert", "rope_parameters", {"full_attention": ROPE}),
        ("modernbert", "rope_parameters", {"full_attention": {"rope_type": "linear", "factor": 2.0}}),
        ("modernbert", "rope_parameters", ROPE),
        ("modernbert", "rope_scaling", {"type": "linear", "factor": 2.0}),
        ("modernbert", "norm_bias", True),
        ("modernbert", "head_dim", 4),
        ("modernbert", "sliding_window", 2),
    ],
)
def test_a_value_that_would_change_the_vectors_is_refused_and_torch_is_named(tmp_path, family, key, value):
    folder = write_tiny_model(tmp_path / "model", family)
    edit(folder / "config.json", **{key: value})
    with pytest.raises(ModelFolderError, match=rf"config.json: {key}.* does not know\. .*runtime='torch'"):
        twinvec.load(folder)


def test_a_decoder_runs_in_torch_as_the_error_says(tmp_path):
    folder = write_tiny_model(tmp_path / "model")
    usual = torch_vectors(folder)
    edit(folder / "config.json", is_decoder=True)
    assert np.abs(torch_vectors(folder) - usual).max() > 0.01


BAD_SIZES = (0, -1, 1.5, 10**10, 10**400, "12", None, [], {}, True)


@pytest.mark.parametrize("family", ["bert", "distilbert", "modernbert", "albert", "mpnet"])
def test_a_size_that_is_none_is_refused_before_memory_is_taken(tmp_path, family):
    config = FAMILIES[family]
    keys = [key for key in config if key.startswith(("num_", "n_", "max_", "hidden_size", "dim", "vocab", "inter"))]
    assert len(keys) >= 5
    for key in keys:
        for value in BAD_SIZES:
            with pytest.raises(ModelFolderError, match=f"wrong kind: {key} is .*, not a whole number"):
                read_backbone({**config, key: value})


@pytest.mark.parametrize("value", [0, None, [], "2", 2.0])
@pytest.mark.parametrize("family", ["bert", "roberta", "electra", "albert"])
def test_types_of_tokens_are_a_whole_number(family, value):
    with pytest.raises(ModelFolderError, match="type_vocab_size"):
        read_backbone({**FAMILIES[family], "type_vocab_size": value})


@pytest.mark.parametrize(
    ("family", "key", "values"),
    [
        ("bert", "layer_norm_eps", (0, -1e-5, "1e-5", None, 1e300, True)),
        ("bert", "hidden_act", (None, ["gelu"], 1, "gel")),
        ("bert", "model_type", (["bert"], {}, 3, None, "no-such-model")),
        ("roberta", "pad_token_id", (None, -1, 41, 1e3, "1")),
        ("modernbert", "layer_types", (["full_attention"], ["full_attention"] * 3 + ["x"], "full", [[]] * 4)),
        ("modernbert", "global_attn_every_n_layers", (0, -1, None)),
        ("modernbert", "local_attention", (-8, 1.5, None)),
        ("modernbert", "max_position_embeddings", (2**20,)),
        ("modernbert", "num_attention_heads", (32,)),
        ("modernbert", "rope_parameters", ([], "default", {"full_attention": 5})),
        ("mpnet", "relative_attention_num_buckets", (0, 31, None)),
    ],
)
def test_a_value_of_another_kind_or_range_is_our_error(tmp_path, family, key, values):
    folder = write_tiny_model(tmp_path / "model", family)
    for value in values:
        edit(folder / "config.json", **{key: value})
        with pytest.raises(TwinvecError):
            twinvec.load(folder)


@pytest.mark.parametrize(
    ("key", "value"),
    [("num_hidden_layers", 10**10), ("num_attention_heads", 0), ("hidden_size", -32), ("vocab_size", 10**9)],
)
def test_torch_refuses_sizes_before_it_takes_memory(tmp_path, key, value):
    pytest.importorskip("transformers")
    folder = write_tiny_model(tmp_path / "model")
    edit(folder / "config.json", **{key: value})
    with pytest.raises(ModelFolderError):
        twinvec.load(folder, runtime="torch")


HARMLESS = {
    "_name_or_path": "a/b",
    "architectures": ["BertForMaskedLM"],
    "attention_probs_dropout_prob": 0.1,
    "classifier_dropout": None,
    "directionality": "bidi",
    "dtype": "float32",
    "finetuning_task": "mrpc",
    "gradient_checkpointing": False,
    "id2label": {"0": "LABEL_0"},
    "initializer_range": 0.02,
    "label2id": {"LABEL_0": 0},
    "output_past": True,
    "pooler_fc_size": 768,
    "pooler_type": "first_token_transform",
    "torch_dtype": "float16",
    "transformers_version": "4.8.2",
    "use_cache": True,
    "xla_device": True,
    "a key that nobody knows": {"deep": [1]},
}


@pytest.mark.parametrize("family", list(FAMILIES))
def test_keys_that_no_forward_pass_reads_change_nothing(tmp_path, family):
    folder = write_tiny_model(tmp_path / "model", family)
    expected = twinvec.load(folder).encode(TEXTS)
    edit(folder / "config.json", **HARMLESS)
    assert np.array_equal(twinvec.load(folder).encode(TEXTS), expected)


# Of transformers' config classes: keys that its encoders do not read, or that only say what is given back or trained.
UNREAD = {
    *("_name_or_path", "architectures", "bos_token_id", "chunk_size_feed_forward", "cls_token_id", "dtype"),
    *("eos_token_id", "id2label", "initializer_cutoff_factor", "initializer_range", "label2id", "model_type"),
    *("output_attentions", "output_hidden_states", "problem_type", "return_dict", "sep_token_id"),
    *("sinusoidal_pos_embds", "tie_word_embeddings", "transformers_version", "use_cache"),
    *("deterministic_flash_attn", "sparse_prediction", "sparse_pred_ignore_index"),
}
UNREAD_PARTS = "dropout", "classifier", "summary", "decoder_bias"  # rates, and heads of other tasks


class Recorder(dict):
    """A config that remembers which of its keys were read."""

    def __init__(self, content):
        super().__init__(content)
        self.read = set()

    def __contains__(self, key):
        self.read.add(key)
        return super().__contains__(key)

    def __getitem__(self, key):
        self.read.add(key)
        return super().__getitem__(key)

    def get(self, key, default=None):
        self.read.add(key)
        return super().get(key, default)


@pytest.mark.parametrize("family", list(FAMILIES))
def test_every_key_of_transformers_own_config_is_read_or_known_not_to_matter(family):
    transformers = pytest.importorskip("transformers")
    config = Recorder(FAMILIES[family])
    backbone = read_backbone(config)
    known = set(known_values.SHARED) | set(known_values.KNOWN.get(backbone.family, {}))
    keys = set(transformers.AutoConfig.for_model(family).to_dict())
    missed = {key for key in keys - known - config.read - UNREAD if not any(part in key for part in UNREAD_PARTS)}
    missed -= {"pad_token_id"}  # of the others, it names a row of the table that is masked
    assert missed == set()


def dense(folder, n_in, n_out, seed):
    from safetensors.numpy import save_file

    rng = np.random.default_rng(seed)
    write_json(folder / "config.json", {"in_features": n_in, "out_features": n_out})
    weights = {"linear.weight": rng.standard_normal((n_out, n_in)), "linear.bias": rng.standard_normal(n_out)}
    save_file({name: values.astype(np.float32) for name, values in weights.items()}, folder / "model.safetensors")
    return weights


def test_two_dense_modules_in_folders_of_one_name_are_two(tmp_path):
    folder = write_tiny_model(tmp_path / "model", extra=())
    states = twinvec.load(folder).encode(TEXTS)
    rows = json.loads((folder / "modules.json").read_text())
    kind = "sentence_transformers.models.Dense"
    for place, (path, sizes) in enumerate({"a/Dense": (WIDTH, 8), "b/Dense": (8, 8)}.items()):
        weights = dense(folder / path, *sizes, seed=place)
        states = np.tanh(states @ weights["linear.weight"].T + weights["linear.bias"])
        rows.append({"idx": 2 + place, "name": str(2 + place), "path": path, "type": kind})
    write_json(folder / "modules.json", rows)
    encoder = twinvec.load(folder)
    np.testing.assert_allclose(encoder.encode(TEXTS), states, atol=1e-5)
    encoder.save(tmp_path / "copy")
    assert np.array_equal(twinvec.load(tmp_path / "copy").encode(TEXTS), encoder.encode(TEXTS))


def test_an_activation_that_is_not_torchs_is_refused(tmp_path):
    folder = write_tiny_model(tmp_path / "model", extra=("Dense",))
    dense(folder / "2_Dense", WIDTH, 8, 0)
    edit(folder / "2_Dense/config.json", activation_function="evil.Tanh")
    with pytest.raises(ModelFolderError, match=r"evil.Tanh is not torch's own, and is never run"):
        twinvec.load(folder)


@pytest.mark.parametrize("file", ["config.json", "modules.json", "tokenizer_config.json", "1_Pooling/config.json"])
@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("[" * 100_000, "not valid JSON"),
        ('{"a":' * 900 + "1" + "}" * 900, "nested"),
        ('{"max_seq_length": Infinity}', "Infinity"),
        ('{"x": NaN}', "NaN"),
        ('{"x": 1e999}', "1e999"),
        ('{"x": ' + "9" * 5000 + "}", "not valid JSON"),
        ('"\\ud800', "not valid JSON"),
        ("3", "holds a int|must be a list"),
    ],
)
def test_json_that_breaks_its_readers_is_refused(tmp_path, file, content, problem):
    folder = write_tiny_model(tmp_path / "model")
    (folder / file).write_text(content)
    with pytest.raises(ModelFolderError, match=problem):
        twinvec.load(folder)


def test_a_json_file_larger_than_any_config_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr("twinvec.files.MOST_JSON_BYTES", 1000)
    folder = write_tiny_model(tmp_path / "model")
    (folder / "config.json").write_text("[" + " " * 1000)
    with pytest.raises(ModelFolderError, match="larger than"):
        twinvec.load(folder)


def test_names_longer_than_a_file_can_have_are_refused(tmp_path):
    with pytest.raises(ModelNotFoundError, match="too long"):
        twinvec.load("x" * 300)
    with pytest.raises(ModelNotFoundError):
        twinvec.load("a\0b")
    folder = write_tiny_model(tmp_path / "model")
    rows = json.loads((folder / "modules.json").read_text())
    for path in ("y" * 300, "a\0b", "\ud800"):
        rows[1]["path"] = path
        write_json(folder / "modules.json", rows)
        with pytest.raises(ModelFolderError):
            twinvec.load(folder)
    (folder / "modules.json").unlink()
    (folder / "model.safetensors").unlink()
    write_json(folder / "model.safetensors.index.json", {"weight_map": {"x": "z" * 300}})
    with pytest.raises(WeightsError):
        twinvec.load(folder)
    with pytest.raises(InputError, match="cannot be written"):
        twinvec.load(write_tiny_model(tmp_path / "other")).save(tmp_path / ("w" * 300))


@pytest.mark.parametrize("value", ["8", 8.0, True, [8], 0, -1, WIDTH + 1])
def test_a_width_to_cut_to_is_a_whole_number_of_the_models(tmp_path, value):
    folder = write_tiny_model(tmp_path / "model")
    with pytest.raises(InputError, match=f"truncate_dim must be a whole number from 1 to {WIDTH}"):
        twinvec.load(folder, truncate_dim=value)
    write_json(folder / "config_sentence_transformers.json", {"truncate_dim": value})
    with pytest.raises(TwinvecError, match="truncate_dim"):
        twinvec.load(folder)


@pytest.mark.parametrize(
    "values",
    [
        {"config_args": {"num_hidden_layers": 1}},
        {"model_args": {"subfolder": "other"}},
        {"transformer_task": "fill-mask"},
        {"processing_kwargs": {"text": {"padding_side": "left"}}},
        {"module_output_name": "sentence_embedding"},
    ],
)
def test_settings_that_would_load_another_backbone_are_refused(tmp_path, values):
    folder = write_tiny_model(tmp_path / "model")
    edit(folder / "sentence_bert_config.json", **values)
    with pytest.raises(ModelFolderError, match=rf"sentence_bert_config.json: {next(iter(values))}.*not supported"):
        twinvec.load(folder)


def test_how_newer_releases_say_the_usual_is_read(tmp_path):
    folder = write_tiny_model(tmp_path / "model")
    expected = twinvec.load(folder).encode(TEXTS)
    modality = {"text": {"method": "forward", "method_output_name": "last_hidden_state"}}
    edit(
        folder / "sentence_bert_config.json",
        transformer_task="feature-extraction",
        modality_config=modality,
        module_output_name="token_embeddings",
        model_args={"attn_implementation": "sdpa"},
    )
    assert np.array_equal(twinvec.load(folder).encode(TEXTS), expected)


@pytest.mark.parametrize("field", ["type_id", "twice"])
def test_a_tokenizer_that_does_more_than_put_special_tokens_around_is_refused(tmp_path, field):
    folder = write_tiny_model(tmp_path / "model")
    content = json.loads((folder / "tokenizer.json").read_text())
    part = {"Sequence": {"id": "A", "type_id": int(field == "type_id")}}
    single = [part] if field == "type_id" else [part, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}, part]
    content["post_processor"] = {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [part, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}},
    }
    write_json(folder / "tokenizer.json", content)
    with pytest.raises(ModelFolderError, match="does more than put special tokens around"):
        twinvec.load(folder)


def test_a_plain_model_keeps_its_width_when_it_is_saved(tmp_path):
    folder = write_plain_model(tmp_path / "plain", "bert")
    encoder = twinvec.load(folder, truncate_dim=8)
    encoder.save(tmp_path / "copy")
    copy = twinvec.load(tmp_path / "copy")
    assert copy.truncate_dim == copy.width == 8
    assert np.array_equal(copy.encode(TEXTS), encoder.encode(TEXTS))


@pytest.mark.parametrize("family", ["bert", "static"])
def test_a_full_disk_is_our_error_and_leaves_nothing(tmp_path, family, monkeypatch):
    encoder = twinvec.load(write_tiny_model(tmp_path / "model")) if family == "bert" else twinvec.load("twinvec-static")

    def refuse(source, target):
        raise OSError(errno.ENOSPC, "No space left on device", str(target))

    monkeypatch.setattr(shutil, "copyfile", refuse)
    (tmp_path / "saved").mkdir()
    with pytest.raises(InputError, match=r"cannot be written: .*No space left on device.*Nothing was left"):
        encoder.save(tmp_path / "saved/model")
    assert list((tmp_path / "saved").iterdir()) == []


LIMITED = """
import resource, signal, sys
import twinvec
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
encoder = twinvec.load(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    encoder.save(sys.argv[2])
except twinvec.TwinvecError as error:
    print("refused", error)
"""


@pytest.mark.parametrize("family", ["bert", "static"])
def test_a_file_that_cannot_grow_is_our_error_and_leaves_nothing(tmp_path, family):
    pytest.importorskip("resource")
    model = write_tiny_model(tmp_path / "model") if family == "bert" else "twinvec-static"
    (tmp_path / "saved").mkdir()
    command = [sys.executable, "-c", LIMITED, str(model), str(tmp_path / "saved/model")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("refused") and "cannot be written" in done.stdout, done.stderr
    assert list((tmp_path / "saved").iterdir()) == []


def test_values_are_read_by_their_kind():
    values = JsonObject({"n": 3, "x": 0.5, "yes": True, "word": "b", "none": None, "inner": {"k": 1}}, "a.json")
    assert values.integer("n") == 3 and values.integer("m", None) is None and values.integer("none", None) is None
    assert values.number("x", least=0, most=1) == 0.5
    assert values.flag("yes") is True and values.word("word", choices=("a", "b")) == "b"
    assert values.inner("inner").integer("k") == 1 and values.inner("absent").content == {}
    with pytest.raises(ModelFolderError, match=r"a.json lacks 'm'"):
        values.integer("m")
    with pytest.raises(ModelFolderError, match=r"a.json holds a value of the wrong kind: n is 3, not .* from 4 to 9"):
        values.integer("n", least=4, most=9)
    with pytest.raises(InputError, match="word is 'b', not one of x, y"):
        JsonObject({"word": "b"}, "a.json", InputError).word("word", choices=("x", "y"))
