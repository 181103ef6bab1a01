"""Whatever can be judged: a model, a server, a command, or vectors in a file."""

from twinvec.evaluate.subjects.choosing import SubjectChoice, open_subject
from twinvec.evaluate.subjects.command import CommandSubject
from twinvec.evaluate.subjects.endpoint import Endpoint, EndpointSubject
from twinvec.evaluate.subjects.model import ModelSubject
from twinvec.evaluate.subjects.stored import StoredSubject
from twinvec.evaluate.subjects.subject import Subject, checked_vectors

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
