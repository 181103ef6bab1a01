"""``twinvec.Client`` against a real server process: the same vectors and scores as the models themselves."""

import asyncio
import gzip
import json

import numpy as np
import pytest
from click.testing import CliRunner

import twinvec
from live_server import live_server
from twinvec.cli import main
from twinvec.embedder import CachedEmbedder, ModelEmbedder, as_embedder
from twinvec.errors import InputError, UnknownNameError
from twinvec.pairs.cross_encoder import as_scorer

TEXTS = [
    f"the {color} cat {verb} a letter {n}" for n in range(20) for color in ("red", "old") for verb in ("sees", "is")
]
PAIRS = [(TEXTS[row], TEXTS[-row]) for row in range(70)]


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    for name in ("OPENAI_API_KEY", "TWINVEC_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("role", ["text", "query", "document"])
@pytest.mark.parametrize("suffix", ["", "/", "/v1"])
def test_vectors_are_those_of_the_model_in_every_role(server, served, role, suffix):
    client = twinvec.Client(server.url + suffix)
    expected = ModelEmbedder(served["bert"]).embed(TEXTS, role=role)
    np.testing.assert_allclose(client.embed(TEXTS, role=role), expected, atol=1e-6)
    assert client.name == f"bert at 127.0.0.1:{server.port}"


def test_a_client_tells_what_the_model_would(server, served):
    client, model = twinvec.Client(server.url, "bert"), ModelEmbedder(served["bert"])
    assert client.width is None
    assert (client.space, client.similarity) == (model.space, model.similarity)
    assert client.width == model.encoder.width
    others = [twinvec.Client(server.url, name).identity for name in ("bert", "static", "cross", "poly")]
    assert client.identity == others[0] and len(set(others)) == 4 and client.identity != model.identity


def test_the_identity_changes_with_the_settings_of_the_server(server, served):
    with live_server(f"bert={served['bert']},truncate_dim=8", f"same={served['bert']}") as other:
        short, same = twinvec.Client(other.url, "bert"), twinvec.Client(other.url, "same")
        ours = twinvec.Client(server.url, "bert")
        assert short.identity != ours.identity and short.space != ours.space and short.width == 8
        assert same.identity == ours.identity  # a copy of the server can use the cached vectors


@pytest.mark.parametrize("name", ["cross", "poly"])
def test_scores_are_those_of_the_scorer(server, local, name):
    client = twinvec.Client(server.url, name)
    np.testing.assert_allclose(client.score(PAIRS), local[name].score(PAIRS), atol=1e-6)
    assert client.rank(TEXTS[0], TEXTS, 5).rows.tolist() == local[name].rank(TEXTS[0], TEXTS, 5).rows.tolist()


def test_without_a_name_the_first_scorer_scores(server, local):
    np.testing.assert_allclose(as_scorer(server.url).score(PAIRS), local["cross"].score(PAIRS), atol=1e-6)
    client = twinvec.Client(server.url)
    np.testing.assert_allclose(client.score(PAIRS), local["cross"].score(PAIRS), atol=1e-6)
    assert as_scorer(client).identity == twinvec.Client(server.url, "cross").identity


def test_async_calls_get_the_same_vectors(server, local):
    async def work():
        async with twinvec.AsyncClient(server.url, "bert") as client:
            return np.concatenate(await asyncio.gather(*(client.embed([text]) for text in TEXTS)))

    vectors = asyncio.run(work())
    np.testing.assert_allclose(vectors, local["bert"].encode(TEXTS), atol=1e-6)


def test_cached_vectors_are_found_again(server, tmp_path):
    first = CachedEmbedder(as_embedder(server.url), tmp_path)
    first.embed(TEXTS)
    again = CachedEmbedder(as_embedder(f"{server.url}/v1#bert"), tmp_path)
    assert np.array_equal(again.embed(TEXTS), first.embed(TEXTS))
    assert (first.n_embedded, again.n_embedded) == (len(set(TEXTS)), 0)


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("".join(f"{text}\n" for text in TEXTS))
    return path


def test_commands_take_the_address_as_the_model(server, local, file, tmp_path):
    vectors = local["bert"].encode(TEXTS)
    assert run("embed", file, "-o", tmp_path / "v.npy", "-m", server.url).exit_code == 0
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), vectors, atol=1e-6)
    assert run("embed", file, "-o", tmp_path / "shards", "-m", server.url).exit_code == 0
    for command in ("pairs", "search"):
        words = [command, file, TEXTS[3]] if command == "search" else [command, file]
        remote, own = run(*words, "-k", 3, "-m", server.url), run(*words, "-k", 3, "-m", local["bert"].folder.path)
        assert remote.exit_code == 0, remote.output
        found, expected = ([json.loads(line) for line in each.stdout.splitlines()] for each in (remote, own))
        assert [row.pop("score") for row in found] == pytest.approx([row.pop("score") for row in expected], abs=1e-5)
        assert len(found) == 3
    score = run("score", *PAIRS[1], "-m", f"{server.url}#poly")
    assert float(score.stdout) == pytest.approx(float(local["poly"].score([PAIRS[1]])[0]), abs=1e-5)
    for command in ("inspect", "explain"):
        refused = run(command, server.url) if command == "inspect" else run(command, "a", "b", "-m", server.url)
        assert refused.exit_code == 1 and refused.output.startswith("Error: ") and "Traceback" not in refused.output


