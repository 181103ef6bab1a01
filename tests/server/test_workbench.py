"""What the page asks for equals what the library says."""

from __future__ import annotations

import numpy as np
import pytest

import twinvec
from live_server import live_server
from twinvec.cluster import KMeansSettings
from twinvec.search.texts import explain_hits

TEXTS = ["the cat sits on the mat", "a small dog sleeps", "the cat sleeps", "a house in the city"]


def asked(server, name, content):
    answer = server.post(f"/twinvec/{name}", content)
    assert answer.status == 200, answer.body
    return answer.json


def test_the_matrix_has_the_models_own_similarity(server, local):
    found = asked(server, "similarity", {"texts": TEXTS})
    vectors = local["bert"].encode(TEXTS)
    assert found["model"] == "bert" and found["measure"] == "cosine"
    np.testing.assert_allclose(found["scores"], local["bert"].similarity(vectors, vectors), atol=2e-6)


def test_pairs_are_those_of_the_library(server, local):
    found = asked(server, "pairs", {"texts": TEXTS, "k": 3, "model": "static"})
    pairs = twinvec.find_pairs(TEXTS, 3, model=local["static"])
    assert [(each["left"], each["right"]) for each in found["pairs"]] == list(zip(pairs.left, pairs.right, strict=True))
    np.testing.assert_allclose([each["score"] for each in found["pairs"]], pairs.scores, atol=2e-6)
    best = found["pairs"][0]["score"]
    assert asked(server, "pairs", {"texts": TEXTS, "threshold": min(best + 0.01, 1), "model": "static"})["pairs"] == []


@pytest.mark.parametrize("method", ["kmeans", "agglomerative", "communities"])
def test_clusters_come_with_a_map_and_words(server, local, method):
    found = asked(server, "clusters", {"texts": TEXTS, "n_clusters": 2, "method": method, "model": "static"})
    assert len(found["labels"]) == len(found["points"]) == 4 and {len(point) for point in found["points"]} == {2}
    if method == "kmeans":
        same = twinvec.cluster_texts(TEXTS, KMeansSettings(2), model=local["static"])
        assert found["labels"] == same.labels.tolist()
        assert found["clusters"][0]["words"] == list(same.clusters.clusters[0].words)


def test_more_clusters_than_texts_are_as_many_as_the_texts(server):
    assert len(asked(server, "clusters", {"texts": TEXTS[:2], "n_clusters": 9})["clusters"]) == 2


@pytest.mark.parametrize("model", ["bert", "static"])  # the first has prompts for queries and documents
def test_search_finds_texts_and_their_words(server, local, model):
    found = asked(server, "search", {"query": "a cat", "texts": TEXTS, "k": 2, "model": model})
    hits = twinvec.search_texts("a cat", TEXTS, 2, model=local[model])
    assert [hit["row"] for hit in found["hits"]] == [hit.row for hit in hits]
    words = explain_hits("a cat", [hit.text for hit in hits], model=local[model])
    for hit, shares in zip(found["hits"], words, strict=True):
        np.testing.assert_allclose(hit["words"], shares, atol=1e-5)
        assert "".join(hit["text"][int(start) : int(end)] for start, end, _ in hit["words"]) == hit["text"].replace(
            " ", ""
        )


def test_an_explained_pair_and_the_layers_are_those_of_the_library(server, local):
    pair = asked(server, "explain", {"left": TEXTS[0], "right": TEXTS[2]})
    assert pair["cosine"] == pytest.approx(local["bert"].explain_pair(TEXTS[0], TEXTS[2]).cosine, abs=1e-5)
    picture = asked(server, "layers", {"text": TEXTS[0]})
    assert len(picture["tokens"]) == len(picture["importance"]) == len(picture["weights"][0])
    np.testing.assert_allclose(np.sum(picture["weights"], axis=0), 1, atol=1e-4)


def test_the_page_learns_what_the_server_offers(server):
    about = server.get("/twinvec/about").json
    assert {"name": "static", "is_english": True} in about["models"] and about["model"] == "bert"
    assert not {"cross", "poly", "labels"} & {each["name"] for each in about["models"]}
    assert server.get("/twinvec/collections").json == {"collections": []}


@pytest.mark.parametrize(
    ("name", "content", "status", "message"),
    [
        ("similarity", {"texts": ["a"] * 501}, 413, "at most 500 texts, got 501"),
        ("pairs", {"texts": ["a"] * 5001}, 413, "at most 5,000 texts, got 5,001"),
        ("clusters", {"texts": []}, 400, "'texts' is empty"),
        ("clusters", {"texts": ["a"], "n_clusters": 0}, 400, "n_clusters"),
        ("search", {"query": "a"}, 400, "either 'texts' or 'collection'"),
        ("search", {"query": "a", "collection": "none"}, 400, "Unknown collection 'none'"),
        ("explain", {"left": "a" * 20_001, "right": "b"}, 413, "20,000 characters, got 20,001"),
        ("layers", {"text": "a", "model": "static"}, 400, "static model"),
        ("layers", {"text": "a", "model": "nobody"}, 404, "nobody"),
        ("layers", {"text": 3}, 400, "Expected `str`, got `int`"),
    ],
)
def test_a_bad_request_says_what_is_wrong(server, name, content, status, message):
    answer = server.post(f"/twinvec/{name}", content)
    assert answer.status == status and message in answer.json["error"]["message"]


def test_an_error_about_a_model_names_it_without_the_place_of_its_files(server, served):
    message = server.post("/twinvec/layers", {"text": "a", "model": "static"}).json["error"]["message"]
    assert message.startswith("static is a static model") and "/" not in message


def test_the_page_may_load_nothing_from_elsewhere(server):
    for path in ("/", "/page/main.js"):
        headers = server.get(path).headers
        assert "default-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]


def test_a_collection_is_searched_with_its_words(tmp_path):
    pytest.importorskip("lancedb")
    twinvec.Collection.create(tmp_path / "pets", model="twinvec-static").add(TEXTS)
    with live_server("twinvec-static", "twinvec-mini", "--collection", f"pets={tmp_path / 'pets'}") as server:
        assert server.get("/twinvec/collections").json["collections"][0]["n_texts"] == 4
        found = asked(server, "search", {"query": "a kitten", "collection": "pets", "k": 2})
        assert {hit["text"] for hit in found["hits"]} == {TEXTS[0], TEXTS[2]} and found["hits"][0]["words"]
        other = asked(server, "search", {"query": "a kitten", "collection": "pets", "model": "twinvec-mini"})
        assert len(other["hits"]) == 4 and "made with twinvec-static" in other["note"]
