"""Embedding more than fits in memory: shards on disk that survive any kill, on one machine or many."""

from twinvec.bulk.job import embed_bulk
from twinvec.bulk.model import FolderModel
from twinvec.bulk.reading import Bulk, BulkBatch, open_bulk, read_bulk
from twinvec.bulk.settings import BulkReport, BulkSettings, BulkState
from twinvec.bulk.source import FileSource

__all__ = [
    "Bulk",
    "BulkBatch",
    "BulkReport",
    "BulkSettings",
    "BulkState",
    "FileSource",
    "FolderModel",
    "embed_bulk",
    "open_bulk",
    "read_bulk",
]
