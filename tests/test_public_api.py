"""The names users rely on, what importing them costs, and who may import whom."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import rooms
import twinvec
from rooms import ROOMS

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/twinvec"

LEVEL = {name: level for level, names in enumerate(ROOMS) for name in names}


def test_every_public_name_is_there_documented_and_in_the_reference():
    reference = (ROOT / "docs/api.md").read_text()
    assert sorted(twinvec.__all__) == twinvec.__all__
    assert set(twinvec.__all__) == set(twinvec._MODULES)
    for name in twinvec.__all__:
        assert getattr(twinvec, name).__doc__, name
        assert f"`{name}" in reference, f"docs/api.md does not mention {name}"


def test_importing_and_encoding_load_neither_torch_nor_transformers(tiny_bert):
    code = (
        "import sys, twinvec, twinvec.cli, twinvec.search, twinvec.collection, twinvec.engine.inspect\n"
        "twinvec.load(sys.argv[1]).encode('the cat')\n"
        "print([name for name in ('torch', 'transformers', 'openvino', 'pyarrow', 'lancedb') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code, str(tiny_bert)], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_the_extra_all_brings_every_other_extra():
    extras = (ROOT / "pyproject.toml").read_text().partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    names = re.findall(r"^(\w+) = \[", extras, re.MULTILINE)
    brought = re.search(r'^all = \["twinvec\[([\w,]+)\]"\]$', extras, re.MULTILINE)
    assert brought and [*brought[1].split(","), "all"] == names
    readme = (ROOT / "README.md").read_text().partition("Optional extras")[2]
    assert all(f"`{name}`" in readme for name in names)


def imports_of(file: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        modules = []
        if isinstance(node, ast.ImportFrom) and node.module:
            modules = [node.module]
            if node.module == "twinvec":
                modules = [f"twinvec.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        for module in modules:
            if module == "twinvec":
                names.add("__init__")
            elif module.startswith("twinvec."):
                name = module.split(".")[1]
                names.add(name if name in LEVEL else "__init__")
    return names


def test_the_page_about_the_architecture_shows_the_rooms_as_they_are():
    page = rooms.PAGE.read_text(encoding="utf-8")
    assert rooms.rendered(page) == page, "run: python scripts/rooms.py"


def test_every_module_has_a_room_and_imports_point_downwards():
    wrong = []
    for file in SOURCE.rglob("*.py"):
        here = file.relative_to(SOURCE).parts[0].removesuffix(".py")
        assert here in LEVEL, f"{here} has no level"
        for name in imports_of(file):
            if name != here and LEVEL[name] >= LEVEL[here]:
                wrong.append(f"{file.relative_to(SOURCE)} imports {name}")
    assert wrong == []
