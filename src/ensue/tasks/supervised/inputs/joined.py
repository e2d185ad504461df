"""Several inputs together: texts, columns, a picture and a tree of one row are joined to one
vector."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ensue.data.frames.origin import FILES, Origin
from ensue.data.pictures.endings import is_image
from ensue.data.rows import Place, ProblemCallback, Row
from ensue.data.settings import DataSettings
from ensue.data.values import Unfit
from ensue.errors import ConfigError, DataError, OptionError
from ensue.settings import Table, known_keys, unknown_key
from ensue.settings import together as all_together
from ensue.tasks.abilities import NOTHING, RequestOptions
from ensue.tasks.any_model import AnyModel
from ensue.tasks.blocks.layer_settings import cell_references
from ensue.tasks.codec import unpacked
from ensue.tasks.columns.cells import DisplayRow, Grid, row_of_line, rows_of
from ensue.tasks.columns.recognise import table_recipe
from ensue.tasks.reader import NO_COLUMNS, QuestionFiles
from ensue.tasks.rows.collect import IN_MEMORY, Collector, Content, Example
from ensue.tasks.rows.part import Numbers
from ensue.tasks.rows.reader import AT_ONCE, Reading, Rows, asked_rows, together
from ensue.tasks.rows.recipe import text_recipe
from ensue.tasks.saved import Saved
from ensue.tasks.search.ranges import Searched, Space
from ensue.tasks.search.usual import RANGES, TRAINING
from ensue.tasks.supervised.input import Input, InputReader
from ensue.tasks.supervised.inputs.joined_kinds import KINDS, SPACES, Kind
from ensue.tasks.supervised.inputs.joined_learned import (
    InputView,
    JoinedLinear,
    JoinedPart,
    LearnedJoined,
    saved_of,
)
from ensue.tasks.supervised.inputs.text import MIXED
from ensue.tasks.supervised.learned import Linear, Share
from ensue.tasks.targets.target import Target
from ensue.tasks.task import Recipe

if TYPE_CHECKING:
    from ensue.tasks.any_model import ModelView

SHOWN = 40  # maximum characters of a value in a message
BESIDE = "columns"  # name of the input of columns


# --- which they are ------------------------------------------------------------------------------


@dataclass(frozen=True)
class JoinedInput:
    """One of several inputs. name: the name of its table; kind: a row of KINDS."""

    name: str
    kind: str
    columns: tuple[str, ...]

    @property
    def reads(self) -> Kind:
        return KINDS[self.kind]


def joined_inputs(data: DataSettings) -> tuple[JoinedInput, ...]:
    """The inputs of data in order: texts, columns, picture, tree; () for a single input."""
    if not data.joins:
        return ()
    sources: list[tuple[str, tuple[str, ...]]] = [("text", (column,)) for column in data.texts]
    sources += [("columns", tuple(data.columns))] * bool(data.columns)
    sources += [("picture", (data.image,))] * bool(data.image)
    sources += [("tree", (data.tree,))] * bool(data.tree)
    names: list[str] = []
    for kind, columns in sources:
        names.append(_free_name(BESIDE if kind == "columns" else columns[0], names))
    return tuple(JoinedInput(name, *source) for name, source in zip(names, sources, strict=True))


def _free_name(column: str, names: Sequence[str]) -> str:
    """The name of a column as a unique TOML key."""
    plain = re.sub(r"\W+", "_", column).strip("_") or "input"
    others = (f"{plain}_{number}" for number in range(2, len(names) + 3))
    return next(name for name in (plain, *others) if name not in names)


def joined_data(roles: Mapping[str, Any]) -> DataSettings:
    """The [data] table for rows in memory. roles: keys of [data]."""
    return DataSettings.of({"train": [IN_MEMORY], **roles}, "data")


def input_tables(
    inputs: Sequence[JoinedInput], tables_of_inputs: Mapping[str, Any], shared: Mapping[str, Any]
) -> dict[str, Table]:
    """The settings of each input; one message lists all problems. tables_of_inputs: its table, if
    any; shared: given keys of [text] and [model], for the texts."""
    names = [each.name for each in inputs]
    wrong = [
        f"inputs.{name}: {unknown_key(name, names, 'input')}{known_keys(names)}"
        for name in tables_of_inputs
        if name not in names
    ]
    tables: dict[str, Table] = {}
    for each in inputs:
        table, kind = tables_of_inputs.get(each.name, {}), each.reads
        table = table.table() if isinstance(table, Table) else table
        if not isinstance(table, Mapping):
            wrong.append(
                f"inputs.{each.name}: expected a table, [inputs.{each.name}], got {table!r}"
            )
            continue
        fields = kind.table.model_fields
        usual = {key: shared[key] for key in kind.shared if key in shared and key in fields}
        usual = {**kind.defaults, **usual}
        try:
            tables[each.name] = kind.table.of(
                {**usual, "kind": each.kind, **table}, f"inputs.{each.name}"
            )
        except ConfigError as error:
            wrong.append(str(error))
            continue
        wrong += [
            f"inputs.{each.name}.{key}: expected the name of a built-in cell, got {cell}: cells of "
            "your own are read by one input alone"
            for key, cell in cell_references(tables[each.name]).items()
        ]
    if wrong:
        raise ConfigError(all_together(wrong))
    return tables


class JoinsInputs:
    """Texts, columns, a picture and a tree, read together."""

    def input_of(self, roles: Mapping[str, Any]) -> Joined | None:
        several = roles.get("image") or roles.get("tree") or isinstance(roles.get("text"), list)
        return Joined(joined_inputs(joined_data(roles))) if several else None

    def tables(
        self, data: DataSettings, tables_of_inputs: Mapping[str, Any], shared: Mapping[str, Any]
    ) -> Mapping[str, Table]:
        for key in ("second", "sequence"):
            if value := getattr(data, key):
                raise ConfigError(
                    f"data.{key}: expected none with several inputs, got {value!r}: pairs and "
                    "tables of time steps are read alone"
                )
        return input_tables(joined_inputs(data), tables_of_inputs, shared)

    def space(self, model: AnyModel) -> Space:
        """The search space: settings of each input, and of the training."""
        ranges: dict[str, Searched] = {}
        for name, table in model.inputs.items():
            fields = type(table).model_fields
            begin = f"inputs.{name}."
            for key, row in RANGES.items():
                if key in fields and getattr(table, key) is not None:
                    when = {
                        name.replace("model.", begin): value
                        for name, value in row.when.items()
                        if name.removeprefix("model.") in fields
                    }
                    ranges[f"{begin}{key}"] = Searched(row.range, when)
        return {**ranges, **TRAINING}


# --- rows ----------------------------------------------------------------------------------------


class JoinedContent(Content):
    """The inputs of a row by name. in_files: whether rows come from files, with pictures next to
    them; look: whether pictures are read."""

    def __init__(
        self, inputs: Sequence[JoinedInput], in_files: bool = True, look: bool = True
    ) -> None:
        self._inputs, self._in_files, self._look = inputs, in_files, look

    def example(self, row: Row, data: DataSettings) -> Example:
        value: dict[str, Any] = {}
        for each in self._inputs:
            try:
                value[each.name] = each.reads.value(row, each.columns)
            except Unfit as unfit:
                raise Unfit(f"{', '.join(each.columns)}: {unfit}") from None
        label = None
        if data.label:
            try:
                label = self.label(row, data, value)
            except Unfit as unfit:
                raise Unfit(f"{data.label}: {unfit}") from None
        return Example(value, label, row.place)

    def hashed(self, example: Example) -> str:
        return "\n".join(each.reads.as_text(example.value[each.name]) for each in self._inputs)

    def looked_up(self, example: Example, data: DataSettings) -> Example:
        if not self._look:
            return example
        value = dict(example.value)
        for each in self._inputs:
            try:
                value[each.name] = each.reads.looked_up(
                    value[each.name], example.place, each.columns, self._in_files
                )
            except Unfit as unfit:
                raise Unfit(f"{', '.join(each.columns)}: {unfit}") from None
        return example._replace(value=value)


def examples_in_memory(
    inputs: Sequence[JoinedInput], rows: Any, roles: Mapping[str, Any]
) -> list[Example]:
    """Examples from rows by column name, or columns by name."""
    content, data, examples = JoinedContent(inputs, in_files=False), joined_data(roles), []
    for number, row in enumerate(rows_of(rows), 1):
        place = Place(IN_MEMORY, number)
        try:
            examples.append(content.looked_up(content.example(Row(place, dict(row)), data), data))
        except Unfit as unfit:
            raise DataError(f"{place}: {unfit}") from None
    return examples


class JoinedFiles:
    """The parts of a run's files, or of a data frame."""

    def __init__(
        self,
        reader: JoinedReader,
        data: DataSettings,
        on_bad_row: ProblemCallback | None,
        origin: Origin,
    ) -> None:
        self._reader, self._data = reader, data
        self._on_bad_row, self._origin = on_bad_row, origin
        self.rejected = 0

    def part(self, name: str, like: JoinedPart | None = None) -> JoinedPart:
        """Reads a part; pictures are read once, in the last pass over the rows."""
        reading, texts = self._reading(True, self._on_bad_row), self._reading(False, None)
        part = self._reader.collected_of(lambda: reading.rows(name), lambda: texts.rows(name), like)
        self.rejected = reading.rejected
        return part

    def _reading(self, look: bool, on_bad_row: ProblemCallback | None) -> Reading:
        content = JoinedContent(self._reader.inputs, self._origin.files, look)
        return Reading(self._data, content, on_bad_row, self._origin)


