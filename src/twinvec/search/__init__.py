"""Search and mining over vectors: exact, blocked, never an n x n matrix."""

from twinvec.search.exact import search
from twinvec.search.hits import Hits, top_k
from twinvec.search.mining import most_similar_pairs
from twinvec.search.pairs import Pairs

__all__ = ["Hits", "Pairs", "most_similar_pairs", "search", "top_k"]
