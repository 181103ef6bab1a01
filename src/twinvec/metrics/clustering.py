"""How well clusters agree with true classes. Rosenberg & Hirschberg (2007), V-measure.

With the entropies ``H(C)`` of the classes and ``H(K)`` of the clusters, and their mutual information ``I``:
homogeneity ``I / H(C)``, completeness ``I / H(K)``, and V-measure their harmonic mean, ``2 I / (H(C) + H(K))``.
By the paper's convention a part whose entropy is 0 is perfect. The names of the labels do not matter.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from twinvec.errors import InputError
from twinvec.types import Array

__all__ = ["completeness", "homogeneity", "v_measure"]


def homogeneity(clusters: ArrayLike, classes: ArrayLike) -> float:
    """How far each cluster holds one class only: 1 if all do. Both are ``(n,)`` labels.

    >>> round(homogeneity([0, 1, 2, 2], ["a", "a", "b", "b"]), 4)
    1.0
    """
    of_clusters, of_classes, joint = _entropies(clusters, classes)
    return _share(of_clusters + of_classes - joint, of_classes)


def completeness(clusters: ArrayLike, classes: ArrayLike) -> float:
    """How far each class lies in one cluster only: 1 if all do. Both are ``(n,)`` labels.

    >>> round(completeness([0, 1, 2, 2], ["a", "a", "b", "b"]), 4)
    0.6667
    """
    of_clusters, of_classes, joint = _entropies(clusters, classes)
    return _share(of_clusters + of_classes - joint, of_clusters)


def v_measure(clusters: ArrayLike, classes: ArrayLike) -> float:
    """Harmonic mean of homogeneity and completeness. Both are ``(n,)`` labels.

    >>> round(v_measure([0, 1, 2, 2], ["a", "a", "b", "b"]), 4)
    0.8
    """
    of_clusters, of_classes, joint = _entropies(clusters, classes)
    return _share(of_clusters + of_classes - joint, (of_clusters + of_classes) / 2)


def _entropies(clusters: ArrayLike, classes: ArrayLike) -> tuple[float, float, float]:
    """Of the clusters, of the classes, and of both together, in nats."""
    a, b = np.asarray(clusters), np.asarray(classes)
    if a.shape != b.shape or a.ndim != 1 or len(a) == 0:
        raise InputError(f"Clusters and classes must be equally long lists, not empty, got {a.shape} and {b.shape}.")
    _, cluster = np.unique(a, return_inverse=True)
    names, class_ = np.unique(b, return_inverse=True)
    return _entropy(cluster), _entropy(class_), _entropy(cluster * len(names) + class_)


def _entropy(labels: Array) -> float:
    _, counts = np.unique(labels, return_counts=True)
    shares = counts / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def _share(information: float, entropy: float) -> float:
    return 1.0 if entropy <= 0 else float(np.clip(information / entropy, 0, 1))
