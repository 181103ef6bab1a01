"""The encoder of static models: a text's vector is the mean of its tokens' vectors, looked up in a table."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from twinvec.encoder import Encoder
from twinvec.encoding import LongTexts, RowMaker
from twinvec.engine.opened import Engine
from twinvec.engine.settings import EngineSettings
from twinvec.engine.table import TableRuntime, read_table
from twinvec.errors import InputError
from twinvec.model_folder import ModelFolder, Normalize
from twinvec.progress import Progress
from twinvec.static_saving import save_static
from twinvec.types import Vectors

__all__ = ["StaticEncoder", "open_table"]

logger = logging.getLogger(__name__)

TEXTS_PER_JOB = 128, 1024  # fewer are not worth another thread; more leave the cache


@dataclass(frozen=True, eq=False)
class StaticEncoder(Encoder):
    """A static model, ready to run: an :class:`Encoder` that gives every text the same bits whatever is beside it.

    Its tokens' states (``encode_tokens``, ``encode_layers``) are the rows of the table.
    """

    runtime: TableRuntime = field(repr=False, kw_only=True)

    def save(self, folder: str | Path) -> None:
        """Write the model as a folder that Twinvec and sentence-transformers load: float32, however it was stored."""
        self.runtime.check()
        save_static(replace(self.folder, truncate_dim=self.truncate_dim), self.runtime.table, Path(folder))

    def _vectors(
        self, texts: list[str], prefix: str, cut: LongTexts, *, progress: bool | None, n_before: int = 0
    ) -> Vectors:
        vectors = np.empty((len(texts), self.engine.width), dtype=np.float32)
        n_tokens = np.zeros(len(texts), dtype=np.int64)
        limit = self._limit if self.settings.long != "chunk" else None

        def work(span: slice) -> None:
            block = [prefix + text for text in texts[span]] if prefix else texts[span]
            ids, counts = self._words.read(block)
            starts, kept = np.cumsum(counts) - counts, np.minimum(counts, limit or counts)
            if self.tokenizer.keeps_end:
                starts += counts - kept
            vectors[span] = self.runtime.means(ids, starts, kept)
            n_tokens[span] = counts
            bar.advance(len(block))

        least, most = TEXTS_PER_JOB
        size = max(least, min(most, -(-len(texts) // self._streams.n)))
        with Progress(len(texts), "embedding", shown=progress) as bar:
            self._streams.run((slice(first, first + size) for first in range(0, len(texts), size)), work)
        if limit is not None:
            make = RowMaker(self._words, limit, self.settings.long, cut, n_before)
            for place in np.flatnonzero(n_tokens > limit).tolist():
                make.refuse_or_note(place, int(n_tokens[place]))
        return np.ascontiguousarray(vectors[:, : self.width])


def open_table(
    folder: ModelFolder, settings: EngineSettings, *, trust_pickle: bool = False
) -> tuple[Engine, TableRuntime]:
    """Load the table of a static model."""
    if settings.runtime != "auto" or settings.device != "cpu":
        raise InputError(
            f"{folder.path} is a static model: it runs on the CPU without a runtime, not with "
            f"runtime={settings.runtime!r} and device={settings.device!r}.",
            hint="Leave both at their defaults.",
        )
    if settings.precision != "float32":
        logger.warning("A static model computes in float32; precision=%r changes nothing.", settings.precision)
    table = read_table(folder.backbone, trust_pickle=trust_pickle)
    runtime = TableRuntime(table, is_normalized=any(isinstance(module, Normalize) for module in folder.modules))
    return Engine(runtime, "float32", table.shape[1], len(table), None), runtime
