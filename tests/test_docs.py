"""Pages that are made from other files are in step with them, and their links lead somewhere."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
KOREAN = [ROOT / "README.ko.md", *sorted((ROOT / "docs/ko").glob("*.md"))]
TOP = [ROOT / "README.md", ROOT / "README.ko.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
PAGES = [*TOP, *sorted((ROOT / "docs").rglob("*.md"))]
PROMISES = re.findall(r"`([\w/]+\.py)::(\w+)`", (ROOT / "SECURITY.md").read_text())


def test_tables_are_those_of_the_newest_results():
    command = [sys.executable, str(ROOT / "scripts/result_tables.py"), "--check"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        assert target.startswith("https://") or (page.parent / target).exists(), target


def headings(page: Path) -> set[str]:
    """The anchors of a page, as GitHub makes them: lower case, without punctuation, with dashes for spaces."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_sections_lead_to_a_heading(page):
    for target, anchor in re.findall(r"\]\(([^)#:]*\.md)?#([^)]+)\)", page.read_text()):
        file = page.parent / target if target else page
        assert anchor in headings(file), f"{target}#{anchor}"


@pytest.mark.parametrize("page", KOREAN, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_korean_page_links_to_english_pages_that_link_back(page):
    opening = page.read_text().split("\n\n")[1]
    english = [page.parent / target for target in re.findall(r"\]\(([^)#]+)", opening.partition("English")[2])]
    english = [target for target in english if target.resolve() not in KOREAN]
    assert english
    for target in english:
        links = re.findall(r"\]\(([^)#]+)", target.read_text())
        assert page in {(target.parent / link).resolve() for link in links}, target


def test_the_readme_opens_with_the_newest_time_of_the_demo():
    opening = (ROOT / "README.md").read_text().split("<!-- end -->")[0]
    result = json.loads(sorted((ROOT / "benchmarks/results").glob("*-demo.json"))[-1].read_text())
    seconds = result["steps"]["embedding_s"] + result["steps"]["comparing_s"]
    whole = next(row["seconds"] for row in result["rows"] if row["name"] == "twinvec demo")
    assert opening.startswith("# Twinvec\n\n<!-- results: headline -->\n")
    assert f"about {seconds:.1f} seconds on {result['machine']['cores']} CPU cores" in opening
    assert f"takes {whole:.1f} s;" in opening


@pytest.mark.parametrize("name", ["README.md", "README.ko.md"])
def test_the_readme_names_only_commands_that_exist(name):
    from twinvec.cli.app import COMMANDS

    named = set(re.findall(r"^twinvec (\w+)", (ROOT / name).read_text(), re.MULTILINE))
    assert named and named <= set(COMMANDS)


@pytest.mark.parametrize(("file", "function"), PROMISES, ids=lambda name: name)
def test_every_promise_of_the_security_page_names_a_test_that_exists(file, function):
    tests = ast.parse((ROOT / "tests" / file).read_text())
    assert function in {node.name for node in tests.body if isinstance(node, ast.FunctionDef)}


def test_every_section_of_the_security_page_that_promises_names_tests():
    page = (ROOT / "SECURITY.md").read_text()
    sections = [part for part in page.split("\n## ")[1:] if not part.startswith("How to report")]
    assert len(PROMISES) > 40 and all("::test_" in part for part in sections)


def test_the_architecture_page_names_files_and_names_that_exist():
    page = (ROOT / "docs/architecture.md").read_text()
    paths = set(re.findall(r"`([\w/]+\.py)`", page))
    assert len(paths) > 20
    here = {
        path: ROOT / path if path.startswith(("tests/", "scripts/")) else ROOT / "src/twinvec" / path for path in paths
    }
    assert [path for path, file in here.items() if not file.is_file()] == []
    named = re.findall(r"`(\w+)(?:\(\))?`(?: in| of) `([\w/]+\.py)`|`(\w+)` \(`([\w/]+\.py)`\)", page)
    pairs = [(a or c, b or d) for a, b, c, d in named]
    assert len(pairs) > 15
    assert [pair for pair in pairs if pair[0] not in here[pair[1]].read_text()] == []
