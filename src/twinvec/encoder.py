"""The encoder: one vector per text."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinvec.choices import OutputType, Role
from twinvec.engine.batches import (
    Engine,
    EngineSettings,
    Streams,
    pad,
    plan_batches,
    plan_cheapest,
    plan_equal,
    plan_single,
)
from twinvec.engine.weights import is_packed, read_weights
from twinvec.errors import InputError, UnknownNameError
from twinvec.explanation import (
    Explanation,
    PairExplanation,
    WordShare,
    check_explained,
    check_sum,
    explain_pair,
    explain_states,
    no_tokens,
    share_by_word,
)
from twinvec.model.folder import ModelFolder, Normalize
from twinvec.model.save import save_model
from twinvec.model.tokenizer import Tokenizer, WordReader, check_text, check_texts
from twinvec.progress import Progress
from twinvec.token_rows import (
    WHOLE,
    LongTexts,
    Plan,
    Row,
    RowMaker,
    TextNotes,
    UnknownTexts,
    join_windows,
    plan_jobs,
)
from twinvec.types import Array, Block, Coverage, Ids, LayerBatch, Lengths, Vectors
from twinvec.vectors import check_output, quantize_vectors, similarity, similarity_pairwise, unit_rows

__all__ = ["Block", "Coverage", "Encoder", "LayerBatch", "Lengths"]

TEXTS_PER_BLOCK = 8192  # held in memory by encode_iter
ROLE_PROMPTS: dict[Role, tuple[str, ...]] = {
    "text": (),
    "query": ("query",),
    "document": ("document", "passage", "corpus"),
}


@dataclass(frozen=True, eq=False)
class Encoder:
    """A loaded sentence model, returned by :func:`twinvec.load`.

    Thread-safe, also after a fork; from asyncio, call it with ``asyncio.to_thread``. All threads share one copy of
    the weights.
    """

    folder: ModelFolder
    tokenizer: Tokenizer = field(repr=False)
    engine: Engine = field(repr=False)
    settings: EngineSettings
    max_tokens: int | None  # None means no limit
    truncate_dim: int | None = None
    _words: WordReader = field(repr=False, compare=False, kw_only=True)
    _streams: Streams = field(repr=False, compare=False, kw_only=True)
    _planned_for: int | None = field(
        default=None, repr=False, compare=False, kw_only=True
    )  # number of streams; None: all
    _plan: Plan | None = field(default=None, repr=False, compare=False, kw_only=True)  # None: by the precision

    @property
    def width(self) -> int:
        """Size of the vectors."""
        return self.truncate_dim or self.engine.width

    @property
    def prompts(self) -> dict[str, str]:
        """The model's prompts by name."""
        return dict(self.folder.prompts)

    def encode(
        self,
        texts: str | Iterable[str],
        *,
        prompt: str | None = None,
        prompt_name: str | None = None,
        output: OutputType = "float32",
        progress: bool | None = None,
    ) -> Array:
        """Embed texts: a list gives ``(len(texts), width)``, row ``i`` for text ``i``; one string ``(width,)``.

        Args:
            prompt: text to put before every text.
            prompt_name: name of one of the model's prompts; without either, its default prompt is used.
            output: float32, or int8, uint8, binary, ubinary as in :func:`twinvec.quantize_vectors`.
            progress: show a progress bar; by default for long work if standard error is a terminal.
        """
        if isinstance(texts, str):
            row: Array = self.encode([texts], prompt=prompt, prompt_name=prompt_name, output=output, progress=False)[0]
            return row
        check_output(output)
        notes = self._notes()
        checked = notes.checked(texts)
        vectors = self._vectors(checked, self._prompt(prompt, prompt_name), notes.cut, progress=progress)
        notes.warn()
        return quantize_vectors(vectors, output)

    def encode_query(self, texts: str | Iterable[str], *, output: OutputType = "float32") -> Array:
        """Embed queries, with the model's prompt "query" if it has one. Shapes as in ``encode``."""
        return self.encode(texts, prompt_name=self.prompt_for("query"), output=output)

    def encode_document(self, texts: str | Iterable[str], *, output: OutputType = "float32") -> Array:
        """Embed documents, with the model's prompt "document" if it has one. Shapes as in ``encode``."""
        return self.encode(texts, prompt_name=self.prompt_for("document"), output=output)

    def prompt_for(self, role: Role) -> str | None:
        """The name of the model's prompt for queries or documents; None if it has none, and for the role "text"."""
        return next((name for name in ROLE_PROMPTS[role] if name in self.folder.prompts), None)

    def with_one_stream(self) -> Encoder:
        """A copy for callers with their own threads: it runs batches one after the other, planned for few texts.

        It shares the weights. Each thread needs its own copy.
        """
        return replace(self, _streams=Streams(1), _plan=plan_cheapest)

    def encode_iter(
        self,
        texts: Iterable[str],
        *,
        prompt: str | None = None,
        prompt_name: str | None = None,
        output: OutputType = "float32",
    ) -> Iterator[Array]:
        """Embed an iterable of any length in bounded memory; yields one ``(width,)`` per text, in order."""
        check_output(output)
        prefix = self._prompt(prompt, prompt_name)
        notes = self._notes()
        source = iter([texts] if isinstance(texts, str) else texts)
        n_done = 0
        try:
            while block := list(islice(source, TEXTS_PER_BLOCK)):
                checked = notes.checked(block, n_done)
                vectors = self._vectors(checked, prefix, notes.cut, progress=False, n_before=n_done)
                n_done += len(block)
                yield from quantize_vectors(vectors, output)
        finally:  # also when the caller stops early
            notes.warn()

    def encode_block(
        self,
        texts: Iterable[str],
        *,
        prompt: str | None = None,
        prompt_name: str | None = None,
        output: OutputType = "float32",
    ) -> Block:
        """Embed a list; its vectors have the same bits with any number of threads.

        Truncated and unknown texts are counted, not logged.
        """
        check_output(output)
        given = check_texts(texts)
        notes = self._notes(np.zeros(len(given), dtype=np.int64))
        checked = notes.checked(given)
        planned = replace(self, _planned_for=1)
        vectors = planned._vectors(checked, self._prompt(prompt, prompt_name), notes.cut, progress=False)
        cut = notes.cut
        return Block(quantize_vectors(vectors, output), cut.n_cut, cut.longest, notes.unknown.n, cut.n_tokens)

    def encode_tokens(self, texts: str | Iterable[str], *, prompt: str | None = None) -> list[Vectors]:
        """The last layer's states of each text: a list of ``(tokens, width)``, special tokens included.

        Texts over the model's limit are truncated with a warning, also with ``long="chunk"``.
        """
        return [layers[-1].copy() for layers in self.encode_layers(texts, prompt=prompt)]

    def encode_layers(self, texts: str | Iterable[str], *, prompt: str | None = None) -> list[Vectors]:
        """The states of all layers for each text: a list of ``(layers + 1, tokens, width)``, embedding layer first."""
        checked = check_texts([texts] if isinstance(texts, str) else texts)
        states = [np.empty((1, 0, 0), dtype=np.float32)] * len(checked)  # of texts without tokens

        def keep(batch: LayerBatch) -> None:
            for index, (owner, length) in enumerate(zip(batch.owners, batch.tokens.mask.sum(axis=1), strict=True)):
                states[owner] = batch.layers[:, index, :length].copy()

        self.visit_layers(checked, keep, prompt=prompt)
        return states

    def visit_layers(
        self, texts: Iterable[str], work: Callable[[LayerBatch], None], *, prompt: str | None = None
    ) -> None:
        """Call ``work`` with the states of all layers, batch by batch, to bound memory.

        Several threads call ``work`` concurrently, in any order of the texts; texts without tokens are skipped. Texts
        over the model's limit are truncated with a warning, also with ``long="chunk"``. ``work`` may use this encoder.
        """
        notes = self._notes()
        checked = notes.checked(texts)
        prefix = self._prompt(prompt, None)
        n_unpooled = self._n_unpooled(prefix)

        def run(rows: list[Row]) -> LayerBatch:
            batch = pad([row.ids for row in rows], [n_unpooled] * len(rows))
            return LayerBatch([row.owner for row in rows], batch, self.engine.runtime.layers(batch))

        jobs = self._jobs([prefix + text for text in checked], self._truncating(notes.cut))
        self._streams.run(jobs, run, work)
        notes.warn()

    def explain(self, text: str, *, prompt: str | None = None, prompt_name: str | None = None) -> Explanation:
        """Explain a text's vector: its tokens, their vectors, and the weights of layers and tokens.

        For static models and models with mean pooling or SBERT-WK. A text over the model's limit is truncated with a
        warning, also with ``long="chunk"``.
        """
        check_explained(self.folder)
        prefix = self._prompt(prompt, prompt_name)
        notes = self._notes()
        (checked,) = notes.checked([check_text(text, "text")])
        rows = self._truncating(notes.cut).rows([prefix + checked], [0])
        notes.warn()
        if not rows:
            return no_tokens(text, self.width)
        batch = pad([rows[0].ids], [self._n_unpooled(prefix)])
        runtime = self.engine.runtime
        return explain_states(
            text,
            self.tokenizer.tokens(rows[0].ids),
            layers=runtime.layers(batch)[:, 0],
            mask=batch.pool_mask[0],
            folder=self.folder,
            vector=runtime.vectors(batch)[0, : self.width],
        )

    def explain_pair(
        self, left: str, right: str, *, prompt: str | None = None, prompt_name: str | None = None
    ) -> PairExplanation:
        """The exact contribution of each token of two texts to their cosine.

        For the models of ``explain``, if only Normalize follows their pooling.
        """
        check_sum(self.folder)
        one, other = (self.explain(text, prompt=prompt, prompt_name=prompt_name) for text in (left, right))
        return explain_pair(one, other)

    def explain_match(self, query: str, document: str) -> tuple[WordShare, ...]:
        """The words of a document with their shares of its cosine with a query, in the order of the text.

        Both have the prompts of ``encode_query`` and ``encode_document``. Special tokens have the rest of the cosine.
        """
        check_sum(self.folder)
        name = self.prompt_for("document")
        asked = self.explain(query, prompt_name=self.prompt_for("query"))
        found = self.explain(document, prompt_name=name)
        prefix, tokenizer = self._prompt(None, name), self.tokenizer
        spans = tokenizer.cut(tokenizer.word_spans(prefix + document), len(found.tokens) - tokenizer.n_special)
        around = [[(0, 0)] * len(ids) for ids in (tokenizer.prefix, tokenizer.suffix)]
        own = [(start - len(prefix), end - len(prefix)) for start, end in spans]
        return share_by_word(document, [*around[0], *own, *around[1]], explain_pair(asked, found).of_right.tolist())

    def count_tokens(self, texts: str | Iterable[str]) -> NDArray[np.int64]:
        """Number of tokens of each full text, special tokens included: ``(len(texts),)``; a scalar for one string."""
        if isinstance(texts, str):
            return self.count_tokens([texts]).reshape(())
        return self.lengths(texts).n_tokens

    def lengths(self, texts: str | Iterable[str], *, prompt: str | None = None) -> Lengths:
        """Count the tokens of each text, and flag the texts that the model truncates."""
        prefix = self._prompt(prompt, None)
        checked = check_texts([texts] if isinstance(texts, str) else texts)
        ids = self.tokenizer.ids([prefix + text for text in checked])
        counts = np.array([len(row) for row in ids], dtype=np.int64) + self.tokenizer.n_special
        return Lengths(counts, counts > self._limit)

    def coverage(self, texts: str | Iterable[str]) -> Coverage:
        """How much of each text the model has words for, and which texts are in a script that it does not know."""
        found = list(map(self._words.scripts.coverage, check_texts([texts] if isinstance(texts, str) else texts)))
        shares = np.array([each.share for each in found], dtype=np.float64)
        scripts = [each.script for each in found]
        return Coverage(shares, np.array([script is not None for script in scripts], dtype=np.bool_), scripts)

    def similarity(self, left: ArrayLike, right: ArrayLike) -> Vectors:
        """Scores of all rows of ``left`` with all rows of ``right``, by the model's similarity measure: ``(n, m)``."""
        return similarity(left, right, self.folder.similarity)

    def similarity_pairwise(self, left: ArrayLike, right: ArrayLike) -> Vectors:
        """Scores of row ``i`` of ``left`` with row ``i`` of ``right``, by the model's similarity measure: ``(n,)``."""
        return similarity_pairwise(left, right, self.folder.similarity)

    def save(self, folder: str | Path) -> None:
        """Save the model to a new folder that Twinvec and sentence-transformers load.

        Only Twinvec loads a folder with SBERT-WK.
        """
        kept = replace(self.folder, truncate_dim=self.truncate_dim, max_tokens=self.max_tokens)
        # Other libraries cannot read our int8 storage, so save float32.
        weights = read_weights(kept.backbone) if is_packed(kept.backbone) else None
        save_model(kept, Path(folder), weights=weights)

    @property
    def _limit(self) -> int:
        return sys.maxsize if self.max_tokens is None else self.max_tokens

    def _vectors(
        self, texts: list[str], prefix: str, cut: LongTexts, *, progress: bool | None, n_before: int = 0
    ) -> Vectors:
        vectors = np.zeros((len(texts), self.engine.width), dtype=np.float32)
        parts: dict[int, list[tuple[int, int, Vectors]]] = defaultdict(list)
        n_unpooled = self._n_unpooled(prefix)
        if prefix:
            texts = [prefix + text for text in texts]

        def work(rows: list[Row]) -> None:
            # only the first window of a text holds the prompt
            hidden = [n_unpooled if row.window <= 0 else 0 for row in rows]
            batch = pad([row.ids for row in rows], hidden)
            for row, vector in zip(rows, self.engine.runtime.vectors(batch), strict=True):
                if row.window == WHOLE:
                    vectors[row.owner] = vector
                else:
                    parts[row.owner].append((row.window, row.n_tokens, vector))
            bar.advance(len(rows))

        with Progress(len(texts), "embedding", shown=progress) as bar:
            make = RowMaker(self._words, self._limit, self.settings.long, cut, n_before)
            self._streams.run(self._jobs(texts, make), work)
        for owner, windows in parts.items():
            joined = join_windows([(count, vector) for _, count, vector in sorted(windows, key=lambda part: part[0])])
            vectors[owner] = unit_rows(joined) if isinstance(self.folder.modules[-1], Normalize) else joined
        return np.ascontiguousarray(vectors[:, : self.width])

    def _n_unpooled(self, prefix: str) -> int:
        """How many of a text's first tokens belong to the prompt and are not pooled."""
        if not prefix or not self.folder.has_layers or self.folder.readout.include_prompt:
            return 0
        return len(self.tokenizer.prefix) + len(self.tokenizer.ids([prefix])[0])

    def _jobs(self, texts: list[str], make: RowMaker) -> Iterator[list[Row]]:
        plan = self._plan or (plan_batches if self.engine.precision == "float32" else plan_equal)
        return plan_jobs(
            texts,
            make.rows,
            plan_single if self.settings.deterministic else plan,
            budget=self.settings.tokens_per_batch,
            n_streams=self._planned_for or self._streams.n,
        )

    def _truncating(self, cut: LongTexts) -> RowMaker:
        """A row maker that truncates instead of chunking: states belong to one window."""
        long = "warn" if self.settings.long == "chunk" else self.settings.long
        return RowMaker(self._words, self._limit, long, cut)

    def _notes(self, n_tokens: Ids | None = None) -> TextNotes:
        unknown = UnknownTexts(self._words, self.settings.unknown)
        cut = LongTexts(self._limit, n_tokens=n_tokens)
        return TextNotes(cut, unknown, warns_of_cut=self.settings.long in ("warn", "chunk"))

    def _prompt(self, prompt: str | None, prompt_name: str | None) -> str:
        if prompt is not None and prompt_name is not None:
            raise InputError("Both prompt and prompt_name are set.", hint="Pass only one of them.")
        if prompt is not None:
            return check_text(prompt, "prompt")
        name = self.folder.default_prompt if prompt_name is None else prompt_name
        if name is None:
            return ""
        if not self.folder.prompts:
            raise InputError(f"This model has no prompts, so no {name!r}.", hint="Pass the prompt text as prompt=.")
        if name not in self.folder.prompts:
            raise UnknownNameError("prompt", name, self.folder.prompts)
        return self.folder.prompts[name]
