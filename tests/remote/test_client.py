"""A server is an embedder and a scorer like any other; connections stay open, and trouble is named."""

import asyncio
import json
import multiprocessing
import pickle
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest

import twinvec
from servers import reply, serving
from twinvec.embedder import as_embedder
from twinvec.errors import InputError, ModelNotFoundError, UnknownNameError
from twinvec.pairs.cross_encoder import as_scorer
from twinvec.remote import AsyncClient, Client, client, retries
from twinvec.scorer import is_scorer

OWN_MODELS = [
    {"id": "mini", "identity": "model-1", "space": "space-1", "width": 3, "similarity": "dot", "job": "embedding"},
    {"id": "cross", "identity": "cross-1", "job": "scoring"},
]


def vector_of(text):
    return [float(len(text)), float(text.count(" ")), -1.0]


def score_of(first, second):
    return float(len(set(first.split()) & set(second.split())))


class Server:
    """Embeds, scores and lists its models; ``without`` are routes that it lacks, ``faults`` come first."""

    def __init__(self, *, models=(), without=(), faults=(), pause_s=0.0):
        self.models, self.without, self.faults, self.pause_s = list(models), without, list(faults), pause_s
        self.seen, self.addresses, self.n_active, self.most_active = [], set(), 0, 0
        self.lock = threading.Lock()

    def __call__(self, handler, body):
        route = handler.path.rpartition("/")[2]
        asked = json.loads(body) if body else None
        with self.lock:
            self.seen.append((route, asked))
            self.addresses.add(handler.client_address)
            self.n_active += 1
            self.most_active = max(self.most_active, self.n_active)
            fault = self.faults.pop(0) if self.faults else None
        time.sleep(self.pause_s)
        with self.lock:
            self.n_active -= 1
        if fault is not None:
            return fault(handler)
        if route in self.without:
            return reply(handler, 404, b'{"error": {"message": "no such route"}}')
        reply(handler, 200, json.dumps(getattr(self, route)(asked)).encode())

    def posts(self, route="embeddings"):
        return [asked for name, asked in self.seen if name == route]

    def embeddings(self, asked):
        rows = [{"index": row, "embedding": vector_of(text)} for row, text in enumerate(asked["input"])]
        return {"data": rows[::-1]}

    def score(self, asked):
        pairs = zip(asked["text_1"], asked["text_2"], strict=True)
        return {"data": [{"index": row, "score": score_of(*pair)} for row, pair in enumerate(pairs)]}

    def rerank(self, asked):
        scores = [score_of(asked["query"], text) for text in asked["documents"]]
        order = np.argsort(scores)[::-1].tolist()
        return {"results": [{"index": row, "relevance_score": scores[row]} for row in order]}


@contextmanager
def running(server):
    def answer(handler, body):
        if handler.path.endswith("/models") and "models" not in server.without and not server.faults:
            server.seen.append(("models", None))
            return reply(handler, 200, json.dumps({"data": server.models}).encode())
        found = [each for each in server.models if handler.path.endswith(f"/models/{each['id']}")]
        if found:
            return reply(handler, 200, json.dumps(found[0]).encode())
        server(handler, body)

    with serving(answer, keeps=True) as address:
        yield address


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    monkeypatch.setattr(retries.Retries.__init__, "__defaults__", (0.01,))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "OPENAI_API_KEY", "TWINVEC_API_KEY"):
        monkeypatch.delenv(name, raising=False)


TEXTS = [f"text {row} of{' a' * (row % 7)} list" for row in range(1000)]
EXPECTED = np.array([vector_of(text) for text in TEXTS], dtype=np.float32)


def test_long_lists_are_split_and_sent_several_at_once_in_order():
    server = Server(pause_s=0.02)
    with running(server) as address:
        vectors = Client(address, "m", n_connections=4).embed(TEXTS)
    assert vectors.dtype == np.float32 and np.array_equal(vectors, EXPECTED)
    assert sorted(len(asked["input"]) for asked in server.posts()) == [40, *[64] * 15]
    assert 1 < server.most_active <= 4


def test_many_characters_are_split_too(monkeypatch):
    monkeypatch.setattr(client, "MAX_CHARACTERS", 100)
    server = Server()
    texts = ["a" * 60, "b" * 60, "c" * 300, "d", "e"]
    with running(server) as address:
        assert len(Client(address, "m", n_connections=1).embed(texts)) == 5
    assert [asked["input"] for asked in server.posts()] == [texts[:1], texts[1:2], texts[2:3], texts[3:]]


