"""``twinvec serve`` and ``twinvec key``: serve models over HTTP, and make API keys for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from twinvec.choices import DEFAULT_MODEL, parse_size
from twinvec.cli.options import Decorator, option_group
from twinvec.cli.screen import say
from twinvec.extras import require

__all__ = ["key", "serve"]


def _named(_: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """A click callback that parses NAME=FOLDER options."""
    parts = [each.partition("=") for each in given]
    if any(not (name and folder) for name, _, folder in parts):
        raise click.BadParameter("Write NAME=FOLDER.", param=parameter)
    return {name: folder for name, _, folder in parts}


LIMIT_OPTIONS: dict[str, Decorator] = {
    "max_body": click.option("--max-body", metavar="SIZE", default="8MiB", help="Largest body of a request."),
    "max_texts": click.option("--max-texts", type=click.IntRange(min=1), default=2048, help="Most texts per request."),
    "max_tokens": click.option(
        "--max-tokens", type=click.IntRange(min=1), default=262_144, help="Most tokens per request."
    ),
    "queue": click.option(
        "--queue", type=click.IntRange(min=1), default=8192, help="Most texts that wait; more requests get status 429."
    ),
    "timeout_s": click.option(
        "--timeout", "timeout_s", type=float, metavar="SECONDS", default=60.0, help="Time limit of a request."
    ),
}


def _limits(*, max_body: str, max_texts: int, max_tokens: int, queue: int, timeout_s: float) -> dict[str, Any]:
    return {
        "body_bytes": parse_size(max_body),
        "texts": max_texts,
        "tokens": max_tokens,
        "queued_texts": queue,
        "timeout_s": timeout_s,
    }


ACCESS_OPTIONS: dict[str, Decorator] = {
    "host": click.option(
        "--host", default="127.0.0.1", envvar="TWINVEC_HOST", show_envvar=True, help="Address to listen on."
    ),
    "port": click.option(
        "--port", type=click.IntRange(0, 65535), default=8080, envvar="TWINVEC_PORT", show_envvar=True, help="Port."
    ),
    "keys": click.option(
        "--keys",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Require an API key; FILE has lines from twinvec key.",
    ),
    "force_public": click.option("--force-public", is_flag=True, help="Listen on a public address even without keys."),
    "cors": click.option("--cors", metavar="ORIGIN", multiple=True, help="Allow web pages of ORIGIN. Repeatable."),
    "allowed_hosts": click.option(
        "--allow-host",
        "allowed_hosts",
        metavar="NAME",
        multiple=True,
        help="Without keys: a further name of this server, for example behind a proxy. Repeatable.",
    ),
    "accept_token_ids": click.option(
        "--accept-token-ids", is_flag=True, help="Accept ids of the model's own tokenizer on /v1/embeddings."
    ),
}
RUN_OPTIONS: dict[str, Decorator] = {
    "threads": click.option(
        "--threads", type=click.IntRange(min=1), help="Batches to run in parallel. Default: one per core."
    ),
    "wait_ms": click.option(
        "--wait-ms",
        type=click.FloatRange(min=0),
        default=2.0,
        help="Longest time that a text waits to share a batch with others.",
    ),
    "memory": click.option(
        "--memory",
        metavar="SIZE",
        callback=lambda _, __, given: given and parse_size(given),
        help="Drop unused models if all take more than this, such as 4GB.",
    ),
    "idle_s": click.option(
        "--idle", "idle_s", type=click.FloatRange(min=0), metavar="SECONDS", help="Drop models unused for so long."
    ),
    "drain_s": click.option(
        "--drain",
        "drain_s",
        type=click.FloatRange(min=0),
        metavar="SECONDS",
        default=0.5,
        help="After SIGTERM, still accept requests for so long, while /health says 503.",
    ),
}


@click.command()
@click.argument("models", metavar="[MODEL]...", nargs=-1)
@click.option(
    "--model",
    "more",
    metavar="NAME=FOLDER[,OPTION=VALUE]...",
    multiple=True,
    help="Serve a model under a name, for example small=models/minilm,precision=int8. Repeatable.",
)
@click.option(
    "--collection", "collections", metavar="NAME=FOLDER", multiple=True, callback=_named, help="Serve a collection."
)
@option_group(ACCESS_OPTIONS, "access", build=dict)
@option_group(LIMIT_OPTIONS, "limits", build=_limits)
@option_group(RUN_OPTIONS, "running", build=dict)
def serve(
    *,
    models: tuple[str, ...],
    more: tuple[str, ...],
    collections: dict[str, str],
    access: dict[str, Any],
    limits: dict[str, Any],
    running: dict[str, Any],
) -> None:
    """Serve models to the clients of OpenAI, Cohere, Ollama, TEI and others, and a page to try them.

    MODEL is a name or folder, or NAME=FOLDER, with options after commas: precision, readout, long, truncate_dim and
    more (docs/serve.md). Cross- and poly-encoders serve re-ranking. The first model is the default of its kind.
    """
    require("uvicorn", extra="serve", feature="twinvec serve")
    from twinvec.server.run import run_server
    from twinvec.server.settings import Limits, ModelSpec, ServerSettings

    settings = ServerSettings(
        models=tuple(ModelSpec.parse(each) for each in (*models, *more) or (DEFAULT_MODEL,)),
        collections=collections,
        limits=Limits(**limits),
        **access,
        **running,
    )
    run_server(settings, on_start=say)


@click.command()
@click.argument("name")
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), help="Requests per minute. Default: no limit.")
@click.option("--models", metavar="A,B", default="", help="Models that the key may use. Default: all.")
def key(*, name: str, rate: float | None, models: str) -> None:
    """Make an API key for NAME: the line for the file of --keys goes to standard output, the key to standard error.

    The line holds only a digest of the key, so the key is shown once: twinvec key alice >> keys.txt
    """
    require("starlette", extra="serve", feature="twinvec key")
    from twinvec.server.protection import new_key

    secret, line = new_key(name, rate=rate, models=[each for each in models.split(",") if each])
    say(f"The key of {name}, shown only now: {secret}")
    click.echo(line.line())
