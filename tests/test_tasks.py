"""Memory tasks: targets follow from rows, rows from their numbers, and parts share none."""

from __future__ import annotations

import time

import numpy as np
import pytest

from ensue.data.tasks import TASKS, BuiltInTask, TaskBatch
from ensue.data.tasks.memory import copy, dyck
from ensue.data.tasks.task import PARTS, below, draws, uniform
from ensue.errors import DataError, EnsueError, OptionError

STEPS = 20
ROWS = 400


def rows_of(batch: TaskBatch) -> list[bytes]:
    """The content of each row, as what a model would see of it."""
    return [
        batch.x[:length, k].tobytes() + bytes([length % 256])
        for k, length in enumerate(batch.lengths.tolist())
    ]


# --- laws of all tasks -------------------------------------------------------------------


@pytest.mark.parametrize("name", TASKS)
def test_shapes_and_kinds(name: str) -> None:
    task = TASKS[name](STEPS)
    x, lengths, targets, mask = task.batch(0, 0, ROWS)
    time_steps = int(lengths.max())
    assert task.name == name
    assert x.shape == (time_steps, ROWS, task.features)
    assert x.dtype == np.float32
    assert x.flags.c_contiguous
    assert lengths.shape == (ROWS,)
    assert mask.shape == (time_steps, ROWS)
    real = np.arange(time_steps)[:, None] < lengths
    assert not x[~real].any()
    assert not mask[~real].any()
    assert mask.any(0).all()
    if task.kind == "labelling":
        assert targets.shape == (time_steps, ROWS)
        scored = targets[mask]
    else:
        assert targets.shape == (ROWS,)
        assert np.array_equal(mask.argmax(0), lengths - 1)  # the last real step alone
        assert mask.sum() == ROWS
        scored = targets
    if task.kind == "regression":
        assert scored.dtype == np.float32
        assert task.outputs == 1
    else:
        assert set(scored.tolist()) == set(range(task.outputs))


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("part", PARTS)
def test_a_row_is_a_function_of_seed_part_and_number(name: str, part: str) -> None:
    task = TASKS[name](STEPS)
    whole = task.batch(5, 0, 30, part)
    for first, count in ((0, 7), (7, 23)):
        some = task.batch(5, first, count, part)
        chosen = slice(first, first + count)
        assert some.lengths.tolist() == whole.lengths[chosen].tolist()
        assert rows_of(some) == rows_of(whole)[chosen]
        steps = len(some.x)
        assert np.array_equal(some.mask, whole.mask[:steps, chosen])
        if task.kind == "labelling":
            assert np.array_equal(some.targets, whole.targets[:steps, chosen])
        else:
            assert np.array_equal(some.targets, whole.targets[chosen])
    assert rows_of(task.batch(6, 0, 30, part)) != rows_of(whole)


@pytest.mark.parametrize("name", TASKS)
def test_no_row_is_in_two_parts(name: str) -> None:
    task = TASKS[name](12)  # few enough different rows that some would meet by chance
    inputs_of_parts = {
        part: {row for seed in (0, 1) for row in rows_of(task.batch(seed, 0, 3000, part))}
        for part in PARTS
    }
    for part in inputs_of_parts:
        others = set().union(
            *(inputs_of_parts[other] for other in inputs_of_parts if other != part)
        )
        assert not inputs_of_parts[part] & others


def without_memory(task: BuiltInTask, batch: TaskBatch) -> float:
    """The score of the best answer for each single input: a table, made from what it is
    tested on, so that it is as good as such an answer can be."""
    if task.kind == "regression":
        return float(((batch.targets - batch.targets.mean()) ** 2).mean())
    if task.kind == "classification":
        return float(np.bincount(batch.targets).max() / len(batch.targets))
    inputs, targets = batch.x[batch.mask], batch.targets[batch.mask]
    if task.name == "dyck":  # which bracket was closed says nothing about the next
        inputs = inputs[:, :0]
    keys = [row.tobytes() for row in inputs]
    right = 0
    for key in set(keys):
        chosen = targets[[k == key for k in keys]]
        right += np.bincount(chosen).max()
    return right / len(targets)


@pytest.mark.parametrize("name", TASKS)
def test_chance_is_what_an_answer_without_memory_gets(name: str) -> None:
    task = TASKS[name](STEPS)
    chance = without_memory(task, task.batch(1, 0, 8000))
    within = {"rel": 0.05} if task.kind == "regression" else {"abs": 0.015}
    assert chance == pytest.approx(task.chance, **within)
    assert not task.solved(task.chance)
    assert task.solved(0.0 if task.kind == "regression" else 1.0)


@pytest.mark.parametrize("name", TASKS)
def test_ten_thousand_rows_take_a_moment(name: str) -> None:
    task = TASKS[name](100)
    start = time.process_time()
    task.batch(0, 0, 10_000)
    assert time.process_time() - start < 1


# --- each task by its own definition -----------------------------------------------------


