"""Language models with cells from both sides, for the word between them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ensue.data.vocabulary import END_NUMBER
from ensue.engine.rows import reverse_time
from ensue.layers.recurrent import Recurrent
from ensue.tasks.language.networks import NO_DROPOUT, DropoutRates, LanguageNetwork
from ensue.tasks.language.recurrent import RecurrentLanguage, language_layers, over_time
from ensue.tasks.language.settings import LanguageSettings
from ensue.tasks.language.softmaxes import FULL, Softmax, softmax_of
from ensue.tasks.language.streams import (
    COLUMNS,
    STEPS,
    Carried,
    StreamBatch,
    Tokens,
    pieces,
)
from ensue.training.processes import device_of_weights, moved


class Around(NamedTuple):
    """log p and rank of each token, given both sides and given the left side alone."""

    logs: NDArray[np.float64]
    ranks: NDArray[np.float64]
    logs_left: NDArray[np.float64]
    ranks_left: NDArray[np.float64]


class BothSidesLanguage(RecurrentLanguage):
    """p(w_t | all other words) = softmax(W·J·[l_{t−1}; r_{t+1}] + b): neither side has seen w_t.

    l_t = cells(e(w_1) … e(w_t)), r_t = cells'(e(w_n) … e(w_t))

    The left side is itself a language model, p(w_{t+1} | w_1 … w_t) = softmax(W·l_t + b'). It
    scores and generates texts, and is the comparison for both sides. The cost is the sum of the
    two. In a stream, the right side begins with the tokens `ahead` of the piece in a batch."""

    encoder_weights: ClassVar[Mapping[str, str]] = {
        "recurrent.": "recurrent.",
        "right.": "from_right.",
    }
    two_ways = True

    def __init__(
        self,
        words: int,
        layers: Recurrent,
        right: Recurrent,
        *,
        tied: bool = True,
        rates: DropoutRates = NO_DROPOUT,
        softmax: Softmax = FULL,
    ) -> None:
        super().__init__(words, layers, tied=tied, rates=rates, softmax=softmax)
        self.right = right
        joined = layers.input_size if tied else layers.output_size
        self.join = nn.Linear(layers.output_size + right.output_size, joined, bias=False)
        self.filler = softmax.output(words, joined, self.table if tied else None)

    @classmethod
    def of(cls, settings: LanguageSettings, words: int) -> BothSidesLanguage:
        left, right = (language_layers(settings) for _ in range(2))
        return cls(
            words,
            left,
            right,
            tied=settings.tied,
            rates=DropoutRates.of(settings),
            softmax=softmax_of(settings.softmax, settings.softmax_cuts, words),
        )

    @staticmethod
    def describe(settings: LanguageSettings) -> str:
        return f"{settings.layers} × {settings.cell} of {settings.hidden_size} from each side"

    def forward(self, batch: StreamBatch, carried: Carried) -> tuple[Tensor, Carried]:
        y, carried = self.states(batch.tokens, carried)
        ahead = self.output.cost(self.between(y), batch.targets, batch.real)
        between = self.filler.cost(self._joined(y, batch), batch.targets, batch.real)
        return ahead + between, carried

    def _joined(self, y: Tensor, batch: StreamBatch) -> Tensor:
        """The joined states before and after each target, (time, batch, width)."""
        after = batch.targets[1:]
        if batch.ahead is not None:
            after = torch.cat([after, batch.ahead])
        lengths = batch.after
        if lengths is None:
            lengths = torch.full((after.shape[1],), len(after))
        lengths = lengths.cpu()
        x = self.entering(reverse_time(after, lengths))
        time = reverse_time(self.right(x, lengths=lengths)[0], lengths)
        time = torch.cat([time, time.new_zeros(1, *time.shape[1:])])[: len(batch.targets)]
        time = over_time(time, self.rates.output * self.training)
        joined: Tensor = self.join(torch.cat([y, time], -1))
        return joined

    def sides(self, batch: StreamBatch, carried: Carried) -> tuple[Tensor, Tensor, Carried]:
        """log p (time, batch, words) at the targets: by both sides, and by the left side alone; and
        the carried state."""
        y, carried = self.states(batch.tokens, carried)
        both = self.filler.log_probabilities(self._joined(y, batch))
        return both, self.output.log_probabilities(self.between(y)), carried


@torch.no_grad()
def fillers(
    networks: Sequence[BothSidesLanguage], before: Tensor, after: Tensor
) -> tuple[Tensor, Tensor]:
    """log p (words,) of the word between the tokens `before` (n,) and `after` (m,), averaged over
    the networks: given both sides, and given the left side alone."""
    device = device_of_weights(networks[0])
    left, right = (side[:, None].to(device) for side in (before, after))
    hidden = torch.full_like(left[:1], END_NUMBER)  # placeholder for the word, which is not read
    batch = StreamBatch(left, torch.cat([left[1:], hidden]), ahead=right)
    sides = [network.sides(batch, {})[:2] for network in networks]
    both, alone = (_mean([pair[side][-1, 0] for pair in sides]) for side in range(2))
    return both.cpu(), alone.cpu()


@torch.no_grad()
def around(networks: Sequence[BothSidesLanguage], stream: Tokens) -> Around:
    """`Around` for every token of a stream except the first, averaged over the networks."""

    def sides(k: int, batch: StreamBatch, carried: Carried) -> tuple[list[Tensor], Carried]:
        both, alone, carried = networks[k].sides(batch, carried)
        return [both, alone], carried

    return Around(*_over(networks, stream, sides, ahead=STEPS))


@torch.no_grad()
def ranks_before(networks: Sequence[LanguageNetwork], stream: Tokens) -> NDArray[np.float64]:
    """The rank of every token of a stream except the first, given only earlier tokens."""

    def before(k: int, batch: StreamBatch, carried: Carried) -> tuple[list[Tensor], Carried]:
        y, carried = networks[k].run(batch.tokens, carried)
        return [networks[k].output.log_probabilities(y)], carried

    ranks: NDArray[np.float64] = _over(networks, stream, before)[1]
    return ranks


def _over(
    networks: Sequence[LanguageNetwork],
    stream: Tokens,
    look: Callable[[int, StreamBatch, Carried], tuple[list[Tensor], Carried]],
    ahead: int = 0,
) -> NDArray[np.float64]:
    """log p and rank of every token except the first, averaged over the networks. look: returns one
    or more log p (time, batch, words) of a network."""
    columns = 1 if len(stream) < COLUMNS * STEPS else COLUMNS
    carried: list[Carried] = [{} for _ in networks]
    parts: list[tuple[NDArray[np.int64], NDArray[np.float64]]] = []
    for batch, places in pieces(stream, columns, STEPS, ahead=ahead):
        assert batch.real is not None
        real = batch.real.numpy()
        batch = moved(batch, device_of_weights(networks[0]))
        logs: list[list[Tensor]] = []
        for k in range(len(networks)):
            step_values, carried[k] = look(k, batch, carried[k])
            logs.append(step_values)
        values: list[Tensor] = []
        for side in zip(*logs, strict=True):
            values += _scored(_mean(side), batch.targets)
        parts.append((places[real], np.stack([v.cpu().numpy()[real] for v in values])))
    places = np.concatenate([places_of_part for places_of_part, _ in parts])
    return np.concatenate([values_of_part for _, values_of_part in parts], 1)[:, np.argsort(places)]


def _mean(logs: Sequence[Tensor]) -> Tensor:
    """The log of the mean probability."""
    return torch.logsumexp(torch.stack(list(logs)), 0) - math.log(len(logs))


def _scored(logs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """log p of targets (time, batch), and their ranks from 1; among equally probable words the
    target is last."""
    scores = logs.gather(-1, targets[..., None])
    return scores[..., 0], (logs >= scores).sum(-1)
