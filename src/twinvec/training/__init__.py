"""Training of siamese and triplet networks (extra ``train``). Its names load torch on first use."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from twinvec.extras import require

if TYPE_CHECKING:
    from twinvec.data.roles import DataSource
    from twinvec.training.batches import TextTask
    from twinvec.training.job import TrainResult, train
    from twinvec.training.loop import StepReport, Training, start_training, train_steps
    from twinvec.training.networks.bi_encoder import Network
    from twinvec.training.objectives import OBJECTIVES, build_objective
    from twinvec.training.recipe import DataPart, DevPart, ModelPart, Recipe, TrainSettings
    from twinvec.training.recipe_file import read_recipe, recipe_as_toml
    from twinvec.training.report import DevReport, Finished, Score, Started
    from twinvec.training.run import RunOptions, run_recipe
    from twinvec.training.seeds import SeedsFinished, SeedStarted, Spread, TrainEvent, run_seeds

# Searched in this order for a name, on first use, so that importing `twinvec` does not load torch.
_MODULES = (
    "batches",
    "job",
    "loop",
    "networks.bi_encoder",
    "objectives",
    "recipe",
    "recipe_file",
    "report",
    "run",
    "seeds",
)

__all__ = [
    "OBJECTIVES",
    "DataPart",
    "DataSource",
    "DevPart",
    "DevReport",
    "Finished",
    "ModelPart",
    "Network",
    "Recipe",
    "RunOptions",
    "Score",
    "SeedStarted",
    "SeedsFinished",
    "Spread",
    "Started",
    "StepReport",
    "TextTask",
    "TrainEvent",
    "TrainResult",
    "TrainSettings",
    "Training",
    "build_objective",
    "read_recipe",
    "recipe_as_toml",
    "run_recipe",
    "run_seeds",
    "start_training",
    "train",
    "train_steps",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any of the names above
    if name not in __all__:
        raise AttributeError(f"module 'twinvec.training' has no attribute {name!r}")
    for package in ("torch", "transformers", "matplotlib"):
        require(package, extra="train", feature="Training")
    modules = (import_module(f"twinvec.training.{module}") for module in _MODULES)
    return next(getattr(module, name) for module in modules if hasattr(module, name))


def __dir__() -> list[str]:
    return [*globals(), *__all__]
