"""Contextual string embeddings: the states of a character language model at the end of each
word."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ensue.tasks.blocks.embeddings import Feature, Inputs
from ensue.tasks.blocks.encoders import encoder_of
from ensue.tasks.blocks.layer_settings import EncoderSettings

SENTENCE = "sentence"  # the letters of a row's words, with separators
AFTER = "sentence.after"


class LetterStates(Feature):
    """The states of a character language model that reads the row's words with spaces between them:
    e_t = l at the space after word t, and r at the space before it if layers also read from the
    right; (time, batch, width).

    </s> t h e _ d o g </s> l of "the" is at _, r of "dog" too

    inputs["sentence"] (letters, batch); inputs["sentence.after"] (time, batch), position of the
    space after each word, 0 at padding. letters, size: number of letters, and the width of their
    vectors; settings: the settings of the layers."""

    def __init__(self, letters: int, size: int, settings: EncoderSettings) -> None:
        super().__init__()
        two_ways = settings.bidirectional
        self.table = nn.Embedding(letters, size * (1 + two_ways))
        self.encoder = encoder_of(settings, self.table.embedding_dim)
        self.ways = 1 + two_ways
        self.width = self.encoder.output_size

    def forward(self, inputs: Inputs) -> Tensor:
        letters, after = inputs[SENTENCE], inputs[AFTER]
        lengths = after.amax(0) + 1 if len(after) else torch.zeros_like(letters[0])
        y: Tensor = self.encoder(self.table(letters), lengths)[0]
        row = torch.arange(after.shape[1], device=after.device)
        if self.ways == 1:
            return y[after, row]
        left, right = y.chunk(2, -1)
        before = torch.cat([torch.zeros_like(after[:1]), after[:-1]])
        return torch.cat([left[after, row], right[before, row]], -1)
