"""The code on the Korean pages runs, and the commands on all pages exist with their options.

The blocks of a page run from top to bottom in one folder. Python blocks of a page share their names; ``sh`` blocks run
in bash. A block is skipped if the line before it is ``<!-- not run: why -->``; its syntax and its options are still
checked. In place of the hub and of public data sets there are a tiny Korean model and a few pairs.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from tiny_korean import EXAMPLES, write_korean_backbone, write_korean_data
from twinvec.cli import main

ROOT = Path(__file__).parents[1]
KOREAN = [ROOT / "README.ko.md", *sorted((ROOT / "docs/ko").glob("*.md"))]
PAGES = [
    *KOREAN,
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs/models").glob("*.md")),
]
BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<why>[^\n]+) -->\n)?^```(?P<language>\w*)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE
)
EXTRAS = {"search.md": ("lancedb",), "train.md": ("torch",), "sbert.md": ("matplotlib",), "evaluate.md": ("scipy",)}


class Block(NamedTuple):
    language: str
    code: str
    is_run: bool


def blocks_of(page: Path) -> list[Block]:
    found = BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [Block(match["language"], match["code"], match["why"] is None) for match in found]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_of_the_page_is_found(page):
    lines = page.read_text(encoding="utf-8").splitlines()
    assert 2 * len(blocks_of(page)) == sum(line.startswith("```") for line in lines)
    assert sum(not block.is_run for block in blocks_of(page)) == sum("<!-- not run" in line for line in lines)


def commands_in(block: Block) -> Iterator[list[str]]:
    """The words of every twinvec command of a block, without those of the rest of a pipe."""
    code = block.code.replace("\\\n", " ")
    for line in code.splitlines():
        for part in re.split(r"(?<!\S)(?:\||&&|;)(?!\S)", line):
            if part.strip().startswith("twinvec "):
                yield shlex.split(part.strip(), comments=True)[1:]


def unknown_words(words: list[str]) -> list[str]:
    """The command if there is none of this name, or else those options that it does not have."""
    command: click.Command = main
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        context = click.Context(command)
        name, found, rest = command.resolve_command(context, words)
        if found is None:
            return [str(name)]
        command, words = found, rest
    options = {"-h", "--help"}.union(*((*param.opts, *param.secondary_opts) for param in command.params))
    return [word for word in words if re.match(r"--?[a-zA-Z]", word) and word.partition("=")[0] not in options]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_and_options_on_the_page_exist(page):
    commands = [
        words for block in blocks_of(page) if block.language in ("", "sh", "bash") for words in commands_in(block)
    ]
    assert [(words, wrong) for words in commands if (wrong := unknown_words(words))] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_on_the_page_compiles(page):
    for block in blocks_of(page):
        if block.language == "python":
            compile(block.code, str(page), "exec", flags=0x2000)  # with await outside of functions


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder like a checkout, with what the pages use; the command is ``twinvec``, and there is no network."""
    shutil.copytree(EXAMPLES, tmp_path / "docs/ko/examples", symlinks=True)
    (tmp_path / "recipes").mkdir()
    for recipe in (ROOT / "recipes").glob("korean-*.toml"):
        shutil.copy(recipe, tmp_path / "recipes")
    monkeypatch.setenv("TWINVEC_DATA", str(write_korean_data(tmp_path / "recipes/data")))
    backbone = write_korean_backbone(tmp_path / "recipes/klue/roberta-small")
    shutil.copytree(backbone, tmp_path / "docs/ko/examples/klue/roberta-small")
    command = tmp_path / "bin/twinvec"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m twinvec.cli "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return tmp_path


def run_block(block: Block, names: dict[str, object]) -> None:
    if block.language == "python":
        exec(compile(block.code, "a page", "exec"), names)
    elif block.language == "sh":
        command = ["bash", "-euo", "pipefail", "-c", block.code]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode == 0, f"{block.code}\n{result.stderr}"
    elif block.language == "toml":
        from twinvec.training.recipe_file import read_recipe

        recipe = Path("block.toml")
        recipe.write_text(block.code, encoding="utf-8")
        read_recipe(recipe)


@pytest.mark.parametrize("page", KOREAN, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_code_on_the_page_runs(page, checkout, monkeypatch):
    for module in EXTRAS.get(page.name, ()):
        pytest.importorskip(module)
    blocks = [block for block in blocks_of(page) if block.is_run]
    assert all(block.language in ("python", "sh", "toml") for block in blocks)
    monkeypatch.chdir(checkout if page.parent == ROOT else checkout / "docs/ko/examples")
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks:
        run_block(block, names)
