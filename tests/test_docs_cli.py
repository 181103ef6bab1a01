"""docs/cli.md says what the commands say."""

from pathlib import Path

from twinvec.cli import main
from twinvec.cli.reference import reference

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"


def test_the_page_about_commands_is_up_to_date():
    text = PAGE.read_text(encoding="utf-8")
    assert text == reference(main, "twinvec"), "run: python -m twinvec.cli.reference > docs/cli.md"


def test_every_command_is_on_the_page():
    text = PAGE.read_text(encoding="utf-8")
    assert all(f"## twinvec {name}\n" in text for name in main.commands)


def test_every_option_has_help():
    for name, command in main.commands.items():
        for option in command.params:
            assert option.param_type_name == "argument" or option.help, f"{name} {option.name}"
