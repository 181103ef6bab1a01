"""The official clients of each dialect get the vectors and scores of the local models. Run with: make test-clients."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import huggingface_hub
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
WHY = "the official clients have their own environment: make test-clients"
NAMES = "cohere", "ollama", "openai", "voyageai"
cohere, ollama, openai, voyageai = (pytest.importorskip(name, reason=WHY) for name in NAMES)
OpenAIEmbeddings = pytest.importorskip("langchain_openai", reason=WHY).OpenAIEmbeddings
OpenAIEmbedding = pytest.importorskip("llama_index.embeddings.openai", reason=WHY).OpenAIEmbedding

pytestmark = pytest.mark.clients

TEXTS = ["the cat sits on the mat", "a dog runs", "the old man reads a book"]
QUERY, DOCUMENTS = "a happy cat", ["the dog runs", "a small cat sleeps", "rain and sun", "the red house"]


@pytest.fixture(scope="session")
def expected(tmp_path_factory):
    """The folder of the models, and what they give locally."""
    folder = tmp_path_factory.mktemp("models")
    python = os.environ.get("TWINVEC_SERVER_PYTHON", sys.executable)
    command = [python, str(Path(__file__).with_name("expected.py")), str(folder)]
    given = json.dumps([TEXTS, QUERY, DOCUMENTS])
    result = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    found = {name: np.array(rows, dtype=np.float32) for name, rows in json.loads(result.stdout).items()}
    return folder, found


@pytest.fixture(scope="session")
def local(expected):
    return expected[1]


@pytest.fixture(scope="session")
def url(expected):
    from live_server import live_server

    folder = expected[0]
    with live_server(f"bert={folder / 'bert'}", f"cross={folder / 'cross'}") as server:
        yield server.url


def close(found, wanted):
    np.testing.assert_allclose(np.asarray(found, dtype=np.float32), wanted, atol=1e-6, rtol=0)


@pytest.mark.parametrize("encoding", [None, "float", "base64"])
def test_openai(url, local, encoding):
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    options = {} if encoding is None else {"encoding_format": encoding}
    answer = client.embeddings.create(model="bert", input=TEXTS, **options)
    rows = [item.embedding for item in answer.data]
    if encoding == "base64":
        rows = [
            np.frombuffer(__import__("base64").b64decode(row), "<f4") if isinstance(row, str) else row for row in rows
        ]
    close(rows, local["text"])
    assert answer.usage.prompt_tokens > 0
    assert [model.id for model in client.models.list()] == ["bert", "cross"]
    assert client.models.retrieve("bert").id == "bert"


def test_openai_async(url, local):
    async def run():
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none") as client:
            return await asyncio.gather(*(client.embeddings.create(model="bert", input=text) for text in TEXTS))

    close([answer.data[0].embedding for answer in asyncio.run(run())], local["text"])


def test_openai_errors_are_those_of_its_client(url):
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    with pytest.raises(openai.NotFoundError, match="Unknown model"):
        client.embeddings.create(model="none", input="a")
    with pytest.raises(openai.BadRequestError, match="check_embedding_ctx_length"):
        client.embeddings.create(model="bert", input=[[1, 2]])


def test_cohere(url, local):
    client = cohere.ClientV2(api_key="none", base_url=url)
    for kind, name in (("search_query", "query"), ("search_document", "document"), ("classification", "text")):
        answer = client.embed(model="bert", texts=TEXTS, input_type=kind, embedding_types=["float", "int8"])
        close(answer.embeddings.float_, local[name])
        assert len(answer.embeddings.int8) == len(TEXTS)
    ranked = client.rerank(model="cross", query=QUERY, documents=DOCUMENTS, top_n=3)
    order = np.argsort(-local["scores"], kind="stable")[:3]
    assert [item.index for item in ranked.results] == order.tolist()
    close([item.relevance_score for item in ranked.results], local["scores"][order])
    with pytest.raises(cohere.NotFoundError):
        client.embed(model="none", texts=TEXTS, input_type="clustering", embedding_types=["float"])


def test_ollama(url, local):
    client = ollama.Client(host=url)
    close(client.embed(model="bert", input=TEXTS).embeddings, local["text"])
    close(client.embeddings(model="bert", prompt=TEXTS[0]).embedding, local["text"][0])
    assert client.list().models[0].model == "bert"
    with pytest.raises(ollama.ResponseError, match="Unknown model"):
        client.embed(model="none", input="a")


def test_voyage(url, local):
    client = voyageai.Client(api_key="none", base_url=f"{url}/v1", max_retries=0)
    for kind, name in ((None, "text"), ("query", "query"), ("document", "document")):
        answer = client.embed(TEXTS, model="bert", input_type=kind)
        close(answer.embeddings, local[name])
    assert answer.total_tokens > 0
    assert np.array(client.embed(TEXTS, model="bert", output_dtype="int8").embeddings).shape == local["text"].shape


def test_hugging_face(url, local):
    client = huggingface_hub.InferenceClient(model=f"{url}/embed")
    close([client.feature_extraction(text)[0] for text in TEXTS], local["text"])
    client = huggingface_hub.InferenceClient(model=f"{url}/similarity")
    close(client.sentence_similarity(QUERY, other_sentences=DOCUMENTS), local["similarity"])


def test_langchain(url, local):
    settings = {"model": "bert", "base_url": f"{url}/v1", "api_key": "none", "max_retries": 0}
    client = OpenAIEmbeddings(**settings, check_embedding_ctx_length=False)
    close(client.embed_documents(TEXTS), local["text"])
    close(client.embed_query(TEXTS[0]), local["text"][0])
    with pytest.raises(openai.BadRequestError, match="check_embedding_ctx_length=False"):
        raise_for_token_ids(url)


def raise_for_token_ids(url):
    """What langchain-openai sends by default; its tokenizer itself would have to be downloaded."""
    openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0).embeddings.create(
        model="bert", input=[[791, 8415]]
    )


def test_llama_index(url, local):
    client = OpenAIEmbedding(model_name="bert", api_base=f"{url}/v1", api_key="none", max_retries=0)
    close(client.get_text_embedding_batch(TEXTS), local["text"])
    close(client.get_query_embedding(TEXTS[0]), local["text"][0])