def test_connections_are_used_again_and_threads_share_them():
    server = Server()
    with running(server) as address, Client(address, "m", n_connections=3) as subject:
        for text in TEXTS[:20]:
            subject.embed([text])
        assert len(server.addresses) == 1
        with ThreadPoolExecutor(8) as pool:
            rows = list(pool.map(lambda text: subject.embed([text])[0], TEXTS[:200]))
    assert np.array_equal(rows, EXPECTED[:200])
    assert len(server.addresses) <= 3


def test_a_connection_that_the_server_closed_is_replaced_without_a_word(caplog):
    def close(handler):
        handler.close_connection = True  # without an answer, as a server that ends an idle connection

    server = Server()
    with running(server) as address:
        subject = Client(address, "m", n_retries=0)
        subject.embed(["a"])
        server.faults = [close]
        assert subject.embed(["b b"]).tolist() == [vector_of("b b")]
    assert len(server.addresses) == 2 and caplog.text == ""


def test_a_new_connection_that_closes_without_an_answer_is_an_error():
    def close(handler):
        handler.close_connection = True

    with running(Server(faults=[close] * 2)) as address, pytest.raises(InputError, match="was interrupted"):
        Client(address, "m", n_retries=1).embed(["a"])


def test_a_large_body_that_is_refused_early_gets_the_servers_reason():
    answer = b"HTTP/1.1 413 Too Large\r\nContent-Length: 9\r\nConnection: close\r\n\r\ntoo large"
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def refuse():
            connection, _ = listener.accept()
            connection.recv(1000)
            connection.sendall(answer)
            connection.shutdown(socket.SHUT_WR)
            time.sleep(0.3)  # the rest of the body is never read
            connection.close()

        thread = threading.Thread(target=refuse)
        thread.start()
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(InputError, match=r"status 413 \(too large\)"):
            Client(address, "m", n_retries=0).embed(["a" * 20_000_000])
        thread.join()


def test_after_a_failure_the_other_requests_end():
    def refuse(handler):
        reply(handler, 400, b"no")

    server = Server(faults=[refuse], pause_s=0.01)
    with running(server) as address, pytest.raises(InputError, match=r"status 400 \(no\)"):
        Client(address, "m", n_connections=2, per_request=1).embed(TEXTS)
    assert len(server.posts()) < 20


def test_a_busy_server_is_asked_again():
    def busy(handler):
        reply(handler, 429, b"", [("Retry-After", "0.01")])

    with running(Server(faults=[busy] * 3)) as address:
        assert np.array_equal(Client(address, "m").embed(TEXTS[:200]), EXPECTED[:200])


def test_a_twinvec_server_tells_its_models():
    server = Server(models=OWN_MODELS)
    with running(server) as address:
        subject = Client(address)
        assert (subject.name, subject.address) == (f"mini at {address[7:]}", f"{address}#mini")
        assert (subject.identity, subject.space, subject.width) == ("served-model-1", "space-1", 3)
        assert subject.similarity == "dot" and not is_scorer(subject)
        assert subject.embed(["a b"], role="query").tolist() == [vector_of("a b")]
        subject.embed(["a"], role="document")
        subject.embed(["a"])
        assert subject.settings == {"url": address, "model": "mini"}
    assert [asked.get("input_type") for asked in server.posts()] == ["query", "document", None]
    assert {asked["model"] for asked in server.posts()} == {"mini"}
    assert [name for name, _ in server.seen].count("models") == 1


def test_the_models_that_score_are_scorers():
    server = Server(models=OWN_MODELS)
    pairs = [("a cat", "a cat"), ("a cat", "rain")] * 50
    expected = [score_of(*pair) for pair in pairs]
    with running(server) as address:
        subject = Client(address)
        assert subject.score(pairs).tolist() == expected
        assert subject.rank("a cat", ["rain", "a dog", "a cat"], 2).rows.tolist() == [2, 1]
        scorer = as_scorer(address)
        assert scorer.identity == "served-cross-1" and is_scorer(scorer)
        assert as_scorer(subject).identity == "served-cross-1"
        assert twinvec.load_scorer(f"{address}/v1#cross").score(pairs[:1]).tolist() == [2.0]
        assert subject.score([]).shape == (0,)
        with pytest.raises(InputError, match="activation can be set for models that Twinvec runs, not for a server"):
            twinvec.load_scorer(address, activation="sigmoid")
    assert {asked["model"] for asked in server.posts("score")} == {"cross"}


