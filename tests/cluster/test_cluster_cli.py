"""``twinvec cluster``: labels beside all rows, what is in the clusters, and a report that is whole or not there."""

import csv
import gzip
import json
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes import replace_models
from reports import Checker
from twinvec.choices import LINKAGES
from twinvec.cli import main
from twinvec.cluster import Clustering, describe_clusters
from twinvec.cluster.agglomerative import JOINS
from twinvec.data.read import open_table
from twinvec.report import clusters
from twinvec.report import clusters as cluster_map
from twinvec.report.clusters import (
    LETTER,
    LINE,
    PADDING,
    ClusterMap,
    Frame,
    clusters_html,
    clusters_markdown,
    map_svg,
    spread_names,
    write_cluster_report,
)
from twinvec.report.html import drawing_file

CATS = ["the cat sleeps", "the cat sleeps now", "my cat sleeps", "the cat sleeps well"]
STOCKS = ["stocks fell on monday", "stocks fell", "stocks fell again"]
TEXTS = [CATS[0], STOCKS[0], CATS[1], STOCKS[1], CATS[2], STOCKS[2], CATS[3]]
TRUTH = [0, 1, 0, 1, 0, 1, 0]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def fake(monkeypatch):
    replace_models(monkeypatch)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("".join(["id,text\n", *(f"{n},{text}\n" for n, text in enumerate(TEXTS))]))
    return path


def run(*arguments, stdin=None):
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin, prog_name="twinvec")


ALGORITHMS = {
    "kmeans": ["-k", "2"],
    "agglomerative": ["--threshold", "0.4"],
    "communities": ["--threshold", "0.5", "--min-size", "3"],
}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_labels_the_rows_and_shows_what_is_in_the_clusters(tmp_path, file, algorithm):
    result = run("cluster", file, "-a", algorithm, *ALGORITHMS[algorithm], "-o", tmp_path / "out.csv", "--texts", 2)
    assert result.exit_code == 0, result.output
    with (tmp_path / "out.csv").open() as written:
        rows = list(csv.DictReader(written))
    assert [(int(row["id"]), row["text"]) for row in rows] == list(enumerate(TEXTS))
    assert [int(row["cluster"]) for row in rows] == TRUTH
    first, second = (json.loads(line) for line in result.stdout.splitlines())
    assert (first["label"], first["size"], second["size"]) == (0, 4, 3)
    assert set(first["words"]) >= {"cat", "sleeps"} and set(second["words"]) >= {"stocks", "fell"}
    assert all(text in CATS for text in first["texts"]) and len(first["texts"]) == 2
    assert [TEXTS[row] for row in first["rows"]] == first["texts"]
    assert "7 of 7 texts are in 2 clusters." in result.stderr


def test_labels_are_written_without_formulas_if_asked(tmp_path):
    (tmp_path / "in.csv").write_text("text\n=cmd()\n-1\n")
    result = run("cluster", tmp_path / "in.csv", "-k", 1, "-o", tmp_path / "out.csv", "--csv-safe")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out.csv").read_text() == "text,cluster\n'=cmd(),0\n-1,0\n"


def test_texts_without_a_community_are_labeled_minus_one(tmp_path):
    stdin = "".join(f"{text}\n" for text in [*CATS, "old books", STOCKS[1]])
    result = run("cluster", "-a", "communities", "--min-size", 4, "--threshold", 0.5, "-o", "-", stdin=stdin)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["cluster"] for row in rows] == [0, 0, 0, 0, -1, -1]
    assert rows[4]["text"] == "old books"
    assert "4 of 6 texts are in 1 cluster; 2 in none." in result.stderr


def test_without_any_community_a_hint_is_printed():
    result = run("cluster", "-a", "communities", stdin="a cat\nthe sky\n")
    assert result.exit_code == 0 and result.stdout == ""
    assert "Lower --threshold or --min-size" in result.stderr


@pytest.mark.parametrize("ending", ["tsv", "jsonl", "parquet", "csv.gz"])
def test_labels_are_written_in_the_format_of_the_ending_and_read_again(tmp_path, file, ending):
    target = tmp_path / f"out.{ending}"
    assert run("cluster", file, "-k", 2, "-o", target).exit_code == 0
    assert (target.read_bytes()[:2] == b"\x1f\x8b") == ending.endswith("gz")
    rows = [row.values for row in open_table(target).rows(("text", "cluster"))]
    assert [row["text"] for row in rows] == TEXTS
    assert [int(row["cluster"]) for row in rows] == TRUTH


def test_gzipped_labels_are_the_same_bytes_each_time(tmp_path, file):
    for name in ("a.csv.gz", "b.csv.gz"):
        assert run("cluster", file, "-k", 2, "-o", tmp_path / name).exit_code == 0
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.csv.gz").read_bytes()).startswith(b"id,text,cluster\n")


