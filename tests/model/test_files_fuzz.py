"""Spoilt files of model folders: each gives the right vectors or a TwinvecError, within limits of memory and time."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

import fuzzing
from fuzz_kinds import KINDS
from fuzzing import Bench, run, run_case

COUNT = 2000
SEED = 20261117


pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="limits of time and memory need a system like Linux")


def test_corrupted_files_give_right_vectors_or_twinvec_errors():
    findings = run(COUNT, SEED, workers=min(2, os.cpu_count() or 1))
    assert findings.failures == []
    assert sum(findings.outcomes.values()) == COUNT
    assert findings.outcomes["loaded"] > COUNT / 10  # else the check of vectors says little
    assert findings.outcomes["ModelFolderError"] > COUNT / 10
    assert findings.checked["saved again"] > 50


def a_kind(use):
    from fuzz_kinds import Kind

    def make(folder):
        folder.mkdir()
        (folder / "a.json").write_text('{"n": 3}')
        return folder

    return Kind("fake", make, ("a.json",), use)


@pytest.mark.parametrize(
    ("outcome", "use"),
    [
        ("FAILED", lambda folder: int("x")),
        ("FAILED", lambda folder: exec("raise SystemExit(0)")),
        ("FAILED", lambda folder: time.sleep(60)),  # hangs
    ],
)
def test_the_fuzzer_sees_what_breaks(tmp_path, monkeypatch, outcome, use):
    monkeypatch.setattr(fuzzing, "CASE_S", 1)
    kind = a_kind(use)
    monkeypatch.setattr("fuzz_kinds.KINDS", [kind])
    bench = Bench(tmp_path)
    bench.made["fake"] = kind.make(tmp_path / "fake"), None
    row = run_case(bench, 1, 0, keep=tmp_path / "kept")
    assert row["outcome"] == outcome
    assert (tmp_path / "kept/1-0-fake/a.json").is_file()
    assert (tmp_path / "fake/a.json").read_text() == '{"n": 3}'


def test_every_file_to_corrupt_exists(tmp_path):
    for kind in KINDS:
        folder = kind.make(tmp_path / kind.name)
        assert [file for file in kind.files if not Path(folder / file).is_file()] == []