def test_other_servers_score_by_rerank():
    server = Server(without=("score", "models", "embeddings"))
    pairs = [("a cat", "rain"), ("a cat", "a cat"), ("rain falls", "rain")]
    with running(server) as address:
        subject = Client(f"{address}/v1", "ranker")
        assert subject.score(pairs).tolist() == [0.0, 2.0, 1.0]
        assert subject.score(pairs).tolist() == [0.0, 2.0, 1.0]
        assert subject.identity.startswith("endpoint-")
    assert [asked["query"] for asked in server.posts("rerank")][:2] == ["a cat", "rain falls"]
    assert len(server.posts("score")) == 1  # asked for only once


def test_a_server_without_any_route_for_scores_is_named():
    server = Server(without=("score", "rerank"), models=OWN_MODELS)
    with running(server) as address, pytest.raises(InputError, match=r"/score failed: status 404 \(no such route\)"):
        Client(address).score([("a", "b")])


def test_other_servers_get_no_fields_that_they_may_not_know():
    server = Server(models=[{"id": "only"}])
    with running(server) as address:
        subject = Client(address)
        subject.embed(["a"], role="query")
        assert (subject.width, subject.similarity) == (3, "cosine")
    assert set(server.posts()[0]) == {"input", "model", "encoding_format"} and server.posts()[0]["model"] == "only"


def fails(server, message, error=InputError, **settings):
    with running(server) as address, pytest.raises(error, match=message) as caught:
        Client(address, **settings).embed(["a"], role="query")
    assert "\n" not in str(caught.value)


def test_a_model_that_cannot_be_chosen_is_an_error_that_says_how():
    fails(Server(models=[{"id": "one"}, {"id": "two"}]), r"has 2 models\. Name one, as in http://.*#one")
    fails(
        Server(without=("models",)), r"no list of models at .*/models\. Check the URL, or name the model: .*#model-name"
    )
    fails(
        Server(models=OWN_MODELS), r"Unknown model of .* 'mimi'\. Did you mean 'mini'", UnknownNameError, model="mimi"
    )


def test_a_wrong_key_is_named(monkeypatch):
    def refuse(handler):
        reply(handler, 401, b'{"error": {"message": "Invalid key"}}')

    fails(Server(faults=[refuse]), r"status 401 \(Invalid key\)\. Set OPENAI_API_KEY or TWINVEC_API_KEY")
    fails(Server(faults=[refuse]), r"status 401 \(Invalid key\)\. Pass a valid key", api_key="wrong")
    monkeypatch.setenv("TWINVEC_API_KEY", "wrong")
    fails(Server(faults=[refuse]), r"status 401 \(Invalid key\)\. Set TWINVEC_API_KEY to")


def test_the_key_is_the_argument_or_our_own_variable_before_that_of_openai(monkeypatch):
    keys = []

    def note(handler, body):
        keys.append(handler.headers.get("Authorization"))
        reply(handler, 200, json.dumps(Server().embeddings(json.loads(body))).encode())

    with serving(note) as address:
        monkeypatch.setenv("OPENAI_API_KEY", "theirs")
        Client(address, "m").embed(["a"])
        monkeypatch.setenv("TWINVEC_API_KEY", "ours")
        Client(address, "m").embed(["a"])
        monkeypatch.setenv("TWINVEC_API_KEY", "")
        Client(address, "m").embed(["a"])
        subject = Client(address, "m", api_key="given")
        subject.embed(["a"])
    assert keys == ["Bearer theirs", "Bearer ours", None, "Bearer given"]
    assert "given" not in repr(subject) and "given" not in str(subject.settings)


def test_a_server_that_is_not_running_is_named():
    with serving(Server()) as address:
        pass
    for call in (lambda c: c.embed(["a"]), lambda c: c.identity, lambda c: c.score([("a", "b")]), lambda c: c.name):
        with pytest.raises(InputError, match=r"no connection \(.*Check that the server is running"):
            call(Client(address, n_retries=0))


