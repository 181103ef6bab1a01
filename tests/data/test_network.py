"""What is sent over the network, and to whom: keys and texts go to the server that the user named, and nowhere else."""

import gzip
import json
import os
import time
from contextlib import suppress

import pytest

from servers import CERTIFICATE, reply, serving
from twinvec.errors import InputError
from twinvec.evaluation.systems import SystemChoice, open_system
from twinvec.remote import Client, connections, retries

KEY = "sk-very-secret"
PROXIES = ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    monkeypatch.setattr(retries.Retries.__init__, "__defaults__", (0.01,))
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("TWINVEC_API_KEY", raising=False)
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))


class Recorder:
    """Keeps all that it is sent, and answers with one vector of two numbers for each text."""

    def __init__(self):
        self.seen = []

    def __call__(self, handler, body):
        self.seen.append((handler.path, dict(handler.headers), body))
        texts = json.loads(body)["input"] if body else []
        rows = [{"index": i, "embedding": [1.0, 2.0]} for i, _ in enumerate(texts)]
        reply(handler, 200, json.dumps({"data": rows}).encode())


def endpoint(address, **settings):
    return Client(f"{address}/v1", "tiny", **{"n_retries": 1, **settings})


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("secure", [False, True])
def test_a_redirect_is_refused_so_the_key_and_the_texts_stay_here(status, secure):
    elsewhere, asked = Recorder(), []
    with serving(elsewhere) as other:

        def redirect(handler, _):
            asked.append(handler.path)
            reply(handler, status, b"", [("Location", f"{other}/v1/embeddings")])

        with serving(redirect, secure=secure) as address, pytest.raises(InputError, match="redirects to") as caught:
            endpoint(address).embed(["a private text"])
    assert elsewhere.seen == []
    assert asked == ["/v1/embeddings"]
    assert f"status {status} redirects to '{other}/v1/embeddings'" in str(caught.value)
    assert "Use the final URL" in str(caught.value)


@pytest.mark.parametrize("target", ["/elsewhere", "http://[::1", "file:///etc/passwd", "", "ftp://127.0.0.1/x"])
def test_a_redirect_is_refused_wherever_it_leads(target):
    def redirect(handler, _):
        reply(handler, 302, b"", [("Location", target)])

    with serving(redirect) as address, pytest.raises(InputError, match="status 302 redirects to"):
        endpoint(address).embed(["a"])


def test_requests_to_localhost_bypass_the_proxy(monkeypatch):
    proxy, server = Recorder(), Recorder()
    with serving(proxy) as proxied, serving(server) as address:
        monkeypatch.setenv("http_proxy", proxied)
        endpoint(address).embed(["a private text"])
    assert proxy.seen == []
    assert server.seen[0][1]["Authorization"] == f"Bearer {KEY}"


def test_a_proxy_of_an_https_server_sees_neither_key_nor_texts(monkeypatch):
    proxy = Recorder()

    def refuse(handler, body):
        proxy.seen.append((handler.path, dict(handler.headers), body))
        reply(handler, 502, b"")

    with serving(refuse) as proxied:
        monkeypatch.setenv("https_proxy", proxied)
        with pytest.raises(InputError, match="no connection"):
            endpoint("https://embeddings.test").embed(["a private text"])
    assert proxy.seen[0][0] == "embeddings.test:443"
    assert KEY not in str(proxy.seen) and "private" not in str(proxy.seen)


def test_the_default_key_is_not_sent_over_plain_http(monkeypatch):
    proxy = Recorder()
    with serving(proxy) as proxied:
        monkeypatch.setenv("http_proxy", proxied)  # would show what leaves this machine
        message = "Refusing to send the key in OPENAI_API_KEY to gpu.test:8000 over plain http.*--api-key-variable"
        with pytest.raises(InputError, match=message) as caught:
            endpoint("http://gpu.test:8000").embed(["a"])
        assert proxy.seen == [] and KEY not in str(caught.value)
        monkeypatch.setenv("GPU_KEY", "for-this-server")
        endpoint("http://gpu.test:8000", key_variable="GPU_KEY").embed(["a"])
    assert [sent["Authorization"] for _, sent, _ in proxy.seen] == ["Bearer for-this-server"]


