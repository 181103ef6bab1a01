"""Training of siamese and triplet networks (extra ``train``). Importing this loads torch; inference never does."""

from twinvec.extras import require

for _package in ("torch", "transformers", "matplotlib"):
    require(_package, extra="train", feature="Training")

from twinvec.training.batches import Task  # noqa: E402
from twinvec.training.loop import StepReport, Training, start_training, train  # noqa: E402
from twinvec.training.network import Network  # noqa: E402
from twinvec.training.objectives import OBJECTIVES, build_objective  # noqa: E402
from twinvec.training.recipe import DataPart, DevPart, ModelPart, Recipe, TrainSettings  # noqa: E402
from twinvec.training.recipe_file import read_recipe, recipe_as_toml  # noqa: E402
from twinvec.training.report import DevReport, Finished, Score, Started  # noqa: E402
from twinvec.training.run import RunOptions, run_recipe  # noqa: E402
from twinvec.training.seeds import run_seeds  # noqa: E402

__all__ = [
    "OBJECTIVES",
    "DataPart",
    "DevPart",
    "DevReport",
    "Finished",
    "ModelPart",
    "Network",
    "Recipe",
    "RunOptions",
    "Score",
    "Started",
    "StepReport",
    "Task",
    "TrainSettings",
    "Training",
    "build_objective",
    "read_recipe",
    "recipe_as_toml",
    "run_recipe",
    "run_seeds",
    "start_training",
    "train",
]
