"""What a config may say: it is understood as transformers understands it, or refused by the name of the key."""

from __future__ import annotations

import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import twinvec
from tiny import FAMILIES, WIDTH, write_json, write_plain_model, write_tiny_model
from twinvec.engine import config as known_values
from twinvec.engine.config import read_backbone
from twinvec.errors import ModelFolderError, TwinvecError

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
    from twinvec.model.folder import read_model_folder
    from twinvec.model.tokenizer import load_tokenizer
    from twinvec.training.backbone import Backbone

    folder = write_tiny_model(tmp_path / "model", family)
    backbone = Backbone(read_model_folder(folder)).eval()
    assert backbone.is_packed
    tokenizer = load_tokenizer(folder)
    rows = [np.array(tokenizer.add_special_tokens(ids)) for ids in tokenizer.ids(TEXTS)]
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
    with pytest.raises(ModelFolderError, match=rf"config.json: {key}.* does not support\. .*runtime='torch'"):
        twinvec.load(folder)


def test_a_decoder_runs_in_torch_as_the_error_says(tmp_path):
    folder = write_tiny_model(tmp_path / "model")
    usual = torch_vectors(folder)
    edit(folder / "config.json", is_decoder=True)
    assert np.abs(torch_vectors(folder) - usual).max() > 0.01


BAD_SIZES = (0, -1, 1.5, 10**10, 10**400, "12", None, [], {}, True)


@pytest.mark.parametrize("family", ["bert", "distilbert", "modernbert", "albert", "mpnet"])
def test_an_invalid_size_is_refused_before_memory_is_allocated(tmp_path, family):
    config = FAMILIES[family]
    keys = [key for key in config if key.startswith(("num_", "n_", "max_", "hidden_size", "dim", "vocab", "inter"))]
    assert len(keys) >= 5
    for key in keys:
        for value in BAD_SIZES:
            with pytest.raises(ModelFolderError, match=f"config.json: '{key}' is .*, not a whole number"):
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
def test_a_value_of_the_wrong_type_or_range_raises_a_twinvec_error(tmp_path, family, key, values):
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
