"""Our poly-encoder against a computation in torch from the hidden states of transformers."""

from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import load_file

import twinvec
from tiny import FAMILIES, WORDS, write_tiny_poly_encoder

torch = pytest.importorskip("torch", reason="parity needs the extra 'train'")
transformers = pytest.importorskip("transformers", reason="parity needs the extra 'train'")
pytestmark = pytest.mark.parity

RNG = np.random.default_rng(1)
PAIRS = [tuple(" ".join(RNG.choice(WORDS, RNG.integers(0, 13))) for _ in range(2)) for _ in range(30)]
LONG = [(" ".join(RNG.choice(WORDS, 40)), " ".join(RNG.choice(WORDS, 50))) for _ in range(3)]


@pytest.mark.parametrize("family", FAMILIES)
def test_scores_equal_those_from_the_states_of_transformers(tmp_path, family):
    folder = write_tiny_poly_encoder(tmp_path / "m", family, n_codes=5)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    codes = torch.from_numpy(load_file(folder / "poly_encoder.safetensors")["codes"])

    @torch.inference_mode()
    def states(text):
        batch = tokenizer([text], truncation=True, max_length=24, return_tensors="pt")
        return model(**batch).last_hidden_state[0]

    expected = []
    for query, text in [*PAIRS, *LONG, ("", "")]:
        tokens = states(query)
        several = torch.nn.functional.normalize(torch.softmax(codes @ tokens.T, dim=-1) @ tokens, dim=-1)
        candidate = torch.nn.functional.normalize(states(text).mean(dim=0), dim=-1)
        final = torch.softmax(100 * several @ candidate, dim=0) @ several
        expected.append(float(final @ candidate))
    ours = twinvec.load_scorer(folder, long="cut").score([*PAIRS, *LONG, ("", "")])
    assert np.std(expected) > 0.01  # scores that are all alike would prove nothing
    np.testing.assert_allclose(ours, expected, atol=1e-5)
