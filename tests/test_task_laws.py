"""The laws of tasks, each over every row of the table: models in memory."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from pages import check_page, words
from task_data import Rows
from task_laws import FILED, LAWS, REACH, SEEDED, TABLE, WAYS, AnyModel, Row, every_task, law

from ensue import load
from ensue.cells import Cell
from ensue.cells.wrappers import OutputLayer
from ensue.data.frames.origin import Origin
from ensue.errors import ConfigError, EnsueError, OptionError, RunError
from ensue.layers import Recurrent
from ensue.metrics.table import METRICS
from ensue.settings import MOST_LISTED
from ensue.tasks import TASKS
from ensue.tasks.answers import answer_columns
from ensue.tasks.blocks.encoders import ENCODERS
from ensue.tasks.blocks.layer_settings import CellSettings
from ensue.tasks.evaluation.report import TimesOpened
from ensue.tasks.options import EVALUATE, EXPLAIN, PREDICT, TRAIN
from ensue.training import Notice, RunFolder, Stopped, Update

pytestmark = pytest.mark.usefixtures("ninth_task")
CLOSE = 1e-5


@pytest.fixture(scope="module")
def fitted() -> Callable[[Row], tuple[AnyModel, Path]]:
    """Each model of the table with the folder of its run: fitted by one process and read by all.
    That a model as it was fitted is the model that was read is among the laws."""

    @cache
    def of(row: Row) -> tuple[AnyModel, Path]:
        folder = row.run_folder()
        return load(folder), folder

    return of


Fitted = Callable[[Row], tuple[AnyModel, Path]]


def weights(model: AnyModel) -> list[torch.Tensor]:
    return [tensor for network in model.networks for tensor in network.state_dict().values()]


def assert_same(one: AnyModel, other: AnyModel) -> None:
    """The same bits: of the weights, and of everything else that was learned."""
    pairs = zip(weights(one), weights(other), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    packed, again = (model.task.pack(model.learned) for model in (one, other))
    assert packed.facts == again.facts
    assert packed.vocabularies == again.vocabularies
    assert packed.arrays.keys() == again.arrays.keys()
    assert all(np.array_equal(packed.arrays[n], again.arrays[n]) for n in packed.arrays)


def assert_answers_alike(one: AnyModel, other: AnyModel, row: Row) -> None:
    """The same model, whether it has just been fitted or read from files."""
    assert_same(one, other)
    assert one.predict(row.questions()) == other.predict(row.questions())
    test = row.parts()[2]
    assert one.evaluate(test, **row.data.columns) == other.evaluate(test, **row.data.columns)
    assert one.summary() == other.summary()
    assert one.config() == other.config()


def plain(answer: Any, drawn: Sequence[str] = ()) -> Any:
    """An answer as JSON has it; drawn: keys to leave out."""

    def as_plain(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {key: as_plain(entry) for key, entry in value.items() if key not in drawn}

    return as_plain(asdict(answer))


def assert_close(one: Any, other: Any) -> None:
    """Equal values; numbers within CLOSE."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_close(one[key], other[key])
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_close(a, b)
    elif isinstance(one, float):
        assert other == pytest.approx(one, rel=CLOSE, abs=CLOSE)
    else:
        assert one == other


# --- the table -------------------------------------------------------------------------------


def test_every_task_has_rows_and_one_with_files() -> None:
    assert {row.task for row in TABLE} == {*TASKS}
    assert [row.task for row in FILED] == [*dict.fromkeys(row.task for row in TABLE)]
    assert any(row.members > 1 for row in TABLE)


def reaches(row: Row) -> bool:
    return REACH.items() <= dict(row.model).items()


