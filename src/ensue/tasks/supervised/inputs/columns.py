"""The columns of a row: numbers, categories and dates."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from ensue.data.frames.origin import Origin
from ensue.data.ragged import Ragged
from ensue.data.rows import Place, Row
from ensue.data.settings import DataSettings
from ensue.data.tokenise import Tokeniser
from ensue.data.values import Unfit
from ensue.errors import DataError, OptionError
from ensue.layers.activations import ACTIVATIONS
from ensue.layers.feedforward import STARTS, HiddenLayers
from ensue.settings import OFF, Expected, Rate, Size, Table, Width
from ensue.tasks.abilities import NOTHING, RequestOptions
from ensue.tasks.baselines.regression import Regression
from ensue.tasks.codec import unpacked
from ensue.tasks.columns.beside import Category
from ensue.tasks.columns.cells import (
    BETWEEN,
    DisplayRow,
    Grid,
    cells_of,
    row_of_line,
    rows_of,
    texts_of,
)
from ensue.tasks.columns.cells import Rows as TableRows
from ensue.tasks.columns.exported import (
    CATEGORIES,
    NUMBERS,
    column_inputs,
    features_read,
    row_step,
)
from ensue.tasks.columns.features import EXAMPLE as FEATURE_EXAMPLE
from ensue.tasks.columns.features import FEATURES, TableFeatures, features_of
from ensue.tasks.columns.learned import TableColumns, almost_numbers
from ensue.tasks.declarations import Derived, SavedAs
from ensue.tasks.evaluation.report import preview
from ensue.tasks.explaining.methods import NEVER_SEEN
from ensue.tasks.exported import Rounding
from ensue.tasks.reader import NO_COLUMNS
from ensue.tasks.rows.collect import IN_MEMORY, Content, Example
from ensue.tasks.rows.part import Part, Tokenisers
from ensue.tasks.rows.reader import Rows
from ensue.tasks.saved import Saved
from ensue.tasks.supervised.input import Input, InputReader, ShareSettings
from ensue.tasks.supervised.learned import (
    FittedLinear,
    InputQuestion,
    LearnedInput,
    Linear,
    LinearQuestion,
    Named,
    Occlusions,
    Share,
    saved_regression,
)
from ensue.tasks.supervised.network import Budget, FixedWidth, InputEncoder, begin_dense
from ensue.tasks.targets.target import Target

if TYPE_CHECKING:
    from ensue.tasks.any_model import ModelView

AT_ONCE = 4096  # rows of an answer batch
LINEAR_CATEGORIES = 50  # categories of a column for the linear model
RIDGE = 1e-3  # of the linear model
CELLS = Tokenisers(Tokeniser("spaces"))  # cells are tokens already
Pair = Annotated[tuple[int, int], Field(strict=False)]  # TOML has lists


class ColumnsReaderSettings(Table):
    """How a row is read, and its layers."""

    words: ClassVar[Mapping[str, tuple[str, ...]]] = {"dropout": ("dropout_layers",)}
    instead: ClassVar[Mapping[str, str]] = {"hidden_size": "hidden", "layers": "hidden"}

    numeric: list[str] = Field(
        [], description="Columns to read as numbers, if their values are unclear."
    )
    categorical: list[str] = Field(
        [], description="Columns to read as categories, even if they hold numbers."
    )
    leave_out: list[str] = Field([], description="Columns to ignore.")
    features: Annotated[list[str], Expected(f"a list of features, {FEATURE_EXAMPLE}")] = Field(
        [],
        description=f"Features computed from columns, which they replace: {', '.join(FEATURES)}.",
    )
    missing: Literal["error", "indicator"] = Field(
        "error",
        description="Empty cells: an error, or the column's mean and an indicator column.",
    )
    categories: Literal["embedding", "one-hot"] = Field(
        "embedding", description="Encoding of categories."
    )
    embedding_size: Annotated[Width | None, OFF] = Field(
        None, description="Embedding size of a category; off: by the number of categories."
    )
    min_count: Size = Field(
        2,
        description="Minimum count of a category in the training part; rarer categories "
        "are unknown.",
    )
    hidden: list[Width] = Field(
        [64, 64], description="Units of each hidden layer; [] is a linear model."
    )
    activations: Annotated[
        list[str], Expected(f"a list of {', '.join(ACTIVATIONS)}, or of groups, tanh*3 + relu")
    ] = Field(["relu"], description="Activation of all hidden layers, or one for each.")
    skips: Annotated[list[Pair], Expected("a list of pairs, [[0, 2]]")] = Field(
        [], description="Skip connections between layers, as pairs from, to; 0 is the input."
    )
    init: Annotated[str, Expected(", ".join(STARTS))] = Field(
        "standard", description="Initial weights."
    )
    dropout_layers: Rate = Field(0.0, description="Dropout of the hidden layers.")

    @model_validator(mode="after")
    def _sound(self) -> Self:
        twice = sorted({*self.numeric} & {*self.categorical})
        if twice:
            raise ValueError(
                f"categorical: {', '.join(twice)}: also in numeric; name each column in one of "
                "the two"
            )
        try:
            features = features_of(self.features)
        except OptionError as error:
            raise ValueError(f"features: {error}") from None
        read = {name for feature in features for name in feature.columns}
        for key in ("numeric", "categorical", "leave_out"):
            if twice := sorted(read & {*getattr(self, key)}):
                raise ValueError(f"{key}: expected columns that no feature reads, got {twice}")
        try:
            with torch.device("meta"):  # draws nothing and needs no memory
                self.layers(1)
        except OptionError as error:
            raise ValueError(str(error)) from None
        return self

    def layers(self, inputs: int) -> HiddenLayers:
        """The layers with fresh weights."""
        return HiddenLayers(
            [inputs, *self.hidden, 1],
            self.activations,
            skips=self.skips,
            init=self.init,
            dropout=self.dropout_layers,
        )


class ColumnsSettings(ColumnsReaderSettings, ShareSettings):
    """How a row is read, and its layers."""

    batch_rows: Annotated[Size | None, OFF] = Field(
        64, description="Batch size, in rows; off: all rows at once."
    )


# --- rows ----------------------------------------------------------------------------------------


class TableContent(Content):
    """The cells of a row, and its target."""

    all_columns = True

    def __init__(self, left_out: Collection[str] = ()) -> None:
        """Reads tables. left_out: columns that are not inputs, in addition to the target and the
        group."""
        self._left_out = left_out

    def value(self, row: Row, data: DataSettings) -> list[str]:
        try:
            return cells_of(row.fields, "", {data.label, data.group, *self._left_out})
        except DataError as error:
            raise Unfit(str(error).removeprefix(": ")) from None


def labelled_rows(rows: TableRows, target: str) -> Iterator[Example]:
    """Rows in memory with the target among their columns."""
    for number, row in enumerate(rows_of(rows), 1):
        place = Place(IN_MEMORY, number)
        if target not in row:
            raise DataError(
                f"{place}: expected a column {target!r}, the target, "
                f"got {', '.join(row) or 'no column'}"
            )
        label = row[target]
        if label is None or label == "" or (isinstance(label, float) and label != label):
            raise DataError(f"{place}: expected a value of {target!r}, got {label!r}")
        yield Example(cells_of(row, str(place), (target,)), label, place)


def unlabelled_rows(rows: TableRows, target: str) -> Iterator[Example]:
    """Rows in memory without their target, if they have one."""
    for number, row in enumerate(rows_of(rows), 1):
        place = Place(IN_MEMORY, number)
        yield Example(cells_of(row, str(place), (target,)), None, place)


# --- learned -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LearnedColumns(LearnedInput):
    """The learned part of a table. columns: the columns with their scales and categories;
    target_column: the name of the target's column, if passed to `fit`."""

    columns: TableColumns
    target_column: str = ""

    @property
    def tokenisers(self) -> Tokenisers:
        return CELLS

    def encode(self, part: Part, model: ModelView) -> FixedWidth:
        return FixedWidth(self.columns.encode(Grid.of(part), model.settings))

    def encoder(self, model: ModelView) -> ColumnsEncoder:
        counts = [len(column.categories) for column in self.columns.categories]
        features = self.columns.features.layer()
        return ColumnsEncoder(self.columns.width, counts, model.settings, features)

    def row_texts(self, part: Part) -> Callable[[int], tuple[str, str]]:
        texts = part.numbers.token_names

        def row_text(row: int) -> tuple[str, str]:
            return part.names[row], preview(texts_of(texts[k] for k in part.inputs.row(row)))

        return row_text

    def features(self, part: Part, model: ModelView) -> Tensor:
        return dense_rows(self.columns, part, model.settings)

    def linear(
        self, train: Part, validation: Part, target: Target, model: ModelView
    ) -> FittedLinear:
        x, y = self.features(train, model), torch.from_numpy(target.encode(train))
        regression = Regression(x.shape[1], target.linear_width, target.regression).double()
        regression.solve(x, y.double() if y.is_floating_point() else y, RIDGE)
        return FittedLinear(ColumnsLinear(self.columns, model.settings, regression))

    def question(self, model: ModelView) -> InputQuestion:
        features = self.columns.features

        def batch(named: Named) -> dict[str, Tensor]:
            inputs = dict(named)
            if features.layer() is not None:
                inputs["features"] = features_read(features, inputs)
            return inputs

        steps = (row_step(self.columns, model.settings.missing != "error"),)
        return InputQuestion(column_inputs(self.columns), steps, batch)

    def remarks(self, train: Part, target: Target, model: ModelView) -> list[str]:
        arrays = self.columns.encode(Grid.of(train), model.settings)
        number = None
        if target.numeric:
            number = target.encode(train)[:, 0].astype(np.float64)
        lines = almost_numbers(Grid.of(train), self.columns, model.settings)
        return lines + self.columns.remarks(arrays, number)

    def occlusions(self, part: Part, model: ModelView) -> Occlusions:
        """A row for each cell, in which it is replaced by a neutral one: the mean of its numbers,
        an unknown category, or an empty cell for columns that features read."""
        tokens = part.numbers.tokens
        cells = [part.numbers.token_names[k] for k in part.inputs.row(0)]
        nothing = {column.name: repr(column.mean) for column in self.columns.numbers}
        nothing |= {column.name: NEVER_SEEN for column in self.columns.categories}
        if model.settings.missing != "error":
            made = (name for feature in self.columns.features.readings for name in [feature.column])
            nothing |= {name: "" for name in made if name not in nothing}
        names, rows = list[str](), list[list[int]]()
        for k, cell in enumerate(cells):
            name = cell.partition(BETWEEN)[0]
            if name in nothing:
                other = [tokens[text] for text in cells]
                other[k] = tokens[f"{name}{BETWEEN}{nothing[name]}"]
                names.append(" ".join(texts_of([cell])))
                rows.append(other)
        again = part.take(np.zeros(len(rows), np.int64))
        how = "each cell replaced by the mean of its column, or by an unknown category"
        return Occlusions(
            tuple(names), how, replace(again, inputs=Ragged.of(rows, np.int32), labels=None)
        )

    def fact(self) -> str:
        columns = self.columns
        line = f"{len(columns.numbers)} columns of numbers, {len(columns.categories)} of categories"
        features = columns.features.texts
        return f"{line}; {len(features)} made: {', '.join(features)}" if features else line

    def encoder_facts(self, encoder: ColumnsEncoder) -> list[str]:
        months = {} if encoder.features is None else encoder.features.learned_months()
        return [f"{text}: α = {alpha:.2f}" for text, alpha in months.items()]


