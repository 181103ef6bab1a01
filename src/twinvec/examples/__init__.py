"""Examples for training and evaluation, read by the names of their columns, and a check of the file they come from."""

from twinvec.examples.checking import check_examples
from twinvec.examples.data import Examples
from twinvec.examples.overlap import OtherTexts, read_other_texts
from twinvec.examples.reading import read_examples
from twinvec.examples.report import DataReport
from twinvec.examples.roles import KINDS, Kind, guess_kind
from twinvec.examples.source import DataSource
from twinvec.examples.survey import Survey, survey_examples

__all__ = [
    "KINDS",
    "DataReport",
    "DataSource",
    "Examples",
    "Kind",
    "OtherTexts",
    "Survey",
    "check_examples",
    "guess_kind",
    "read_examples",
    "read_other_texts",
    "survey_examples",
]
