"""``twinvec cluster``: groups of texts that say alike, with what is in them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinvec.cli.method import build_chosen_index, method_option
from twinvec.cli.options import (
    Decorator,
    ModelChoice,
    PromptChoice,
    TextSource,
    gathered,
    model_options,
    prompt_options,
    text_options,
)
from twinvec.cli.screen import open_console, plain_table, say
from twinvec.cli.whole_rows import WholeRows, read_whole_rows

if TYPE_CHECKING:
    from twinvec.cluster import Clustering
    from twinvec.report.cluster_map import ClusterMap
    from twinvec.types import Ids, Vectors
