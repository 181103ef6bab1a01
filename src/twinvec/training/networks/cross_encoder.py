"""The cross-encoder: a backbone reads two texts together, and the head of its architecture returns logits."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
import transformers
from safetensors.numpy import save_file
from torch import Tensor, nn

from twinvec.choices import ScoreActivation, StoredPrecision
from twinvec.engine.batches import plan_batches
from twinvec.engine.torch import quiet
from twinvec.engine.weights import pack_int8, read_weights
from twinvec.errors import WeightsError
from twinvec.files import read_json, write_json
from twinvec.model.classifier import ACTIVATION_CLASSES, Classifier
from twinvec.model.folder import Dense, ModelFolder
from twinvec.model.save import write_model
from twinvec.training.backbone import Backbone
from twinvec.training.networks.bi_encoder import ENCODE_TOKENS, train_only, whole_table
from twinvec.training.processes import HEADS, seeded
from twinvec.training.readout import POOLERS
from twinvec.types import Array, Ids, Vectors

__all__ = ["CrossEncoderNetwork", "HeadSettings", "PairInput"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PairInput:
    """The tokens of a pair, special tokens included, and their types."""

    ids: Ids
    types: Ids

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class HeadSettings:
    """The names of the outputs, how scores are made from them, and the seed of a new head."""

    labels: tuple[str, ...]
    activation: ScoreActivation
    seed: int = 0


class CrossEncoderNetwork(nn.Module):  # type: ignore[misc] # torch is not typed here
    """A backbone with the classification head of its architecture in transformers: takes pairs, returns logits.

    ``start`` describes the head that the folder has already; it is kept if its labels are those of ``settings``, in
    any order. Otherwise the head is new.
    """

    def __init__(
        self,
        folder: ModelFolder,
        settings: HeadSettings,
        *,
        start: Classifier | None = None,
        trust_pickle: bool = False,
        dropout: float | None = None,
    ) -> None:
        super().__init__()
        self.folder, self.settings = folder, settings
        self.width = len(settings.labels)
        self.max_tokens: int | None = None  # of a pair; None: as in the folder
        self.backbone = Backbone(folder, trust_pickle=trust_pickle, dropout=dropout)
        self.is_packed, self.n_positions = self.backbone.is_packed, self.backbone.n_positions
        with seeded(HEADS, settings.seed):
            model = _with_head(self.backbone.model, self.width)
        base = model.base_model_prefix
        self.head = nn.ModuleDict({name: module for name, module in model.named_children() if name != base})
        self._whole = [model]  # in a list, because backbone and head are the registered parts of it
        self._logits = HEAD_FUNCTIONS[folder.config["model_type"]]
        if start is not None:
            self._load_head(start, trust_pickle=trust_pickle)

    def forward(self, rows: Sequence[PairInput]) -> Tensor:
        """The logits of some pairs, ``(pairs, width)``."""
        states, mask = self.backbone([row.ids for row in rows], [row.types for row in rows])
        with torch.autocast(states.device.type, enabled=False):
            return self._logits(self._whole[0], states.float(), mask)

    def score(self, rows: Sequence[PairInput]) -> Vectors:
        """The logits of any number of pairs, without dropout or gradients, ``(pairs, width)``."""
        logits = np.empty((len(rows), self.width), dtype=np.float32)
        was_training = self.training
        self.eval()
        try:
            with torch.inference_mode(), whole_table(self.backbone):
                for batch in plan_batches([len(row) for row in rows], ENCODE_TOKENS):
                    logits[batch] = self([rows[i] for i in batch]).float().cpu().numpy()
        finally:
            self.train(was_training)
        return logits

    def train_only(self, used: Ids) -> None:
        """Train only these rows of the embedding table; ``score`` and ``write`` still use the full table."""
        train_only(self.backbone, used)

    def write(self, path: Path, *, stored: StoredPrecision = "float32") -> None:
        """Write the model to ``path``, an existing empty folder."""
        model = self._whole[0]
        with whole_table(self.backbone), quiet(transformers.utils.logging):
            model.save_pretrained(path)
        write_model(self.folder, path)
        # The config of the start model: that of transformers has dropout rates meant only for training.
        write_json(path / "config.json", self._config(type(model).__name__))
        limits = {"model_max_length": self.max_tokens} if self.max_tokens else {}
        write_json(path / "tokenizer_config.json", read_json(path / "tokenizer_config.json") | limits)
        if stored == "int8":
            weights = read_weights(path)
            (path / "model.safetensors").unlink()
            save_file(pack_int8(weights), path / "model.safetensors", metadata={"format": "pt"})

    def _config(self, architecture: str) -> dict[str, Any]:
        old = ("torch_dtype", "num_labels", "problem_type", "sbert_ce_default_activation_function")
        config = {name: value for name, value in self.folder.config.items() if name not in old}
        labels, activation = self.settings.labels, self.settings.activation
        if len(labels) > 1:
            config["problem_type"] = "single_label_classification"
        elif activation == "none":
            config["problem_type"] = "regression"
        return config | {
            "architectures": [architecture],
            "dtype": "float32",
            "id2label": {str(index): label for index, label in enumerate(labels)},
            "label2id": {label: index for index, label in enumerate(labels)},
            "sentence_transformers": {"activation_fn": ACTIVATION_CLASSES[activation]},
        }

    def _load_head(self, start: Classifier, *, trust_pickle: bool) -> None:
        labels = self.settings.labels
        if sorted(start.labels) != sorted(labels):
            named = ", ".join(start.labels[:5])
            logger.warning(
                "The head of %s has other labels (%s), so training starts a new one.", start.folder.path, named
            )
            return
        stored = read_weights(start.folder.path, trust_pickle=trust_pickle)
        last = start.folder.modules[-1]
        assert isinstance(last, Dense)
        order = [start.labels.index(label) for label in labels]
        found: dict[str, Tensor] = {}
        for name in self.head.state_dict():
            if name not in stored:
                raise WeightsError(f"{start.folder.path} lacks {name}.", hint="Download the model again.")
            values: Array = stored[name][order] if name.startswith(f"{last.folder.name}.") else stored[name]
            found[name] = torch.from_numpy(np.array(values, dtype=np.float32))
        self.head.load_state_dict(found)


def _with_head(backbone: Any, n_labels: int) -> Any:  # noqa: ANN401 - transformers models
    """A sequence classifier over ``backbone``, with a new head from torch's random generator."""
    config = copy.deepcopy(backbone.config)
    config.num_labels = n_labels
    model = transformers.AutoModelForSequenceClassification.from_config(config, trust_remote_code=False)
    pooler = getattr(model.base_model, "pooler", None)
    if pooler is None:
        if getattr(backbone, "pooler", None) is not None:
            backbone.pooler = None  # the head reads the states
    else:
        # The backbone's own if it has one: it is part of the head in BERT and ALBERT.
        backbone.pooler = (backbone.pooler if backbone.pooler is not None else pooler).requires_grad_(True)
    setattr(model, model.base_model_prefix, backbone)
    return model.float()


