"""Public data sets come whole and checked into the data folder, from a server that may fail in every way."""

import gzip
import hashlib
import io
import json
import re
import tarfile
import zipfile

import pytest

from servers import CERTIFICATE, reply, serving
from twinvec.data import source_rows as rows
from twinvec.data.download import install
from twinvec.data.sources import SOURCES, DataSet, Download
from twinvec.errors import InputError, UnknownNameError


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def zipped(**files):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def tarred(files):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def table(file):
    return [line.split("\t") for line in gzip.decompress(file.read_bytes()).decode().splitlines()]


NLI_LINE = json.dumps({"gold_label": "neutral", "sentence1": "A  man\tsits .", "sentence2": "ü"})
UNSURE = json.dumps({"gold_label": "-", "sentence1": "a", "sentence2": "b"})
SNLI = zipped(
    **{f"snli_1.0/snli_1.0_{split}.jsonl": f"{NLI_LINE}\n{UNSURE}\n" for split in ("train", "dev", "test")},
    **{"__MACOSX/snli_1.0/snli_1.0_dev.jsonl": "x"},
)
STS = zipped(
    **{
        "d/STS2016.input.news.txt": "one\ttwo\tsource\nnobody\tjudged\nthree \u2028 three\tfour\n",
        "d/STS2016.gs.news.txt": "2.5\n\n4\n",
        "d/STS2016.input.ALL.txt": "x\ty\n",
    }
)
STSB = tarred({f"stsbenchmark/sts-{s}.csv": b'main\tf\t2012\t1\t2.5\ta "quote\tb\n' for s in ("train", "dev", "test")})
SICK_HEAD = "pair_ID\tsentence_A\tsentence_B\tentailment_label\trelatedness_score\tSemEval_set"
SICK = zipped(**{"SICK.txt": f"{SICK_HEAD}\n1\ta\tb\tNEUTRAL\t4.5\tTRAIN\n2\tc\td\tENTAILMENT\t5\tTEST\n"})
REVIEWS = zipped(
    **{f"data/{folder}/{file}": b"bad caf\xe9\n" for folder, *files in rows.REVIEWS.values() for file in files}
)
CRANFIELD = tarred(
    {
        "cran.all.1400": b".I 1\n.T\nwings\n.A\nme\n.B\nthere\n.W\nwings .\n.I on them\n.I 2\n.T\nx\n.W\ny\n",
        "cran.qry": b".I 001\n.W\nwhat ?\n.I 004\n.W\nwhy ?\n",
        "cranqrel": b"1 2 3\n2 1 -1 \n",
    }
)
MRPC = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n1\t7\t8\ta\tb\r\n".encode()
KOREAN = "genre\tfilename\tyear\tid\tscore\tsentence1\tsentence2\nmain\tf\ty\t1\t3.5\t가\t나\n".encode()
KLUE = json.dumps([{"source": "s", "sentence1": "가", "sentence2": "나", "labels": {"real-label": 3.5}}]).encode()
HEAD_NLI = ["label", "premise", "hypothesis"]
# data set -> files that are downloaded, one of the tables made of them
CASES = {
    "snli": ([SNLI], "nli/snli-dev", [HEAD_NLI, ["neutral", "A man sits .", "ü"]]),
    "sts16": (
        [STS],
        "sts/sts16",
        [["subset", "score", "text1", "text2"], ["news", "2.5", "one", "two"], ["news", "4", "three three", "four"]],
    ),
    "stsb": ([STSB], "sts/stsb-test", [["genre", "score", "text1", "text2"], ["main", "2.5", 'a "quote', "b"]]),
    "sick": ([SICK], "sts/sick-test", [["label", "score", "text1", "text2"], ["entailment", "5", "c", "d"]]),
    "reviews": ([REVIEWS], "transfer/cr", [["label", "text"], ["0", "bad café"], ["1", "bad café"]]),
    "trec": ([b"DESC:manner How ?\n"] * 2, "transfer/trec-train", [["label", "text"], ["DESC", "How ?"]]),
    "mrpc": ([MRPC] * 2, "transfer/mrpc-test", [["label", "text1", "text2"], ["1", "a", "b"]]),
    "sst2": ([b"fine\t1\n"] * 3, "transfer/sst2-dev", [["label", "text"], ["1", "fine"]]),
    "korsts": ([KOREAN] * 3, "korean/korsts-dev", [["genre", "score", "text1", "text2"], ["main", "3.5", "가", "나"]]),
    "kornli": ([b"a\tb\tc\np\th\tneutral\n"] * 2, "korean/kornli-dev", [HEAD_NLI, ["neutral", "p", "h"]]),
    "klue-sts": ([KLUE], "korean/klue-sts-dev", [["source", "score", "text1", "text2"], ["s", "3.5", "가", "나"]]),
    "tatoeba-ko": ([b"Hi.\n", "안녕.\n".encode()], "korean/tatoeba-ko-en", [["en", "ko"], ["Hi.", "안녕."]]),
    "parakqc": (
        ["".join(f"0\t1\t{i}\n" for i in range(11)).encode()],
        "korean/parakqc",
        [["group", "text"], *(["0", str(i)] for i in range(10)), ["1", "10"]],
    ),
    "cranfield": ([CRANFIELD], "search/cranfield-qrels", [["query", "doc", "grade"], ["1", "2", "3"], ["2", "1", "1"]]),
}


