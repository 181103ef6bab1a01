"""Training of siamese and triplet networks (extra ``train``). Importing this loads torch; inference never does."""

from twinvec.extras import require

for _package in ("torch", "transformers", "matplotlib"):
    require(_package, extra="train", feature="Training")

from twinvec.train.events import DevReport, Finished, Score, Started  # noqa: E402
from twinvec.train.loop import StepReport, Training, start_training, train  # noqa: E402
from twinvec.train.network import Network  # noqa: E402
from twinvec.train.objectives import OBJECTIVES, build_objective  # noqa: E402
from twinvec.train.recipe import DataPart, DevPart, ModelPart, Recipe  # noqa: E402
from twinvec.train.recipe_file import read_recipe, recipe_as_toml  # noqa: E402
from twinvec.train.run import RunOptions, run_recipe  # noqa: E402
from twinvec.train.seeds import run_seeds  # noqa: E402
from twinvec.train.settings import TrainSettings  # noqa: E402
from twinvec.train.task import Task  # noqa: E402

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
