"""An assistant's client starts ``twinvec mcp`` and uses its tools over standard input and output."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from datetime import date

import pytest

import twinvec

pytest.importorskip("lancedb")
mcp = pytest.importorskip("mcp")

TEXTS = {
    "cats": "A cat sleeps on the sofa.",
    "stocks": "Stocks fell sharply on Monday.",
    "rain": "It rains in the mountains.",
    "long": "The sea is deep. " * 200,
}


@pytest.fixture(scope="module")
def collection(tmp_path_factory):
    path = tmp_path_factory.mktemp("mcp") / "notes"
    made = twinvec.Collection.create(path, model="twinvec-static")
    metadata = [{"year": 1990 + row, "day": date(2020, 1, 1 + row)} for row in range(len(TEXTS))]
    made.add(TEXTS.values(), ids=TEXTS, metadata=metadata)
    return path


def server_of(path, *options):
    words = ["-m", "twinvec.cli", "mcp", str(path), *options]
    return mcp.StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))


def talk(server, *calls):
    """The tools of a server by name, and the results of calls."""

    async def work():
        async with mcp.Client(server) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            return tools, [await client.call_tool(name, arguments) for name, arguments in calls]

    return asyncio.run(asyncio.wait_for(work(), 300))


GOOD_CALLS = [
    ("search", {"query": "a sleeping kitten", "k": 2}),
    ("search", {"query": "sea", "mode": "text", "where": "year > 1990"}),
    ("get", {"ids": ["long", "none", "cats", "none"]}),
    ("list", {"limit": 3}),
    ("list", {"limit": 3, "offset": 3}),
    ("list", {"where": "year = 1992"}),
]
BAD_CALLS = {
    "a bad condition": (("search", {"query": "a", "where": "nothing = 1"}), "nothing"),
    "too many": (("search", {"query": "a", "k": 1000}), "less than or equal to 100"),
    "no query": (("search", {}), "query"),
    "an unknown mode": (("search", {"query": "a", "mode": "magic"}), "'dense', 'text' or 'hybrid'"),
    "an empty id": (("get", {"ids": [""]}), "ids[0] is empty. Use at least one character."),
    "a bad offset": (("list", {"offset": -1}), "greater than or equal to 0"),
    "an unknown tool": (("drop", {}), "drop"),
}


@pytest.fixture(scope="module")
def session(collection):
    """The tools, and the results of bad calls and then of good ones."""
    calls = [*(call for call, _ in BAD_CALLS.values()), *GOOD_CALLS]
    tools, results = talk(server_of(collection, "--about", "Notes about weather and pets"), *calls)
    return tools, results[: len(BAD_CALLS)], results[len(BAD_CALLS) :]


def test_a_client_finds_gets_and_lists_texts(collection, session):
    results = session[2]
    assert not any(result.is_error for result in results)
    found, by_words, fetched, first, rest, chosen = (result.structured_content for result in results)
    assert json.loads(results[0].content[0].text) == found  # for clients that read only texts
    best = found["results"][0]
    assert best["id"] == "cats" and len(found["results"]) == 2
    assert best["metadata"] == {"year": 1990, "day": "2020-01-01"} and not best["is_cut"]
    expected = twinvec.Collection.open(collection).search("a sleeping kitten", 2)
    assert [hit["score"] for hit in found["results"]] == pytest.approx([hit.score for hit in expected])
    assert [(hit["id"], hit["is_cut"], len(hit["text"])) for hit in by_words["results"]] == [("long", True, 2000)]
    assert {each["id"]: each["text"] for each in fetched["texts"]} == {name: TEXTS[name] for name in ("long", "cats")}
    assert fetched["missing"] == ["none"]
    assert (first["n_texts"], first["next_offset"], rest["next_offset"]) == (4, 3, None)
    assert first["columns"] == {"year": "int", "day": "date"}
    assert {each["id"] for each in first["texts"] + rest["texts"]} == set(TEXTS)
    assert [each["id"] for each in chosen["texts"]] == ["rain"]


def test_tools_describe_themselves_and_the_texts(session):
    tools = session[0]
    assert set(tools) == {"search", "get", "list"}
    for name, tool in tools.items():
        assert "Notes about weather and pets" in tool.description and "\n" not in tool.description
        assert tool.annotations.read_only_hint
        assert all(field.get("description") for field in tool.input_schema["properties"].values()), name
        assert tool.output_schema["properties"]
    assert tools["search"].input_schema["required"] == ["query"]
    assert tools["search"].input_schema["properties"]["k"]["maximum"] == 100


def test_mistakes_are_errors_of_the_tool_and_the_server_goes_on(session):
    for (case, (_, message)), result in zip(BAD_CALLS.items(), session[1], strict=True):
        assert result.is_error and message in result.content[0].text, (case, result.content)


def test_a_collection_whose_model_is_gone_is_an_error_with_a_hint(tmp_path, tiny_bert):
    model = shutil.copytree(tiny_bert, tmp_path / "model")
    twinvec.Collection.create(tmp_path / "notes", model=model).add(["a"])
    shutil.rmtree(model)
    _, (result, by_words) = talk(
        server_of(tmp_path / "notes"), ("search", {"query": "a"}), ("search", {"query": "a", "mode": "text"})
    )
    assert result.is_error and "name its folder" in result.content[0].text
    assert not by_words.is_error


HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


def test_standard_output_has_nothing_but_the_protocol_and_the_end_of_input_ends_it(collection):
    lines = [
        HELLO,
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "search", "arguments": {"query": "cat"}},
        },
    ]
    sent = "".join(json.dumps(line) + "\n" for line in lines) + "not JSON\n"
    process = subprocess.Popen(
        [sys.executable, "-m", "twinvec.cli", "mcp", str(collection)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdin.write(sent)
    process.stdin.flush()
    read = [json.loads(process.stdout.readline()) for _ in range(2)]
    assert {line.get("id") for line in read} >= {1, 2}
    out, _ = process.communicate(timeout=300)
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in out.splitlines())
    assert process.returncode == 0


def test_a_missing_collection_is_one_line_on_standard_error(tmp_path):
    words = [sys.executable, "-m", "twinvec.cli", "mcp", str(tmp_path / "none")]
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("Error: ") and "Traceback" not in done.stderr