class JoinedReader(InputReader[JoinedPart]):
    """Reads rows by column name. joined: the inputs of their columns."""

    def __init__(self, joined: Joined, model: AnyModel) -> None:
        super().__init__(model)
        self.joined, self.inputs = joined, joined.inputs

    def files(
        self, data: DataSettings, on_bad_row: ProblemCallback | None = None, origin: Origin = FILES
    ) -> JoinedFiles:
        return JoinedFiles(self, data, on_bad_row, origin)

    def labelled(
        self,
        rows: Any,
        columns: Mapping[str, Any] = NO_COLUMNS,
        before: JoinedPart | None = None,
    ) -> JoinedPart:
        label = columns.get("label") or self.model.roles.get("label", "")
        if not label:
            raise OptionError('label: expected the column to predict, label="sold", got none')
        examples = examples_in_memory(self.inputs, rows, {**self.model.roles, "label": label})
        return self.collected(lambda: examples, before)

    def questions(self, inputs: Any, options: RequestOptions = NOTHING) -> JoinedPart:
        roles = {**self.model.roles, "label": "", "separator": ""}
        examples = examples_in_memory(self.inputs, inputs, roles)
        return self.collected(lambda: examples)

    def question_lines(self, lines: Sequence[str]) -> JoinedPart:
        """Each line is a row as JSON."""
        return self.questions([row_of_line(line) for line in lines])

    def question_rows(self, files: QuestionFiles) -> Iterator[list[Example]]:
        from_files = files.origin.files
        if pictures := [path for path in files.paths if from_files and is_image(Path(path))]:
            row = {column: "…" for each in self.inputs for column in each.columns}
            raise OptionError(
                f"{pictures[0]}: expected a table that names pictures, with the columns "
                f"{', '.join(row)}, got a picture: give a table, or rows as JSON on the standard "
                f"input, {json.dumps(row, ensure_ascii=False)}"
            )
        return together(asked_rows(JoinedContent(self.inputs, from_files), files), AT_ONCE)

    def question_content(self, data: DataSettings) -> Content:
        return JoinedContent(self.inputs)

    def question_keys(self, origin: Origin) -> tuple[str, ...]:
        return ()

    def named_row(self, role: str, value: str) -> Mapping[str, Any]:
        """A row as JSON, or the value of the only input of this role."""
        only = self.inputs[0] if len(self.inputs) == 1 else None
        if value.lstrip().startswith("{"):
            return row_of_line(value, f"--{role}")
        if only is not None and only.reads.role == role:
            return {only.columns[0]: value}
        row = {column: "…" for each in self.inputs for column in each.columns}
        raise OptionError(
            f"--{role}: expected a row by column name, got {value[:SHOWN]!r}: explain this run "
            f"with --file FILE --row N, or --values '{json.dumps(row, ensure_ascii=False)}'"
        )

    def shown_line(self, line: str) -> DisplayRow:
        return DisplayRow(row_of_line(line))

    def shown_input(self, example: Example) -> DisplayRow:
        return DisplayRow(
            {
                column: value
                for each in self.inputs
                for column, value in each.reads.as_fields(
                    example.value[each.name], each.columns
                ).items()
            }
        )

    def collected(self, rows: Rows, like: JoinedPart | None = None) -> JoinedPart:
        return self.collected_of(rows, rows, like)

    def collected_of(self, rows: Rows, texts: Rows, like: JoinedPart | None) -> JoinedPart:
        """A part of each input, from one pass over the rows. texts: the same rows without
        pictures."""
        numbers = Numbers() if like is None else like.numbers
        views, collectors = self.joined.views(self.model), dict[str, Any]()
        for input_of_row in self.inputs:
            before = None if like is None else like.parts[input_of_row.name]
            each = Numbers(labels=numbers.labels) if before is None else before.numbers

            def values(name: str = input_of_row.name) -> Iterator[Any]:
                return (row.value[name] for row in texts())

            collectors[input_of_row.name] = input_of_row.reads.collector(
                values, each, views[input_of_row.name], before
            )
        labels = Collector(numbers, SPACES)
        for example in rows():
            for name, collector in collectors.items():
                collector.add(Example(example.value[name], None, example.place))
            labels.add(Example([], example.label, example.place))
        labelled = labels.done()
        known = {"labels": labelled.labels, "unlabelled": labelled.unlabelled}
        parts = {name: replace(collector.done(), **known) for name, collector in collectors.items()}
        return JoinedPart(parts, labelled.labels, labelled.names, numbers, labelled.unlabelled)


