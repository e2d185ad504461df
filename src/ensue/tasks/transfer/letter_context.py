"""The character language model with which a labeller reads its sentences, in addition to words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from ensue.data.ragged import Ragged
from ensue.data.tokenise import Tokeniser
from ensue.data.vocabulary import END_NUMBER
from ensue.errors import OptionError
from ensue.files.opening import VECTOR_WIDTH
from ensue.tasks.blocks.layer_settings import EncoderSettings, built_in_cells_only
from ensue.tasks.blocks.letter_states import LetterStates
from ensue.tasks.declarations import Range, SavedAs, TextWords
from ensue.tasks.transfer.pretrained import Pretrained

NAME = "letter context"  # key of its facts and its vocabulary in a saved model
SPACE = " "


@dataclass(frozen=True)
class LetterContext:
    """A character language model as context. tokeniser, letters: tokeniser and vocabulary of the
    spelling of words; size: the width of a letter's vector in each direction; settings: the
    settings of [model] that define the layers."""

    tokeniser: Tokeniser
    letters: Annotated[TextWords, SavedAs(NAME)]
    size: Annotated[int, Range(low=1, high=VECTOR_WIDTH)]
    settings: EncoderSettings

    def check_saved(self) -> None:
        built_in_cells_only(self.settings, NAME)

    @classmethod
    def of(cls, pretrained: Pretrained) -> LetterContext:
        assert pretrained.tokeniser is not None
        assert pretrained.words is not None
        if pretrained.cells:
            raise OptionError(
                f"{pretrained.called}: a character language model of custom cells cannot be read "
                "next to the words "
                "of a labeller; expected a built-in cell"
            )
        table = {"encoder": pretrained.encoder, "bidirectional": False, **pretrained.settings}
        settings = EncoderSettings.of(table, NAME)
        ways = 1 + settings.bidirectional
        return cls(pretrained.tokeniser, pretrained.words, pretrained.word_width // ways, settings)

    def spelling(self, surfaces: Iterable[str]) -> Ragged:
        """The letters of each surface; the first row, in place of padding, has the border of texts
        and the space."""
        rows = [[END_NUMBER, *self.letters.ids([SPACE])]]
        rows += [self.letters.ids(self.tokeniser(surface)) for surface in surfaces]
        starts = np.cumsum([0, *map(len, rows)])
        return Ragged(np.array([k for row in rows for k in row], np.int64), starts)

    def feature(self) -> LetterStates:
        """The feature with fresh weights."""
        return LetterStates(len(self.letters), self.size, self.settings)