Head = Callable[[Any, Tensor, Tensor], Tensor]  # model, states (pairs, tokens, width), mask -> logits (pairs, labels)


def _from_states(model: Any, states: Tensor, _: Tensor) -> Tensor:  # noqa: ANN401 - a transformers model
    return model.classifier(states)


def _bert(model: Any, states: Tensor, _: Tensor) -> Tensor:  # noqa: ANN401
    return model.classifier(model.dropout(model.bert.pooler(states)))


def _albert(model: Any, states: Tensor, _: Tensor) -> Tensor:  # noqa: ANN401
    pooled = model.albert.pooler_activation(model.albert.pooler(states[:, 0]))
    return model.classifier(model.dropout(pooled))


def _distilbert(model: Any, states: Tensor, _: Tensor) -> Tensor:  # noqa: ANN401
    return model.classifier(model.dropout(F.relu(model.pre_classifier(states[:, 0]))))


def _modernbert(model: Any, states: Tensor, mask: Tensor) -> Tensor:  # noqa: ANN401
    return model.classifier(model.drop(model.head(POOLERS[model.config.classifier_pooling](states, mask))))


# By ``model_type``, those of `twinvec.model.classifier`. The same as in transformers; a test compares them.
HEAD_FUNCTIONS: dict[str, Head] = {
    "bert": _bert,
    "albert": _albert,
    "distilbert": _distilbert,
    "roberta": _from_states,
    "xlm-roberta": _from_states,
    "camembert": _from_states,
    "mpnet": _from_states,
    "electra": _from_states,
    "modernbert": _modernbert,
}