def test_every_task_with_recurrent_layers_has_a_row_with_all_that_they_can_do() -> None:
    layered = [name for name in TASKS if issubclass(TASKS[name].settings, CellSettings)]
    assert {row.task for row in TABLE if reaches(row)} >= {*layered}
    both = {name for name in layered if "bidirectional" in TASKS[name].settings.model_fields}
    assert {"classify", "regress", "match", "label", "translate"} <= both
    turned = {row.task for row in TABLE if WAYS.items() <= dict(row.model).items()}
    assert turned >= both
    pooled = {name for name in both if "pooling" in TASKS[name].settings.model_fields}
    assert all("final_states" in TASKS[name].settings.model_fields for name in pooled)


@law(reaches)
def test_recurrent_layers_of_a_task_are_as_its_settings_say(row: Row, fitted: Fitted) -> None:
    """The cell with its options and wrappers, a learned start, output layers between layers, where
    the backward direction begins."""
    model, _ = fitted(row)
    layers = [
        module
        for network in model.networks
        for module in network.modules()
        if isinstance(module, Recurrent) and module.num_layers == REACH["layers"]
    ]
    assert layers
    for layer in layers:
        for way in layer.ways:
            written = str(way.cell.equations())
            assert all(word in written for word in ("relu", "m_h*", "m*h"))  # zoneout and dropout
            assert way.learned_start
        *below, top = layer.ways[:: 1 + layer.bidirectional]
        assert all(isinstance(way.cell, OutputLayer) for way in below)
        assert not isinstance(top.cell, OutputLayer)
        if layer.bidirectional:
            assert layer.backward_start == row.model["backward_start"]


def test_every_family_encoder_and_solved_kind_has_a_row() -> None:
    for name in TASKS:
        rows = [row for row in TABLE if row.task == name]
        families = {row.new().settings.family for row in rows} if TASKS[name].families else set()
        assert families == {*TASKS[name].families}, name
    encoders = {getattr(row.new().settings, "encoder", "") for row in TABLE}
    assert {*ENCODERS} <= encoders


def test_exemptions_name_laws_with_their_reasons() -> None:
    import test_task_commands  # noqa: F401 — has the others

    for row in TABLE:
        assert row.exempt.keys() <= LAWS, row
        assert all(row.exempt.values())


# --- training --------------------------------------------------------------------------------


@law()
def test_the_seed_decides_the_weights(row: Row, fitted: Fitted) -> None:
    """And no earlier random draws."""
    model, _ = fitted(row)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(99)
        np.random.seed(99)
        assert_answers_alike(model, row.fitted(), row)
    other = row.fitted(model=row.new(seed=7))
    assert not all(map(torch.equal, weights(model), weights(other)))


class Stop:
    """A signal comes at the so-manieth update."""

    def __init__(self, after: int) -> None:
        self.left = after

    def __call__(self, row: Any) -> None:
        self.left -= isinstance(row, Update)
        if not self.left:
            self.left = 10**9
            signal.raise_signal(signal.SIGTERM)


def histories(folder: Path) -> dict[str, bytes]:
    paths = folder.rglob("history.jsonl")
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def last_update(folder: Path) -> int:
    """Of the first member."""
    rows = (folder / "history.jsonl").read_text("utf-8").splitlines()
    return int(json.loads(rows[-1])["update"])


@law()
def test_stopped_and_continued_is_never_stopped(row: Row, fitted: Fitted, tmp_path: Path) -> None:
    """Of two members, in the second one. In between its best weights so far can be used, which
    changes nothing."""
    model, folder = fitted(row)
    after = 2 if row.members == 1 else last_update(folder) + 2
    place = tmp_path / "run"
    with pytest.raises(Stopped):
        row.fitted(place, [Stop(after)])
    assert len(histories(place)) >= row.members
    assert histories(place) != histories(folder)
    best = load(place, best_so_far=True)
    assert len(best.networks) == row.members
    assert len(best.predict(row.questions())) == len(model.predict(row.questions()))
    packed, expected = (
        model_packed.task.pack(model_packed.learned) for model_packed in (best, model)
    )
    assert packed.vocabularies == expected.vocabularies
    again = row.fitted(place)
    assert_same(again, model)
    assert histories(place) == histories(folder)


