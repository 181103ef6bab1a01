"""Cross-encoders: models that read two texts together and return a score. Also ``load_scorer``, for all scorers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from twinvec.choices import SCORE_ACTIVATIONS, SCORER_KINDS, LongPolicy, Precision, ScoreActivation, UnknownPolicy
from twinvec.embedder import is_address, stable_name
from twinvec.engine.batches import Engine, EngineSettings, Streams, pad, plan_batches, plan_equal, plan_single
from twinvec.engine.config import read_backbone
from twinvec.engine.names import canonical_name
from twinvec.engine.weights import Weights, is_packed, read_weights
from twinvec.errors import InputError, ModelFolderError, check_name, shown
from twinvec.files import read_json
from twinvec.loading import check_vocabulary
from twinvec.model.classifier import ACTIVATION_CLASSES, Classifier, is_classifier, read_classifier
from twinvec.model.folder import embedder_kind
from twinvec.model.hub import find_model
from twinvec.model.identity import file_states, model_digest, model_files, vectors_digest
from twinvec.model.poly_encoder import is_poly_encoder
from twinvec.model.save import save_model
from twinvec.model.tokenizer import Tokenizer, WordReader, check_text, load_tokenizer
from twinvec.pairs.poly_encoder import PolyEncoder, load_poly_encoder
from twinvec.pairs.tokens import LongPairs, PairRow, PairRowMaker, PairTemplate, pair_template, reads_types
from twinvec.progress import Progress
from twinvec.scorer import (
    FunctionScorer,
    Pair,
    Ranked,
    RankingScorer,
    RerankFunction,
    Scorer,
    checked_pairs,
    rank_texts,
)
from twinvec.token_rows import UnknownTexts, plan_jobs
from twinvec.types import Array, Vectors

if TYPE_CHECKING:
    from twinvec.engine.model import Model

__all__ = ["CrossEncoder", "ScorerLike", "as_scorer", "is_scorer_folder", "load_scorer"]

ScorerLike = str | os.PathLike[str] | Scorer | RerankFunction


@dataclass(frozen=True, eq=False)
class CrossEncoder:
    """A loaded cross-encoder, from :func:`twinvec.load_scorer`. Threads can share one.

    ``labels`` are the names of its outputs; ``label`` is the one to score, or None for all.
    """

    classifier: Classifier = field(repr=False)
    name: str
    engine: Engine = field(repr=False)
    settings: EngineSettings
    max_tokens: int
    activation: ScoreActivation
    label: str | None = None
    _rows: PairRowMaker = field(repr=False, kw_only=True)
    _streams: Streams = field(repr=False, kw_only=True)
    _has_types: bool = field(repr=False, kw_only=True)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the outputs, in order."""
        return self.classifier.labels

    @cached_property
    def identity(self) -> str:
        """A digest of the model's files and of the settings that affect its scores."""
        content = model_digest(self.classifier.folder.path)
        self.classifier.folder.check_unchanged()
        settings = {
            "precision": self.settings.precision,
            "deterministic": self.settings.deterministic,
            "max_tokens": self.max_tokens,
            "activation": self.activation,
            "label": self.label,
        }
        return f"cross-encoder-{vectors_digest(content, settings)}"

    def score(self, pairs: Iterable[Pair], *, progress: bool | None = None) -> Vectors:
        """Scores of pairs of texts: ``(n,)``, or ``(n, labels)`` for a model with several labels.

        Pairs longer than the model's limit are cut, the longer text first, with one warning (see ``load_scorer``).
        """
        checked = _checked(pairs)
        cut, unknown = LongPairs(self.max_tokens), UnknownTexts(self._rows.words, self.settings.unknown, "pairs")
        unknown.read([f"{first} {second}" for first, second in checked])
        scores = np.empty((len(checked), len(self.labels)), dtype=np.float32)

        def work(rows: list[PairRow]) -> None:
            types = [row.types for row in rows] if self._has_types else None
            logits = self.engine.runtime.vectors(pad([row.ids for row in rows], types=types))
            scores[[row.owner for row in rows]] = ACTIVATIONS[self.activation](logits)
            bar.advance(len(rows))

        plan = plan_batches if self.engine.precision == "float32" else plan_equal
        jobs = plan_jobs(
            checked,
            replace(self._rows, cut=cut).rows,
            plan_single if self.settings.deterministic else plan,
            budget=self.settings.tokens_per_batch,
            n_streams=self._streams.n,
            size=_n_characters,
        )
        with Progress(len(checked), "scoring", shown=progress) as bar:
            self._streams.run(jobs, work)
        if self.settings.long == "warn":
            cut.warn()
        unknown.warn()
        if self.label is not None:
            return np.ascontiguousarray(scores[:, self.labels.index(self.label)])
        return scores[:, 0] if len(self.labels) == 1 else scores

    def rank(self, query: str, texts: Sequence[str], k: int | None = None) -> Ranked:
        """The ``k`` best texts for a query, best first: their rows in the list and their scores."""
        self.check_single()
        return rank_texts(self, query, texts, k)

    def with_one_stream(self) -> CrossEncoder:
        """A copy that runs its batches one after the other in the calling thread, for callers with their own threads.

        It shares the weights. Each thread needs its own copy.
        """
        return replace(self, _streams=Streams(1))

    def check_single(self) -> None:
        """Raise InputError if the model returns several scores per pair."""
        if self.label is None and len(self.labels) > 1:
            raise InputError(
                f"{self.name} returns {len(self.labels)} scores per pair ({', '.join(self.labels[:5])}), not one.",
                hint=f"Choose one: load_scorer(..., label={self.labels[0]!r}), or --label.",
            )

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Save the model in a folder that Twinvec, sentence-transformers' CrossEncoder and transformers can load.

        The folder must not exist yet. The token limit and the activation are saved with it.
        """
        source = self.classifier.folder
        # Other libraries cannot read our int8 storage.
        weights = read_weights(source.path) if is_packed(source.path) else None
        own = {**source.config.get("sentence_transformers", {}), "activation_fn": ACTIVATION_CLASSES[self.activation]}
        limits = {**read_json(source.path / "tokenizer_config.json"), "model_max_length": self.max_tokens}
        configs = {"config.json": {**source.config, "sentence_transformers": own}, "tokenizer_config.json": limits}
        save_model(source, Path(folder), weights=weights, configs=configs)


def _sigmoid(outputs: Vectors) -> Array:
    return np.exp(-np.logaddexp(0, -outputs.astype(np.float64)))


def _softmax(outputs: Vectors) -> Array:
    shifted = np.exp(outputs.astype(np.float64) - outputs.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


# From logits ``(n, labels)`` to scores of the same shape.
ACTIVATIONS: dict[ScoreActivation, Callable[[Vectors], Array]] = {
    "none": lambda outputs: outputs,
    "sigmoid": _sigmoid,
    "softmax": _softmax,
}


def _checked(pairs: Iterable[Pair]) -> list[Pair]:
    if not isinstance(pairs, Iterable):
        raise InputError(f"pairs is {shown(pairs)}, not a list of pairs.", hint="Pass (first, second) tuples.")
    checked = checked_pairs(pairs)
    for row, pair in enumerate(checked):
        for text in pair:
            if not text.isascii():
                check_text(text, f"a text of pairs[{row}]")
    return checked


def _n_characters(pair: Pair) -> int:
    return len(pair[0]) + len(pair[1])


def load_scorer(
    name_or_folder: str | os.PathLike[str],
    *,
    precision: Precision = "float32",
    threads: int | None = None,
    deterministic: bool = False,
    long: LongPolicy = "warn",
    unknown: UnknownPolicy = "warn",
    max_tokens: int | None = None,
    activation: ScoreActivation | None = None,
    label: str | None = None,
    trust_pickle: bool = False,
    revision: str | None = None,
    offline: bool = False,
) -> CrossEncoder | PolyEncoder | RankingScorer:
    """Load a scorer: a sentence-transformers CrossEncoder, a Hugging Face sequence classifier, a poly-encoder, or BM25.

    It is found as in :func:`twinvec.load`: in a folder, the Hub's cache, or the Hub. It may also be the address of a
    server, whose settings decide the scores.

    Args:
        precision: float32 (exact), bfloat16 or int8 (faster on CPUs that support them).
        threads: The number of batches to run in parallel; by default one per core.
        deterministic: Return the same bits for a pair, whatever the other pairs, their order or the threads.
        long: What to do with pairs longer than the limit: warn (cut the longer text first), error, or cut. A
            poly-encoder reads each text alone and cuts its end.
        unknown: What to do with texts in a script that the model has no words for: warn, error or ignore.
        max_tokens: The maximum number of tokens of a pair; by default the model's own. For cross-encoders.
        activation: How to turn logits into scores: none, sigmoid or softmax; by default the model's own. For
            cross-encoders.
        label: The label to score, if the model has several. For cross-encoders.
        trust_pickle: Allow weights stored as a pickle, which can run code.
        revision: The branch, tag or commit of a model on the Hub.
        offline: Never download a model.
    """
    settings = EngineSettings(precision, threads, deterministic=deterministic, long=long, unknown=unknown)
    chosen: dict[str, Any] = {"max_tokens": max_tokens, "activation": activation, "label": label}
    if is_address(name_or_folder):
        return _connect(str(name_or_folder), {**chosen, "precision": precision, "deterministic": deterministic})
    if long == "chunk":
        raise InputError("long='chunk' does not work for pairs.", hint="Use 'warn', 'cut' or 'error'.")
    if activation is not None:
        check_name("activation", activation, SCORE_ACTIVATIONS)
    path = find_model(name_or_folder, revision=revision, offline=offline, trust_pickle=trust_pickle)
    if embedder_kind(path) in SCORER_KINDS:
        scorer: RankingScorer = import_module("twinvec.baselines").open_scorer(path)
        return scorer
    if not is_poly_encoder(path):
        return _load_cross_encoder(path, settings, trust_pickle=trust_pickle, **chosen)
    for name, value in chosen.items():
        if value is not None:
            raise InputError(f"{name}={value!r} is for cross-encoders; {path} is a poly-encoder.", hint="Remove it.")
    return load_poly_encoder(path, settings, trust_pickle=trust_pickle)


def _connect(address: str, settings: dict[str, Any]) -> RankingScorer:
    """The scorer behind a server. Its module is on a higher level, so it is imported only here."""
    given = [name for name, value in settings.items() if value not in (None, False, "float32")]
    if given:
        raise InputError(
            f"{', '.join(given)} can be set for models that Twinvec runs, not for a server.",
            hint="Remove it, or configure the server instead.",
        )
    client: RankingScorer = import_module("twinvec.remote").Client(address).for_scoring()
    return client


def _load_cross_encoder(
    path: Path,
    settings: EngineSettings,
    *,
    max_tokens: int | None,
    activation: ScoreActivation | None,
    label: str | None,
    trust_pickle: bool,
) -> CrossEncoder:
    from twinvec.engine.choose import open_graph  # imports onnxruntime

    as_opened = file_states(model_files(path))
    classifier = read_classifier(path)
    classifier = replace(classifier, folder=replace(classifier.folder, as_opened=as_opened))
    if label is not None:
        check_name("label", label, classifier.labels)
    tokenizer = load_tokenizer(path)
    template = pair_template(tokenizer, path)
    model = _read_model(classifier, trust_pickle=trust_pickle)
    limit = _limit(classifier, model, tokenizer, template, max_tokens)
    join = partial(template.halves, most=model.backbone.n_positions)
    runtime, used = open_graph(model, tokenizer, settings, join=join)
    classifier.folder.check_unchanged()  # configs, tokenizer and weights were read one after the other
    return CrossEncoder(
        classifier=classifier,
        name=stable_name(path),
        engine=Engine(runtime, used, model.width, model.backbone.n_vocabulary, model.backbone.n_positions),
        settings=settings,
        max_tokens=limit,
        activation=activation or classifier.activation,
        label=label,
        _rows=PairRowMaker(WordReader(tokenizer), template, limit, settings.long, LongPairs(limit)),
        _streams=Streams(settings.n_streams),
        _has_types=model.has_types,
    )


def _read_model(classifier: Classifier, *, trust_pickle: bool) -> Model:
    """Read backbone and head from the same weights."""
    from twinvec.engine.model import read_model

    folder = classifier.folder
    backbone = read_backbone(folder.config)
    named = read_weights(folder.path, trust_pickle=trust_pickle)
    weights = {canonical_name(name, backbone.family): array for name, array in named.items()}

    def read(module: Path) -> Weights:
        """The weights of one module of the head; a norm without a bias gets zeros."""
        ends = [end for end in ("weight", "bias") if f"{module.name}.{end}" in weights]
        head = {f"{kind}.{end}": weights[f"{module.name}.{end}"] for kind in ("linear", "norm") for end in ends}
        if "weight" in ends and "bias" not in ends:
            head["norm.bias"] = np.zeros(head["norm.weight"].shape[:1], dtype=np.float32)
        return head

    has_types = backbone.n_types > 1 and reads_types(folder.path)
    return read_model(folder, trust_pickle=trust_pickle, read=read, has_types=has_types)


def _limit(
    classifier: Classifier, model: Model, tokenizer: Tokenizer, template: PairTemplate, asked: int | None
) -> int:
    """The maximum number of tokens of a pair."""
    path, n_positions = classifier.folder.path, model.backbone.n_positions
    check_vocabulary(classifier.folder, tokenizer, model.backbone.n_vocabulary)
    if asked is None:
        limit = min(classifier.folder.max_tokens or n_positions, n_positions)
        if limit <= template.n_special:
            raise ModelFolderError(f"{path} reads {limit} tokens, which leaves no room for a pair.")
        return limit
    least = template.n_special + 2
    if not isinstance(asked, int) or isinstance(asked, bool) or not least <= asked <= n_positions:
        raise InputError(
            f"max_tokens must be a whole number from {least} to {n_positions} for this model, got {asked!r}."
        )
    return asked


def is_scorer_folder(name: str | os.PathLike[str]) -> bool:
    """Whether this is a folder for :func:`load_scorer`; False for names of models elsewhere."""
    path = Path(name).expanduser()
    if not os.path.isdir(path):
        return False
    return embedder_kind(path) in SCORER_KINDS or is_classifier(path) or is_poly_encoder(path)


def as_scorer(scorer: ScorerLike) -> Scorer:
    """Turn a name, a folder, the address of a server, or a function of a query and texts into a scorer.

    It must return one score per pair.
    """
    if isinstance(scorer, (str, os.PathLike)):
        scorer = load_scorer(scorer)
    if hasattr(scorer, "for_scoring"):  # a client, whose default model may be one that embeds
        scorer = scorer.for_scoring()
    if isinstance(scorer, CrossEncoder):
        scorer.check_single()
    if hasattr(scorer, "score"):
        return cast(Scorer, scorer)
    if callable(scorer):
        return FunctionScorer(scorer)
    raise InputError(
        f"The scorer is {shown(scorer)}, of type {type(scorer).__name__}.",
        hint="Pass the folder or name of a cross- or poly-encoder, a scorer, or a function of a query and texts.",
    )
