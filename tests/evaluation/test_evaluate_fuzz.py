"""Answers of servers and programs, and files of results, with things changed in them: right, or a TwinvecError."""

import base64
import json
import random
import sys
from contextlib import suppress

import numpy as np
import pytest
from click.testing import CliRunner

from mutated_content import DEEP, mutated_json
from reports import evaluation
from servers import reply, serving
from twinvec.cli import main
from twinvec.errors import InputError, TwinvecError
from twinvec.evaluation.compare import compare_evaluations
from twinvec.evaluation.result_file import read_evaluation, write_evaluation
from twinvec.evaluation.systems import CommandEmbedder
from twinvec.remote import Client

N_ANSWERS, N_FILES, N_OUTPUTS = 400, 300, 60
TEXTS = ["a", "b", "c"]


def good_answer(rng):
    rows = [[float(i), 0.5, -1.0] for i in range(len(TEXTS))]
    if rng.random() < 0.3:
        rows = [base64.b64encode(np.array(row, dtype="<f4").tobytes()).decode() for row in rows]
    return {"object": "list", "data": [{"index": i, "embedding": row} for i, row in enumerate(rows)], "model": "m"}


def answer_oddly(handler, body, rng):
    status = rng.choice([200] * 12 + [201, 204, 206, 300, 304, 400, 418, 500, 599])
    headers = rng.choice([[]] * 6 + [[("Retry-After", "nan")], [("Content-Encoding", "gzip")], [("X", "\x80")]])
    fault = rng.choice([None] * 8 + ["short", "garbage", "nothing", "chunks"])
    if fault == "garbage":
        handler.wfile.write(rng.choice([b"\0\xff" * 10, b"HTTP/1.1 abc\r\n\r\n", b"HTTP/9.9 200 OK\r\nA\r\n\r\n"]))
    elif fault == "chunks":
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" + body)
    elif fault == "short":
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 999999\r\n\r\n" + body)
    elif fault is None:
        reply(handler, status, body, headers)


def test_a_corrupted_server_response_gives_right_vectors_or_a_twinvec_error(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    rng = random.Random(17)
    n_good = 0

    def answer(handler, _):
        with suppress(OSError):
            answer_oddly(handler, mutated_json(good_answer(rng), rng), rng)

    with serving(answer) as address:
        for _ in range(N_ANSWERS):
            subject = Client(f"{address}/v1", "m", n_retries=0, timeout_s=10)
            with suppress(TwinvecError):
                vectors = subject.embed(TEXTS)
                n_good += 1
                assert vectors.dtype == np.float32 and vectors.shape == (3, subject.width)
                assert np.isfinite(vectors).all()
    assert N_ANSWERS / 20 < n_good < N_ANSWERS / 2  # the changes are neither harmless nor all alike


def data(*rows):
    return json.dumps({"data": list(rows)})


ODD_ANSWERS = {
    "an index that is a text": (data({"index": "0", "embedding": [1]}), "indices in the response are not 0 to 0"),
    "an index that is true": (data({"index": False, "embedding": [1]}), "indices in the response are not 0 to 0"),
    "an index that is a list": (data({"index": [0], "embedding": [1]}), "indices in the response are not 0 to 0"),
    "numbers as texts": (data({"index": 0, "embedding": ["1", "2"]}), "neither a list of numbers nor base64"),
    "truth as numbers": (data({"index": 0, "embedding": [True, False]}), "neither a list of numbers nor base64"),
    "nested": (data({"index": 0, "embedding": [[1, 2]]}), "neither a list of numbers nor base64"),
    "null": (data({"index": 0, "embedding": [1, None]}), "neither a list of numbers nor base64"),
    "too large": (data({"index": 0, "embedding": [10**400]}), "neither a list of numbers nor base64"),
    "beyond float32": (data({"index": 0, "embedding": [1e39]}), "NaN or infinity"),
    "half a number": (data({"index": 0, "embedding": "AAAA"}), "neither a list of numbers nor base64"),
    "empty": (data({"index": 0, "embedding": []}), "neither a list of numbers nor base64"),
    "deep": ("[" * DEEP, "nested too deeply"),
    "deep vector": (
        '{"data": [{"index": 0, "embedding": ' + "[" * 900 + "]" * 900 + "}]}",
        "neither a list of numbers",
    ),
    "many digits": ('{"data": [{"index": ' + "9" * 5000 + "}]}", "is not JSON"),
    "not UTF-8": (b'{"data": "\xff"}', "is not JSON"),
}


@pytest.mark.parametrize("case", ODD_ANSWERS)
def test_a_response_of_the_wrong_shape_is_refused_with_a_message(case, monkeypatch):
    monkeypatch.delenv("http_proxy", raising=False)
    content, message = ODD_ANSWERS[case]
    content = content if isinstance(content, bytes) else content.encode()
    with serving(lambda handler, _: reply(handler, 200, content)) as address:
        subject = Client(f"{address}/v1", "m", n_retries=0)
        with pytest.raises(InputError, match=message) as caught:
            subject.embed(["a"])
    assert len(str(caught.value)) < 400


def test_an_error_of_a_server_with_deep_json_is_shown(monkeypatch):
    monkeypatch.delenv("http_proxy", raising=False)
    with serving(lambda handler, _: reply(handler, 400, b"[" * DEEP)) as address:
        subject = Client(f"{address}/v1", "m", n_retries=0)
        with pytest.raises(InputError, match=r"status 400 \(\[\[\["):
            subject.embed(["a"])


def test_a_corrupted_program_output_gives_right_vectors_or_a_twinvec_error(tmp_path):
    rng = random.Random(18)
    output, script = tmp_path / "output", tmp_path / "show.py"
    script.write_text(f"import sys\nsys.stdin.read()\nsys.stdout.buffer.write(open({str(output)!r}, 'rb').read())")
    for _ in range(N_OUTPUTS):
        rows = [mutated_json([1.0, 2.5, -3.0], rng) for _ in TEXTS]
        output.write_bytes(b"\n".join(rows[: rng.choice([3, 3, 3, 2])]) + rng.choice([b"", b"\n"]))
        subject = CommandEmbedder(f"{sys.executable} -S -I {script}", timeout_s=20)
        with suppress(TwinvecError):
            vectors = subject.embed(TEXTS)
            assert vectors.shape == (3, subject.width) and np.isfinite(vectors).all()


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("[" * DEEP, "is not a JSON array of numbers"),
        ("[1e400]", "NaN or infinity"),
        ("[1" + "0" * 400 + "]", "is not a JSON array of numbers"),
        ('["1"]', "is not a JSON array of numbers"),
        ("[true]", "is not a JSON array of numbers"),
        ("", "returned 0 vectors for 1 texts"),
    ],
)
def test_rubbish_of_a_program_is_refused_in_words(tmp_path, output, message):
    (tmp_path / "output").write_text(output)
    code = f"import sys; sys.stdin.read(); print(open({str(tmp_path / 'output')!r}).read())"
    subject = CommandEmbedder(f'{sys.executable} -S -I -c "{code}"')
    with pytest.raises(InputError, match=message):
        subject.embed(["a"])


