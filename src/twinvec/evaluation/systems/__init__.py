"""Whatever can be judged: a model, a server, a command, or vectors in a file."""

from twinvec.evaluation.systems.choose import SubjectChoice, open_subject
from twinvec.evaluation.systems.command import CommandSubject
from twinvec.evaluation.systems.endpoint import Endpoint, EndpointSubject
from twinvec.evaluation.systems.model import ModelSubject
from twinvec.evaluation.systems.stored import StoredSubject
from twinvec.evaluation.systems.system import Subject, checked_vectors

__all__ = [
    "CommandSubject",
    "Endpoint",
    "EndpointSubject",
    "ModelSubject",
    "StoredSubject",
    "Subject",
    "SubjectChoice",
    "checked_vectors",
    "open_subject",
]
