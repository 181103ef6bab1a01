"""A slow and simple SBERT-WK, one token and one layer at a time, to test ``twinvec.wk``."""

from __future__ import annotations

import numpy as np


def qr_weights(vectors, window=2):
    """The weights of one token's layers ``(layers, width)`` as in the authors' code, by QR of every window."""
    n_layers = len(vectors)
    alignment, novelty = np.zeros(n_layers), np.zeros(n_layers)
    for k in range(n_layers):
        left = [vectors[j] for j in range(k - window, k)] if k >= window else []
        right = [vectors[j] for j in range(k + 1, min(k + window + 1, n_layers))]
        columns = np.stack([*left, *right, vectors[k]], axis=1)
        upper = np.linalg.qr(columns)[1]
        context, last = upper[:-1, :-1], upper[:, -1]
        directions = context / np.linalg.norm(context, axis=0)
        cosine = (directions.mean(axis=1) @ last[:-1]) / np.linalg.norm(last[:-1])
        alignment[k] = 1 / (cosine * columns.shape[1] * 2)
        novelty[k] = abs(last[-1]) / np.linalg.norm(last)
    return alignment / alignment.sum(), novelty / novelty.sum()


def svd_weights(vectors, window=2):
    """The weights of one token's layers as in the paper, by SVD of every context."""
    n_layers = len(vectors)
    alignment, novelty = np.zeros(n_layers), np.zeros(n_layers)
    for k in range(n_layers):
        context_layers = [j for j in range(k - window, k + window + 1) if j != k and 0 <= j < n_layers]
        context = np.stack([vectors[j] for j in context_layers], axis=1)
        length = np.linalg.norm(vectors[k])
        cosines = [vectors[k] @ vectors[j] / (length * np.linalg.norm(vectors[j])) for j in context_layers]
        basis = np.linalg.svd(context, full_matrices=False)[0]
        alignment[k] = 1 / np.mean(cosines)
        novelty[k] = np.linalg.norm(vectors[k] - basis @ (basis.T @ vectors[k])) / length
    return alignment / alignment.sum(), novelty / novelty.sum()


def slow_vector(states, mode, window=2, omega=0.5):
    """The vector of one text from its states ``(layers, tokens, width)``, without unused layers and padding."""
    if mode == "reference":
        states = states[:, :-1]  # [SEP] is not read
    words, moved = [], []
    for token in range(states.shape[1]):
        vectors = states[:, token]
        alignment, novelty = (qr_weights if mode == "reference" else svd_weights)(vectors, window)
        words.append((omega * alignment + (1 - omega) * novelty) @ vectors)
        units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        moved.append(np.var([units[i] @ units[i + 1] for i in range(len(units) - 1)], ddof=1))
    return np.array(moved) / np.sum(moved) @ np.stack(words)
