"""What the layers of a model do to texts, and which way to read them is best for some pairs. No torch."""

from twinvec.lab.survey import LayerSurvey, survey_layers
from twinvec.lab.words import MovingWord, WordGroups

__all__ = ["LayerSurvey", "MovingWord", "WordGroups", "survey_layers"]