@law()
def test_the_best_weights_of_a_training_are_those_of_its_model(
    row: Row, fitted: Fitted, tmp_path: Path
) -> None:
    model, folder = fitted(row)
    place = RunFolder(shutil.copytree(folder, tmp_path / "run"))
    place.model.rename(place.learned)  # as before the end: the weights are those of checkpoints
    best = load(place.path, best_so_far=True)
    assert all(map(torch.equal, weights(best), weights(model)))
    assert best.config() == model.config()


@law(lambda row: row.classes)
def test_validation_rows_with_new_labels_are_left_out_and_named(row: Row, fitted: Fitted) -> None:
    validation, messages = row.parts()[1], list[str]()

    def renamed(value: Any) -> Any:
        if isinstance(value, dict):
            column = row.data.columns.get("target") or row.data.columns["label"]
            return {**value, column: "unheard-of"}
        one = "unheard-of" if isinstance(value[1], str) else ["unheard-of"] * len(value[1])
        return value[0], one

    validation_rows = [renamed(validation[0]), *validation, renamed(validation[1])]
    model = row.fitted(
        watchers=[lambda event: messages.append(event.text) if isinstance(event, Notice) else None],
        validation_rows=validation_rows,
    )
    assert_same(model, fitted(row)[0])
    (line,) = [text for text in messages if "left out" in text]
    assert line.startswith("2 rows of the validation part left out")
    assert line.endswith(f": row:1, row:{len(validation_rows)}")


# --- answers ---------------------------------------------------------------------------------


@law()
def test_a_saved_model_answers_the_same(row: Row, fitted: Fitted, tmp_path: Path) -> None:
    model = row.fitted() if SEEDED in row.exempt else fitted(row)[0]
    model.save(tmp_path / "model")
    assert_answers_alike(type(model).load(tmp_path / "model"), model, row)
    assert {path.suffix for path in (tmp_path / "model").iterdir()} == {".json", ".safetensors"}


@law()
def test_a_model_is_a_base_or_says_why_not(row: Row, fitted: Fitted) -> None:
    model, _ = fitted(row)
    try:
        encoder = TASKS[row.task].transfers.gives(model, "lm", "0" * 64)
    except OptionError as error:
        message = str(error)
    else:
        message = ""
        assert encoder.encoder in ENCODERS
        assert encoder.weights or encoder.encoder == "plain"
        assert (encoder.words is None) != (encoder.mean is None)
    assert not message or "lm: " in message
    assert not message or "cannot be a base" in message


@law()
def test_rows_together_are_rows_alone(row: Row, fitted: Fitted) -> None:
    """However long their neighbours are, and in whatever order they come."""
    model, questions = fitted(row)[0], row.questions()
    together, backwards = model.predict(questions), model.predict(questions[::-1])[::-1]
    assert len(together) == len(questions)
    for question, one, other in zip(questions, together, backwards, strict=True):
        (alone,) = model.predict([question])
        assert_close(plain(alone), plain(one))
        assert_close(plain(alone), plain(other))


def framed(row: Row) -> bool:
    """Whether its rows are cells of a table; those of pictures are arrays of bytes."""
    return row.filed and bool(row.data.names) and row.task != "caption"


def frame_of(row: Row, rows: Rows, names: Sequence[str]) -> tuple[pd.DataFrame, dict[str, str]]:
    """The rows with these of their columns, and the roles of the columns."""
    task, count = TASKS[row.task], len(names)
    frame = pd.DataFrame(
        [tuple(row.data.cells(example))[:count] for example in rows], columns=names
    )
    roles = {key: role for role, key in reversed(task.columns.items())}
    reader = task.reader(row.new())
    keys = [f"data.{key}" for key in reader.question_keys(Origin(files=False))]
    columns_of_roles = {roles[key]: name for key, name in zip(keys, names, strict=False)}
    if "data.label" in roles and count == len(row.data.names):
        columns_of_roles[roles["data.label"]] = names[-1]
    return frame, columns_of_roles