@dataclass(frozen=True)
class ColumnsLinear(Linear):
    """Regression on all columns: scaled numbers, and the most frequent categories as zeros and
    ones."""

    columns: Annotated[TableColumns, Derived("input.columns")]
    settings: Annotated[ColumnsReaderSettings, Derived("settings")]
    regression: Annotated[
        Regression,
        SavedAs("linear"),
        saved_regression(lambda record: record.columns.dense_width(LINEAR_CATEGORIES)),
    ]

    @property
    def name(self) -> str:
        return "linear model"

    @torch.no_grad()
    def scores(self, part: Part) -> Tensor:
        return self.regression.scores(dense_rows(self.columns, part, self.settings))

    def rounded(self, rounding: Rounding) -> ColumnsLinear:
        regression = deepcopy(self.regression)
        values = rounding(regression.weight.detach().float().numpy())
        regression.weight.data = torch.from_numpy(values).to(regression.weight.dtype)
        return ColumnsLinear(self.columns, self.settings, regression)

    def question(self, model: ModelView) -> LinearQuestion:
        return LinearQuestion((), (), ColumnsScores(self.columns, self.regression))


class ColumnsScores(nn.Module):
    """Computes z of a linear model of columns from the inputs of an exported graph."""

    def __init__(self, columns: TableColumns, regression: Regression) -> None:
        super().__init__()
        self.columns, self.regression = columns, regression
        self.features = columns.features.layer()  # the initial value of a learned α

    def forward(self, named: Named) -> Tensor:
        numbers, categories = named[NUMBERS], named[CATEGORIES]
        parts = [numbers]
        if self.features is not None:
            parts.append(self.features(features_read(self.columns.features, dict(named))))
        for k, column in enumerate(self.columns.categories):
            kinds = torch.arange(1, min(len(column.categories), LINEAR_CATEGORIES) + 1)
            parts.append((categories[:, k, None] == kinds).to(numbers.dtype))
        return self.regression.scores(torch.cat(parts, 1))


