"""Embed a file of any size: into one file, or into a folder of shards that survives a crash."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from os import PathLike
from pathlib import Path

from twinvec.bulk.job import Watch, Workers, embed_bulk
from twinvec.bulk.manifest import BulkReport, BulkSettings
from twinvec.bulk.ray import RayWorkers
from twinvec.bulk.source import FileSource
from twinvec.choices import DEFAULT_MODEL, OutputType
from twinvec.data.read import read_texts
from twinvec.data.table import write_format
from twinvec.data.write import STDOUT, jsonl_row, write_vectors
from twinvec.embedder import TEXTS_PER_CALL, Embedder, ModelEmbedder, ModelLike, as_embedder, embed_texts
from twinvec.errors import InputError
from twinvec.files import check_target
from twinvec.progress import Progress, standard_output
from twinvec.types import Array
from twinvec.vectors import quantize_vectors

__all__ = ["EmbeddedFile", "embed_file", "is_folder"]


@dataclass(frozen=True, slots=True)
class EmbeddedFile:
    """The number of embedded rows, and for a folder the report of the job."""

    n_rows: int
    bulk: BulkReport | None = None


def embed_file(
    source: str | PathLike[str] | FileSource,
    target: str | PathLike[str],
    model: ModelLike | Embedder = DEFAULT_MODEL,
    *,
    settings: BulkSettings | None = None,
    ray: str | None = None,
    watch: Watch | None = None,
) -> EmbeddedFile:
    """Embed the texts of a file, reading and writing as a stream.

    A target that ends in .npy (vectors only), .jsonl or .parquet (text and vector) is a file, which appears only when
    it is complete; ``-`` writes jsonl to standard output. An existing folder, or a name that ends in a slash or has no
    extension, is a folder of shards: each unique text is embedded once, and after a crash the same call continues.

    Args:
        source: The name of a file of lines, csv, tsv, jsonl or parquet, or a :class:`twinvec.bulk.FileSource` that
            names the columns with texts and ids.
        model: Use a :class:`twinvec.ModelEmbedder` to set how the model runs and its prompt.
        settings: The number type, whether to overwrite the target, and the format of a folder.
        ray: For a folder, the address of a Ray cluster to embed on.
        watch: For a folder, called after every block of rows and every shard.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "notes.txt")
    ...     _ = file.write_text("A cat sits.\\nRain falls.\\n")
    ...     embed_file(file, f"{folder}/vectors.npy").n_rows
    2
    """
    rows = source if isinstance(source, FileSource) else FileSource(os.fspath(source))
    chosen, path = settings or BulkSettings(), os.fspath(target)
    if path != STDOUT and is_folder(path):
        report = embed_bulk(
            rows, path, model, settings=chosen, workers=_ray_workers(model, ray, chosen.output), watch=watch
        )
        return EmbeddedFile(report.n_rows, report)
    _refuse_for_file(rows, path, chosen, ray)
    if path != STDOUT:
        write_format(path)
        check_target(Path(path), replace=chosen.force)
    embedded = _embedded(read_texts(rows.path, rows.column, format=rows.format), model, chosen.output)
    if path == STDOUT:
        return EmbeddedFile(_print_rows(embedded))
    return EmbeddedFile(write_vectors(embedded, path, replace=chosen.force))


def is_folder(target: str) -> bool:
    """Whether a target is a folder: it exists, its name ends in a slash, or it has no extension.

    >>> is_folder("vectors/"), is_folder("vectors"), is_folder("vectors.npy")
    (True, True, False)
    """
    return target.endswith(("/", os.sep)) or not os.path.splitext(target)[1] or os.path.isdir(target)


def _ray_workers(model: ModelLike | Embedder, address: str | None, output: OutputType) -> Workers | None:
    if address is None:
        return None
    embedder = as_embedder(model)
    if not isinstance(embedder, ModelEmbedder):
        raise InputError(
            f"{embedder.name} cannot be sent to other machines.", hint="Use the name or folder of a sentence model."
        )
    return RayWorkers(embedder, address, output=output, threads=embedder.arguments.get("threads"))


def _refuse_for_file(source: FileSource, target: str, settings: BulkSettings, ray: str | None) -> None:
    """Refuse settings that only apply to a folder."""
    for_folder = {
        "id_column": source.id_column,
        "shard_rows": settings.shard_rows,
        "shard_format": settings.shard_format,
        "max_memory_bytes": settings.max_memory_bytes,
        "ray": ray,
    }
    wrong = [name for name, value in for_folder.items() if value is not None]
    if wrong:
        raise InputError(
            f"{', '.join(wrong)} requires a folder of shards, but {target} is a file.", hint="Choose a folder."
        )


def _embedded(texts: Iterator[str], model: ModelLike | Embedder, output: OutputType) -> Iterator[tuple[str, Array]]:
    """Yield every text with its vector, keeping only the texts read ahead in memory."""
    embedder = as_embedder(model)
    waiting: deque[str] = deque()

    def remembered() -> Iterator[str]:
        for text in texts:
            waiting.append(text)
            yield text

    with Progress(None, "embedding") as bar:
        for vector in _vectors(remembered(), embedder, output):
            yield waiting.popleft(), vector
            bar.advance(1)


def _vectors(texts: Iterator[str], embedder: Embedder, output: OutputType) -> Iterator[Array]:
    if isinstance(embedder, ModelEmbedder):
        yield from embedder.encoder.encode_iter(texts, **embedder.prompts, output=output)
        return
    while part := list(islice(texts, TEXTS_PER_CALL)):
        yield from quantize_vectors(embed_texts(embedder, part), output)


def _print_rows(rows: Iterator[tuple[str, Array]]) -> int:
    stdout, n_rows = standard_output(), 0
    for text, vector in rows:
        stdout.write(jsonl_row(text, vector))
        n_rows += 1
    stdout.flush()
    return n_rows
