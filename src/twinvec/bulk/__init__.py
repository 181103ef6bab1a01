"""Embed more text than fits in memory, into shards on disk that survive a crash; on one machine or many."""

from twinvec.bulk.embed_file import EmbeddedFile
from twinvec.bulk.job import embed_bulk
from twinvec.bulk.manifest import BulkReport, BulkSettings, BulkState
from twinvec.bulk.ray import RayWorkers
from twinvec.bulk.read import Bulk, BulkBatch, open_bulk, read_bulk
from twinvec.bulk.search import pairs_of_shards, search_shards
from twinvec.bulk.source import FileSource

__all__ = [
    "Bulk",
    "BulkBatch",
    "BulkReport",
    "BulkSettings",
    "BulkState",
    "EmbeddedFile",
    "FileSource",
    "RayWorkers",
    "embed_bulk",
    "open_bulk",
    "pairs_of_shards",
    "read_bulk",
    "search_shards",
]
