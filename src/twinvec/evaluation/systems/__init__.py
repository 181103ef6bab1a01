"""Systems under test: a model, a server, a command, or vectors in a file. All of them are embedders."""

from twinvec.evaluation.systems.choose import System, SystemChoice, open_system
from twinvec.evaluation.systems.command import CommandEmbedder
from twinvec.evaluation.systems.stored import StoredEmbedder

__all__ = ["CommandEmbedder", "StoredEmbedder", "System", "SystemChoice", "open_system"]
