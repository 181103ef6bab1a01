"""Doctests of modules that need an extra are collected only where it is installed."""

from importlib.util import find_spec

collect_ignore_glob = (
    []
    if find_spec("torch") and find_spec("transformers")
    else [
        "src/twinvec/training/*",
        "src/twinvec/baselines/*_torch.py",
        "recipes/bilingual/training.py",
        "recipes/korean.py",
    ]
)
