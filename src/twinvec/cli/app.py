"""The command ``twinvec``. The module of a subcommand is imported only when it runs, so that ``--help`` is fast."""

from __future__ import annotations

from importlib import import_module

import click

from twinvec.cli.screen import CleanErrors, show_version

__all__ = ["main"]

# name -> summary, in the order of the help. Command NAME is the function NAME in the module twinvec.cli.NAME, or in
# the one that MODULES names.
COMMANDS = {
    "demo": "Compare all pairs of 10,000 sentences and answer three questions.",
    "embed": "Embed the texts of a file.",
    "similarity": "Print how similar two texts are.",
    "explain": "Show why two texts are similar, token by token.",
    "pairs": "Find the most similar pairs of texts in a file.",
    "search": "Search a collection or a file.",
    "score": "Score two texts with a cross-encoder.",
    "rank": "Rank the texts of a file for a query with a cross-encoder.",
    "index": "Import the texts of a file into a searchable collection.",
    "mcp": "Let assistants search a collection (Model Context Protocol).",
    "dedup": "Remove near-duplicate texts from a file.",
    "cluster": "Group similar texts and describe each group.",
    "inspect": "Describe a model and warn about its pitfalls.",
    "layers": "Show what each layer of a model does to texts.",
    "sweep": "Find the best readout of a model for your own scored pairs.",
    "bench": "Measure the speed of a model on this machine.",
    "data": "Check training data, download data sets, mine hard negatives.",
    "words": "Convert word vectors to a folder that works as a model.",
    "lexical": "Fit tf-idf or BM25 on texts, as a folder that works as a model or scorer.",
    "train": "Train a model on pairs, triplets or scores.",
    "distill": "Train a small model to imitate larger ones.",
    "reduce": "Keep only the pieces of a Universal Sentence Encoder that given texts use.",
    "evaluate": "Evaluate a model, a server, a program or a file of vectors.",
    "serve": "Serve models over HTTP to the clients of OpenAI, Cohere, Ollama, TEI and others.",
    "key": "Make an API key for the server.",
    "compare": "Test whether one of two models is better or only luckier.",
}
MODULES = {"key": "serve", "rank": "score"}


class LazyCommands(CleanErrors):
    """A group that lists its commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command, or return None if there is none of this name."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"twinvec.cli.{MODULES.get(cmd_name, cmd_name)}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands into the help."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


CONTEXT = {"help_option_names": ["-h", "--help"], "show_default": True, "max_content_width": 100}


@click.group(cls=LazyCommands, context_settings=CONTEXT)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=show_version,
    help="Print the version and exit.",
)
def main() -> None:
    """Sentence embeddings on your own machine.

    Results go to standard output, messages to standard error. Exit codes: 0 success, 1 error, 2 usage error,
    130 interrupted (Ctrl-C). On a terminal, control characters in texts and names are shown as \\uXXXX; output to a
    file or a pipe is unchanged.
    """
