"""Search and mining over vectors: exact, blocked, never an n x n matrix."""

from twinvec.search.codes import Codes, encode_codes, search_codes
from twinvec.search.duplicates import Duplicates, Keep, find_duplicates
from twinvec.search.exact import search
from twinvec.search.hits import Hits, top_k
from twinvec.search.mining import most_similar_pairs
from twinvec.search.negatives import NegativeSettings, hard_negatives, mine_triplets
from twinvec.search.neighbors import Graph, neighbor_graph, neighbor_pairs, neighbors
from twinvec.search.pairs import Pairs
from twinvec.search.rescoring import rescored

__all__ = [
    "Codes",
    "Duplicates",
    "Graph",
    "Hits",
    "Keep",
    "NegativeSettings",
    "Pairs",
    "encode_codes",
    "find_duplicates",
    "hard_negatives",
    "mine_triplets",
    "most_similar_pairs",
    "neighbor_graph",
    "neighbor_pairs",
    "neighbors",
    "rescored",
    "search",
    "search_codes",
    "top_k",
]
