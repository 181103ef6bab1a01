"""The poly-encoder: a bi-encoder with codes; a text has its vector as a candidate, and one vector per code as a query.

Both sides share the weights. Humeau et al. (2020) start from two copies and train both.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from twinvec.choices import StoredPrecision
from twinvec.data.examples import Examples
from twinvec.engine.weights import check_array
from twinvec.errors import InputError
from twinvec.model.folder import ModelFolder, Pooling
from twinvec.model.poly_encoder import (
    SCALES,
    check_candidates,
    is_poly_encoder,
    read_poly_encoder,
    write_poly_encoder,
)
from twinvec.pairs.poly_encoder import attended_scores
from twinvec.training.batches import TextTask, TokenTable
from twinvec.training.dev_score import DevScore
from twinvec.training.networks.bi_encoder import Network
from twinvec.training.networks.start import start_folder
from twinvec.training.networks.texts import TextSetup
from twinvec.training.objectives import NETWORK_OBJECTIVES
from twinvec.training.processes import NETWORK, seeded
from twinvec.training.readout import POOLERS
from twinvec.training.recipe import ModelPart
from twinvec.types import Array, Ids, Vectors

__all__ = ["PolyNetwork", "PolyScores", "PolySetup", "poly_start"]

DEFAULT_CODES = 16
START = 4.0
TEXTS_AT_ONCE = 256  # their vectors of all codes are in memory


def poly_start(part: ModelPart) -> ModelFolder:
    """The start model, checked to have states that codes can read."""
    folder = start_folder(part)
    check_candidates(folder)
    if is_poly_encoder(folder.path) and part.codes is not None:
        n_codes = len(read_poly_encoder(folder.path).codes)
        if n_codes != part.codes:
            raise InputError(
                f"codes is {part.codes}, but {folder.path} is a poly-encoder with {n_codes} codes.",
                hint="Remove codes to train it further.",
            )
    return folder


class PolyNetwork(Network):
    """A bi-encoder with ``codes``, ``(n_codes, width of the states)``, from torch's random generator.

    Its output is the candidate's vector and the vectors of all codes, joined; of length 1 if they are compared by
    cosine. ``scale`` is that of a candidate's attention.
    """

    def __init__(
        self, folder: ModelFolder, n_codes: int, *, trust_pickle: bool = False, dropout: float | None = None
    ) -> None:
        super().__init__(folder, trust_pickle=trust_pickle, dropout=dropout)
        # States are about sqrt(width) long, so the first logits have a deviation of about START: codes read different
        # tokens from the start.
        self.codes = nn.Parameter(torch.randn(n_codes, self.backbone.width) * START * self.backbone.width**-0.5)
        self.scale = SCALES[folder.similarity]
        self.vector_width = self.width
        self.width = (1 + n_codes) * self.vector_width

    def forward(self, rows: Sequence[Ids]) -> Tensor:
        """The joined vectors of some texts, ``(texts, (1 + codes) * width)``."""
        assert isinstance(self.folder.readout, Pooling)
        states, mask = self.backbone(rows)
        with torch.autocast(states.device.type, enabled=False):
            states = states.float()
            logits = (states @ self.codes.T).masked_fill(~mask.bool().unsqueeze(-1), torch.finfo(states.dtype).min)
            several = torch.softmax(logits, dim=1).transpose(1, 2) @ states
            one = POOLERS[self.folder.readout.modes[0]](states, mask)
            vectors = torch.cat([one.unsqueeze(1), several], dim=1)
            for head in self.heads:
                vectors = head(vectors)
            if self.folder.similarity == "cosine":
                vectors = F.normalize(vectors, dim=-1)
        return vectors.flatten(1)

    def write(self, path: Path, *, stored: StoredPrecision = "float32") -> None:
        """Write the model to ``path``, an existing empty folder; the codes stay in float32."""
        super().write(path, stored=stored)
        write_poly_encoder(path, self.codes.detach().cpu().numpy(), scale=self.scale)


class PolySetup(TextSetup):
    """A poly-encoder, from a sentence model, a plain backbone or another poly-encoder."""

    network: PolyNetwork

    def make_network(self, folder: ModelFolder) -> PolyNetwork:
        """The network, with random codes, or those of the start model if that is a poly-encoder."""
        recipe, start = self.inputs.recipe, self.inputs.start.path
        poly = read_poly_encoder(start) if is_poly_encoder(start) else None
        n_codes = len(poly.codes) if poly else recipe.model.codes or DEFAULT_CODES
        with seeded(NETWORK, recipe.training.seed):
            network = PolyNetwork(
                folder, n_codes, trust_pickle=recipe.model.trust_pickle, dropout=recipe.training.dropout
            )
        if poly is not None:
            check_array(poly.codes, tuple(network.codes.shape), f"{start}: codes")
            network.codes.data.copy_(torch.from_numpy(poly.codes))
            network.scale = poly.scale
        return network

    def task(self, index: int) -> TextTask:
        """The training task of data set ``index`` of the recipe."""
        part = self.inputs.recipe.data[index]
        sizes = {"width": self.network.vector_width, "attention": self.network.scale}
        objective = NETWORK_OBJECTIVES["poly-encoder"][part.objective].build(sizes, part.options)
        return TextTask(self.inputs.data[index], self.tables[index], objective, part.share)

    def dev_score(self, examples: Examples) -> DevScore:
        """The score of held-out examples by the poly-encoder's own scores; the first text of a pair is the query."""
        tokens = self.tokens(examples)
        return DevScore(examples, lambda network: PolyScores(network, tokens), "poly-encoder score")


