"""Our graphs against transformers, for every architecture, layer and pooling."""

from __future__ import annotations

import numpy as np
import pytest

from tiny import FAMILIES, POSITIONS, VOCABULARY
from twinvec.choices import POOLINGS
from twinvec.engine.batches import pad
from twinvec.engine.model import read_model
from twinvec.engine.runtimes import OnnxRuntime, OpenvinoRuntime
from twinvec.model.folder import Pooling, read_model_folder

torch = pytest.importorskip("torch", reason="parity needs the extra 'train'")
transformers = pytest.importorskip("transformers", reason="parity needs the extra 'train'")
pytestmark = pytest.mark.parity


def batch_of(lengths, seed=0):
    rng = np.random.default_rng(seed)
    return pad([[2, *rng.integers(5, len(VOCABULARY), n - 2).tolist(), 3] for n in lengths])


BATCH = batch_of([POSITIONS, 17, 9, 2])


def hidden_states(folder, batch):
    model = transformers.AutoModel.from_pretrained(folder).eval()
    feed = {"input_ids": torch.from_numpy(batch.ids), "attention_mask": torch.from_numpy(batch.mask)}
    if getattr(model.config, "type_vocab_size", 0):
        feed["token_type_ids"] = torch.zeros_like(feed["input_ids"])
    with torch.inference_mode():
        result = model(**feed, output_hidden_states=True)
    states = [states.numpy() for states in result.hidden_states]
    # Since transformers 5, ALBERT also shows the states between the inner layers of a group.
    n_layers = getattr(model.config, "num_hidden_layers", len(states) - 1)
    return states[:: (len(states) - 1) // n_layers], result.last_hidden_state.numpy()


def reference_pooling(mode, states, mask):
    """Each pooling in the most obvious way: one text at a time, padding removed."""
    rows = []
    for text, real in zip(states, mask.astype(bool), strict=True):
        tokens = text[real].astype(np.float64)
        rows.append(
            {
                "cls": lambda t: t[0],
                "max": lambda t: t.max(0),
                "mean": lambda t: t.mean(0),
                "mean_sqrt_len_tokens": lambda t: t.sum(0) / np.sqrt(len(t)),
                "weightedmean": lambda t: np.average(t, axis=0, weights=np.arange(1, len(t) + 1)),
                "lasttoken": lambda t: t[-1],
            }[mode](tokens)
        )
    return np.stack(rows)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("runtime", ["onnxruntime", "openvino"])
def test_every_layer_equals_transformers(tiny_folders, family, runtime):
    model = read_model(read_model_folder(tiny_folders[family]))
    if runtime == "openvino":
        pytest.importorskip("openvino", reason="needs the extra 'fast'")
        ours = OpenvinoRuntime(model, precision="float32", n_streams=1).layers(BATCH)
    else:
        ours = OnnxRuntime(model).layers(BATCH)
    theirs, last = hidden_states(tiny_folders[family], BATCH)
    assert len(ours) == len(theirs)
    real = BATCH.mask.astype(bool)
    for ours_of_layer, theirs_of_layer in zip(ours[:-1], theirs[:-1], strict=True):
        np.testing.assert_allclose(ours_of_layer[real], theirs_of_layer[real], atol=1e-4)
    np.testing.assert_allclose(ours[-1][real], last[real], atol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("modes", [*((mode,) for mode in POOLINGS), ("mean", "cls"), POOLINGS])
def test_every_pooling_equals_the_obvious_one(tiny_folders, family, modes):
    from dataclasses import replace

    folder = replace(read_model_folder(tiny_folders[family]), modules=(Pooling(modes),))
    ours = OnnxRuntime(read_model(folder)).vectors(BATCH)
    _, last = hidden_states(tiny_folders[family], BATCH)
    expected = np.concatenate([reference_pooling(mode, last, BATCH.mask) for mode in modes], axis=1)
    np.testing.assert_allclose(ours, expected, atol=1e-4)
