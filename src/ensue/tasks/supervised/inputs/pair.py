"""Two texts or sequences: one encoder reads both, then they are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import dropout

from ensue.data.frames.origin import Origin
from ensue.data.ragged import Ragged
from ensue.data.rows import Place, Row
from ensue.data.settings import DataSettings
from ensue.data.vocabulary import Vocabulary
from ensue.errors import DataError, OptionError
from ensue.layers.lengths import step_mask
from ensue.settings import Width
from ensue.tasks.abilities import RequestOptions
from ensue.tasks.baselines.linear import fit_linear
from ensue.tasks.baselines.ridge import RidgeModel, fit_ridge
from ensue.tasks.blocks.embeddings import Embed
from ensue.tasks.blocks.encoders import ENCODERS, Encoder, encoder_of
from ensue.tasks.blocks.pooling import Pooling, Standardised
from ensue.tasks.codec import unpacked
from ensue.tasks.declarations import NEXT_TO, Derived, Let
from ensue.tasks.explaining.methods import Sides
from ensue.tasks.rows.batch import Columns, SequenceBatch, batch_of
from ensue.tasks.rows.collect import (
    IN_MEMORY,
    Content,
    Example,
    named,
    pairs_of,
    sequence,
    sequence_of,
    written,
)
from ensue.tasks.rows.exported import read_steps
from ensue.tasks.rows.inputs import LearnedInputs, vocabulary_rows
from ensue.tasks.rows.part import Part, Tokenisers, renumbered, shown_of
from ensue.tasks.saved import Saved
from ensue.tasks.supervised.input import Input, InputReader, ShareSettings
from ensue.tasks.supervised.inputs.text import PooledSettings
from ensue.tasks.supervised.learned import (
    FittedLinear,
    InputQuestion,
    LearnedInput,
    Linear,
    Named,
    Share,
)
from ensue.tasks.supervised.network import StepEncoder
from ensue.tasks.supervised.text_linears import NgramModel
from ensue.tasks.targets.target import Target

if TYPE_CHECKING:
    from ensue.tasks.any_model import ModelView

BINS = 10  # of a share


def overlap_numbers(words: Vocabulary) -> int:
    """The number of distinct tokens in `overlap_rows`."""
    return 3 * len(words) + 3 + 2 * BINS


def overlap_rows(part: Part, words: Vocabulary) -> Ragged:
    """Token indices of both sides, one after the other. With V words, indices of the first side are
    unchanged, indices of the second side are increased by V, and words in both sides by 2·V; then
    come the borders and the shares of shared words, in steps of a tenth."""
    assert part.second is not None
    first = vocabulary_rows(part, words.numbers)
    second = renumbered(part.second, part.numbers.tokens, words.numbers)
    count = len(words)
    rows = [_row(first.row(k), second.row(k), count) for k in range(len(part))]
    return Ragged.of(rows, np.int32)


def _row(first: NDArray[np.int32], second: NDArray[np.int32], count: int) -> list[int]:
    both = np.intersect1d(first, second)
    border = 3 * count
    shares = [border + 1 + _bin(len(both), len(np.unique(first)))]
    shares.append(border + 2 + BINS + _bin(len(both), len(np.unique(second))))
    return [
        *first.tolist(),
        border,
        *(second + count).tolist(),
        border,
        *(both + 2 * count).tolist(),
        border,
        *shares,
    ]


def _bin(part: int, whole: int) -> int:
    return round(BINS * part / whole) if whole else 0


RARE = 2  # minimum rows of a feature of the linear model
BETWEEN = "\t"
SECOND = "second_"  # prefix of the names of the second side
SIDES = ("first_text", "second_text")  # of an exported question


class PairInputSettings(PooledSettings, ShareSettings):
    """How the two sides are compared.

    compare: "vectors" pools the sides to u and v and reads [u; v; |u − v|; u * v]; with
    "attention", every step first attends to the other side."""

    compare: Literal["vectors", "attention"] = Field(
        "vectors",
        description="Comparison of the two sides: as vectors, or each step of one with the "
        "steps of the other.",
    )
    compared_size: Width = Field(64, description="Width of the layer above the comparison.")


# --- rows ----------------------------------------------------------------------------------------


class PairContent(Content):
    """Pairs of the columns `data.text` and `data.second`."""

    def second(self, row: Row, data: DataSettings) -> Any:
        return named(data.second, lambda other: sequence(other.fields.get(data.second)), row)

    def hashed(self, example: Example) -> str:
        return f"{written(example.value)}\n{written(example.second)}"


def _example(pair: Any, label: Any, place: Place) -> Example:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise DataError(
            f"{place}: expected two texts or sequences, (first, second), got {repr(pair)[:60]}"
        )
    first, second = (sequence_of(side, place) for side in pair)
    return Example(first, label, place, second)


def pair_of_line(line: str) -> tuple[str, str]:
    """A line of the standard input: both texts with a tab between."""
    first, tab, second = line.partition(BETWEEN)
    if not tab or BETWEEN in second:
        raise DataError(
            f"standard input: expected two texts with a tab between them, got {line[:60]!r}"
        )
    return first, second


# --- learned -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PairBatch:
    first: SequenceBatch
    second: SequenceBatch


@dataclass(frozen=True)
class PairColumns:
    """Both sides, row by row."""

    first: Columns
    second: Columns

    def __len__(self) -> int:
        return len(self.first)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Steps of the longer side."""
        return np.maximum(self.first.lengths, self.second.lengths)

    def take(self, rows: NDArray[np.int64]) -> PairColumns:
        return PairColumns(self.first.take(rows), self.second.take(rows))

    def arrays(self) -> dict[str, Any]:
        sides = {"first": self.first, "second": self.second}
        return {
            f"{side}.{name}": values
            for side, columns in sides.items()
            for name, values in columns.arrays().items()
        }

    def batch(self, rows: Sequence[int] | NDArray[np.int64]) -> PairBatch:
        return PairBatch(self.first.batch(rows), self.second.batch(rows))


