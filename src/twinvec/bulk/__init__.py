"""Embedding more than fits in memory: shards on disk that survive any kill, on one machine or many."""

from twinvec.bulk.job import embed_bulk
from twinvec.bulk.model import FolderModel
from twinvec.bulk.pairs import pairs_of_shards
from twinvec.bulk.ray_workers import RayWorkers
from twinvec.bulk.reading import Bulk, BulkBatch, open_bulk, read_bulk
from twinvec.bulk.search import search_shards
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
    "RayWorkers",
    "embed_bulk",
    "open_bulk",
    "pairs_of_shards",
    "read_bulk",
    "search_shards",
]