def test_parquet_takes_a_column_that_begins_empty_and_refuses_one_of_many_types(tmp_path):
    pytest.importorskip("pyarrow")
    rows = [{"text": text, "note": note} for text, note in zip(TEXTS, [None] * 6 + ["x"], strict=True)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run("cluster", tmp_path / "in.jsonl", "-k", 2, "-o", tmp_path / "out.parquet").exit_code == 0
    rows[0]["note"] = 3
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = run("cluster", tmp_path / "in.jsonl", "-k", 2, "-o", tmp_path / "bad.parquet")
    assert result.exit_code == 1 and "'note' have no type in common" in result.stderr
    assert not list(tmp_path.glob("*bad*"))


def test_a_report_has_a_page_markdown_a_picture_and_all_numbers(tmp_path, file):
    result = run("cluster", file, "-k", 2, "--report", tmp_path / "report", "--projection", "pca")
    assert result.exit_code == 0, result.output
    folder = tmp_path / "report"
    assert {path.name for path in folder.iterdir()} == {
        ".twinvec.json",
        "report.html",
        "report.md",
        "map.svg",
        "clusters.json",
    }
    drawing = ElementTree.parse(folder / "map.svg").getroot()
    assert drawing.tag == f"{SVG}svg" and len(list(drawing.iter(f"{SVG}circle"))) == 7
    data = json.loads((folder / "clusters.json").read_text())
    assert data["clusters"] == [json.loads(line) for line in result.stdout.splitlines()]
    assert data["method"].startswith("spherical k-means, 2 clusters") and data["n_texts"] == 7
    assert "(map.svg)" in (folder / "report.md").read_text()
    refused = run("cluster", file, "-k", 2, "--report", folder)
    assert refused.exit_code == 1 and "exists already" in refused.stderr
    assert run("cluster", file, "-k", 3, "--report", folder, "--force").exit_code == 0
    assert len(json.loads((folder / "clusters.json").read_text())["clusters"]) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-k", "9"], "7 vectors are too few for 9 clusters. Choose fewer clusters."),
        (["-k", "0"], "0 is not in the range"),
        (["-a", "means"], "'means' is not one of"),
        (["--min-size", "3"], "--min-size is for communities, not for kmeans"),
        (["-a", "communities", "-k", "3"], "-k is for kmeans, not for communities"),
        (["--threshold", "0.5"], "--threshold is for agglomerative and communities, not for kmeans"),
        (["--method", "index"], "--method is for communities, not for kmeans"),
        (["--max-memory", "1GB"], "--max-memory is for communities, not for kmeans"),
        (["-k", "2", "-o", "out.txt"], "Plain lines have one column, not 3"),
        (["-k", "2", "-o", "out.xyz"], "Unknown extension"),
        (["-k", "2", "-o", "out.parquet.gz"], "parquet is already compressed"),
        (["-k", "2", "-o", "in.csv"], "exists already"),
        (["-k", "2", "-o", "no/where.csv"], "There is no folder no"),
        (["-k", "2", "--report", "in.csv", "--force"], "in.csv is a file, so it is not replaced"),
        (["-k", "2", "--report", "new", "--projection", "umpa"], "'umpa' is not one of"),
        (["--column", "body"], "Unknown column 'body'"),
    ],
)
def test_invalid_requests_are_refused_and_nothing_is_written(tmp_path, file, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    before = file.read_text()
    result = run("cluster", "in.csv", *arguments)
    assert result.exit_code in (1, 2) and message in " ".join(result.stderr.split())
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"] and file.read_text() == before


@pytest.mark.parametrize("output", ["out.txt", "out.xyz", "out.parquet.gz", "in.csv"])
def test_a_bad_output_is_refused_before_anything_is_embedded(file, monkeypatch, output):
    monkeypatch.chdir(file.parent)
    replace_models(monkeypatch, lambda name, **settings: pytest.fail("loaded"))
    for command in (["cluster", "-k", "2"], ["dedup"]):
        assert run(*command, "in.csv", "-o", output).exit_code == 1


def test_labels_are_not_written_over_a_column_of_that_name(tmp_path):
    (tmp_path / "in.csv").write_text("text,cluster\na,mine\nb,mine\n")
    result = run("cluster", tmp_path / "in.csv", "-k", 1, "-o", tmp_path / "out.csv")
    assert result.exit_code == 1 and "already have a column 'cluster'" in result.stderr
    assert run("cluster", tmp_path / "in.csv", "-k", 1, "--column", "text").exit_code == 0


def test_an_empty_file_is_refused(tmp_path):
    (tmp_path / "in.txt").write_text("")
    result = run("cluster", tmp_path / "in.txt")
    assert result.exit_code == 1 and "has no texts" in result.stderr


def test_every_linkage_has_its_rule_of_joining():
    assert set(LINKAGES) == set(JOINS)


# --- the report


def some_clusters(n=60, n_clusters=3, texts=None):
    rng = np.random.default_rng(0)
    labels = np.sort(rng.integers(-1, n_clusters, size=n))
    texts = texts or [f"word{label} <b>&amp; | ${n}$" for n, label in enumerate(labels.tolist())]
    vectors = rng.normal(size=(n, 5))
    found = describe_clusters(texts, vectors, labels, method="by | <hand>")
    return found, ClusterMap(texts, labels, vectors[:, :2].astype(np.float32), "pca")


def test_the_page_is_well_formed_and_loads_nothing_from_the_network():
    checker = Checker()
    page = clusters_html(*some_clusters())
    checker.feed(page)
    assert not checker.open and not checker.faults
    assert "http" not in page.replace("http://www.w3.org", "") and "<script" not in page
    assert "word0 <b>&amp; | $" in "".join(checker.text)  # shown as it was given


def test_markdown_shows_texts_as_they_are_and_keeps_its_table():
    found, drawn = some_clusters()
    lines = clusters_markdown(found, drawn).splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 2 + len(found.clusters)
    assert {line.replace(r"\|", "").count("|") for line in table} == {6}
    assert "<b>" not in "".join(table) and "&lt;b>&amp;amp;" in table[2]


def test_clusters_beyond_the_most_that_are_shown_are_counted(monkeypatch):
    monkeypatch.setattr(clusters, "MAX_SHOWN", 2)
    found, drawn = some_clusters()
    for report in (clusters_markdown(found, drawn), clusters_html(found, drawn)):
        assert "1 smaller clusters are in clusters.json" in report and "word2" not in report.split("closeness")[-1]


def test_a_map_of_many_texts_draws_a_sample_of_all(monkeypatch):
    monkeypatch.setattr(cluster_map, "MAX_POINTS", 20)
    found, drawn = some_clusters(60)
    assert map_svg(found, drawn).count("<circle") == 20
    assert "20 of 60 texts are drawn" in drawn.describe()
    rows = drawn.shown()
    assert (np.diff(drawn.labels[rows] >= 0) >= 0).all() and {0, 59} <= set(rows.tolist())


@pytest.mark.parametrize("n", [1, 2])
def test_one_text_or_texts_in_one_place_have_a_map(tmp_path, n):
    found = describe_clusters(["a $ b"] * n, np.ones((n, 3)), np.zeros(n, dtype=int), method="by hand")
    drawn = ClusterMap(["a $ b"] * n, np.zeros(n, dtype=int), np.zeros((n, 2), dtype=np.float32), "pca")
    write_cluster_report(found, drawn, tmp_path / "new")
    assert "nan" not in map_svg(found, drawn)


def test_a_map_of_texts_that_xml_cannot_hold_is_still_a_drawing():
    texts = ["a\x0bb <i> & c", "\ufffe ]]>", "plain"]
    found = describe_clusters(texts, np.eye(3), np.zeros(3, dtype=int), method="by hand")
    drawn = ClusterMap(texts, np.zeros(3, dtype=int), np.eye(3, dtype=np.float32)[:, :2], "pca")
    shown = ElementTree.fromstring(drawing_file(map_svg(found, drawn)))
    assert "plain (cluster 0)" in [each.text for each in shown.iter(f"{SVG}title")]


def test_texts_without_any_cluster_have_a_report(tmp_path):
    drawn = ClusterMap(["a", "b"], np.array([-1, -1]), np.eye(2, dtype=np.float32), "pca")
    write_cluster_report(Clustering("by hand", 2, 2, ()), drawn, tmp_path / "new")
    assert "0 of 2 texts are in 0 clusters; 2 in none." in (tmp_path / "new/report.md").read_text()


@settings(deadline=None)
@given(st.lists(st.tuples(st.text("abc", max_size=20), st.floats(0, 900), st.floats(0, 600)), max_size=12))
def test_no_name_on_the_map_covers_another(wanted):
    names = [name for name, _, _ in wanted]
    places = spread_names(names, [(x, y) for _, x, y in wanted], Frame(900, 600))
    widths = [LETTER * len(name) + PADDING for name in names]
    for one, (x, y) in enumerate(places):
        assert widths[one] / 2 - 1e-6 <= x <= 900 - widths[one] / 2 + 1e-6 and LINE / 2 <= y <= 600 - LINE / 2
        for other in range(one):
            far = abs(x - places[other][0]) >= (widths[one] + widths[other]) / 2 - 1e-6
            assert far or abs(y - places[other][1]) >= LINE - 1e-6