@dataclass(frozen=True)
class LearnedPair(LearnedInput):
    """The learned part of pairs. inputs: the vocabulary of words, or the scale of vectors, of both
    sides."""

    inputs: Annotated[LearnedInputs, NEXT_TO]

    @property
    def tokenisers(self) -> Tokenisers:
        return self.inputs.tokenisers

    def encode(self, part: Part, model: ModelView) -> PairColumns:
        assert part.second is not None
        second = replace(part, inputs=part.second)
        first = self.inputs.columns(part, model.text)
        return PairColumns(first, self.inputs.columns(second, model.text))

    def repeated(self, part: Part, model: ModelView, rows: int) -> PairBatch:
        """The only row of a part, repeated `rows` times, with its real numbers in float64."""
        columns = self.encode(part, model)
        return PairBatch(batch_of(columns.first, rows), batch_of(columns.second, rows))

    def encoder(self, model: ModelView) -> PairEncoder:
        settings = model.settings
        embed = Embed([self.inputs.feature(settings)], settings.dropout_input)
        encoder = encoder_of(settings, embed.width)
        return PairEncoder(
            embed,
            encoder,
            Pooling(settings.pooling, encoder.output_size, encoder.final_size),
            compared_size=settings.compared_size,
            attention=settings.compare == "attention",
            standardise=settings.standardise,
            dropout=settings.dropout_output,
        )

    def row_texts(self, part: Part) -> Callable[[int], tuple[str, str]]:
        return shown_of(part)

    def linear(
        self, train: Part, validation: Part, target: Target, model: ModelView
    ) -> FittedLinear | None:
        words = self.inputs.words
        if words is None:
            return None
        rows, values = overlap_rows(train, words), target.encode(train)
        if target.numeric:
            others = overlap_rows(validation, words), target.encode(validation)[:, 0]
            ridge = fit_ridge(rows, values[:, 0], *others, min_rows=RARE)
            return FittedLinear(OverlapLinear(self.inputs, ridge))
        fitted = fit_linear(rows, values, target.width, longest=2, min_rows=RARE)
        return FittedLinear(OverlapLinear(self.inputs, fitted))

    def question(self, model: ModelView) -> InputQuestion:
        first = read_steps(self.inputs, model.text, SIDES[0])
        second = read_steps(self.inputs, model.text, SIDES[1], SECOND)
        name, lengths = first.inputs[0].name, first.inputs[1].name

        def batch(values: Named) -> PairBatch:
            return PairBatch(
                SequenceBatch({name: values[name]}, values[lengths]),
                SequenceBatch({name: values[SECOND + name]}, values[SECOND + lengths]),
            )

        apart = {"step": "pair", "from": "question", "to": list(SIDES)}
        inputs = (*first.inputs, *second.inputs)
        return InputQuestion(inputs, (apart, *first.steps, *second.steps), batch)


@dataclass(frozen=True)
class OverlapLinear(Linear):
    """A linear model of the words of both sides and of shared words."""

    inputs: Annotated[LearnedInputs, Derived("input.inputs")]
    model: Annotated[
        NgramModel,
        Let(
            word_count=lambda record: overlap_numbers(record.inputs.words),
            outputs="target.linear_width",
            several="target.several",
        ),
    ]

    @property
    def name(self) -> str:
        return "linear on overlap"

    def scores(self, part: Part) -> Tensor:
        assert self.inputs.words is not None
        rows = overlap_rows(part, self.inputs.words)
        if isinstance(self.model, RidgeModel):
            return torch.from_numpy(self.model.values(rows))[:, None]
        return torch.from_numpy(self.model.scores(rows))


# --- the network ---------------------------------------------------------------------------------