def test_counting_counts_ones_as_the_algorithm_of_one_memory_cell_does() -> None:
    x, lengths, targets, _ = TASKS["counting"](STEPS).batch(0, 0, ROWS)
    for k, length in enumerate(lengths.tolist()):
        memory = 0
        for value in x[:length, k, 0].tolist():
            memory = memory if value == 0 else memory + 1
        assert targets[k] == pytest.approx(memory / STEPS)
    assert set(lengths.tolist()) == set(range(STEPS // 2, STEPS + 1))


def test_adding_adds_the_two_marked_numbers_one_in_each_half() -> None:
    x, lengths, targets, _ = TASKS["adding"](STEPS).batch(0, 0, ROWS)
    values, marks = x[..., 0], x[..., 1]
    assert set(lengths.tolist()) == {STEPS}
    assert ((values >= 0) & (values < 1)).all()
    assert (marks[: STEPS // 2].sum(0) == 1).all()
    assert (marks[STEPS // 2 :].sum(0) == 1).all()
    assert np.allclose((values * marks).sum(0), targets, atol=1e-6)
    assert TASKS["adding"](STEPS).chance == pytest.approx(0.167, abs=5e-4)
    assert set(marks.argmax(0).tolist()) == set(range(STEPS // 2))


def test_temporal_order_is_the_order_of_x_and_y() -> None:
    x, lengths, targets, _ = TASKS["temporal order"](100).batch(0, 0, ROWS)
    assert set(lengths.tolist()) == set(range(100, 111))
    for k, length in enumerate(lengths.tolist()):
        text = "".join("BTXYabcd"[symbol] for symbol in x[:length, k].argmax(1))
        assert (text[0], text[-1]) == ("B", "T")
        places = [at for at, symbol in enumerate(text) if symbol in "XY"]
        assert len(places) == 2
        assert 10 <= places[0] <= 20
        assert 50 <= places[1] <= 60
        assert ["XX", "XY", "YX", "YY"][targets[k]] == text[places[0]] + text[places[1]]


def test_copy_asks_for_what_was_read_first() -> None:
    x, lengths, targets, mask = copy(7, symbols=4, alphabet=3).batch(0, 0, 20)
    read = x.argmax(2)
    assert set(lengths.tolist()) == {4 + 7 + 4}
    assert np.array_equal(targets[-4:], read[:4])
    assert mask[-4:].all()
    assert not mask[:-4].any()
    assert (read[4:10] == 3).all()  # blanks
    assert (read[10] == 4).all()  # the sign to go
    assert (read[11:] == 3).all()


def test_parity_is_that_of_the_ones_so_far() -> None:
    x, _, targets, mask = TASKS["parity"](STEPS).batch(0, 0, ROWS)
    odd = np.zeros(ROWS, bool)
    for bits, answer in zip(x[..., 0], targets, strict=True):
        odd ^= bits == 1
        assert np.array_equal(answer == 1, odd)
    assert mask.all()


@pytest.mark.parametrize(("kinds", "depth"), [(1, 3), (2, 4), (3, 1)])
def test_dyck_brackets_match_and_the_next_to_close_is_the_last_open(kinds, depth: int) -> None:
    x, _, targets, mask = dyck(30, kinds=kinds, depth=depth).batch(0, 0, 100)
    deepest = 0
    for k in range(100):
        waiting: list[int] = []
        for t, symbol in enumerate(x[:, k].argmax(1).tolist()):
            closes = symbol >= kinds
            if closes:
                assert waiting.pop() == symbol - kinds
            else:
                waiting.append(symbol)
            deepest = max(deepest, len(waiting))
            assert targets[t, k] == (waiting[-1] + 1 if waiting else 0)
            assert mask[t, k] == closes
    assert deepest == depth


# --- draws -------------------------------------------------------------------------------


def test_draws_depend_on_key_row_and_column_and_on_nothing_else() -> None:
    table = draws(9, np.arange(1000), 8)
    assert np.array_equal(draws(9, np.array([500, 3]), 5), table[[500, 3], :5])
    assert not np.array_equal(draws(8, np.arange(1000), 8), table)
    assert len(np.unique(table)) == table.size


def test_draws_look_like_chance() -> None:
    drawn = draws(1, np.arange(2000), 50)
    values = uniform(drawn)
    assert values.min() >= 0
    assert values.max() < 1
    assert values.mean() == pytest.approx(0.5, abs=0.005)
    assert values.std() == pytest.approx(12**-0.5, abs=0.005)
    for other in (values[1:, :-1], values[:-1, 1:], values[1:, 1:]):  # rows, columns, both
        assert abs(np.corrcoef(values[:-1, :-1].ravel(), other.ravel())[0, 1]) < 0.02
    counts = np.bincount(below(drawn, 7).ravel(), minlength=7)
    assert len(counts) == 7
    assert np.allclose(counts / counts.sum(), 1 / 7, atol=0.005)


# --- messages ----------------------------------------------------------------------------

MESSAGES = [
    (
        lambda: TASKS["adding"](10).batch(0, 0, 1, "tests"),
        OptionError,
        "unknown part 'tests': did you mean 'test'? Known: test, train, validation",
    ),
    (
        lambda: TASKS["adding"](10).batch(0, -1, 0),
        OptionError,
        "expected first ≥ 0 and count ≥ 1, got -1 and 0",
    ),
    (lambda: TASKS["adding"](1), OptionError, "steps: expected a number ≥ 2, got 1"),
    (lambda: TASKS["temporal order"](9), OptionError, "steps: expected a number ≥ 10, got 9"),
    (lambda: TASKS["counting"](3), OptionError, "steps: expected a number ≥ 4, got 3"),
    (lambda: TASKS["parity"](3), OptionError, "steps: expected a number ≥ 4, got 3"),
    (lambda: dyck(4), OptionError, "steps: expected a number ≥ 5, got 4"),
    (lambda: dyck(9, kinds=0), OptionError, "kinds: expected a number ≥ 1, got 0"),
    (lambda: copy(9, alphabet=1), OptionError, "alphabet: expected a number ≥ 2, got 1"),
    (
        lambda: [copy(9, symbols=1, alphabet=2).batch(0, 0, 9, part) for part in PARTS],
        DataError,
        "copy: there are too few different rows to share them out between "
        "train, validation, test: use more steps",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), MESSAGES)
def test_messages(call, kind: type[EnsueError], message: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == message
