"""docs/cli.md says what the commands say."""

from pathlib import Path

import click

from twinvec.cli import main
from twinvec.cli.reference import reference

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


def all_commands(group, name):
    """Every command by its full name, those of nested groups too."""
    context = click.Context(group)
    for child_name in group.list_commands(context):
        child = group.get_command(context, child_name)
        yield f"{name} {child_name}", child
        if isinstance(child, click.Group):
            yield from all_commands(child, f"{name} {child_name}")


def test_the_page_about_commands_is_up_to_date():
    text = PAGE.read_text(encoding="utf-8")
    assert text == reference(main, "twinvec"), "run: python -m twinvec.cli.reference > docs/cli.md"


def test_every_command_is_on_the_page():
    text = PAGE.read_text(encoding="utf-8")
    names = [name for name, _ in all_commands(main, "twinvec")]
    assert "twinvec data check" in names
    assert all(f"## {name}\n" in text for name in names)


def test_every_option_has_help():
    for name, command in all_commands(main, "twinvec"):
        for option in command.params:
            assert option.param_type_name == "argument" or option.help, f"{name} {option.name}"
