"""Read and write tables, read and check training examples, and download public data sets."""

from __future__ import annotations
