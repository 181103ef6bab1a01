"""All texts of a collection embedded again by another model, and put in place of the old vectors in one commit.

The new vectors are kept in a folder beside the table until then, so a run that was killed goes on where it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from twinvec.collection.columns import kinds_of_schema
from twinvec.collection.embedder import Embedder
from twinvec.collection.lance_errors import lance_errors
from twinvec.collection.lance_types import ArrowBatch, ArrowSchema, LanceTable
from twinvec.collection.schema import Header, pyarrow, table_schema
from twinvec.collection.store import Store
from twinvec.ownership import FolderKind, check_ours, mark, remove_ours
from twinvec.progress import Progress
from twinvec.vector_store import VectorStore

__all__ = ["re_embed"]

FOLDER = "re-embedding"
KIND = FolderKind(
    "twinvec-re-embedding-1",
    "a re-embedding",
    names=re.compile(r"[^/]{1,32}/(?:|[0-9a-f]{32}\.vectors|\.[0-9a-f]{32}\.vectors\.partial-[0-9a-f]+)"),
)
BATCH_ROWS = 4096


def re_embed(store: Store, table: LanceTable, embedder: Embedder) -> int:
    """Give a collection the vectors of another model; the caller has the lock. Returns how many texts were embedded."""
    language = store.header(table).language
    if store.location.folder is None:
        with TemporaryDirectory() as temporary:
            return _re_embed(store, table, embedder, language, Path(temporary))
    place = store.location.folder / FOLDER
    check_ours(place, KIND)
    mark(place, KIND)
    done = _re_embed(store, table, embedder, language, place / embedder.record.digest[:32])
    with suppress(OSError):  # the collection is whole without it; what is not ours stays
        remove_ours(place, KIND)
    return done


def _re_embed(store: Store, table: LanceTable, embedder: Embedder, language: str | None, place: Path) -> int:
    vectors = VectorStore(place)
    n_embedded = 0
    with Progress(table.count_rows(), "embedding") as bar:
        for batch in _batches(table, ["text", "text_hash"]):
            keys = [bytes.fromhex(key) for key in batch["text_hash"].to_pylist()]
            known = vectors.rows(keys) >= 0
            missing = {
                key: text
                for key, text, is_known in zip(keys, batch["text"].to_pylist(), known, strict=True)
                if not is_known
            }
            if missing:
                vectors.add(list(missing), embedder.embed_documents(list(missing.values())))
            n_embedded += len(missing)
            bar.advance(len(keys))
    schema = table_schema(Header(embedder.record, language), kinds_of_schema(table.schema, pyarrow()))
    store.overwrite(schema, _with_vectors(table, vectors, schema))
    return n_embedded


def _with_vectors(table: LanceTable, vectors: VectorStore, schema: ArrowSchema) -> Iterator[ArrowBatch]:
    arrow = pyarrow()
    others = [name for name in schema.names if name != "vector"]
    for batch in _batches(table, others):
        rows = vectors.rows([bytes.fromhex(key) for key in batch["text_hash"].to_pylist()])
        values = arrow.array(vectors.vectors(rows).ravel(), arrow.float32())
        lists = arrow.FixedSizeListArray.from_arrays(values, schema.field("vector").type.list_size)
        columns = [lists if name == "vector" else batch[name] for name in schema.names]
        yield arrow.RecordBatch.from_arrays(columns, schema=schema)


def _batches(table: LanceTable, columns: list[str]) -> Iterator[ArrowBatch]:
    with lance_errors("read the collection"):
        reader = table.search().select(columns).to_batches(batch_size=BATCH_ROWS)
    yield from reader