@pytest.mark.parametrize("command", ["a" * 5000, "a\0b", "/", "''"])
def test_a_command_that_cannot_be_one_is_refused(command):
    with pytest.raises(InputError, match="does not start"):
        CommandEmbedder(command).embed(["a"])
    with pytest.raises(InputError, match="does not start"):
        _ = CommandEmbedder(f"{command} {'x' * 5000}").identity


@pytest.fixture(scope="module")
def good_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("results") / "good.json"
    write_evaluation(evaluation(), file)
    return file


def test_a_corrupted_result_file_is_read_correctly_or_refused(tmp_path, good_file):
    rng = random.Random(19)
    good, content = read_evaluation(good_file), json.loads(good_file.read_text())
    n_good = 0
    for i in range(N_FILES):
        file = tmp_path / f"{i}.json"
        file.write_bytes(mutated_json(content, rng))
        with suppress(TwinvecError):
            found = read_evaluation(file)
            n_good += 1
            if n_good % 10 == 0:
                compare_evaluations(found, good)
    assert 0 < n_good < N_FILES / 2


def test_comparing_changed_files_ends_without_a_traceback(tmp_path, good_file):
    rng = random.Random(20)
    content = json.loads(good_file.read_text())
    for i in range(10):
        file = tmp_path / f"{i}.json"
        file.write_bytes(mutated_json(content, rng))
        done = CliRunner().invoke(main, ["compare", str(file), str(good_file)])
        assert done.exit_code in (0, 1) and isinstance(done.exception, (SystemExit, type(None))), done.output


def test_a_result_file_that_decompresses_to_more_than_declared_is_refused(tmp_path, good_file):
    import zlib

    content = json.loads(good_file.read_text())
    bomb = base64.b64encode(zlib.compress(b"\0" * (1 << 26))).decode()
    content["results"][0]["items"]["predicted"]["data"] = bomb
    (tmp_path / "bomb.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match="the data are not 400 values of type"):
        read_evaluation(tmp_path / "bomb.json")


@pytest.mark.parametrize("name", ["x" * 300 + ".json", "a\0b.json", ".json/x.json"])
def test_a_name_that_cannot_be_a_file_is_refused(tmp_path, name):
    with pytest.raises(InputError, match=r"cannot be read|no file"):
        read_evaluation(tmp_path / name)