def source(name, address, contents, *, checked=True):
    downloads = [
        Download(f"{address}/{i}", hashlib.sha256(content).hexdigest() if checked else None)
        for i, content in enumerate(contents)
    ]
    return {name: DataSet(name, "", "", tuple(downloads), SOURCES[name].read)}


def serve_all(contents):
    return lambda handler, _: reply(handler, 200, contents[int(handler.path[1:])])


@pytest.mark.parametrize("name", CASES)
def test_each_form_of_file_becomes_tables(tmp_path, name):
    contents, place, expected = CASES[name]
    with serving(serve_all(contents)) as address:
        written = install(name, tmp_path, sources=source(name, address, contents))
    assert tmp_path / f"{place}.tsv.gz" in written
    assert table(tmp_path / f"{place}.tsv.gz") == expected


def test_cranfield_keeps_its_texts_apart(tmp_path):
    with serving(serve_all([CRANFIELD])) as address:
        install("cranfield", tmp_path, sources=source("cranfield", address, [CRANFIELD]))
    assert table(tmp_path / "search/cranfield-queries.tsv.gz")[1:] == [["1", "what ?"], ["2", "why ?"]]
    assert table(tmp_path / "search/cranfield-docs.tsv.gz")[-1] == ["2", "x", "y"]


def test_existing_data_sets_are_kept_and_not_downloaded_again(tmp_path, caplog):
    seen = []

    def answer(handler, _):
        seen.append(handler.path)
        reply(handler, 200, b"fine\t1\n")

    mine = tmp_path / "transfer" / "sst2-dev.tsv.gz"
    mine.parent.mkdir()
    mine.write_bytes(b"mine")
    with serving(answer) as address:
        sources = source("sst2", address, [b"fine\t1\n"] * 3)
        assert len(install("sst2", tmp_path, sources=sources)) == 2
        assert "sst2-dev.tsv.gz already exists and is kept" in caplog.text
        assert install("sst2", tmp_path, sources=sources) == []
        assert len(seen) == 3 and mine.read_bytes() == b"mine"
        assert len(install("sst2", tmp_path, replace=True, sources=sources)) == 3
    assert mine.read_bytes() != b"mine"
    assert [file.name for file in (tmp_path / ".downloads").iterdir()] == ["sst2.files"]


def test_a_wrong_checksum_leaves_nothing(tmp_path):
    with serving(serve_all([SNLI])) as address:
        sources = source("snli", address, [b"something else"])
        with pytest.raises(InputError, match=r"/0 has the sha256 \w{64}, expected \w{64}"):
            install("snli", tmp_path, sources=sources)
    assert list((tmp_path / ".downloads").iterdir()) == []


