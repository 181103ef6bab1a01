"""What the layers of a model do to texts, and which readout scores best on labeled pairs. No torch."""

from twinvec.analysis.layers import LayerSurvey, survey_layers
from twinvec.analysis.words import MovingWord, WordGroups

__all__ = ["LayerSurvey", "MovingWord", "WordGroups", "survey_layers"]
