"""Searches over tables of probabilities: against all sequences there are, and one another."""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from ensue import decoding
from ensue.decoding import (
    BeamSearch,
    Hypothesis,
    Sampling,
    Shared,
    beam,
    exact,
    greedy,
    reordered,
    sample,
    score,
)
from ensue.decoding.step import largest

END = 0
PENALTIES = [("wu", 0.0), ("wu", 0.6), ("wu", 3.0), ("length", 0.5), ("length", 1.0)]


class Prefix:
    """A step whose probabilities depend on the row's number and on every word before."""

    def __init__(self, words: int = 4, sharp: float = 2.0, end_bias: float = 0.0) -> None:
        self.words, self.sharp, self.end_bias = words, sharp, end_bias
        self.batch_sizes: list[int] = []

    def begin(self, rows: int) -> dict[str, Tensor]:
        return {"code": torch.arange(rows) * 7919 + 11}

    def __call__(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        self.batch_sizes.append(len(tokens))
        code = (state["code"] * 31 + tokens * 17 + 5) % 1_000_003
        angles = code[:, None].double() * (torch.arange(self.words) + 1.37) * 0.713
        scores = self.sharp * angles.sin()
        scores[:, END] += self.end_bias
        return scores.log_softmax(1), {"code": code}


def start(rows: int) -> Tensor:
    return torch.full((rows,), 1)


def exhaustive(
    step: Prefix, rows: int, most: int, penalty: str = "wu", alpha: float = 0.0, end: Any = END
) -> list[list[tuple[tuple[int, ...], float]]]:
    """Every sequence of each row that is over, with its score, best first; one by one."""

    def grown(words: tuple[int, ...], total: float, state: Any) -> Any:
        n = len(words)
        if n == most or words[-1:] == (end,):
            yield words, total / (((5 + n) / 6) if penalty == "wu" else n) ** alpha
            return
        log_probs, state = step(torch.tensor(words[-1:] or (1,)), state)
        for word, value in enumerate(log_probs[0].tolist()):
            yield from grown((*words, word), total + value, state)

    hypotheses = []
    for code in step.begin(rows)["code"]:
        sequences = list(grown((), 0.0, {"code": code[None]}))
        assert sum(math.exp(total) for _, total in sequences) == pytest.approx(1) or alpha
        hypotheses.append(sorted(sequences, key=lambda one: -one[1]))
    return hypotheses


def assert_best(hypotheses: list[list[Hypothesis]], expected: Any) -> None:
    for of_row, best in zip(hypotheses, expected, strict=True):
        assert [one.tokens for one in of_row] == [tokens for tokens, _ in best[: len(of_row)]]
        assert [one.score for one in of_row] == pytest.approx([s for _, s in best[: len(of_row)]])


# --- the best of all ------------------------------------------------------------------


@pytest.mark.parametrize(("penalty", "alpha"), PENALTIES)
@pytest.mark.parametrize("end", [END, None])
def test_a_beam_of_full_width_is_exhaustive(penalty: str, alpha: float, end: int | None) -> None:
    step, rows, most = Prefix(3), 3, 4
    hypotheses = beam(
        step,
        start(rows),
        step.begin(rows),
        BeamSearch(width=3**most, n_best=30, length_penalty=penalty, alpha=alpha),
        end=end,
        most_steps=most,
    )
    assert [len(of_row) for of_row in hypotheses] == [30] * rows
    assert_best(hypotheses, exhaustive(step, rows, most, penalty, alpha, end))


@pytest.mark.parametrize("end", [END, None])
@pytest.mark.parametrize(("sharp", "end_bias"), [(0.5, -3.0), (0.5, 0.0), (0.5, 2.0), (5.0, 0.0)])
def test_exact_is_exhaustive(
    end: int | None, sharp: float, end_bias: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("ensue.decoding.exact"), "KNOWN", 1)
    step, rows, most = Prefix(4, sharp=sharp, end_bias=end_bias), 12, 4
    hypotheses = exact(step, start(rows), step.begin(rows), end=end, most_steps=most)
    assert_best([[one] for one in hypotheses], exhaustive(step, rows, most, end=end))


def test_exact_finds_what_a_beam_misses() -> None:
    """Word 1 looks best, yet all after it is improbable; word 5 comes last in any beam."""
    table = torch.full((7, 7), 1 / 6).double()
    table[6] = torch.tensor([0.0, 0.25, 0.2, 0.19, 0.18, 0.17, 0.01])
    table[5] = torch.tensor([0.97, 0.005, 0.005, 0.005, 0.005, 0.005, 0.005])
    table[:5, 0] = 1e-3

    def step(tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        return (table / table.sum(1, keepdim=True)).log()[tokens], state

    options: dict[str, Any] = {"end": 0, "most_steps": 3}
    best = exact(step, torch.tensor([6]), (), **options)[0]
    assert best.tokens == (5, 0)
    assert beam(step, torch.tensor([6]), (), BeamSearch(width=4), **options)[0][0].tokens != (5, 0)
    assert best == beam(step, torch.tensor([6]), (), BeamSearch(width=6), **options)[0][0]


def test_a_beam_of_one_is_greedy() -> None:
    step, rows = Prefix(9), 40
    options: dict[str, Any] = {"end": END, "most_steps": 12}
    one = beam(step, start(rows), step.begin(rows), BeamSearch(width=1), **options)
    assert [of_row[0] for of_row in one] == greedy(step, start(rows), step.begin(rows), **options)
    lengths = {len(of_row[0].tokens) for of_row in one}
    assert len(lengths) > 4
    assert {of_row[0].ended for of_row in one} == {True, False}


# --- laws of every search -------------------------------------------------------------

SEARCHES: dict[str, Any] = {
    "greedy": lambda *arguments, **options: [[one] for one in greedy(*arguments, **options)],
    "sample": lambda *arguments, **options: [
        [one] for one in sample(*arguments, Sampling(seed=3), **options)
    ],
    "exact": lambda *arguments, **options: [[one] for one in exact(*arguments, **options)],
    "beam": lambda *arguments, **options: beam(
        *arguments, BeamSearch(width=5, n_best=3), **options
    ),
    "beam, mean": lambda *arguments, **options: beam(
        *arguments, BeamSearch(width=4, n_best=4, length_penalty="length", alpha=1.0), **options
    ),
}


@pytest.fixture(params=SEARCHES, name="search")
def _search(request: pytest.FixtureRequest) -> Any:
    return SEARCHES[request.param]


def last_code(state: Any) -> Tensor:
    return torch.stack([state["code"], state["code"] % 10], 1).double()


def test_each_hypothesis_is_what_the_step_says(search: Any) -> None:
    """Its log p is that of its words, forced, and what was watched is what they met."""
    step, rows = Prefix(6), 9
    hypotheses = search(
        step,
        start(rows),
        step.begin(rows),
        end=END,
        most_steps=7,
        reorder=reordered,
        watch=last_code,
    )
    for row, of_row in enumerate(hypotheses):
        for one in of_row:
            state = reordered(step.begin(rows), torch.tensor([row]))
            tokens = torch.tensor(one.tokens)[:, None]
            forced = score(step, start(1), state, tokens)
            assert one.log_probability == pytest.approx(float(forced.sum()), abs=1e-9)
            met, before = [], 1
            for word in one.tokens:
                _, state = step(torch.tensor([before]), state)
                met.append(last_code(state)[0])
                before = word
            assert one.watched is not None
            assert torch.equal(one.watched, torch.stack(met))


def test_sequences_end_at_the_end_or_at_most_steps(search: Any) -> None:
    step, rows = Prefix(5), 12
    limits = torch.arange(rows) % 5 + 1
    hypotheses = search(step, start(rows), step.begin(rows), end=END, most_steps=limits)
    for of_row, limit in zip(hypotheses, limits.tolist(), strict=True):
        for one in of_row:
            assert END not in one.content
            assert one.ended == (one.tokens[-1] == END)
            assert one.ended or len(one.tokens) == limit
            assert 1 <= len(one.tokens) <= limit
    assert {one.ended for of_row in hypotheses for one in of_row} == {True, False}


def test_no_row_depends_on_its_mates(search: Any) -> None:
    step, rows = Prefix(6), 8
    limits = torch.arange(rows) % 4 + 4
    hypotheses = search(step, start(rows), step.begin(rows), end=END, most_steps=limits)
    if search is SEARCHES["sample"]:
        own_seeds = decoding.seeds(3, rows)

        def alone(*arguments: Any, row: int, **options: Any) -> Any:
            return [sample(*arguments, Sampling(seed=own_seeds[row : row + 1]), **options)]
    else:

        def alone(*arguments: Any, row: int, **options: Any) -> Any:
            return search(*arguments, **options)

    for row in range(rows):
        state = reordered(step.begin(rows), torch.tensor([row]))
        single = alone(step, start(1), state, row=row, end=END, most_steps=int(limits[row]))
        assert single == hypotheses[row : row + 1]


def test_no_rows_find_nothing(search: Any) -> None:
    step = Prefix()
    assert search(step, start(0), step.begin(0), end=END, most_steps=3) == []
    assert step.batch_sizes == []


def test_rows_that_are_over_are_not_asked() -> None:
    step, rows = Prefix(9), 40
    hypotheses = greedy(step, start(rows), step.begin(rows), end=END, most_steps=12)
    lengths = [len(one.tokens) for one in hypotheses]
    assert step.batch_sizes == [sum(n > t for n in lengths) for t in range(max(lengths))]


# --- beam -----------------------------------------------------------------------------


def slow_beam(step: Prefix, code: Tensor, width: int, most: int) -> list[tuple[int, ...]]:
    """The words of all that one sentence's beam finishes, best first, by its definition."""
    going: list[Any] = [(0.0, (), {"code": code[None]})]
    finished: list[Any] = []
    for number in range(1, most + 1):
        longer: list[Any] = []
        for total, words, state in going:
            log_probs, new = step(torch.tensor(words[-1:] or (1,)), state)
            values = enumerate(log_probs[0].tolist())
            longer += [(total + value, (*words, word), new) for word, value in values]
        longer.sort(key=lambda one: -one[0])
        over = [one[1][-1] == END or number == most for one in longer]
        finished += [one for one, is_over in zip(longer[:width], over, strict=False) if is_over]
        going = [one for one, is_over in zip(longer, over, strict=True) if not is_over][:width]
    return [words for _, words, _ in sorted(finished, key=lambda one: -one[0])]


@pytest.mark.parametrize("width", [1, 2, 3, 5])
@pytest.mark.parametrize("end_bias", [0.0, 2.0])
def test_a_beam_finishes_what_its_definition_says(width: int, end_bias: float) -> None:
    step, rows = Prefix(6, sharp=1.0, end_bias=end_bias), 20
    hypotheses = beam(
        step,
        start(rows),
        step.begin(rows),
        BeamSearch(width=width, n_best=width),
        end=END,
        most_steps=5,
    )
    for of_row, code in zip(hypotheses, step.begin(rows)["code"], strict=True):
        assert [one.tokens for one in of_row] == slow_beam(step, code, width, 5)[:width]


@pytest.mark.parametrize(("penalty", "alpha"), PENALTIES)
@pytest.mark.parametrize("n_best", [1, 3])
@pytest.mark.parametrize("end_bias", [0.0, 2.0])
def test_stopping_early_loses_nothing(
    penalty: str, alpha: float, n_best: int, end_bias: float
) -> None:
    step, rows = Prefix(6, end_bias=end_bias), 25
    asked_rows, hypotheses = [], []
    for stop_early in (True, False):
        step.batch_sizes.clear()
        hypotheses.append(
            beam(
                step,
                start(rows),
                step.begin(rows),
                BeamSearch(
                    width=3,
                    n_best=n_best,
                    length_penalty=penalty,
                    alpha=alpha,
                    stop_early=stop_early,
                ),
                end=END,
                most_steps=9,
            )
        )
        asked_rows.append(sum(step.batch_sizes))
    assert hypotheses[0] == hypotheses[1]
    assert asked_rows[0] < asked_rows[1] if alpha < 1 else asked_rows[0] <= asked_rows[1]


def test_the_n_best_are_sorted_and_distinct() -> None:
    step, rows = Prefix(5), 20
    hypotheses = beam(
        step,
        start(rows),
        step.begin(rows),
        BeamSearch(width=6, n_best=6, alpha=0.8),
        end=END,
        most_steps=6,
    )
    for of_row in hypotheses:
        assert len({one.tokens for one in of_row}) == len(of_row) == 6
        scores = [one.score for one in of_row]
        assert scores == sorted(scores, reverse=True)


def test_a_penalty_divides_by_its_formula() -> None:
    step = Prefix(6)
    for name, formula in {"wu": lambda n: ((5 + n) / 6) ** 0.7, "length": lambda n: n**0.7}.items():
        for of_row in beam(
            step,
            start(5),
            step.begin(5),
            BeamSearch(width=4, n_best=4, length_penalty=name, alpha=0.7),
            end=END,
            most_steps=6,
        ):
            for one in of_row:
                assert one.score == pytest.approx(one.log_probability / formula(len(one.tokens)))


def test_a_greater_alpha_finds_longer_sequences() -> None:
    step, rows = Prefix(6), 30
    mean = []
    for alpha in (0.0, 0.5, 1.5):
        hypotheses = beam(
            step,
            start(rows),
            step.begin(rows),
            BeamSearch(width=5, alpha=alpha),
            end=END,
            most_steps=10,
        )
        mean.append(sum(len(of_row[0].tokens) for of_row in hypotheses) / rows)
    assert mean[0] < mean[1] < mean[2]


def test_impossible_words_are_never_found() -> None:
    """Only 2 then 3 then the end, or 2 then the end."""
    log_probs = torch.full((4, 4), -torch.inf)
    log_probs[1, 2] = 0.0
    log_probs[2, 3] = log_probs[2, 0] = torch.tensor(0.5).log()
    log_probs[3, 0] = 0.0

    def step(tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        return log_probs[tokens], state

    hypotheses = beam(step, start(2), (), BeamSearch(width=4, n_best=4), end=0, most_steps=5)
    assert [[one.tokens for one in of_row] for of_row in hypotheses] == [[(2, 0), (2, 3, 0)]] * 2
    assert exact(step, start(1), (), end=0, most_steps=5)[0].tokens == (2, 0)


def test_of_equals_the_first_beginning_and_the_first_word_come_first() -> None:
    def step(tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        return torch.full((len(tokens), 50), 1 / 50).log(), state

    hypotheses = beam(step, start(2), (), BeamSearch(width=4, n_best=4), end=None, most_steps=2)
    assert [one.tokens for one in hypotheses[1]] == [(0, 0), (0, 1), (0, 2), (0, 3)]
    assert greedy(step, start(1), (), end=None, most_steps=2)[0].tokens == (0, 0)


@pytest.mark.parametrize("size", [1, 5, 40, 700])
@pytest.mark.parametrize("count", [1, 3, 40])
def test_the_largest_are_those_of_a_stable_sort(size: int, count: int) -> None:
    values = torch.randint(9, (60, size), generator=torch.Generator().manual_seed(size)).float()
    values[::7] = torch.randn(values[::7].shape, generator=torch.Generator().manual_seed(1))
    top, where = largest(values, count)
    ordered = values.sort(dim=1, descending=True, stable=True)
    assert torch.equal(top, ordered.values[:, :count])
    assert torch.equal(where, ordered.indices[:, :count])


# --- the state ------------------------------------------------------------------------


class Pair(NamedTuple):
    first: Tensor
    second: Tensor


def test_a_state_of_any_nesting_is_reordered() -> None:
    rows, order = torch.arange(4), torch.tensor([2, 2, 0])
    state = {"a": (rows, [rows * 10]), "b": Pair(rows, rows[:, None]), "n": 3, "none": None}
    state_after = reordered(state, order)
    assert state_after["a"][0].tolist() == [2, 2, 0]
    assert state_after["a"][1][0].tolist() == [20, 20, 0]
    assert isinstance(state_after["b"], Pair)
    assert state_after["b"].second.tolist() == [[2], [2], [0]]
    assert (state_after["n"], state_after["none"]) == (3, None)


@pytest.mark.parametrize(
    ("order", "values", "each"),
    [
        ([0, 1, 2, 3, 4, 5], [5, 6, 7], 2),
        ([1, 0, 3, 2, 4, 4], [5, 6, 7], 2),
        ([0, 0, 1, 4, 5, 5], [5, 7], 3),
        ([4, 2], [7, 6], 1),
        ([0, 1, 2], [5, 5, 6], 1),
        ([0, 2, 0], [5, 6, 5], 1),
    ],
)
def test_what_is_shared_follows_its_rows(order: list[int], values: list[int], each: int) -> None:
    shared = Shared(torch.tensor([5, 6, 7]), 2)
    shared_after = reordered(shared, torch.tensor(order))
    assert (shared_after.values.tolist(), shared_after.each) == (values, each)
    assert torch.equal(shared_after.rows(), shared.rows()[torch.tensor(order)])


def test_what_is_shared_is_not_copied_while_all_sentences_go_on() -> None:
    shared = Shared(torch.randn(3, 8))
    wider = reordered(shared, torch.arange(3).repeat_interleave(4))
    assert wider.each == 4
    within = torch.tensor([3, 2, 1, 0, 7, 7, 5, 4, 8, 8, 8, 8])
    assert reordered(wider, within).values is shared.values


def test_a_shared_part_finds_the_same(search: Any) -> None:
    """The offset of a sentence, once for each row and once for each sentence."""
    plain, rows = Prefix(6), 7

    def step(tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        code, offset = state
        if isinstance(offset, Shared):
            grid = code.view(-1, offset.each) + offset.values[:, None]
            log_probs, new = plain(tokens, {"code": grid.flatten()})
        else:
            log_probs, new = plain(tokens, {"code": code + offset})
        return log_probs, (new["code"], offset)

    offsets = torch.arange(rows) * 13
    options: dict[str, Any] = {"end": END, "most_steps": 6}
    code = plain.begin(rows)["code"]
    expected = search(step, start(rows), (code, offsets), **options)
    assert search(step, start(rows), (code, Shared(offsets)), **options) == expected


# --- forced ---------------------------------------------------------------------------


def test_forced_scores_stop_at_the_lengths() -> None:
    step, rows, longest = Prefix(5), 4, 6
    tokens = torch.randint(5, (longest, rows), generator=torch.Generator().manual_seed(2))
    lengths = torch.tensor([3, 0, 6, 1])
    whole = score(step, start(rows), step.begin(rows), tokens)
    step.batch_sizes.clear()
    scores = score(step, start(rows), step.begin(rows), tokens, lengths)
    real = torch.arange(longest)[:, None] < lengths
    assert torch.equal(scores, whole * real)
    assert step.batch_sizes == [3, 2, 2, 1, 1, 1]
