"""All that the layer lab found, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from twinvec.lab.picture import TextPicture
from twinvec.lab.survey import LayerSurvey
from twinvec.lab.words import Extremes, WordGroups, extremes, group_words

__all__ = ["LayerFindings"]


@dataclass(frozen=True, eq=False)
class LayerFindings:
    """Surveys of some models over the same texts, and pictures of some of these.

    Args:
        source: the file of the texts.
        max_distance: how far apart two layers are at most that are shown as lines.
        n_words: how many words are shown of those that move least, in the middle, and most.
        min_count: how often a word must have been seen to be ranked.
    """

    source: str
    surveys: Sequence[LayerSurvey]
    pictures: Sequence[TextPicture] = ()
    max_distance: int = 4
    n_words: int = 10
    min_count: int = 5

    @property
    def distances(self) -> list[int]:
        """1 to the furthest that any model has."""
        return list(range(1, min(self.max_distance, max(each.n_layers for each in self.surveys)) + 1))

    def extremes(self, survey: LayerSurvey) -> Extremes:
        """The words of a model to show."""
        return extremes(survey.frequent(self.min_count), self.n_words)

    def groups(self, survey: LayerSurvey) -> WordGroups | None:
        """A model's function words against its content words."""
        return group_words(survey.frequent(self.min_count))

    def as_dict(self) -> dict[str, Any]:
        """All numbers, for JSON."""
        return {
            "source": self.source,
            "min_count": self.min_count,
            "models": [self._survey(each) for each in self.surveys],
            "pictures": [_picture(each) for each in self.pictures],
        }

    def _survey(self, survey: LayerSurvey) -> dict[str, Any]:
        groups = self.groups(survey)
        distances = range(1, survey.n_layers + 1)
        return {
            "model": survey.model,
            "n_layers": survey.n_layers,
            "n_texts": survey.n_texts,
            "n_tokens": survey.n_tokens,
            "layer_start": survey.layer_start,
            "cosines": survey.cosines.round(6).tolist(),
            "mean_at_distance": {str(k): round(float(survey.at_distance(k).mean()), 6) for k in distances},
            "function_words": groups and groups.function._asdict(),
            "content_words": groups and groups.content._asdict(),
            "content_moves_more": groups and round(groups.content_moves_more, 6),
            "words": [each._asdict() for each in survey.frequent(self.min_count)],
        }


def _picture(picture: TextPicture) -> dict[str, Any]:
    return {
        "model": picture.model,
        "text": picture.text,
        "tokens": list(picture.tokens),
        "layer_start": picture.layer_start,
        "weights": picture.weights.round(6).tolist(),
        "importance": picture.importance.round(6).tolist(),
    }