def test_an_unknown_checksum_is_reported(tmp_path, caplog):
    with serving(serve_all([SICK]), secure=True) as address:
        install("sick", tmp_path, sources=source("sick", address, [SICK], checked=False))
    assert "not verified" in caplog.text


def test_a_missing_file_is_named(tmp_path):
    message = r"/0 returned status 404\. The data set may have moved"
    with serving(lambda handler, _: reply(handler, 404, b"")) as address, pytest.raises(InputError, match=message):
        install("snli", tmp_path, sources=source("snli", address, [SNLI]))


def test_a_missing_network_is_reported(tmp_path):
    with serving(serve_all([SNLI])) as address:
        pass
    with pytest.raises(InputError, match="cannot be reached"):
        install("snli", tmp_path, sources=source("snli", address, [SNLI]))


def test_a_server_that_stalls_is_given_up(tmp_path):
    import time

    def stall(handler, _):
        handler.send_response(200)
        handler.send_header("Content-Length", "100")
        handler.end_headers()
        handler.wfile.write(b"x")
        handler.wfile.flush()
        time.sleep(0.6)

    with serving(stall) as address, pytest.raises(InputError, match=r"sent no data for 0\.2 s"):
        install("snli", tmp_path, sources=source("snli", address, [SNLI]), timeout_s=0.2)


class Flaky:
    """Breaks the first answer off in the middle; knows ranges. ``asked`` keeps the ranges."""

    def __init__(self, content, tag="1"):
        self.content, self.tag, self.asked = content, tag, []

    def __call__(self, handler, _):
        wanted = handler.headers.get("Range")
        self.asked.append(wanted)
        if wanted and handler.headers.get("If-Range") == self.tag:
            return reply(handler, 206, self.content[int(wanted[6:-1]) :], [("ETag", self.tag)])
        handler.send_response(200)
        handler.send_header("ETag", self.tag)
        handler.send_header("Content-Length", str(len(self.content)))
        handler.end_headers()
        handler.wfile.write(self.content if len(self.asked) > 1 else self.content[: len(self.content) // 2])


@pytest.mark.parametrize("is_changed", [False, True])
def test_an_interrupted_download_resumes_where_it_stopped(tmp_path, is_changed):
    server = Flaky(SNLI)
    with serving(server) as address:
        sources = source("snli", address, [SNLI])
        message = rf"was interrupted after {len(SNLI) // 2:,} of {len(SNLI):,} bytes\. Run the command again"
        with pytest.raises(InputError, match=message):
            install("snli", tmp_path, sources=sources)
        assert not (tmp_path / "nli").exists()
        server.tag = "2" if is_changed else "1"
        assert len(install("snli", tmp_path, sources=sources)) == 3
    assert server.asked == [None, f"bytes={len(SNLI) // 2}-"]


def test_an_archive_of_another_format_is_reported_and_removed(tmp_path):
    cases = {b"no zip": r"cannot be read \(BadZipFile", zipped(a="b"): "has no file snli_1.0_train"}
    for content, message in cases.items():
        with serving(serve_all([content])) as address, pytest.raises(InputError, match=message):
            install("snli", tmp_path, sources=source("snli", address, [content]))
        assert list((tmp_path / ".downloads").iterdir()) == []


def test_an_unknown_name_has_a_nearest(tmp_path):
    with pytest.raises(UnknownNameError, match="Did you mean 'snli'"):
        install("snlii", tmp_path)


def test_the_table_of_sources_is_sound():
    for name, data_set in SOURCES.items():
        assert name == data_set.name and data_set.what and data_set.license
        for each in data_set.downloads:
            assert each.address.startswith("https://")
            assert not re.search("/(master|main)/", each.address), "name a commit"
            assert each.sha256 is None or len(bytes.fromhex(each.sha256)) == 32
