"""Where the words of a translation come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ensue.errors import OptionError
from ensue.tasks.translate.alignment import alignment_picture, alignment_text
from ensue.tasks.translate.answer import Explained
from ensue.tasks.translate.learned import source_texts
from ensue.tasks.translate.options import EXPLAINED

if TYPE_CHECKING:
    from ensue.tasks.translate.task import Translator


@dataclass(frozen=True)
class TranslationExplanation:
    """A translation drawn as a matrix: the darker, the more a word looked there."""

    found: Explained

    def as_text(self, width: int, colour: bool) -> str:
        return f"{self.found.text}\n\n{alignment_text(self.found, width, colour)}"

    def as_svg(self) -> str:
        return alignment_picture(self.found)


class ExplainTranslation:
    """The best translation of a text, with the probability of each word and where it looked."""

    option = EXPLAINED

    def explain(self, model: Translator, given: str) -> TranslationExplanation:
        model.must_be_fitted()
        task = model.task
        part = task.asked([given], model)
        task.must_attend(model)
        if not len(part.inputs.values):
            raise OptionError("explain: expected a text with at least one token, got none")
        target = model.learned.target
        best, probabilities = task.explained(task.sources(part, model), model)
        assert best.watched is not None
        return TranslationExplanation(
            Explained(
                source_texts(part)[0],
                tuple(target.words.tokens_of(best.tokens)),
                probabilities,
                tuple(tuple(row) for row in best.watched.tolist()),
                target.text_of(best.content),
            )
        )
