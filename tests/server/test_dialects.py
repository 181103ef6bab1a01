"""Each dialect answers with the vectors and scores of the local models, in its own shape."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from twinvec.vectors import quantize_vectors, similarity

TEXTS = ["the cat sits on the mat", "a dog", "the old man reads a book", "", "Große Katze! 고양이"]
QUERY, DOCUMENTS = "a happy cat", ["the dog runs", "a small cat sleeps", "rain and sun", "the red house"]
CLOSE = 1e-6


def close(found, expected):
    assert np.asarray(found).shape == np.asarray(expected).shape
    np.testing.assert_allclose(np.asarray(found, dtype=np.float32), expected, atol=CLOSE, rtol=0)


EMBEDDING = {
    "openai": ("/v1/embeddings", {"input": TEXTS}, lambda body: [item["embedding"] for item in body["data"]]),
    "openai without v1": ("/embeddings", {"input": TEXTS}, lambda body: [item["embedding"] for item in body["data"]]),
    "tei": ("/embed", {"inputs": TEXTS}, lambda body: body),
    "tei at the root": ("/", {"inputs": TEXTS}, lambda body: body),
    "cohere": ("/v2/embed", {"texts": TEXTS}, lambda body: body["embeddings"]["float"]),
    "ollama": ("/api/embed", {"input": TEXTS}, lambda body: body["embeddings"]),
}


@pytest.mark.parametrize("dialect", EMBEDDING)
@pytest.mark.parametrize("model", ["bert", "static"])
def test_every_dialect_gives_the_vectors_of_the_encoder(server, local, dialect, model):
    path, request, vectors = EMBEDDING[dialect]
    answer = server.post(path, {**request, "model": model})
    assert answer.status == 200, answer.body
    close(vectors(answer.json), local[model].encode(TEXTS))


def test_openai_gives_base64_counts_tokens_and_names_the_model(server, local):
    answer = server.post("/v1/embeddings", {"input": TEXTS[0], "encoding_format": "base64"}).json
    row = np.frombuffer(base64.b64decode(answer["data"][0]["embedding"]), dtype="<f4")
    close(row, local["bert"].encode(TEXTS[0]))
    count = int(local["bert"].count_tokens(TEXTS[0]))
    assert answer["usage"] == {"prompt_tokens": count, "total_tokens": count}
    assert (answer["model"], answer["object"], answer["data"][0]["index"]) == ("bert", "list", 0)
    names = [model["id"] for model in server.get("/v1/models").json["data"]]
    assert names == ["bert", "cross", "poly", "labels", "static"]
    assert server.get("/models/cross").json["id"] == "cross"
    assert server.get("/v1/models/none").status == 404


def test_the_kind_of_input_selects_the_prompt(server, local):
    encoder = local["bert"]
    voyage = server.post("/v1/embeddings", {"input": TEXTS[:2], "input_type": "query"}).json
    close([item["embedding"] for item in voyage["data"]], encoder.encode_query(TEXTS[:2]))
    cohere = {"texts": TEXTS[:2], "model": "bert"}
    for kind, expected in (
        ("search_query", encoder.encode_query(TEXTS[:2])),
        ("search_document", encoder.encode_document(TEXTS[:2])),
        ("clustering", encoder.encode(TEXTS[:2], prompt_name="clustering")),
        ("classification", encoder.encode(TEXTS[:2])),
    ):
        close(server.post("/v2/embed", {**cohere, "input_type": kind}).json["embeddings"]["float"], expected)
    close(
        server.post("/embed", {"inputs": TEXTS[0], "prompt_name": "query"}).json,
        encoder.encode([TEXTS[0]], prompt_name="query"),
    )
    assert server.post("/embed", {"inputs": "a", "prompt_name": "none"}).status == 422


def test_cohere_gives_several_types_at_once(server, local):
    kinds = ["float", "int8", "uint8", "binary", "ubinary", "base64"]
    answer = server.post("/v2/embed", {"texts": TEXTS[:2], "embedding_types": kinds, "input_type": "clustering"}).json
    vectors = local["bert"].encode(TEXTS[:2], prompt_name="clustering")
    for kind in kinds[1:5]:
        found = np.array(answer["embeddings"][kind], dtype=int)
        assert np.abs(found - quantize_vectors(vectors, kind)).max() <= (1 if kind.endswith("int8") else 0)
    raw = [np.frombuffer(base64.b64decode(row), dtype="<f4") for row in answer["embeddings"]["base64"]]
    close(raw, vectors)
    parts = {"inputs": [{"content": [{"type": "text", "text": text}]} for text in TEXTS[:2]]}
    close(server.post("/v2/embed", parts).json["embeddings"]["float"], local["bert"].encode(TEXTS[:2]))
    picture = {"inputs": [{"content": [{"type": "image_url", "image_url": {"url": "data:"}}]}]}
    assert "other than texts" in server.post("/v2/embed", picture).json["message"]


@pytest.mark.parametrize("model", ["cross", "poly"])
def test_all_rankings_equal_the_local_scorer(server, local, model):
    ranked = local[model].rank(QUERY, DOCUMENTS)
    tei = server.post("/rerank", {"query": QUERY, "texts": DOCUMENTS, "model": model, "return_text": True}).json
    assert [item["index"] for item in tei] == ranked.rows.tolist()
    close([item["score"] for item in tei], ranked.scores)
    assert tei[0]["text"] == DOCUMENTS[ranked.rows[0]]
    for path in ("/rerank", "/v1/rerank", "/v2/rerank"):
        request = {"query": QUERY, "documents": DOCUMENTS, "model": model, "top_n": 2, "return_documents": True}
        results = server.post(path, request).json["results"]
        assert [item["index"] for item in results] == ranked.rows[:2].tolist()
        close([item["relevance_score"] for item in results], ranked.scores[:2])
        assert results[0]["document"] == {"text": DOCUMENTS[ranked.rows[0]]}
    plain = server.post("/v2/rerank", {"query": QUERY, "documents": [{"text": "a cat"}], "model": model}).json
    assert "document" not in plain["results"][0]


@pytest.mark.parametrize("model", ["cross", "poly"])
def test_scores_of_pairs_equal_the_local_scorer(server, local, model):
    expected = local[model].score([(QUERY, text) for text in DOCUMENTS])
    for names in (("queries", "documents"), ("text_1", "text_2")):
        one = server.post("/score", {names[0]: QUERY, names[1]: DOCUMENTS, "model": model}).json
        many = server.post("/v1/score", {names[0]: [QUERY] * 4, names[1]: DOCUMENTS, "model": model}).json
        for answer in (one, many):
            close([item["score"] for item in answer["data"]], expected)
    assert server.post("/score", {"queries": ["a", "b"], "documents": ["c"]}).status == 400


def test_tei_predicts_labels_and_raw_scores(server, local):
    scores = local["labels"].score([(QUERY, DOCUMENTS[0])])[0]
    answer = server.post("/predict", {"inputs": [QUERY, DOCUMENTS[0]], "model": "labels"}).json
    assert [item["label"] for item in answer] == [f"label {index}" for index in np.argsort(-scores)]
    close([item["score"] for item in answer], np.sort(scores)[::-1])
    raw = server.post("/predict", {"inputs": [[QUERY, "a cat"]], "raw_scores": True}).json[0][0]["score"]
    probability = local["cross"].score([(QUERY, "a cat")])[0]
    close(1 / (1 + np.exp(-raw)), probability)
    assert (
        "returns 3 scores"
        in server.post("/v2/rerank", {"query": "a", "documents": ["b"], "model": "labels"}).json["message"]
    )


def test_tei_compares_tokenizes_and_embeds_tokens(server, local):
    inputs = {"inputs": {"source_sentence": QUERY, "sentences": DOCUMENTS}}
    vectors = local["bert"].encode([QUERY, *DOCUMENTS])
    for path in ("/similarity", "/"):
        close(server.post(path, inputs).json, similarity(vectors[:1], vectors[1:], "cosine")[0])
    close(server.post("/embed_all", {"inputs": QUERY}).json[0], local["bert"].encode_tokens(QUERY)[0])
    tokens = server.post("/tokenize", {"inputs": ["a cat"]}).json[0]
    assert [token["text"] for token in tokens] == ["[CLS]", "a", "cat", "[SEP]"]
    assert [(token["start"], token["stop"]) for token in tokens[1:3]] == [(0, 1), (2, 5)]
    info = server.get("/info").json
    assert (info["model_id"], info["max_input_length"]) == ("bert", 24)


def test_ollama_lists_models_and_takes_its_tags_off(server, local):
    tags = server.get("/api/tags").json["models"]
    assert tags[0]["name"] == "bert:latest" and tags[0]["size"] > 0
    answer = server.post("/api/embeddings", {"model": "bert:latest", "prompt": TEXTS[0]}).json
    close(answer["embedding"], local["bert"].encode(TEXTS[0]))
    assert server.post("/api/embed", {"input": "a cat"}).json["prompt_eval_count"] == 4


LONG = "the cat " * 30


def test_long_texts_are_cut_or_refused_as_each_dialect_has_it(server, local):
    expected = local["bert"].with_one_stream().encode_block([LONG]).vectors
    close(server.post("/api/embed", {"input": LONG}).json["embeddings"], expected)
    close(server.post("/embed", {"inputs": LONG, "truncate": True}).json, expected)
    for path, request in (
        ("/embed", {"inputs": LONG}),
        ("/api/embed", {"input": LONG, "truncate": False}),
        ("/v2/embed", {"texts": [LONG], "truncate": "NONE"}),
        ("/v1/embeddings", {"input": LONG, "truncation": False}),
    ):
        answer = server.post(path, request)
        assert answer.status == 413 and b"62 tokens" in answer.body, answer


def test_token_ids_get_a_message_that_names_the_setting(server):
    for given in ([1, 2, 3], [[1, 2], [3]], ["a", [1]]):
        answer = server.post("/v1/embeddings", {"input": given})
        assert answer.status == 400
        assert "check_embedding_ctx_length=False" in answer.json["error"]["message"]


def test_shorter_vectors_need_a_model_that_was_trained_for_them(server):
    for path, request in (
        ("/v1/embeddings", {"input": "a", "dimensions": 8}),
        ("/embed", {"inputs": "a", "dimensions": 8}),
        ("/v2/embed", {"texts": ["a"], "output_dimension": 8}),
        ("/api/embed", {"input": "a", "dimensions": 8}),
    ):
        answer = server.post(path, request)
        assert answer.status in (400, 422) and b"not trained for shorter" in answer.body
    assert server.post("/v1/embeddings", {"input": "a", "dimensions": 32}).status == 200


def shape(body):
    """The keys of an error, by dialect."""
    error = body.get("error")
    if isinstance(error, dict):
        return "openai" if {"message", "type", "param", "code"} <= set(error) else "?"
    if "error_type" in body:
        return "tei"
    return "ollama" if "error" in body else "cohere" if "message" in body else "?"


WRONG = {
    "openai": ("/v1/embeddings", "input", 400),
    "tei": ("/embed", "inputs", 422),
    "cohere": ("/v2/embed", "texts", 400),
    "ollama": ("/api/embed", "input", 400),
}


@pytest.mark.parametrize("dialect", WRONG)
@pytest.mark.parametrize("content", [5, None, {"a": 1}, [], [[[1.5]]], [None]])
def test_bad_requests_get_the_error_of_the_dialect(server, dialect, content):
    path, field, status = WRONG[dialect]
    answer = server.post(path, {field: content})
    assert (answer.status, shape(answer.json)) == (status, dialect), answer


@pytest.mark.parametrize("dialect", WRONG)
def test_unknown_models_are_named_with_the_known_ones(server, dialect):
    path, field, _ = WRONG[dialect]
    answer = server.post(path, {field: ["a"], "model": "brt"})
    assert (answer.status, shape(answer.json)) == (404, dialect)
    assert b"Did you mean 'bert'?" in answer.body
    assert server.post(path, {field: ["a"], "model": "cross"}).status == 404


def test_unknown_paths_and_methods_are_errors_in_json(server):
    assert server.get("/nothing").json["error"]["code"] == "not_found"
    assert server.get("/v1/embeddings").status == 405


def test_the_description_lists_every_route_and_the_docs_load_nothing_from_elsewhere(server):
    paths = server.get("/openapi.json").json["paths"]
    for path in ("/v1/embeddings", "/embed", "/rerank", "/v2/embed", "/score", "/api/embed", "/metrics", "/health"):
        assert path in paths
    page = server.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert b"://" not in page.body and b"<script" not in page.body and b"style=" not in page.body
    assert "script-src" not in page.headers["content-security-policy"]
    assert "unsafe-inline" not in page.headers["content-security-policy"]
    assert server.get("/docs/style.css").status == 200


def test_metrics_count_requests_without_their_texts(server):
    server.post("/embed", {"inputs": "a secret text"})
    page = server.get("/metrics").body.decode()
    assert 'twinvec_requests_total{dialect="tei",path="/embed",status="200"}' in page
    assert "twinvec_queued_texts 0.0" in page
    assert "secret" not in page and "secret" not in "".join(server.log)