@law(framed)
def test_a_data_frame_is_answered_as_its_rows_are(row: Row, fitted: Fitted) -> None:
    model, (_, _, tested, questions) = fitted(row)[0], row.parts()
    frame, columns = frame_of(row, questions, row.data.asked_names())
    predictions = model.predict(frame, **columns)
    assert type(predictions) is type(frame)
    for name, values in answer_columns(model.predict(row.questions())).items():
        is_taken = name in frame and model.task.needs_input
        column = f"predicted_{name}" if is_taken else name
        if name != "time":
            assert_close(predictions[column].tolist(), values)
    if model.task.needs_input:
        assert predictions[list(frame)].equals(frame)
    frame, columns = frame_of(row, tested, row.data.names)
    assert model.evaluate(frame, **columns).scores == (
        model.evaluate(tested, **row.data.columns).scores
    )


@law()
def test_the_order_of_rows_changes_no_score(row: Row, fitted: Fitted) -> None:
    model = fitted(row)[0]
    part = model.reader.labelled(row.parts()[2], row.data.columns)
    order = np.random.default_rng(1).permutation(len(part))
    one, other = (
        model.evaluate_part(part_ordered, {}) for part_ordered in (part, part.take(order))
    )
    assert_close(
        {name: score.value for name, score in one.scores.items()},
        {name: score.value for name, score in other.scores.items()},
    )
    for name in ("others", "baselines", "classes", "confusion", "rows", "steps"):
        assert_close(getattr(one, name), getattr(other, name))


@law()
def test_an_evaluation_has_a_baseline_and_a_score_that_can_be_watched(
    row: Row, fitted: Fitted
) -> None:
    model = fitted(row)[0]
    evaluation = model.evaluate(row.parts()[2], **row.data.columns)
    assert evaluation.baselines
    assert evaluation.main in {metric.name for metric in model.task.metrics}
    higher = next(
        metric.higher_is_better for metric in model.task.metrics if metric.name == evaluation.main
    )
    assert evaluation.higher_is_better == higher
    assert all(score.low <= score.value <= score.high for score in evaluation.scores.values())
    assert all(name in evaluation.as_text() for name in (*evaluation.scores, *evaluation.baselines))


@law()
def test_what_rows_add_makes_the_scores(row: Row, fitted: Fitted) -> None:
    """So that two models can be compared row by row."""
    model = fitted(row)[0]
    evaluation = model.evaluate(row.parts()[2], **row.data.columns)
    assert evaluation.sums.keys() == evaluation.scores.keys()
    for name, sums in evaluation.sums.items():
        assert sums.score() == pytest.approx(evaluation.scores[name].value)
    assert len({len(sums.values) for sums in evaluation.sums.values()}) == 1
    rows = len(next(iter(evaluation.sums.values())).values)
    assert not evaluation.names or evaluation.names == tuple(f"row:{k}" for k in range(1, rows + 1))


@law()
def test_an_evaluation_reads_back(row: Row, fitted: Fitted, tmp_path: Path) -> None:
    model = fitted(row)[0]
    evaluation = model.evaluate(row.parts()[2], **row.data.columns)
    evaluation = evaluation.opened_as(TimesOpened())  # true of its moment only, and not kept
    assert type(evaluation) is model.task.evaluation_class
    evaluation.save(tmp_path / "evaluation.json")
    again = type(evaluation).read(tmp_path / "evaluation.json")
    assert again.as_text() == evaluation.as_text()
    assert again.as_json() == json.loads(json.dumps(evaluation.as_json()))
    assert again.main == evaluation.main


