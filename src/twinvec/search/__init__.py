"""Search and mining over vectors: exact, block by block, or approximate with an index and its measured recall."""

from twinvec.search.approximate import (
    Recall,
    approximate_duplicates,
    approximate_pairs,
    build_index,
    fill_index,
    measure_recall,
    pairs_above,
    tune_effort,
)
from twinvec.search.codes import Codes, encode_codes, search_codes
from twinvec.search.exact import Hits, search, top_k
from twinvec.search.index import Index, IndexSettings, choose_index, rescored, search_index
from twinvec.search.index_files import load_index, new_index, save_index
from twinvec.search.negatives import Mined, NegativeSettings, hard_negatives, mine_negatives, mine_triplets
from twinvec.search.neighbors import Duplicates, duplicate_rows, neighbor_pairs, neighbors
from twinvec.search.pairs import Pairs, most_similar_pairs

__all__ = [
    "Codes",
    "Duplicates",
    "Hits",
    "Index",
    "IndexSettings",
    "Mined",
    "NegativeSettings",
    "Pairs",
    "Recall",
    "approximate_duplicates",
    "approximate_pairs",
    "build_index",
    "choose_index",
    "duplicate_rows",
    "encode_codes",
    "fill_index",
    "hard_negatives",
    "load_index",
    "measure_recall",
    "mine_negatives",
    "mine_triplets",
    "most_similar_pairs",
    "neighbor_pairs",
    "neighbors",
    "new_index",
    "pairs_above",
    "rescored",
    "save_index",
    "search",
    "search_codes",
    "search_index",
    "top_k",
    "tune_effort",
]
