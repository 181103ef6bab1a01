"""Public data sets: where they are, how they are fetched, and how they come into the data folder."""

from twinvec.evaluate.fetching.installing import install
from twinvec.evaluate.fetching.sources import SOURCES, DataSet, Download, with_checksums

__all__ = ["SOURCES", "DataSet", "Download", "install", "with_checksums"]
