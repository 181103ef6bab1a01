"""Texts and rows in, vectors out: lines, csv, tsv, jsonl and parquet, streaming in both directions."""

from twinvec.tables.formats import READ_FORMATS, WRITE_FORMATS, read_format, write_format
from twinvec.tables.reading import open_table, read_rows, read_texts
from twinvec.tables.rows_writing import check_rows_target, write_rows
from twinvec.tables.table import Row, Table
from twinvec.tables.target import check_target, new_file
from twinvec.tables.writing import jsonl_row, write_vectors

__all__ = [
    "READ_FORMATS",
    "WRITE_FORMATS",
    "Row",
    "Table",
    "check_rows_target",
    "check_target",
    "jsonl_row",
    "new_file",
    "open_table",
    "read_format",
    "read_rows",
    "read_texts",
    "write_format",
    "write_rows",
    "write_vectors",
]
