"""``python -m twinvec.cli.reference``: the help of all commands as Markdown, for docs/cli.md."""

from __future__ import annotations

from collections.abc import Iterator

import click

from twinvec.cli.app import main

__all__ = ["reference"]

HELP_WIDTH = 100
HEAD = """# Commands

<!-- Made by `python -m twinvec.cli.reference > docs/cli.md`; a test holds the two equal. -->
"""


def reference(group: click.Group, name: str) -> str:
    """The help of a group and of each of its commands, in Markdown."""
    return "\n".join([HEAD, *_sections(group, name)])


def _sections(group: click.Group, name: str) -> Iterator[str]:
    parent = click.Context(group, info_name=name, **group.context_settings)
    yield _section(group, parent)
    for command_name, command in group.commands.items():
        yield _section(command, click.Context(command, info_name=command_name, parent=parent))


def _section(command: click.Command, context: click.Context) -> str:
    context.terminal_width = HELP_WIDTH
    return f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"


if __name__ == "__main__":
    click.echo(reference(main, "twinvec"), nl=False)