def test_a_collection_of_a_server_is_that_of_its_model(server, served, tmp_path):
    pytest.importorskip("lancedb")
    made = twinvec.Collection.create(tmp_path / "notes", model=twinvec.Client(server.url))
    made.add(TEXTS)
    local = twinvec.Collection.open(tmp_path / "notes", model=served["bert"])  # the same vector space
    remote = twinvec.Collection.open(tmp_path / "notes", model=server.url)
    assert [hit.id for hit in local.search("the cat", 5)] == [hit.id for hit in remote.search("the cat", 5)]
    ranked = remote.search("the cat", 5, rerank=f"{server.url}#cross")
    assert [hit.id for hit in ranked] == [hit.id for hit in local.search("the cat", 5, rerank=served["cross"])]


def test_a_server_is_evaluated_like_its_models(server, served, tmp_path):
    (tmp_path / "sts").mkdir()
    rows = "".join(f"a\t{row % 6}\t{first}\t{second}\n" for row, (first, second) in enumerate(PAIRS))
    with gzip.open(tmp_path / "sts/sts12.tsv.gz", "wt") as stream:
        stream.write("subset\tscore\ttext1\ttext2\n" + rows)
    for name in ("bert", "cross"):
        remote = twinvec.evaluate(f"{server.url}#{name}", "sts12", tmp_path, cache=None)
        own = twinvec.evaluate(served[name], "sts12", tmp_path, cache=None)
        assert remote.results[0].value == pytest.approx(own.results[0].value, abs=1e-3)


def test_mistakes_are_named(server):
    with pytest.raises(UnknownNameError, match=r"Unknown model of .* 'brt'\. Did you mean 'bert'\?"):
        _ = twinvec.Client(server.url, "brt").identity
    with pytest.raises(InputError, match=r"status 404 \(.*'brt'.*bert"):
        twinvec.Client(server.url, "brt").embed(["a"])
    with pytest.raises(InputError, match="no list of models"):
        twinvec.Client(f"{server.url}/v9").embed(["a"])
    with pytest.raises(InputError, match=r"status 404 \(.*'bert'.*cross"):
        twinvec.Client(server.url, "bert").score(PAIRS)


def test_a_key_is_needed_and_its_rate_is_respected(tmp_path, monkeypatch):
    made = CliRunner().invoke(main, ["key", "alice", "--rate", "120"])
    secret, keys = made.stderr.split()[-1], tmp_path / "keys.txt"
    keys.write_text(made.stdout)
    with live_server("static=twinvec-static", "--keys", keys) as server:
        with pytest.raises(InputError, match=r"status 401.*Set OPENAI_API_KEY or TWINVEC_API_KEY to a valid key"):
            twinvec.Client(server.url).embed(["a"])
        with pytest.raises(InputError, match=r"status 401.*Pass a valid key\."):
            twinvec.Client(server.url, api_key=f"{secret}x").embed(["a"])
        monkeypatch.setenv("TWINVEC_API_KEY", secret)
        client = twinvec.Client(server.url, per_request=1)
        assert client.embed(["a cat"]).shape == (1, client.width or 0)
        assert len(client.embed(["a cat"] * 5)) == 5
