"""One real server for many tests: tiny models of each kind, and the local ones to compare with."""

from __future__ import annotations

import pytest

pytest.importorskip("uvicorn")

import twinvec
from live_server import live_server
from tiny import write_json, write_tiny_classifier, write_tiny_model, write_tiny_poly_encoder


@pytest.fixture(scope="session")
def served(tmp_path_factory):
    """Folders of the served models."""
    root = tmp_path_factory.mktemp("served")
    folders = {
        "bert": write_tiny_model(root / "bert"),
        "cross": write_tiny_classifier(root / "cross"),
        "poly": write_tiny_poly_encoder(root / "poly"),
        "labels": write_tiny_classifier(root / "labels", n_labels=3),
    }
    prompts = {"query": "the query ", "document": "the letter ", "clustering": "the group "}
    write_json(folders["bert"] / "config_sentence_transformers.json", {"prompts": prompts})
    return folders


@pytest.fixture(scope="session")
def server(served):
    with live_server(*(f"{name}={folder}" for name, folder in served.items()), "static=twinvec-static") as server:
        yield server


@pytest.fixture(scope="session")
def local(served):
    """The same models in this process."""
    scorers = {name: twinvec.load_scorer(served[name]) for name in ("cross", "poly", "labels")}
    return {"bert": twinvec.load(served["bert"]), "static": twinvec.load("twinvec-static"), **scorers}