class Attended(nn.Module):
    """Every step combined with its attention to the other side: ReLU(W·[y; c; |y − c|; y * c] + b),
    where c = Σ_k α_k·o_k over the steps o of the other side, α = softmax(y·o/√width); c = 0 if the
    other side is empty."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.compare = nn.Linear(4 * width, width)

    def forward(self, y: Tensor, other: Tensor, real: Tensor) -> Tensor:
        """y (time, batch, width), other (steps, batch, width), real (steps, batch) bool."""
        scores = torch.einsum("tbw,sbw->tbs", y, other) / y.shape[-1] ** 0.5
        hidden = ~real.t()[None]  # (1, batch, steps)
        weights = scores.masked_fill(hidden, -torch.inf).softmax(-1).nan_to_num(0.0)
        aligned = torch.einsum("tbs,sbw->tbw", weights, other)
        compared = torch.cat([y, aligned, (y - aligned).abs(), y * aligned], -1)
        vectors: Tensor = self.compare(compared).relu()
        return vectors


class PairEncoder(StepEncoder):
    """ReLU(W·[u; v; |u − v|; u * v] + d), where u and v are the two sides, embedded, encoded and
    pooled by the same layers.

    attention: each side attends to the other before pooling; standardise: whether pooled values are
    standardised."""

    def __init__(
        self,
        embed: Embed,
        encoder: Encoder,
        pooling: Pooling,
        *,
        compared_size: int,
        attention: bool = False,
        standardise: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embed, self.encoder, self.pooling = embed, encoder, pooling
        self.standard = Standardised(pooling.width) if standardise else nn.Identity()
        self.attended = Attended(encoder.output_size) if attention else None
        self.dropout, self.width = dropout, compared_size
        self.hidden = nn.Linear(4 * pooling.width, compared_size)

    def embedded(self, inputs: PairBatch) -> Sides:
        """The steps of both sides as vectors (time, batch, width)."""
        return self.embed(inputs.first.inputs), self.embed(inputs.second.inputs)

    def read_steps(self, sides: Sides, inputs: PairBatch) -> Tensor:
        """The vectors of embedded steps."""
        lengths, others = inputs.first.lengths, inputs.second.lengths
        u, u_final = self.encoder(sides[0], lengths)
        v, v_final = self.encoder(sides[1], others)
        if self.attended is not None:
            seen_u = self.attended(u, v, step_mask(others.to(v.device), v.shape[0]))
            seen_v = self.attended(v, u, step_mask(lengths.to(u.device), u.shape[0]))
            u, v = seen_u, seen_v
        one = self.standard(self.pooling(u, u_final, lengths))
        other = self.standard(self.pooling(v, v_final, others))
        both = torch.cat([one, other, (one - other).abs(), one * other], -1)
        hidden = self.hidden(dropout(both, self.dropout, self.training)).relu()
        return dropout(hidden, self.dropout, self.training)


# --- the input -----------------------------------------------------------------------------------


class PairReader(InputReader[Part]):
    content = PairContent()

    def examples(self, rows: Any) -> Iterable[Example]:
        """Examples from rows ((first, second), label)."""
        for line, (pair, label) in enumerate(pairs_of(rows), 1):
            yield _example(pair, label, Place(IN_MEMORY, line))

    def unlabelled_examples(self, inputs: Iterable[Any]) -> Iterator[Example]:
        """Examples from rows (first, second)."""
        for line, pair in enumerate(inputs, 1):
            yield _example(pair, None, Place(IN_MEMORY, line))

    def question_keys(self, origin: Origin) -> tuple[str, ...]:
        return ("text", "second")

    def question_lines(self, lines: Sequence[str]) -> Part:
        return self.questions([pair_of_line(line) for line in lines])

    def shown_input(self, example: Example) -> tuple[str, str]:
        """Both texts."""
        return written(example.value), written(example.second)

    def shown_line(self, line: str) -> tuple[str, str]:
        return pair_of_line(line)


class Pair(Input):
    """Two texts or sequences."""

    name = "pair"
    learned_class = LearnedPair
    reader_class = PairReader

    def learn(self, train: Part, model: ModelView) -> LearnedPair:
        return LearnedPair(
            LearnedInputs.learn(train, model.text, model.settings, base=model.beginning)
        )

    def unpack_linear(
        self, saved: Saved, learned: LearnedPair, target: Target, model: ModelView
    ) -> Linear | None:
        if learned.inputs.words is None:
            return None
        return unpacked(OverlapLinear, saved, input=learned, target=target)

    def share(self, settings: PairInputSettings, target: Target) -> Share:
        return settings.linear_share or None

    def describe(self, settings: Any) -> str:
        how = "by attention" if settings.compare == "attention" else "as vectors"
        return f"{ENCODERS[settings.encoder].describe(settings)}, compared {how}"


def asked_pair(inputs: Any, options: RequestOptions) -> Any:
    """A pair stays unchanged; a text is combined with the second text of the options."""
    if not isinstance(inputs, str):
        return inputs
    if options.get("second") is None:
        raise OptionError("--second: expected the text that --text is matched with, got none")
    return inputs, options["second"]