@law(lambda row: row.members > 1)
def test_members_answer_together(row: Row, fitted: Fitted, tmp_path: Path) -> None:
    model = fitted(row)[0]
    model.save(tmp_path / "model")
    saved = {path.name for path in (tmp_path / "model").glob("network-*")}
    assert saved == {f"network-{k}.safetensors" for k in range(1, row.members + 1)}
    again = type(model).load(tmp_path / "model")
    assert len(again.networks) == row.members
    answers, members = answered(row, model), again.networks
    again.networks = members[::-1]
    assert_close(answers, answered(row, again))
    for member in members:
        again.networks = [member]
        assert answered(row, again) != answers


def answered(row: Row, model: AnyModel) -> list[Any]:
    return [plain(answer, row.drawn) for answer in model.predict(row.questions())]


@law()
def test_sixteen_threads_share_a_model(row: Row, fitted: Fitted) -> None:
    model, _ = fitted(row)
    rows = row.questions()
    others = rows if row.task == "forecast" else rows[:1]  # a question is one series there
    alone = [model.predict(rows), model.predict(others)]
    with ThreadPoolExecutor(16) as pool:
        together = list(pool.map(lambda k: model.predict(others if k % 2 else rows), range(16)))
    assert all(answers == alone[k % 2] for k, answers in enumerate(together))


@law()
def test_no_number_that_is_not_finite_leaves(row: Row, fitted: Fitted, tmp_path: Path) -> None:
    fitted(row)[0].save(tmp_path / "model")
    model = load(tmp_path / "model")
    for tensor in weights(model):
        if tensor.is_floating_point():
            tensor.fill_(3e38)
    try:
        answers = model.predict(row.questions())
    except EnsueError:
        return  # refused: nothing has left
    assert json.dumps([asdict(answer) for answer in answers], allow_nan=False)


# --- in a notebook ---------------------------------------------------------------------------


@law()
def test_a_notebook_shows_a_model_its_answers_and_its_evaluation(row: Row, fitted: Fitted) -> None:
    model, _ = fitted(row)
    page_words = words(check_page(model._repr_html_()))
    assert type(model).__name__ in page_words
    assert model.task.sentence in page_words
    assert model.task.describe(model) in page_words
    assert all(" ".join(line.split()) in page_words for line in model.task.facts(model))
    answers = model.predict(row.questions())
    assert type(answers[:2]) is type(answers)
    check_page(answers._repr_html_())
    check_page(answers[:1]._repr_html_())
    evaluation = model.evaluate(row.parts()[2], **row.data.columns)
    page_words = words(check_page(evaluation._repr_html_()))
    for name in (*evaluation.scores, *evaluation.others, *evaluation.baselines):
        assert name in page_words
    assert all(" ".join(mistake.text.split()) in page_words for mistake in evaluation.worst)


# --- what a task says of itself --------------------------------------------------------------


@every_task
def test_a_task_is_told_in_a_sentence_and_its_options_too(row: Row) -> None:
    task = TASKS[row.task]
    texts = [task.sentence, task.model_class.__doc__.partition("\n")[0]]  # type: ignore[union-attr]
    texts += [option.help for option in TASKS.options(row.task)]
    for text in texts:
        assert text[0].isupper() or text.startswith("p("), text
        assert text.endswith("."), text
        assert len(text) > 10
    assert task.name == row.task
    assert task.options == TASKS.options(row.task)
    for option in task.options:
        assert option.flag.startswith("--")
        assert {*option.verbs} <= {TRAIN, EVALUATE, PREDICT, EXPLAIN}
        assert option.verbs


@every_task
def test_only_the_metrics_of_a_task_can_be_watched(row: Row) -> None:
    names = [metric.name for metric in TASKS[row.task].metrics]
    assert row.new().train.watch in names
    for name in METRICS:
        if name in names:
            assert row.new(watch=name).train.watch == name
        else:
            with pytest.raises(OptionError) as error:
                row.new(watch=name)
            assert f"train.watch: expected one of {', '.join(names)}, got {name!r}" in str(
                error.value
            )


