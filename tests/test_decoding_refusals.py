"""What a search refuses, and in which words."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from test_decoding import END, SEARCHES, Prefix, start
from torch import Tensor

from ensue.decoding import BeamSearch, beam, exact, greedy, score
from ensue.errors import OptionError, ShapeError


def refused(search: Any = greedy, step: Any = None, **overrides: Any) -> str:
    table = Prefix()
    options = {"end": END, "most_steps": 3, **overrides}
    given_start = options.pop("start", start(2))
    state = options.pop("state", table.begin(2))
    with pytest.raises((OptionError, ShapeError)) as caught:
        search(step or table, given_start, state, **options)
    return str(caught.value)


def test_what_is_given_is_checked_together() -> None:
    assert refused(start=torch.zeros(2, 1), most_steps=0, end=-2) == (
        "start: expected one word for each row, an int64 tensor of shape (rows,), "
        "got torch.float32 of shape (2, 1)\n"
        "most_steps: expected numbers ≥ 1, got 0\n"
        "end: expected the number of a word, or None, got -2"
    )
    assert refused(most_steps=torch.tensor([1, 2, 3])) == (
        "most_steps: expected one number, or one for each of 2 rows, got shape (3,)"
    )
    assert refused(end=4) == "end: expected one of the 4 words that the step knows (0 to 3), got 4"


def test_a_beam_checks_its_options() -> None:
    assert (
        refused(beam, how=BeamSearch(width=0))
        == "width: expected a number of hypotheses ≥ 1, got 0"
    )
    assert (
        refused(beam, how=BeamSearch(width=2, n_best=3))
        == "n_best: expected a number from 1 to width, 2, got 3"
    )
    assert refused(beam, how=BeamSearch(width=2, length_penalty="lenght")) == (
        "unknown length_penalty 'lenght': did you mean 'length'? Known: length, wu"
    )
    assert refused(beam, how=BeamSearch(width=2, alpha=-1.0)) == (
        "alpha: expected a number ≥ 0, got -1.0; 0 ranks by log-probability, greater values "
        "favour longer sequences"
    )


@pytest.mark.parametrize("search", ["greedy", "sample", "beam", "exact"])
def test_a_step_that_gives_no_log_probabilities_is_refused(search: str) -> None:
    search_function = SEARCHES[search]
    assert refused(search_function, step=lambda tokens, state: (torch.zeros(3, 4), state)) == (
        "step: expected log-probabilities of shape (2, words) for 2 words, got (3, 4)"
    )
    for value, name in ((2.5, "2.5"), (torch.nan, "nan")):
        assert refused(
            search_function,
            step=lambda tokens, state, v=value: (torch.full((len(tokens), 4), v), state),
        ) == (
            f"step: expected log-probabilities, which are at most 0, got {name}; apply "
            "log_softmax to scores; a value of nan comes from the model"
        )


def test_where_nothing_can_follow_it_is_said() -> None:
    def step(tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        return torch.tensor([[0.0, -1], [-torch.inf, -torch.inf]])[: len(tokens)], state

    assert refused(greedy, step=step, state=(), end=None) == (
        "step: row 1 of 2 gives every word the probability 0, so that nothing can follow; at "
        "least one must be possible"
    )
    nothing = torch.full((2, 4), -torch.inf)

    def dead(tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        return nothing[: len(tokens)], state

    assert beam(dead, start(2), (), BeamSearch(width=2), end=0, most_steps=3) == [[], []]
    assert refused(exact, step=dead, state=()) == (
        "exact: no sequence of row 0 is possible; every prefix leads to a step that gives "
        "all words the probability 0"
    )


def test_exact_gives_up_and_says_so() -> None:
    flat = Prefix(6, sharp=0.01)
    assert refused(exact, step=flat, most_steps=9, most_expansions=50, end=None) == (
        "exact: after 50 steps the best sequence of row 0, of at most 9 words, is not certain; "
        "use beam, or raise most_expansions"
    )
    assert refused(exact, most_expansions=0) == "most_expansions: expected a number ≥ 1, got 0"


def test_a_state_that_cannot_be_reordered_is_refused() -> None:
    step = Prefix(4)
    assert refused(
        beam,
        step=lambda tokens, state: (step(tokens, step.begin(2))[0], "text"),
        how=BeamSearch(2),
        end=None,
    ) == (
        "state: expected tensors in tuples, lists and mappings, got str; pass reorder=, a "
        "function of the state and the order of its rows"
    )


@pytest.mark.parametrize("search", ["greedy", "sample", "beam", "exact"])
def test_what_is_watched_is_checked(search: str) -> None:
    search_function = SEARCHES[search]
    assert refused(search_function, watch=lambda state: state["code"][:1]) == (
        "watch: expected 2 rows, one for each word, got 1"
    )
    step = Prefix(4)

    def watch(state: Any) -> Tensor:
        return torch.zeros(len(state["code"]), len(step.batch_sizes))

    assert refused(search_function, step=step, watch=watch, end=None) == (
        "watch: expected the same shape at every step, got [(1,), (2,), (3,)]"
    )


def test_forced_scores_check_their_shapes() -> None:
    def forced(tokens: Tensor, lengths: Any = None) -> str:
        step = Prefix()
        with pytest.raises(ShapeError) as caught:
            score(step, start(2), step.begin(2), tokens, lengths)
        return str(caught.value)

    assert forced(torch.ones(3)) == "tokens: expected (time, rows) for 2 rows, got (3,)"
    tokens = torch.ones(3, 2, dtype=torch.int64)
    for lengths in ([1], [-1, 2], [1, 4]):
        assert forced(tokens, torch.tensor(lengths)) == (
            f"lengths: expected one for each of 2 rows, from 0 to 3, got {lengths}"
        )
