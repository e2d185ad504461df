"""A custom task, whole: how often vowels come in a sequence of letters.

`TASKS.register(TASK)` is all that it takes: every command then knows it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import softplus

from ensue.data.rows import Row
from ensue.data.settings import DataSettings
from ensue.data.values import Unfit
from ensue.data.vocabulary import Vocabulary
from ensue.layers import Recurrent
from ensue.layers.recurrent import as_cell
from ensue.metrics.classes import NumberAnswers
from ensue.metrics.table import NUMBER_METRICS, Metric, scores_of
from ensue.settings import Size, Table
from ensue.tasks.abilities import NOTHING, RequestOptions
from ensue.tasks.blocks.layer_settings import CellName
from ensue.tasks.declarations import NEXT_TO, Positive, Words
from ensue.tasks.evaluation.bootstrap import RowSums, intervals
from ensue.tasks.evaluation.report import Evaluation
from ensue.tasks.model import Model
from ensue.tasks.options import EVALUATE, PREDICT, TRAIN, Option
from ensue.tasks.rows.batch import Columns, SequenceBatch, targets_of
from ensue.tasks.rows.collect import Content
from ensue.tasks.rows.inputs import token_counts, vocabulary_rows
from ensue.tasks.rows.part import Part, Tokenisers
from ensue.tasks.rows.reader import RowReader
from ensue.tasks.rows.source import ColumnScores, SequenceSource, in_batches
from ensue.tasks.rows.task import RowTask
from ensue.tasks.sample import Guess, Sample
from ensue.tasks.targets.numbers import label_values
from ensue.tasks.task import Family, Solved

Floats = NDArray[np.float64]
RIDGE, LEAST = 1e-3, 1e-6  # of the linear family; the smallest rate

WITHIN_ONE = Metric("within_one", True, lambda row: float(_near(row.predicted - row.gold).mean()))
MAE = next(metric for metric in NUMBER_METRICS if metric.name == "mae")
COST = next(metric for metric in NUMBER_METRICS if metric.name == "cost")

OPTIONS = (
    Option(
        "--at-most",
        "model.at_most",
        "Largest count that is answered.",
        "number",
        verbs=(TRAIN, EVALUATE, PREDICT),
    ),
)


class TallySettings(Table):
    """A weight for each letter, or a cell that reads them one after another."""

    family: Literal["recurrent", "linear"] = Field("recurrent", description="Kind of network.")
    cell: CellName = Field("GRU", description="Recurrent cell.")
    hidden_size: Size = Field(8, description="Size of the cell's state.")
    at_most: Annotated[int, Field(ge=0)] = Field(
        1000, description="Larger counts are not answered."
    )
    batch_rows: Size = Field(16, description="Batch size, in rows.")


@dataclass(frozen=True)
class LearnedTally:
    """mean: of the counts in training, the baseline; scale: what rates are multiplied by, so that
    their sum is that of the counts of the validation part."""

    tokenisers: Annotated[Tokenisers, NEXT_TO]
    letters: Words
    mean: float
    scale: Positive = 1.0

    def columns(self, part: Part) -> Columns:
        targets = None if part.labels is None else label_values(part).astype(np.int64)
        return Columns(words=vocabulary_rows(part, self.letters.numbers), targets=targets)


@dataclass(frozen=True)
class Tallied:
    """count: the whole number next to the expected one."""

    count: int
    expected: float

    def as_line(self, text: object) -> str:
        return f"{self.count}\t{self.expected:.4f}\t{text}"


class RateNetwork(nn.Module, ABC):
    """A count is Poisson-distributed: cost = rate − count·log(rate), summed over the rows."""

    @abstractmethod
    def rates(self, batch: SequenceBatch) -> Tensor:
        """(batch,), each > 0."""

    def forward(
        self, batch: SequenceBatch, carried: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        rates = self.rates(batch)
        return (rates - targets_of(batch) * rates.log()).sum(), {}


class RecurrentRate(RateNetwork):
    """rate = softplus(v·h + b), h the cell's last state."""

    def __init__(self, letters: int, settings: TallySettings) -> None:
        super().__init__()
        size = settings.hidden_size
        self.embed = nn.Embedding(letters, size)
        self.recurrent = Recurrent(as_cell(settings.cell), size, size)
        self.output = nn.Linear(size, 1)

    def rates(self, batch: SequenceBatch) -> Tensor:
        _, final = self.recurrent(self.embed(batch.inputs["words"]), lengths=batch.lengths)
        return softplus(self.output(final[0][0])[:, 0]) + LEAST


class LinearRate(RateNetwork):
    """rate = Σ w of the row's letters."""

    def __init__(self, letters: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(letters))

    def rates(self, batch: SequenceBatch) -> Tensor:
        words = batch.inputs["words"]  # (time, batch)
        steps = torch.arange(len(words), device=words.device)[:, None]
        real = steps < batch.lengths.to(words.device)
        return (self.weights[words] * real).sum(0).clamp(min=LEAST)


class RecurrentFamily(Family[TallySettings]):
    def build(self, model: TallyModel) -> nn.Module:
        return RecurrentRate(len(model.learned.letters), model.settings)

    def describe(self, settings: TallySettings) -> str:
        return f"{settings.cell} of {settings.hidden_size}"


