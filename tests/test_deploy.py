"""The files in deploy/ are valid, and name only options, metrics and paths that exist."""

from __future__ import annotations

import re
import shlex
import shutil
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import twinvec
from live_server import LiveServer
from servers import CERTIFICATE
from twinvec.choices import parse_size
from twinvec.cli.app import CONTEXT
from twinvec.cli.serve import serve

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
UNIT = (DEPLOY / "twinvec.service").read_text()
PROXY = (DEPLOY / "nginx.conf").read_text()
CONTAINER = (DEPLOY / "Containerfile").read_text()


def arguments_of_unit():
    words = shlex.split(re.search(r"^ExecStart=(.+)$", UNIT, re.MULTILINE)[1])
    assert words[0].endswith("/bin/twinvec") and words[1] == "serve"
    return words[2:]


def arguments_of_container():
    return re.findall(r'"([^"]+)"', re.search(r"^CMD \[(.+)\]$", CONTAINER, re.MULTILINE)[1])


def compose():
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


CALLS = {
    "unit": arguments_of_unit,
    "container": arguments_of_container,
    "compose": lambda: compose()["services"]["twinvec"]["command"],
}


@pytest.mark.parametrize("name", CALLS)
def test_the_arguments_of_serve_are_valid(name, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("")
    words = [str(keys) if word.endswith("/keys") else word for word in CALLS[name]()]
    assert str(keys) in words
    serve.make_context("serve", words, **CONTEXT)


def test_the_limits_of_the_proxy_are_those_of_the_server():
    options = {option.name: option.default for option in serve.params}
    words = compose()["services"]["twinvec"]["command"]
    assert int(re.search(r"client_max_body_size +(\d+)m;", PROXY)[1]) << 20 > parse_size(options["max_body"])
    assert words[words.index("--max-body") + 1] == options["max_body"]
    timeout_s = float(words[words.index("--timeout") + 1])
    assert float(re.search(r"proxy_read_timeout (\d+)s", PROXY)[1]) > timeout_s == options["timeout_s"]
    drain_s = float(words[words.index("--drain") + 1])
    assert int(compose()["services"]["twinvec"]["stop_grace_period"].removesuffix("s")) > timeout_s + drain_s
    assert int(re.search(r"TimeoutStopSec=(\d+)", UNIT)[1]) > timeout_s


def test_metrics_and_paths_that_are_named_exist():
    pytest.importorskip("prometheus_client")
    from twinvec.server.health import ENDPOINTS

    source = (ROOT / "src/twinvec/server/metrics.py").read_text()
    named = re.findall(r"\btwinvec_[a-z_]+", (DEPLOY / "alerts.yml").read_text())
    assert named
    assert all(re.sub(r"_(total|bucket|sum|count)$", "", name) in source for name in named)
    paths = {path for each in ENDPOINTS for path in each.paths}
    assert {"/health", "/metrics"} <= paths
    assert "127.0.0.1:8080/health'" in CONTAINER


def test_the_image_has_two_stages_and_does_not_run_as_root():
    assert len(re.findall(r"^FROM ", CONTAINER, re.MULTILINE)) == 2
    last = CONTAINER.rpartition("\nFROM ")[2]
    assert re.search(r"^USER (\d+):\d+$", last, re.MULTILINE)[1] != "0"
    for source in re.findall(r"^COPY (?!--from)(.+) \S+$", CONTAINER, re.MULTILINE):
        assert all((ROOT / each).exists() for each in source.split())
    extras = re.search(r"'\.\[([\w,]+)\]'", CONTAINER)[1].split(",")
    assert all(f"\n{extra} = [" in (ROOT / "pyproject.toml").read_text() for extra in extras)


def test_only_the_proxy_can_be_reached_and_all_mounted_files_exist():
    services = compose()["services"]
    assert "ports" not in services["twinvec"] and services["twinvec"]["networks"] == ["inside"]
    assert compose()["networks"]["inside"]["internal"]
    assert all(port.startswith("127.0.0.1:") for port in services["prometheus"]["ports"])
    mounts = [mount.split(":")[0] for each in services.values() for mount in each.get("volumes", [])]
    assert all((DEPLOY / mount).is_file() for mount in mounts if mount.startswith("./"))
    named = {name for each in services.values() for name in each.get("secrets", [])}
    assert named == set(compose()["secrets"])
    assert "deploy/secrets/" in (ROOT / ".gitignore").read_text()


@pytest.mark.parametrize("file", sorted(DEPLOY.glob("*")), ids=lambda file: file.name)
def test_every_file_is_explained(file):
    assert f"(../deploy/{file.name})" in (ROOT / "docs/deploy.md").read_text()


def check(*words):
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_systemd_accepts_the_unit_and_finds_little_to_attack(tmp_path):
    unit = tmp_path / "twinvec.service"
    unit.write_text(UNIT.replace("/opt/twinvec/bin/twinvec", "/bin/true"))
    assert "twinvec.service" not in check("systemd-analyze", "verify", unit)
    rating = check("systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=20", unit)
    assert float(re.search(r"exposure level for \S+: ([\d.]+)", rating)[1]) <= 2.0


def nginx_of(folder, *servers, port=8443):
    """The main file of nginx with our proxy for some servers, in a folder."""
    listed = "\n".join(f"server {server} max_fails=3 fail_timeout=5s;" for server in servers)
    own = re.sub(r"server twinvec:8080 [^;]*;", listed, PROXY)
    own = re.sub(r"/run/secrets/tls_\w+", str(CERTIFICATE), own).replace("8443", f"127.0.0.1:{port}")
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "\n".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    own = own.replace("/dev/stdout", f"{folder}/access.log").replace("rate=200r/s", "rate=100000r/s")
    main = f"daemon off; pid {folder}/pid; error_log {folder}/error.log; events {{}} http {{ {paths}\n{own} }}"
    path = folder / "nginx.conf"
    path.write_text(main)
    return path


def test_nginx_accepts_its_file(tmp_path):
    check("nginx", "-t", "-c", nginx_of(tmp_path, "127.0.0.1:8080"), "-e", tmp_path / "error.log")


def test_a_client_does_not_notice_that_a_replica_behind_the_proxy_ends(tmp_path, monkeypatch):
    if shutil.which("nginx") is None:
        pytest.skip("nginx is not installed")
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    texts = [f"sentence number {row} about cats" for row in range(2000)]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    first, second = LiveServer("twinvec-static"), LiveServer("twinvec-static")
    path = nginx_of(tmp_path, *(f"127.0.0.1:{each.port}" for each in (first, second)), port=port)
    proxy = subprocess.Popen(["nginx", "-c", str(path), "-e", str(tmp_path / "error.log")])
    try:
        client = twinvec.Client(f"https://127.0.0.1:{port}", per_request=8, n_connections=4, api_key="")
        client.embed(["the proxy runs"])
        with ThreadPoolExecutor(1) as pool:
            ended = pool.submit(second.stop)
            while not ended.done():
                client.embed(texts)
            vectors = client.embed(texts)
        assert ended.result() == 0
        assert np.allclose(vectors, twinvec.load("twinvec-static").encode(texts), atol=1e-6)
    finally:
        proxy.terminate()
        proxy.wait(30)
        first.stop()
        second.stop()
    statuses = re.findall(r'" (\d{3}) ', (tmp_path / "access.log").read_text())
    assert len(statuses) > 500 and set(statuses) == {"200"}


def test_prometheus_accepts_its_files(tmp_path):
    key = tmp_path / "key"
    key.write_text("x")
    text = (DEPLOY / "prometheus.yml").read_text()
    (tmp_path / "prometheus.yml").write_text(text.replace("/run/secrets/metrics_key", str(key)))
    shutil.copy(DEPLOY / "alerts.yml", tmp_path)
    check("promtool", "check", "config", tmp_path / "prometheus.yml")