# --- the input -----------------------------------------------------------------------------------


class Joined(Input):
    """Several inputs of one row."""

    name = "joined"

    def __init__(self, inputs: Sequence[JoinedInput]) -> None:
        self.inputs = tuple(inputs)

    def views(self, model: ModelView) -> dict[str, InputView]:
        """The view of the model for each input."""
        settings: Any = model.settings
        most = self.answer_budget(settings)
        by_name = {}
        for each in self.inputs:
            table, kind = model.inputs[each.name], each.reads
            unit = 1 if kind.at_once is None else max(1, most // kind.at_once)
            column = "" if each.kind == "columns" else each.columns[0]
            network = kind.settings(table, settings.linear)
            by_name[each.name] = InputView(
                model, each.name, each.kind, column, network, kind.text(table), unit
            )
        return by_name

    def reader(self, model: AnyModel) -> JoinedReader:
        return JoinedReader(self, model)

    # ------------------------------------------------------------- learned
    def learn(self, train: JoinedPart, model: ModelView) -> LearnedJoined:
        if getattr(model.settings, "ngrams", 0):
            raise OptionError(
                f"model.ngrams: expected 0 with several inputs, got {model.settings.ngrams}; "
                "model.linear = mixed reads n-grams of every text"
            )
        views = self.views(model)
        learned = {
            each.name: each.reads.input.learn(train.parts[each.name], views[each.name])
            for each in self.inputs
        }
        return LearnedJoined(learned, self.views)

    def unpack(self, saved: Saved, model: ModelView) -> LearnedJoined:
        views = self.views(model)
        learned = {
            each.name: each.reads.input.unpack(saved_of(saved, each.name), views[each.name])
            for each in self.inputs
        }
        return LearnedJoined(learned, self.views)

    def unpack_linear(
        self, saved: Saved, learned: LearnedJoined, target: Target, model: ModelView
    ) -> Linear | None:
        views, linears = self.views(model), dict[str, Linear]()
        for each in self.inputs:
            linear = each.reads.input.unpack_linear(
                saved_of(saved, each.name),
                learned.inputs[each.name],
                target,
                views[each.name],
            )
            if linear is not None:
                linears[each.name] = linear
        return unpacked(JoinedLinear, saved, views=linears, target=target) if linears else None

    def share(self, settings: Any, target: Target) -> Share:
        return "fitted" if settings.linear == MIXED else None

    # ------------------------------------------------------------- looked at
    def describe(self, settings: Any) -> str:
        listed = ", ".join(f"{each.name} ({each.kind})" for each in self.inputs)
        return f"one vector of {listed}"


# --- defaults ------------------------------------------------------------------------------------

EPOCHS, PATIENCE = 30, 5  # where no text tells


def joined_recipe(train: JoinedPart, model: AnyModel, kind: str, mixed: bool) -> Recipe:
    """The recipe of several inputs. kind: the kind of the target; mixed: whether a linear model is
    mixed with the network."""
    tables: dict[str, dict[str, Any]] = {"train": {}, "inputs": {}}
    why = list[str]()
    joined = JoinsInputs().input_of(model.roles)
    assert joined is not None
    for name, view in joined.views(model).items():
        table, explicit = model.inputs[name], model.explicit_inputs.get(name, frozenset())
        recipe = _own_recipe(train.parts[name], view, kind, explicit)
        keys = {**recipe.tables.get("text", {}), **recipe.tables.get("model", {})}
        fields = type(table).model_fields
        new = {key: value for key, value in keys.items() if key in fields and key not in explicit}
        if new:
            tables["inputs"][name] = type(table).of({**table.table(), **new}, f"inputs.{name}")
        if "epochs" in recipe.tables.get("train", {}):
            most = recipe.tables["train"]["epochs"]
            tables["train"]["epochs"] = min(most, tables["train"].get("epochs", most))
            tables["train"]["patience"] = recipe.tables["train"]["patience"]
        if recipe.why:
            reason = recipe.why.replace("text.level", "level").replace("model.", f"inputs.{name}.")
            why.append(f"{name}: {reason}")
    if not tables["train"]:
        tables["train"] = {"epochs": EPOCHS, "patience": PATIENCE}
    if mixed:
        tables["model"] = {"linear": "mixed"}
    return Recipe(tables, "; ".join(why))


def _own_recipe(part: Any, view: InputView, kind: str, explicit: frozenset[str]) -> Recipe:
    """The recipe of one input."""
    model: Any = view
    if view.kind == "text":
        return text_recipe(part, model, mixed=False)
    if view.kind == "columns":
        return table_recipe(Grid.of(part), kind, view.settings, explicit)
    return Recipe()