class PolyScores:
    """The scores of a poly-encoder for texts with these tokens. Candidates are embedded once."""

    def __init__(self, network: PolyNetwork, tokens: TokenTable) -> None:
        self.network, self.tokens = network, tokens
        self._vectors = np.zeros((len(tokens), network.vector_width), dtype=np.float32)
        self._is_known = np.zeros(len(tokens), dtype=bool)

    def of(self, first: Ids, second: Ids) -> Array:
        """The score of each query with its candidate, ``(n,), (n,) -> (n,)``."""
        candidates = self._candidates(second)
        scores = np.empty(len(first), dtype=np.float32)
        for start in range(0, len(first), TEXTS_AT_ONCE):
            part = slice(start, start + TEXTS_AT_ONCE)
            pairs = zip(self._queries(first[part]), candidates[part], strict=True)
            scores[part] = [attended_scores(query, one[None], self.network.scale)[0] for query, one in pairs]
        return scores

    def all(self, first: Ids, second: Ids) -> Array:
        """The score of each query with each candidate, ``(n,), (m,) -> (n, m)``."""
        candidates = self._candidates(second)
        scores = np.empty((len(first), len(second)), dtype=np.float32)
        for start in range(0, len(first), TEXTS_AT_ONCE):
            for row, query in enumerate(self._queries(first[start : start + TEXTS_AT_ONCE]), start):
                scores[row] = attended_scores(query, candidates, self.network.scale)
        return scores

    def _candidates(self, texts: Ids) -> Vectors:
        """The vectors of texts as candidates, ``(n, width)``."""
        missing = np.unique(texts[~self._is_known[texts]])
        for start in range(0, len(missing), TEXTS_AT_ONCE):
            part = missing[start : start + TEXTS_AT_ONCE]
            self._vectors[part] = self._joined(part)[:, 0]
        self._is_known[missing] = True
        return self._vectors[texts]

    def _queries(self, texts: Ids) -> Vectors:
        """The vectors of texts as queries, ``(n, codes, width)``."""
        different, where = np.unique(texts, return_inverse=True)
        return self._joined(different)[where, 1:]

    def _joined(self, texts: Ids) -> Vectors:
        vectors = self.network.encode(self.tokens.rows(texts))
        return vectors.reshape(len(texts), -1, self.network.vector_width)
