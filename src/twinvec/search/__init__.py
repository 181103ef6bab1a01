"""Search and mining over vectors: exact, blocked, never an n x n matrix."""

from twinvec.search.exact import Hits, search, top_k
from twinvec.search.mining import Pairs, most_similar_pairs

__all__ = ["Hits", "Pairs", "most_similar_pairs", "search", "top_k"]