def dense_rows(columns: TableColumns, part: Part, settings: Any) -> Tensor:
    """Numbers, each column's most frequent categories as zeros and ones, features; shape (rows,
    n)."""
    arrays = columns.encode(Grid.of(part), settings)
    return torch.from_numpy(columns.dense(arrays, LINEAR_CATEGORIES))


class ColumnsEncoder(InputEncoder):
    """numbers (rows, n), categories (rows, c) and inputs of features (rows, f), if any → hidden
    layers (rows, width)."""

    def __init__(
        self,
        numbers: int,
        counts: Sequence[int],
        settings: ColumnsReaderSettings,
        features: TableFeatures | None = None,
    ) -> None:
        super().__init__()
        self.features, self.init = features, settings.init
        one_hot, size = settings.categories == "one-hot", settings.embedding_size
        columns = [Category(count, size, one_hot=one_hot) for count in counts]
        inputs = numbers + sum(column.width for column in columns)
        inputs += 0 if features is None else features.width
        self.columns = nn.ModuleList(columns)
        self.layers = settings.layers(inputs)
        self.width = self.layers.width

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        ids = inputs["categories"]
        parts = [column(ids[:, k]) for k, column in enumerate(self.columns)]
        numbers = inputs["numbers"].to(self._dtype())
        if self.features is not None:
            parts.append(self.features(inputs["features"].to(self._dtype())))
        vectors: Tensor = self.layers(torch.cat([numbers, *parts], -1))
        return vectors

    def _dtype(self) -> torch.dtype:
        """The dtype of its weights; torch's default without weights."""
        parameter = next(self.parameters(), None)
        return torch.get_default_dtype() if parameter is None else parameter.dtype

    def begin(self, output: nn.Linear) -> None:
        begin_dense(output, self.init)


