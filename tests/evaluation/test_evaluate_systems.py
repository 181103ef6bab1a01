"""Anything can be evaluated: models, servers, commands, files; and what goes wrong is said by its name."""

import base64
import json
import sys
import time

import numpy as np
import pytest

from servers import reply, serving
from twinvec.embedder import ModelEmbedder
from twinvec.errors import InputError, ModelNotFoundError
from twinvec.evaluation.systems import (
    CommandEmbedder,
    StoredEmbedder,
    SystemChoice,
    open_system,
)
from twinvec.remote import Client, retries

TEXTS = ["the cat", "a dog sleeps", "the cat sits on the mat"]


def vector_of(text, width=3):
    return [float(len(text)), float(text.count(" ")), *[-1.0] * (width - 2)]


class Server:
    """Speaks /v1/embeddings, well or badly. ``seen`` keeps the requests."""

    def __init__(self, *, form="base64", width=3, faults=()):
        self.form, self.width, self.faults, self.seen = form, width, list(faults), []

    def __call__(self, handler, body):
        if handler.command == "GET":  # the list of models, which this server lacks
            return reply(handler, 404, b"")
        asked = json.loads(body)
        self.seen.append((handler.path, dict(handler.headers), asked))
        if self.faults:
            fault = self.faults.pop(0)
            return fault(handler, asked)
        reply(handler, 200, self.answer(asked["input"]))

    def answer(self, texts):
        rows = [vector_of(text, self.width) for text in texts]
        if self.form == "base64":
            rows = [base64.b64encode(np.array(row, dtype="<f4").tobytes()).decode() for row in rows]
        items = [{"object": "embedding", "index": i, "embedding": row} for i, row in enumerate(rows)]
        return json.dumps({"object": "list", "data": items[::-1], "model": "m"}).encode()


def endpoint(address, **settings):
    return Client(f"{address}/v1", "tiny", **settings)


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch):
    monkeypatch.setattr(retries.Retries.__init__, "__defaults__", (0.01,))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("form", ["base64", "float"])
