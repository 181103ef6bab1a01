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


def _sections(command: click.Command, name: str, *, parent: click.Context | None = None) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=parent, **command.context_settings)
    context.terminal_width = HELP_WIDTH
    yield f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for child_name in command.list_commands(context):
            child = command.get_command(context, child_name)
            if child is not None:
                yield from _sections(child, child_name, parent=context)


if __name__ == "__main__":
    click.echo(reference(main, "twinvec"), nl=False)
