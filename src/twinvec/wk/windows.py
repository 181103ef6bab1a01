"""Which layers are a layer's context."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinvec.wk.settings import WKSettings

__all__ = ["layer_windows", "window_table"]


def layer_windows(n_layers: int, settings: WKSettings) -> list[list[int]]:
    """The context of each layer: its neighbours within the window, left ones first.

    The authors' code keeps the left side only when it is complete.

    >>> layer_windows(4, WKSettings())
    [[1, 2], [0, 2, 3], [0, 1, 3], [1, 2]]
    >>> layer_windows(4, WKSettings("reference"))
    [[1, 2], [2, 3], [0, 1, 3], [1, 2]]
    """
    windows = []
    for layer in range(n_layers):
        first = layer - settings.window
        left = range(max(first, 0), layer) if first >= 0 or settings.mode == "paper" else range(0)
        windows.append([*left, *range(layer + 1, min(layer + settings.window + 1, n_layers))])
    return windows


def window_table(windows: list[list[int]]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The windows as a table with each layer itself last, and which places are filled: both ``(layers, longest + 1)``.

    >>> [each.tolist() for each in window_table([[1, 2], [2]])]
    [[[1, 2, 0], [2, 0, 1]], [[True, True, True], [True, False, True]]]
    """
    longest = max(map(len, windows))
    table = np.zeros((len(windows), longest + 1), dtype=np.int64)
    is_filled = np.zeros(table.shape, dtype=np.bool_)
    for layer, window in enumerate(windows):
        table[layer, : len(window)] = window
        is_filled[layer, : len(window)] = True
    table[:, -1] = np.arange(len(windows))
    is_filled[:, -1] = True
    return table, is_filled