def test_an_endpoint_gives_vectors_in_the_order_of_the_texts(form):
    server = Server(form=form)
    with serving(server) as address:
        subject = endpoint(address, per_request=2, n_connections=1)
        vectors = subject.embed(TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.tolist() == [vector_of(text) for text in TEXTS]
    assert [len(asked["input"]) for _, _, asked in server.seen] == [2, 1]
    assert server.seen[0][0] == "/v1/embeddings"
    assert server.seen[0][2]["model"] == "tiny"
    assert subject.width == 3


def test_the_key_comes_from_the_environment(monkeypatch):
    monkeypatch.setenv("MY_KEY", "secret-key")
    server = Server()
    with serving(server) as address:
        endpoint(address, key_variable="MY_KEY").embed(["a"])
        endpoint(address, key_variable="NO_KEY").embed(["a"])
    assert server.seen[0][1]["Authorization"] == "Bearer secret-key"
    assert "Authorization" not in server.seen[1][1]


def test_a_replaced_model_with_the_same_name_has_another_identity():
    with serving(Server()) as address:
        first = endpoint(address)
        same = endpoint(address)
        assert first.identity == same.identity
    changed = Server(width=5)
    with serving(changed) as other:
        assert endpoint(other).identity != first.identity


def test_a_busy_server_is_asked_again_when_it_says():
    def busy(handler, _):
        reply(handler, 429, b'{"error": {"message": "slow down"}}', [("Retry-After", "0.05")])

    def broken(handler, _):
        reply(handler, 503, b"")

    server = Server(faults=[busy, broken])
    with serving(server) as address:
        started = time.perf_counter()
        assert len(endpoint(address).embed(["a"])) == 1
        assert time.perf_counter() - started >= 0.05
    assert len(server.seen) == 3


def refuse(status, content=b""):
    return lambda handler, _: reply(handler, status, content)


def answer(content):
    return lambda handler, _: reply(handler, 200, json.dumps(content).encode())


BAD_ANSWERS = {
    "status 500": ([refuse(500, b'{"error": {"message": "out of memory"}}')] * 3, r"status 500 \(out of memory\)"),
    "not found": ([refuse(404)], "status 404.*Check the URL and the model name"),
    "no key": ([refuse(401)], "status 401.*Set OPENAI_API_KEY"),
    "not JSON": ([refuse(200, b"<html>hello")], "the response is not JSON: '<html>hello'"),
    "no data": ([answer({"vectors": []})], "no list 'data'"),
    "too few": ([answer({"data": [{"index": 0, "embedding": [1.0]}]})], "returned 1 vectors for 2 texts"),
    "indexes": ([answer({"data": [{"index": 0, "embedding": [1]}] * 2})], "indices in the response are not 0 to 1"),
    "ragged": (
        [answer({"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1, 2]}]})],
        "different widths: 1, 2",
    ),
    "no numbers": ([answer({"data": [{"index": i, "embedding": "%%"} for i in (0, 1)]})], "vector 0 is neither"),
    "NaN": ([answer({"data": [{"index": i, "embedding": [float("nan")]} for i in (0, 1)]})], "NaN or infinity"),
}


@pytest.mark.parametrize("case", BAD_ANSWERS)
def test_bad_answers_name_the_request(case):
    faults, message = BAD_ANSWERS[case]
    with serving(Server(faults=faults)) as address, pytest.raises(InputError, match=message) as caught:
        endpoint(address, n_retries=2).embed(["a", "b"])
    assert str(caught.value).startswith(f"Request 1 (2 texts) to {address}/v1/embeddings")
    assert "\n" not in str(caught.value)


def test_another_width_names_the_request():
    def wider(handler, asked):
        reply(handler, 200, Server(width=4).answer(asked["input"]))

    with serving(Server(faults=[wider])) as address:
        subject = endpoint(address)
        subject.embed(["a"])
        with pytest.raises(
            InputError, match=r"Request 2 \(1 texts\).*vectors of width 3; earlier vectors have width 4"
        ):
            subject.embed(["b"])


def test_a_server_that_does_not_answer_is_given_up():
    def sleep(handler, _):
        time.sleep(0.5)

    message = r"failed after 2 attempts: no response within 0.1 s"
    with serving(Server(faults=[sleep] * 2)) as address, pytest.raises(InputError, match=message):
        endpoint(address, timeout_s=0.1, n_retries=1).embed(["a"])


def test_a_missing_server_is_reported():
    with serving(Server()) as address:
        pass
    with pytest.raises(InputError, match="no connection"):
        endpoint(address, n_retries=0).embed(["a"])


SCRIPT = """
import json, sys
for line in sys.stdin:
    text = json.loads(line) if {as_json} else line.rstrip("\\n")
    print(json.dumps([len(text), 1.5]))
"""


@pytest.mark.parametrize("lines", ["json", "plain"])
def test_a_command_gives_vectors(tmp_path, lines):
    script = tmp_path / "embed it.py"
    script.write_text(SCRIPT.format(as_json=lines == "json"))
    subject = CommandEmbedder(f"{sys.executable} '{script}'", lines=lines)
    texts = ["a", "two\nlines", "ü"]
    assert subject.embed(texts).tolist() == [[1, 1.5], [9, 1.5], [1, 1.5]]
    assert subject.width == 2
    before = subject.identity
    script.write_text(SCRIPT.format(as_json=lines == "json") + "# changed")
    assert CommandEmbedder(f"{sys.executable} '{script}'", lines=lines).identity != before


def test_a_command_whose_model_changed_is_another_subject(tmp_path):
    (tmp_path / "model.txt").write_text("1.0")
    code = f"import sys; [print([float(open({str(tmp_path / 'model.txt')!r}).read()), 1.0]) for _ in sys.stdin]"
    command = f'{sys.executable} -c "{code}"'
    before = CommandEmbedder(command).identity
    assert CommandEmbedder(command).identity == before
    (tmp_path / "model.txt").write_text("2.0")
    assert CommandEmbedder(command).identity != before


def test_settings_of_our_engine_are_refused_for_what_it_does_not_run():
    with pytest.raises(InputError, match="--precision can be set for models that Twinvec runs"):
        open_system(SystemChoice(command="cat", settings={"precision": "int8", "threads": 2, "long": "warn"}))
    open_system(SystemChoice(command="cat", settings={"precision": "float32", "threads": 2, "long": "warn"}))


def test_several_arrays_in_one_file_are_refused(tmp_path):
    np.savez(tmp_path / "vectors.npz", a=np.ones((1, 2)))
    (tmp_path / "texts.txt").write_text("a\n")
    with pytest.raises(InputError, match="contains several arrays"):
        StoredEmbedder(tmp_path / "vectors.npz", tmp_path / "texts.txt")


BAD_COMMANDS = {
    "import sys; sys.exit('no model there')": r"failed with exit code 1. Its last message: no model there",
    "print('loading')": "Line 1 of the output .* is not a JSON array of numbers: 'loading'",
    "print([1, 2])": "returned 1 vectors for 2 texts",
    "print([1, 2]); print([1])": r"different widths: \[1, 2\]",
    "import time; time.sleep(5)": "did not finish within 0.3 s",
}


@pytest.mark.parametrize("code", BAD_COMMANDS)
def test_a_bad_command_is_named(code):
    timeout_s = 0.3 if "sleep" in code else None
    subject = CommandEmbedder(f'{sys.executable} -S -c "{code}"', timeout_s=timeout_s)
    with pytest.raises(InputError, match=BAD_COMMANDS[code]):
        subject.embed(["a", "b"])


@pytest.mark.parametrize(("command", "message"), [("no-such-program-here", "does not start"), ("'", "cannot be read")])
def test_a_command_that_cannot_run(command, message):
    with pytest.raises(InputError, match=message):
        CommandEmbedder(command).embed(["a"])


def test_vectors_of_a_file(tmp_path):
    np.save(tmp_path / "v.npy", np.arange(6.0).reshape(3, 2))
    (tmp_path / "t.txt").write_text("one\ntwo\none\n")
    subject = StoredEmbedder(tmp_path / "v.npy", tmp_path / "t.txt")
    assert subject.embed(["two", "one"]).tolist() == [[2, 3], [0, 1]]
    assert subject.width == 2
    with pytest.raises(InputError, match=r"1 of 2 texts are not in .*; the first is 'three'"):
        subject.embed(["one", "three"])
    (tmp_path / "t.txt").write_text("one\ntwo\n")
    with pytest.raises(InputError, match=r"has 3 rows, but .* has 2 texts"):
        StoredEmbedder(tmp_path / "v.npy", tmp_path / "t.txt")


def test_a_model_is_loaded_only_when_a_text_needs_it(tiny_bert, encoder):
    subject = ModelEmbedder(str(tiny_bert))
    assert subject.identity.startswith("model-") and subject.width is None
    assert np.array_equal(subject.embed(TEXTS), encoder.encode(TEXTS))
    assert subject.width == encoder.width


def test_identity_changes_with_files_and_settings(tiny_bert, tmp_path):
    import shutil

    folder = shutil.copytree(tiny_bert, tmp_path / "model")
    plain = ModelEmbedder(str(folder)).identity
    assert plain == ModelEmbedder(str(tiny_bert)).identity
    assert plain == ModelEmbedder(str(folder), {"threads": 1}).identity
    others = [{"precision": "int8"}, {"truncate_dim": 8}, {"long": "chunk"}]
    identities = {ModelEmbedder(str(folder), settings).identity for settings in others}
    identities.add(ModelEmbedder(str(folder), prompt="query: ").identity)
    (folder / "README.md").write_text("no matter")
    assert ModelEmbedder(str(folder)).identity == plain
    config = folder / "1_Pooling" / "config.json"
    config.write_text(config.read_text().replace("mean_tokens", "cls_token"))
    identities |= {plain, ModelEmbedder(str(folder)).identity}
    assert len(identities) == 6


def test_the_command_line_names_one_subject(tmp_path, tiny_bert):
    assert open_system(SystemChoice(str(tiny_bert))).name == str(tiny_bert)
    assert open_system(SystemChoice("https://host/v1#m")).address == "https://host/v1#m"
    chosen = SystemChoice(endpoint="http://host:80/v1", endpoint_model="m", timeout_s=5)
    assert open_system(chosen).address == "http://host:80/v1#m"
    assert isinstance(open_system(SystemChoice(command="cat")), CommandEmbedder)
    with pytest.raises(ModelNotFoundError):
        open_system(SystemChoice("./nowhere"))


BAD_CHOICES = [
    ({}, "No system to evaluate"),
    ({"model": "a", "command": "b"}, "More than one system to evaluate: a, b"),
    ({"vectors": "v.npy"}, "--vectors requires --texts"),
    ({"model": "a", "texts": "t"}, "--texts requires --vectors"),
    ({"endpoint": "host/v1", "endpoint_model": "m"}, "Invalid URL 'host/v1'"),
    ({"endpoint": "http://host/v1#n", "endpoint_model": "m"}, "The URL names the model 'n', but model is 'm'"),
]


@pytest.mark.parametrize(("given", "message"), BAD_CHOICES)
def test_bad_choices_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        open_system(SystemChoice(**given))