# --- the input -----------------------------------------------------------------------------------


class ColumnsReader(InputReader[Part]):
    content = TableContent()

    def _target(self) -> str:
        """The column that a fitted model predicts."""
        return str(self.model.learned.input.target_column) if self.model.fitted else ""

    def labelled(
        self, rows: Any, columns: Mapping[str, str] = NO_COLUMNS, before: Part | None = None
    ) -> Part:
        """A labelled part. rows: a list of rows by column name, or columns by name."""
        target = columns.get("target") or columns.get("label") or self._target()
        if not target:
            raise OptionError('target: expected the column to predict, target="price", got none')
        examples = list(labelled_rows(rows, target))
        part: Part = self.collected(lambda: examples, before)
        return part

    def tokenisers(self, rows: Rows) -> Tokenisers:
        return CELLS

    def questions(self, inputs: Any, options: RequestOptions = NOTHING) -> Part:
        """Questions. inputs: rows by column name, or columns by name."""
        rows = inputs if isinstance(inputs, Mapping) else list(inputs)
        examples = list(unlabelled_rows(rows, self._target()))
        part: Part = self.collected(lambda: examples)
        return part

    def question_lines(self, lines: Sequence[str]) -> Part:
        """Questions from lines, each a row as JSON."""
        return self.questions([row_of_line(line) for line in lines])

    def question_content(self, data: DataSettings) -> Content:
        """The content of questions, without the target's column, which files may have."""
        return TableContent((data.label, data.group, self._target()))

    def question_keys(self, origin: Origin) -> tuple[str, ...]:
        return ()

    def shown_input(self, example: Example) -> DisplayRow:
        return DisplayRow.of(example.value)

    def shown_line(self, line: str) -> DisplayRow:
        return DisplayRow(row_of_line(line))


class Columns(Input):
    """All columns of a row except the target and the group."""

    name = "columns"
    learned_class = LearnedColumns
    reader_class = ColumnsReader
    exact = True

    def learn(self, train: Part, model: ModelView) -> LearnedColumns:
        columns = TableColumns.learn(Grid.of(train), model.settings)
        return LearnedColumns(columns, str(model.roles.get("label", "")))

    def unpack_linear(
        self, saved: Saved, learned: LearnedColumns, target: Target, model: ModelView
    ) -> ColumnsLinear:
        return unpacked(ColumnsLinear, saved, input=learned, target=target, settings=model.settings)

    def share(self, settings: ColumnsSettings, target: Target) -> Share:
        return settings.linear_share or None

    def budget(self, settings: ColumnsSettings) -> Budget:
        return Budget(settings.batch_rows or 0)

    def answer_budget(self, settings: ColumnsSettings) -> int:
        return AT_ONCE

    def describe(self, settings: ColumnsSettings) -> str:
        units = " → ".join(map(str, settings.hidden))
        return f"{units} units, {', '.join(settings.activations)}" if units else "linear"
