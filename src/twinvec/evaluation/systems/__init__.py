"""Systems under test: a model, a server, a command, or vectors in a file. All of them are embedders."""

from twinvec.evaluation.systems.choose import StoredEmbedder, System, SystemChoice, open_system
from twinvec.evaluation.systems.command import CommandEmbedder
from twinvec.evaluation.systems.endpoint import Endpoint, EndpointEmbedder

__all__ = ["CommandEmbedder", "Endpoint", "EndpointEmbedder", "StoredEmbedder", "System", "SystemChoice", "open_system"]
