"""Tiny seeded models of every architecture, real weights where they are at hand, and the gates for both."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tiny import FAMILIES, write_tiny_model


def pytest_collection_modifyitems(items):
    """Run tests that use SIGALRM first: it now and then crashed a process with threads of torch and openvino."""
    items.sort(key=lambda item: item.path.name != "test_files_fuzz.py" and "after_an_interrupt" not in item.name)


@pytest.fixture(scope="session", autouse=True)
def own_settings(tmp_path_factory):
    """No test reads the user's cache of vectors or writes into it, or takes the user's model for the default."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TWINVEC_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.delenv("TWINVEC_MODEL", raising=False)
        yield


@pytest.fixture(scope="session")
def tiny_folders(tmp_path_factory):
    """One folder per architecture, with random weights; made without torch."""
    root = tmp_path_factory.mktemp("tiny")
    return {family: write_tiny_model(root / family, family) for family in FAMILIES}


@pytest.fixture(scope="session")
def tiny_bert(tiny_folders) -> Path:
    return tiny_folders["bert"]


@pytest.fixture(scope="session")
def encoder(tiny_bert):
    import twinvec

    return twinvec.load(tiny_bert)


def _named_folder(variable: str, what: str) -> Path:
    value = os.environ.get(variable)
    if not value or not Path(value).is_dir():
        pytest.skip(f"{variable} names no folder of {what}")
    return Path(value)


@pytest.fixture(scope="session")
def models() -> Path:
    """Folder of real models, as tools lay it out: minilm, mpnet, ..."""
    return _named_folder("TWINVEC_MODELS", "real models")


@pytest.fixture(scope="session")
def data() -> Path:
    """Folder of real data sets: sts/, nli/, ..."""
    return _named_folder("TWINVEC_DATA", "data sets")
