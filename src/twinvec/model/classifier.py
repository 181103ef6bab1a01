"""Cross-encoder folders: the head after the backbone, the labels, and the activation.

Reads the folders of all versions of sentence-transformers' CrossEncoder, and plain Hugging Face sequence classifiers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twinvec.choices import ScoreActivation
from twinvec.errors import ModelFolderError, UnknownNameError, shown
from twinvec.files import read_any_json, read_json
from twinvec.json_checks import JsonObject
from twinvec.model.folder import Dense, LayerNorm, ModelFolder, Module, Pooling, check_loading, tokenizer_limit

__all__ = ["ACTIVATION_CLASSES", "Classifier", "is_classifier", "read_classifier", "refuse_classifier"]

logger = logging.getLogger(__name__)

TASK = "ForSequenceClassification"
DEFAULT_LABELS = 2  # in transformers, if the config does not say
MAX_LABELS = 1 << 16

# The settings of sentence-transformers for reading the head's outputs.
READS_LOGITS: dict[str, object] = {
    "transformer_task": "sequence-classification",
    "modality_config": {"text": {"method": "forward", "method_output_name": "logits"}},
    "module_output_name": "scores",
    "processing_kwargs": {},
    "query_expansion": {},
}

# The torch classes, as named in sentence-transformers' configs.
ACTIVATION_CLASSES: dict[ScoreActivation, str] = {
    "none": "torch.nn.modules.linear.Identity",
    "sigmoid": "torch.nn.modules.activation.Sigmoid",
    "softmax": "torch.nn.modules.activation.Softmax",
}
# As in the text-classification pipeline of transformers.
PROBLEM_TYPES: dict[str, ScoreActivation] = {
    "regression": "none",
    "single_label_classification": "softmax",
    "multi_label_classification": "sigmoid",
}


@dataclass(frozen=True)
class Classifier:
    """The checked description of a cross-encoder. The modules of ``folder`` are its head."""

    folder: ModelFolder
    labels: tuple[str, ...]
    activation: ScoreActivation


def is_classifier(path: Path) -> bool:
    """Whether a folder is a sequence classifier rather than a sentence model."""
    names = read_json(path / "config.json").get("architectures")
    is_named = isinstance(names, list) and any(isinstance(name, str) and name.endswith(TASK) for name in names)
    return is_named and _has_no_readout(path)


def _has_no_readout(path: Path) -> bool:
    modules = read_any_json(path / "modules.json")
    if modules is None:
        return True
    kinds = [str(row.get("type")) for row in modules if isinstance(row, dict)] if isinstance(modules, list) else []
    return len(kinds) == 1 and kinds[0].endswith(".Transformer")


def refuse_classifier(path: Path) -> None:
    """Raise ModelFolderError if a folder is a cross-encoder."""
    if is_classifier(path):
        raise ModelFolderError(
            f"{path} is a cross-encoder ({_architecture(path)}): it scores two texts together and has no vectors.",
            hint="Load it with twinvec.load_scorer, or choose a readout such as 'mean' for vectors of its backbone.",
        )


def _architecture(path: Path) -> str:
    names = read_json(path / "config.json").get("architectures")
    return str(names[0]) if isinstance(names, list) and names else "no architecture given"


def read_classifier(path: Path) -> Classifier:
    """Read the folder of a cross-encoder."""
    if not is_classifier(path):
        raise ModelFolderError(_reason(path), hint="Load it with twinvec.load and compare vectors.")
    config = JsonObject(read_json(path / "config.json"), path / "config.json")
    kind = config.text("model_type", None)
    if kind not in HEADS:
        raise UnknownNameError(f"architecture of a cross-encoder in {config.source}:", kind, HEADS)
    limits = JsonObject(read_json(path / "sentence_bert_config.json"), path / "sentence_bert_config.json")
    check_loading(limits, READS_LOGITS)
    if limits.flag("do_lower_case", False):
        raise limits.wrong("do_lower_case", "false: lowercasing is up to the tokenizer of a cross-encoder")
    settings_file = path / "config_sentence_transformers.json"
    settings = JsonObject(read_json(settings_file), settings_file)
    if settings.text("default_prompt_name", None) is not None:
        raise settings.wrong("default_prompt_name", "null: prompts are not supported for cross-encoders")
    labels = _labels(config)
    pooling = "cls" if kind != "modernbert" else config.word("classifier_pooling", "cls", choices=("cls", "mean"))
    folder = ModelFolder(
        path=path,
        backbone=path,
        config=dict(config.content),
        modules=(Pooling((pooling,)), *HEADS[kind](config, path, len(labels))),
        is_sentence_model=False,
        max_tokens=limits.integer("max_seq_length", None) or tokenizer_limit(path),
    )
    return Classifier(folder, labels, _activation(config, settings, len(labels)))


def _reason(path: Path) -> str:
    if (path / "modules.json").is_file():
        return f"{path} is a sentence model, not a cross-encoder or a poly-encoder."
    if not (path / "config.json").is_file():
        return f"{path} has no config.json, so it is not a cross-encoder."
    return f"{path} is not a cross-encoder: its architecture is {_architecture(path)}, which does not end in {TASK}."


def _labels(config: JsonObject) -> tuple[str, ...]:
    """The names of the outputs, in order."""
    named = config.inner("id2label", {})
    if not named.content:
        count = config.integer("num_labels", DEFAULT_LABELS, most=MAX_LABELS)
        return tuple(f"LABEL_{index}" for index in range(count))
    if set(named.content) != {str(index) for index in range(len(named.content))}:
        raise config.wrong("id2label", "an object with the keys 0, 1, 2 and so on")
    return tuple(named.text(str(index)) for index in range(len(named.content)))


def _activation(config: JsonObject, settings: JsonObject, n_labels: int) -> ScoreActivation:
    """The activation that sentence-transformers uses; for a plain classifier, the one of its problem type."""
    own = config.inner("sentence_transformers", {})
    older = config.text("sbert_ce_default_activation_function", None)
    name = settings.text("activation_fn", None) or own.text("activation_fn", None) or older
    if name is not None and not name.startswith("torch."):
        logger.warning("The activation %s in %s is not part of torch and is ignored.", shown(name), config.source)
        name = None
    if name is not None:
        known = {full.rpartition(".")[2]: kind for kind, full in ACTIVATION_CLASSES.items()}
        kind = name.rpartition(".")[2]
        if kind not in known:
            raise UnknownNameError(f"activation_fn of the model with {config.source}:", kind, known)
        return known[kind]
    problem = config.word("problem_type", None, choices=tuple(PROBLEM_TYPES))
    if problem is not None:
        return PROBLEM_TYPES[problem]
    return "sigmoid" if n_labels == 1 else "none"


Head = Callable[[JsonObject, Path, int], tuple[Module, ...]]


def _two_layers(first: str, activation: str, second: str) -> Head:
    """A head of two linear layers, given the names of their weights."""

    def head(config: JsonObject, path: Path, n_labels: int) -> tuple[Module, ...]:
        width = _width(config)
        return (
            Dense(path / first, width, width, True, activation),
            Dense(path / second, width, n_labels, True, "Identity"),
        )

    return head


def _modernbert(config: JsonObject, path: Path, n_labels: int) -> tuple[Module, ...]:
    width = _width(config)
    named = {"gelu": "GELU", "relu": "ReLU", "tanh": "Tanh"}
    activation = named[config.word("classifier_activation", "gelu", choices=tuple(named))]
    return (
        Dense(path / "head.dense", width, width, config.flag("classifier_bias", False), activation),
        LayerNorm(path / "head.norm", width, config.number("norm_eps", 1e-5, least=1e-30, most=1.0)),
        Dense(path / "classifier", width, n_labels, True, "Identity"),
    )


def _width(config: JsonObject) -> Any:  # noqa: ANN401 - a whole number
    return config.integer("dim" if config.content["model_type"] == "distilbert" else "hidden_size")


_ROBERTA = _two_layers("classifier.dense", "Tanh", "classifier.out_proj")
HEADS: dict[str, Head] = {
    "bert": _two_layers("pooler.dense", "Tanh", "classifier"),
    "albert": _two_layers("pooler", "Tanh", "classifier"),
    "distilbert": _two_layers("pre_classifier", "ReLU", "classifier"),
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "camembert": _ROBERTA,
    "mpnet": _ROBERTA,
    "electra": _two_layers("classifier.dense", "GELU", "classifier.out_proj"),
    "modernbert": _modernbert,
}