@every_task
def test_a_setting_that_there_is_not_is_told_with_the_one_that_was_meant(row: Row) -> None:
    known = list(TASKS[row.task].settings.model_fields)
    key = max(known, key=len)
    with pytest.raises(ConfigError) as error:
        row.new({f"{key[:-1]}": 1})
    expected = f"model.{key[:-1]}: unknown key, did you mean {key}? Known: {known[0]}, {known[1]}, "
    assert str(error.value).startswith(expected)
    assert all(f" {key}" in str(error.value) for key in known[:MOST_LISTED])
    more = f"and {len(known) - MOST_LISTED} more, which `ensue settings` lists"
    assert str(error.value).endswith(more if len(known) > MOST_LISTED else known[-1])


@every_task
def test_a_model_that_was_not_fitted_says_so(row: Row, tmp_path: Path) -> None:
    expected = f"this {row.task} model has not been fitted: call fit or load first"
    model = row.new()
    for ask in (
        lambda: model.predict(row.questions()),
        lambda: model.evaluate(row.parts()[2], **row.data.columns),
        lambda: model.save(tmp_path / "model"),
    ):
        with pytest.raises(OptionError) as error:
            ask()
        assert str(error.value) == expected
    assert not (tmp_path / "model").exists()
    assert type(model).__name__ in model.summary()


@every_task
def test_a_question_has_no_other_words_than_those_of_its_task(row: Row, fitted: Fitted) -> None:
    model = fitted(row)[0]
    for verb, ask in (
        (PREDICT, lambda: model.predict(row.questions(), nonsense=1)),
        (EVALUATE, lambda: model.evaluate(row.parts()[2], **row.data.columns, nonsense=1)),
    ):
        with pytest.raises(OptionError, match=f"word of {verb}.*nonsense"):
            ask()


# --- a custom cell, in Python ------------------------------------------------------------------

SOURCE = """
from ensue.cells import Cell
from ensue.equations import Matrix, Vector, tanh

class MyCell(Cell):
    W, U, b = Matrix("x"), Matrix("h"), Vector()

    def step(self, x, h):
        return 0.3 * h + 0.7 * tanh(self.W @ x + self.U @ h + self.b)
"""


def cell_without_file() -> type[Cell]:
    """As a notebook defines one."""
    names: dict[str, Any] = {"__name__": "notebook"}
    exec(SOURCE, names)
    return names["MyCell"]  # type: ignore[no-any-return]


def has_cell(row: Row) -> bool:
    return row.filed and row.task not in ("table", "image")


@law(has_cell)
def test_a_cell_handed_over_in_python_is_handed_over_again(
    row: Row, fitted: Fitted, tmp_path: Path
) -> None:
    kind = cell_without_file()
    model = row.fitted(model=row.new({"cell": kind()}))
    assert not all(
        a.shape == b.shape and torch.equal(a, b)
        for a, b in zip(weights(model), weights(fitted(row)[0]), strict=False)
    )
    model.save(tmp_path / "model")
    with pytest.raises(RunError, match=r"MyCell.*pass the class: load\(folder, cell=MyCell\)"):
        type(model).load(tmp_path / "model")
    again = type(model).load(tmp_path / "model", cell=kind)
    assert_same(model, again)
    assert again.predict(row.questions()) == model.predict(row.questions())
    other = cell_without_file()
    other.step = lambda self, x, h: self.W @ x + self.U @ h + self.b  # type: ignore[method-assign]
    with pytest.raises(OptionError, match="other equations than the cell"):
        type(model).load(tmp_path / "model", cell=other)


def test_the_law_is_about_every_task_with_a_cell() -> None:
    assert {row.task for row in FILED if has_cell(row)} == {
        name for name in TASKS if "cell" in TASKS[name].settings.model_fields
    }
