"""How to weigh layers and tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from twinvec.errors import InputError, UnknownNameError
from twinvec.types import WKMode

__all__ = ["WKSettings"]


@dataclass(frozen=True, slots=True)
class WKSettings:
    """How to weigh layers and tokens; the defaults are the paper's.

    Args:
        mode: "paper" (its formulas), or "reference" (what the authors' code computes: the last token is not read, the
            left context is complete or empty, alignment is measured within the context's span and weighs the outer
            layers more).
        layer_start: the first layer that is read, 0 being the embeddings. By default a third of all layers, which
            is the paper's 4 of 12.
        window: how many layers on each side are a layer's context.
        omega: share of alignment in the weights; 0 is novelty alone.
    """

    mode: WKMode = "paper"
    layer_start: int | None = None
    window: int = 2
    omega: float = 0.5

    def __post_init__(self) -> None:
        if self.mode not in get_args(WKMode):
            raise UnknownNameError("mode", self.mode, get_args(WKMode))
        for name, value, least in (("layer_start", self.layer_start, 0), ("window", self.window, 1)):
            is_default = value is None and name == "layer_start"
            if not is_default and (not isinstance(value, int) or isinstance(value, bool) or value < least):
                raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}.")
        if isinstance(self.omega, bool) or not isinstance(self.omega, (int, float)) or not 0 <= self.omega <= 1:
            raise InputError(f"omega must be a number from 0 to 1, got {self.omega!r}.")

    def start(self, n_layers: int) -> int:
        """The first layer that is read, of a model with this many (the embeddings not counted).

        >>> WKSettings().start(12), WKSettings().start(6), WKSettings(layer_start=5).start(6)
        (4, 2, 5)
        """
        start = n_layers // 3 if self.layer_start is None else self.layer_start
        if start > n_layers:
            raise InputError(
                f"layer_start={start} leaves nothing of a model with {n_layers} layers.", hint=f"Use 0 to {n_layers}."
            )
        return start