@pytest.mark.parametrize("key", ["first\nX-Other: second", "a\rb", "a\0b", "schlüssel", "\x1b[2J"])
def test_a_key_that_cannot_be_sent_is_refused_without_being_shown(monkeypatch, key):
    monkeypatch.setenv("OPENAI_API_KEY", key) if "\0" not in key else monkeypatch.setitem(
        os.environ._data, b"OPENAI_API_KEY", key.encode()
    )
    server = Recorder()
    with serving(server) as address, pytest.raises(InputError, match="key in OPENAI_API_KEY contains") as caught:
        endpoint(address).embed(["a"])
    assert server.seen == [] and key not in str(caught.value)


def test_a_server_that_repeats_the_key_does_not_get_it_printed(caplog):
    def repeat(handler, _):
        told = handler.headers["Authorization"]
        reply(handler, 503, json.dumps({"error": {"message": f"Wrong key: {told}"}}).encode())

    with serving(repeat) as address, pytest.raises(InputError, match=r"Wrong key: Bearer \*\*\*") as caught:
        endpoint(address).embed(["a"])
    assert KEY not in str(caught.value) and KEY not in caplog.text and "***" in caplog.text


BAD_ADDRESSES = [
    "http://[::1",
    "http://[::1]:99999/v1",
    "http://host:port/v1",
    "http://host:0/v1",
    "http:///v1",
    "http://ho st/v1",
    "http://host/v1\n",
    "http://host/\x00",
    "http://höst/v1",
    "ftp://host/v1",
    "file:///etc/passwd",
    "https://",
]


@pytest.mark.parametrize("address", BAD_ADDRESSES)
def test_an_invalid_address_is_refused(address):
    with pytest.raises(InputError, match="Invalid URL"):
        Client(address, "tiny")


def test_a_malformed_address_on_the_command_line_ends_without_a_traceback(tmp_path):
    from click.testing import CliRunner

    from twinvec.cli import main

    (tmp_path / "sts").mkdir()
    with gzip.open(tmp_path / "sts/sts12.tsv.gz", "wt") as file:
        file.write("subset\tscore\ttext1\ttext2\na\t1\tone\ttwo\na\t2\tthree\tfour\n")
    words = ["evaluate", "http://[::1#m", "--tasks", "sts12", "--no-cache", "--data", str(tmp_path)]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 1 and "Invalid URL" in done.output


def test_an_address_with_a_password_is_refused_and_not_repeated():
    with pytest.raises(InputError, match="contains a user name or a password") as caught:
        Client("https://me:secret@host/v1", "tiny")
    assert "secret" not in str(caught.value)
    with pytest.raises(InputError, match="has a part after") as caught:
        Client("https://host/v1?key=secret", "tiny")
    assert "secret" not in str(caught.value)


def test_a_host_that_cannot_be_looked_up_is_named():
    subject = open_system(SystemChoice("https://" + "a" * 70 + ".test/v1#m", timeout_s=5))
    subject = Client(subject.url, "m", n_retries=0)
    with pytest.raises(InputError, match="no connection"):
        subject.embed(["a"])


@pytest.mark.parametrize("timeout_s", [0, -1, float("nan"), float("inf"), 1e20])
def test_an_invalid_timeout_is_refused(timeout_s):
    with pytest.raises(InputError, match="timeout_s above 0"):
        Client("https://host/v1", "m", timeout_s=timeout_s)


def test_an_endless_response_is_aborted(monkeypatch):
    monkeypatch.setattr(connections, "MAX_ANSWER_BYTES", 100_000)

    def endless(handler, _):
        handler.send_response(200)
        handler.end_headers()
        for _ in range(10_000):
            handler.wfile.write(b" " * 1000)

    with serving(ignoring_hangups(endless)) as address, pytest.raises(InputError, match="the response is larger than"):
        endpoint(address).embed(["a"])


def test_a_response_that_trickles_is_aborted():
    def trickle(handler, _):
        handler.send_response(200)
        handler.end_headers()
        for _ in range(40):
            handler.wfile.write(b" ")
            time.sleep(0.05)

    started = time.perf_counter()
    with (
        serving(ignoring_hangups(trickle)) as address,
        pytest.raises(InputError, match=r"no complete response within 0\.2"),
    ):
        endpoint(address, n_retries=0, timeout_s=0.2).embed(["a"])
    assert time.perf_counter() - started < 1.5


def test_a_truncated_response_is_reported():
    def short(handler, _):
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b"{")

    with serving(short) as address, pytest.raises(InputError, match="was interrupted after 1 of 1,000 bytes"):
        endpoint(address, n_retries=0).embed(["a"])


def ignoring_hangups(answer):
    def quietly(handler, body):
        with suppress(OSError):
            answer(handler, body)

    return quietly
