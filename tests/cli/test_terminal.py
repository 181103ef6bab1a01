"""Texts that command a terminal: shown to people, never obeyed; data for programs stay as they are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from click.testing import CliRunner

from tiny import write_tiny_model
from twinvec.cli import main
from twinvec.cli.screen import open_console, plain_table
from twinvec.progress import visible

pty = pytest.importorskip("pty")

EVIL = "\x1b]0;owned\x07\x1b]52;c;ZXZpbA==\x07 cat \x9b31m \u202edog\u2066 \x7f[bold]red[/bold]\r"
OBEYED = ("\x1b]0;", "\x1b]52;", "\x07", "\x9b", "\u202e", "\u2066", "\x7f")


def on_terminal(*arguments, stdin=subprocess.DEVNULL):
    """What a command writes to a terminal that has standard output and standard error."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "twinvec.cli", *map(str, arguments)]
    parts = []

    def read():
        while True:
            try:
                part = os.read(ours, 1 << 16)
            except OSError:  # its other end is closed
                return
            if not part:
                return
            parts.append(part)

    env = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
    with subprocess.Popen(command, stdin=stdin, stdout=theirs, stderr=theirs, env=env) as run:
        os.close(theirs)
        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        run.wait(120)
        reader.join(10)
    os.close(ours)
    return b"".join(parts).decode("utf-8", errors="surrogateescape")


@pytest.fixture
def places(tmp_path, tiny_bert, monkeypatch):
    monkeypatch.setenv("TWINVEC_MODEL", str(tiny_bert))
    rows = [EVIL, f"{EVIL} again", "the cat sleeps", "the cat sleeps", "a dog"]
    (tmp_path / "texts.jsonl").write_text("".join(json.dumps({"text": row}) + "\n" for row in rows))
    pair = {"text1": EVIL, "text2": "a dog", "score": 1}
    (tmp_path / "pairs.jsonl").write_text((json.dumps(pair) + "\n") * 4)
    evil_model = write_tiny_model(tmp_path / "\x1b]0;model\x07")
    missing = tmp_path / "\x1b]0;missing\x07\u202e"
    return {
        "TEXTS": tmp_path / "texts.jsonl",
        "PAIRS": tmp_path / "pairs.jsonl",
        "MODEL": evil_model,
        "MISSING": missing,
        "EVIL": EVIL,
        "OUT": tmp_path / "out.jsonl",
        "FOLDER": tmp_path / "\x1b]0;folder\x07",
    }


COMMANDS = {
    "pairs": ("pairs", "TEXTS"),
    "pairs as JSON": ("pairs", "TEXTS", "--json"),
    "search": ("search", "TEXTS", "EVIL"),
    "search as JSON": ("search", "TEXTS", "EVIL", "--json"),
    "dedup to the terminal": ("dedup", "TEXTS", "-o", "-"),
    "dedup to a file": ("dedup", "TEXTS", "-o", "OUT", "--threshold", "0.5"),
    "cluster": ("cluster", "TEXTS", "-k", "2"),
    "explain": ("explain", "EVIL", "the cat"),
    "explain as JSON": ("explain", "EVIL", "the cat", "--json"),
    "layers": ("layers", "TEXTS", "-m", "MODEL"),
    "data check": ("data", "check", "PAIRS"),
    "embed to the terminal": ("embed", "TEXTS", "-o", "-"),
    "embed into a folder": ("embed", "TEXTS", "--out", "FOLDER"),
    "inspect": ("inspect", "MODEL"),
    "inspect as JSON": ("inspect", "MODEL", "--json"),
    "a missing file": ("embed", "MISSING"),
    "a missing model": ("similarity", "-m", "MISSING", "a", "b"),
    "a missing model that is inspected": ("inspect", "MISSING"),
    "an unknown command": ("EVIL",),
    "an unknown option": ("embed", "--EVIL"),
    "an unknown choice": ("embed", "--precision", "EVIL"),
    "a warning": ("similarity", "-m", "MODEL", "a " * 100, "b"),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_no_command_prints_terminal_escape_sequences_of_a_text(places, command):
    if command[0] == "layers":
        pytest.importorskip("matplotlib")
    if "FOLDER" in command:
        pytest.importorskip("pyarrow")
    words = [str(places.get(word.removeprefix("--"), word)) for word in command]
    if command[-1].startswith("--EVIL"):
        words[-1] = f"--{EVIL}"
    shown = on_terminal(*words)
    assert shown.strip() and "Traceback" not in shown, shown
    assert not [mark for mark in OBEYED if mark in shown], shown


def test_markup_in_a_text_is_shown_as_it_stands(places):
    assert "[bold]red[/bold]" in on_terminal("pairs", places["TEXTS"])


def test_escaped_control_characters_are_printed(places):
    assert "\\u001b]0;owned\\u0007" in on_terminal("pairs", places["TEXTS"])
    assert "\\u001b]0;missing\\u0007\\u202e" in on_terminal("embed", f"{places['MISSING']}.txt")


def test_json_on_a_terminal_is_the_same_value(places):
    lines = on_terminal("pairs", places["TEXTS"], "--json").splitlines()
    rows = [json.loads(line) for line in lines if line.startswith("{")]
    assert any(EVIL in row["texts"] for row in rows)


def test_piped_output_is_not_changed(places, tmp_path):
    (tmp_path / "texts.txt").write_text(f"{EVIL.rstrip()}\nthe cat\n")
    result = CliRunner().invoke(main, ["dedup", str(tmp_path / "texts.txt"), "-o", "-"])
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{EVIL.rstrip()}\nthe cat\n"


def test_the_console_makes_cells_heads_and_lines_visible(capsys):
    table = plain_table(EVIL)
    table.add_row(EVIL)
    console = open_console()
    console.print(table)
    console.print(EVIL, soft_wrap=True)
    shown = capsys.readouterr().out
    assert not [mark for mark in OBEYED if mark in shown]
    assert shown.count("[bold]red[/bold]") == 3


def test_a_label_of_a_bar_is_made_visible(capsys, monkeypatch):
    from twinvec import progress

    monkeypatch.setattr(progress, "PATIENCE_S", -1)
    monkeypatch.setenv("FORCE_COLOR", "1")  # draws as on a terminal
    with progress.Progress(2, f"[bold]x {EVIL}", shown=True) as bar:
        bar.advance(1)
    shown = capsys.readouterr().err
    assert "[bold]x" in shown and not [mark for mark in OBEYED if mark in shown]


def test_all_other_characters_stay():
    plain = "".join(map(chr, [9, 10, *range(32, 127), *range(160, 0x202A), *range(0x202F, 0x2066)]))
    assert visible(plain) == plain
    hidden = [*range(9), *range(11, 32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
    assert all(visible(chr(number)) == f"\\u{number:04x}" for number in hidden)
    assert np.array_equal(json.loads(f'"{visible(EVIL)}"'), EVIL)