@pytest.mark.parametrize("settings", [{"n_connections": 0}, {"per_request": 0}, {"n_retries": -1}, {"timeout_s": 0}])
def test_settings_that_cannot_work_are_refused(settings):
    with pytest.raises(InputError, match="must be at least"):
        Client("http://127.0.0.1:8080", **settings)


@pytest.mark.parametrize("texts", ["one text", ["a", 1], ["\ud800"]])
def test_texts_are_checked_before_anything_is_sent(texts):
    server = Server()
    with running(server) as address, pytest.raises(InputError):
        Client(address, "m").embed(texts)
    assert server.seen == []


def _embed_elsewhere(subject, results):
    results.put(subject.embed(["in a child"]).tolist())


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_other_processes_get_connections_of_their_own(method):
    context = multiprocessing.get_context(method)
    server = Server()
    with running(server) as address:
        subject = Client(address, "m")
        subject.embed(["a"])
        results = context.Queue()
        process = context.Process(target=_embed_elsewhere, args=(subject, results))
        process.start()
        assert results.get(timeout=60) == [vector_of("in a child")]
        process.join(60)
        subject.embed(["b"])
        assert len(server.addresses) == 2
        assert pickle.loads(pickle.dumps(subject)).address == subject.address


def test_async_calls_run_together_and_leave_the_loop_free():
    server = Server(models=OWN_MODELS, pause_s=0.2)

    async def work(address):
        async with AsyncClient(address, n_connections=10) as subject:
            ticks = asyncio.create_task(asyncio.sleep(0.01))
            start = time.perf_counter()
            rows = await asyncio.gather(*(subject.embed([text], role="query") for text in TEXTS[:40]))
            assert ticks.done() and time.perf_counter() - start < 40 * 0.2 / 2
            scores = await subject.score([("a cat", "a dog")])
            ranked = await subject.rank("a cat", ["rain", "a cat"])
            return np.concatenate(rows), scores, ranked

    with running(server) as address:
        rows, scores, ranked = asyncio.run(work(address))
    assert np.array_equal(rows, EXPECTED[:40])
    assert scores.tolist() == [1.0] and ranked.rows.tolist() == [1, 0]
    assert len(server.addresses) <= 10


def test_async_errors_are_the_same_and_a_closed_client_can_be_used_again():
    async def work(address):
        subject = AsyncClient(address, "m", n_retries=0)
        await subject.embed(["a"])
        await subject.close()
        await subject.embed(["a"])
        await subject.close()
        with pytest.raises(InputError, match="texts"):
            await subject.embed("one text")

    with running(Server()) as address:
        asyncio.run(work(address))


def test_an_address_is_a_model_for_every_function(tmp_path):
    with running(Server(models=OWN_MODELS)) as address:
        assert as_embedder(address).embed(["a b"]).tolist() == [vector_of("a b")]
        with pytest.raises(InputError, match=r"--precision can be set .* not for a server"):
            as_embedder(address, {"precision": "int8"})
        with pytest.raises(InputError, match="not for a server"):
            as_embedder(address, prompt="query: ")
        assert twinvec.search_texts("a b c", ["x", "a b c d e f g"], 1, model=address)[0].row == 1
        with pytest.raises(
            ModelNotFoundError, match="is the address of a server, but this needs a model on this machine"
        ):
            twinvec.load(address)
        (tmp_path / "texts.txt").write_text("a\nb b\n")
        twinvec.embed_file(tmp_path / "texts.txt", tmp_path / "vectors.npy", address)
    assert np.load(tmp_path / "vectors.npy").tolist() == [vector_of("a"), vector_of("b b")]


def test_a_collection_remembers_the_address_but_does_not_open_it(tmp_path):
    pytest.importorskip("lancedb")
    server = Server(models=OWN_MODELS)
    with running(server) as address:
        made = twinvec.Collection.create(tmp_path / "notes", model=Client(address))
        made.add(["a b", "c d e f"])
        assert (made.model.name, made.model.digest) == (f"{address}#mini", "space-1")
        server.seen.clear()
        unknown = twinvec.Collection.open(tmp_path / "notes")
        with pytest.raises(ModelNotFoundError, match="If you trust the address, pass it: --model"):
            unknown.search("a b")
        assert server.seen == []
        again = twinvec.Collection.open(tmp_path / "notes", model=made.model.name)
        assert again.search("c d e f", 1)[0].text == "c d e f"
        assert {asked["input_type"] for asked in server.posts()} == {"query"}
