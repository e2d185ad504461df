"""Where the words of a caption look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from ensue.data.pictures.images import Picture
from ensue.data.rows import Place
from ensue.tasks.caption.answer import Gaze
from ensue.tasks.caption.gaze import gaze_picture, gaze_text
from ensue.tasks.caption.network import CaptionNetwork
from ensue.tasks.caption.options import EXPLAINED
from ensue.tasks.pictures.reading import picture_from
from ensue.tasks.rows.collect import IN_MEMORY
from ensue.tasks.seq2seq.task import pair_networks
from ensue.tasks.task import NOTHING, Asked

if TYPE_CHECKING:
    from ensue.tasks.caption.task import Captioner


@dataclass(frozen=True)
class CaptionExplanation:
    """A caption drawn as squares: the darker a region, the more a word looked there."""

    found: Gaze
    picture: Picture

    def as_text(self, width: int, colour: bool) -> str:
        return f"{self.found.text}\n\n{gaze_text(self.found, width, colour)}"

    def as_svg(self) -> str:
        return gaze_picture(self.found, self.picture)


class ExplainCaption:
    """The best caption of a picture, with the probability of each word and where it looked."""

    option = EXPLAINED

    def explain(self, model: Captioner, given: Any, asked: Asked = NOTHING) -> CaptionExplanation:
        """given: an array of bytes, or the name of a file."""
        model.must_be_fitted()
        task = model.task
        picture = picture_from(given, Place(IN_MEMORY, 1))
        part, target = task.asked([picture], model), model.learned.target
        best, probabilities = task.explained(task.sources(part, model), model)
        assert best.watched is not None
        found = Gaze(
            target.text_of(best.content),
            tuple(target.words.tokens_of(best.tokens)),
            probabilities,
            cast(CaptionNetwork, pair_networks(model)[0]).grid,
            tuple(tuple(row) for row in best.watched.tolist()),
        )
        return CaptionExplanation(found, picture)