class LinearFamily(Family[TallySettings]):
    solved = True

    def build(self, model: TallyModel) -> nn.Module:
        return LinearRate(len(model.learned.letters))

    def describe(self, settings: TallySettings) -> str:
        return "a weight for each letter"

    def solve(self, train: Part, validation: Part, model: TallyModel) -> Solved:
        network, columns = LinearRate(len(model.learned.letters)), model.learned.columns(train)
        assert columns.words is not None
        letters = len(network.weights)
        rows = [columns.words.row(k) for k in range(len(columns))]
        x = np.stack([np.bincount(row, minlength=letters) for row in rows]).astype(np.float64)
        w = np.linalg.solve(x.T @ x + RIDGE * np.eye(letters), x.T @ label_values(train))
        network.weights.data = torch.from_numpy(w).float()
        scores = model.task.validation(network.eval(), validation, model)()
        return Solved([network], "solved", scores)


class TallyContent(Content):
    def label(self, row: Row, data: DataSettings, value: Any) -> Any:
        label = super().label(row, data, value)
        if not (isinstance(label, str) and label.isdecimal()):
            raise Unfit(f"expected a count, got {label!r}")
        return label


class TallyReader(RowReader[Part]):
    content = TallyContent()
    new_labels = True


FAMILIES: dict[str, Family[TallySettings]] = {
    "recurrent": RecurrentFamily(),
    "linear": LinearFamily(),
}


class Tally(RowTask[TallySettings, LearnedTally]):
    """How often vowels come in a sequence of letters."""

    name = "tally"
    settings = TallySettings
    learned_class = LearnedTally
    train_defaults: ClassVar[Mapping[str, Any]] = {"patience": 5}
    metrics = (MAE, COST, WITHIN_ONE)
    families = FAMILIES
    options = OPTIONS
    reader_class = TallyReader

    # ------------------------------------------------------------- recognised
    def recognise(self, sample: Sample) -> Guess | None:
        return self.infer(sample) if {"letters", "vowels"} <= {*sample.columns} else None

    def infer(self, sample: Sample) -> Guess:
        data = sample.data
        roles = {"text": data.text or "letters", "label": data.label or "vowels"}
        return Guess("letters and their vowels", roles, {"text": {"level": "characters"}})

    # ------------------------------------------------------------- learned
    def learn(self, train: Part, validation: Part, model: TallyModel) -> LearnedTally:
        letters = Vocabulary.build(token_counts(train))
        return LearnedTally(train.tokenisers, letters, float(label_values(train).mean()))

    def source(self, train: Part, model: TallyModel, seed: int) -> SequenceSource:
        columns, rows = model.learned.columns(train), model.settings.batch_rows
        return SequenceSource(columns, train.names, seed=seed, budget=10**6, most_rows=rows)

    def validation(self, network: nn.Module, part: Part, model: TallyModel) -> ColumnScores:
        def score(columns: Columns) -> dict[str, float]:
            rates, gold = _rates([network], columns), np.asarray(columns.targets, np.float64)
            answers = NumberAnswers(gold, rates, rates - gold * np.log(rates))
            return scores_of(self.metrics, answers, model.train.watch)

        return ColumnScores(score, model.learned.columns(part))

    def calibrate(self, validation: Part, model: TallyModel) -> LearnedTally:
        rates = _rates(model.networks, model.learned.columns(validation))
        scale = float(label_values(validation).sum() / rates.sum())
        return replace(model.learned, scale=scale)

    # ------------------------------------------------------------- asked
    def answers(
        self, part: Part, model: TallyModel, options: RequestOptions = NOTHING
    ) -> list[Tallied]:
        return [Tallied(round(y), y) for y in _expected(part, model, options).tolist()]

    def evaluate(
        self, part: Part, model: TallyModel, options: RequestOptions = NOTHING
    ) -> Evaluation:
        gold, seed = label_values(part), model.train.seed
        wrong = _expected(part, model, options) - gold
        ones = np.ones(len(part))
        by_metric = {"mae": abs(wrong), "within_one": _near(wrong).astype(np.float64)}
        sums = {n: RowSums("ratio", np.stack([values, ones], 1)) for n, values in by_metric.items()}
        return Evaluation(
            rows=len(part),
            steps=int(part.inputs.lengths.sum()),
            scores=intervals(sums, seed),
            others={},
            baselines={"mean": float(abs(model.learned.mean - gold).mean())},
            classes=(),
            confusion=(),
            worst=(),
            higher_is_better=False,
            sums=sums,
        )


TASK = Tally()


class TallyModel(Model[TallySettings, Part, LearnedTally]):
    """How often vowels come in a sequence of letters.

    TallyModel().fit([("abacus", 3), ("tree", 2), …]).predict(["banana"])[0].count"""

    task = TASK


@torch.no_grad()
def _rates(networks: Sequence[nn.Module], columns: Columns) -> Floats:
    """(rows,), the mean over the members."""
    rates = np.zeros((len(networks), len(columns)))
    for member, network in enumerate(networks):
        assert isinstance(network, RateNetwork)
        for rows, batch in in_batches(columns, network, 10**5):
            rates[member, rows] = network.rates(batch).double().cpu().numpy()
    return np.asarray(rates.mean(0))


def _expected(part: Part, model: TallyModel, options: RequestOptions) -> Floats:
    """(rows,): the expected counts, none beyond what was asked for, or else was set."""
    learned = model.learned
    rates = learned.scale * _rates(model.networks, learned.columns(replace(part, labels=None)))
    return np.minimum(rates, options.get("at_most", model.settings.at_most))


def _near(wrong: Floats) -> NDArray[np.bool_]:
    return np.asarray(abs(wrong) <= 1)
