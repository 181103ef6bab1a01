"""Store and search texts in a folder or an object store, with LanceDB (extra ``search``)."""

from twinvec.collection.collection import Collection, Reindexed, Version
from twinvec.collection.import_file import Imported, ImportSource
from twinvec.collection.model import ModelRecord
from twinvec.collection.rows import Entry, Hit, own_id
from twinvec.collection.search import reciprocal_rank_fusion
from twinvec.collection.write import Written

__all__ = [
    "Collection",
    "Entry",
    "Hit",
    "ImportSource",
    "Imported",
    "ModelRecord",
    "Reindexed",
    "Version",
    "Written",
    "own_id",
    "reciprocal_rank_fusion",
]
