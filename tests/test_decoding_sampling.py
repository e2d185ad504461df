"""Drawing words: as often as they are probable, and from the seed alone."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

from ensue.decoding import Sampling, greedy, sample, seeds, stream
from ensue.decoding.sampling import _inverse, candidates
from ensue.errors import OptionError

WORDS = 8
ONCE: dict[str, Any] = {"end": None, "most_steps": 1}


def table(seed: int = 0, rows: int = WORDS) -> Tensor:
    scores = torch.randn(rows, WORDS, generator=torch.Generator().manual_seed(seed))
    return (2 * scores).double().log_softmax(1)


TABLE = table()


def markov(tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
    """p(w_t | w_{t−1})"""
    return TABLE[tokens], state


def start(rows: int) -> Tensor:
    return torch.arange(rows) % WORDS


def chi_square(words: list[int], probs: Tensor) -> float:
    counts = torch.tensor(words).bincount(minlength=len(probs)).double()
    assert bool((counts[probs == 0] == 0).all())
    possible = probs > 0
    expected = probs[possible] * len(words)
    return float(((counts[possible] - expected) ** 2 / expected).sum())


# 1 in 10,000 of honest draws exceed this, for 7 degrees of freedom or fewer.
CHANCE = 29.9


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"),
    [(1.0, None, None), (0.5, None, None), (2.0, None, None), (1.0, 3, None), (1.5, None, 0.8)],
)
def test_words_come_as_often_as_they_are_probable(
    temperature: float, top_k: int | None, top_p: float | None
) -> None:
    rows = 20_000
    samples = sample(
        markov,
        torch.full((rows,), 2),
        (),
        Sampling(seed=11, temperature=temperature, top_k=top_k, top_p=top_p),
        **ONCE,
    )
    probs, order = candidates(TABLE[2:3], temperature, top_k, top_p)
    full = torch.zeros(WORDS, dtype=torch.float64).scatter(0, order[0], probs[0])
    words = [one.tokens[0] for one in samples]
    assert chi_square(words, full) < CHANCE
    assert chi_square(words, (full + 0.03) / (full + 0.03).sum()) > CHANCE


def test_the_steps_of_a_row_are_drawn_apart() -> None:
    """A text of a chain shows each word after each other as often as the table says."""
    text = sample(markov, start(1), (), Sampling(seed=5), end=None, most_steps=5_000)[0].tokens
    for before in range(WORDS):
        after = [b for a, b in pairwise(text) if a == before]
        probs = TABLE[before].exp()
        common = probs * len(after) > 5
        common_words = [word for word in after if bool(common[word])]
        if len(common_words) > 100:
            assert chi_square(common_words, probs.where(common, 0) / probs[common].sum()) < CHANCE


def test_top_k_keeps_the_k_most_probable() -> None:
    for k in range(1, WORDS + 3):
        probs, order = candidates(table(1), 0.7, k, None)
        for row, log_probs in enumerate(table(1)):
            best = sorted(range(WORDS), key=lambda word: -float(log_probs[word]))[:k]
            weights = (log_probs[best] / 0.7).exp()
            assert order[row].tolist() == best
            torch.testing.assert_close(probs[row], weights / weights.sum())


def test_top_p_keeps_the_fewest_that_have_p() -> None:
    for p in (1e-9, 0.2, 0.5, 0.9, 0.999, 1.0):
        for k in (None, 5):
            probs, order = candidates(table(1), 1.0, k, p)
            for row, log_probs in enumerate(table(1)):
                best = sorted(range(WORDS), key=lambda word: -float(log_probs[word]))[:k]
                weights = log_probs[best].exp() / log_probs[best].exp().sum()
                count = next(
                    (n for n in range(1, len(best)) if float(weights[:n].sum()) >= p), len(best)
                )
                assert order[row, :count].tolist() == best[:count]
                assert bool((probs[row, count:] == 0).all())
                torch.testing.assert_close(
                    probs[row, :count], weights[:count] / weights[:count].sum()
                )


def test_top_p_is_enough_when_it_is_met() -> None:
    probs, _ = candidates(torch.full((1, 4), 0.25).log(), 1.0, None, 0.5)
    assert probs.tolist() == [[0.5, 0.5, 0, 0]]


def test_of_equals_the_first_are_kept() -> None:
    even = torch.full((1, 100), 0.01).log()
    assert candidates(even, 1.0, 3, None)[1].tolist() == [[0, 1, 2]]
    probs, order = candidates(even.double(), 1.0, None, 0.025)
    assert order[probs > 0].tolist() == [0, 1, 2]


def test_a_low_temperature_is_greedy() -> None:
    expected = greedy(markov, start(8), (), end=0, most_steps=9)
    for temperature in (0.0, 1e-3, 1e-310):
        samples = sample(
            markov, start(8), (), Sampling(seed=1, temperature=temperature), end=0, most_steps=9
        )
        assert samples == expected


def test_the_log_probability_is_the_models_own() -> None:
    for one, first in zip(
        sample(markov, start(8), (), Sampling(seed=2, temperature=3.0, top_k=6), **ONCE),
        start(8).tolist(),
        strict=True,
    ):
        assert one.log_probability == pytest.approx(float(TABLE[first, one.tokens[0]]))
        assert one.score == one.log_probability


def test_a_seed_repeats_and_another_differs() -> None:
    options: dict[str, Any] = {"end": 0, "most_steps": 20}
    samples = [
        sample(markov, start(30), (), Sampling(seed=seed), **options)
        for seed in (4, 4, 5, -4, 2**70)
    ]
    assert samples[0] == samples[1]
    assert all(samples[0] != other for other in samples[2:])


def test_rows_have_seeds_of_their_own() -> None:
    assert seeds(9, 5) == seeds(9, 3) + seeds(9, 5)[3:]
    assert len({*seeds(9, 1000), *seeds(10, 1000)}) == 2000
    rows = torch.full((50,), 3)
    assert (
        len(
            {
                one.tokens
                for one in sample(markov, rows, (), Sampling(seed=1), end=None, most_steps=20)
            }
        )
        > 45
    )


def test_a_stream_is_what_sample_draws() -> None:
    for seed in range(20):
        options: dict[str, Any] = {"end": 0, "most_steps": 9}
        how = Sampling(seed, top_p=0.9)
        assert tuple(stream(markov, start(1), (), how, **options)) == (
            sample(markov, start(1), (), how, **options)[0].tokens
        )


def test_a_stream_gives_each_word_as_it_comes() -> None:
    sizes = []

    def step(tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        sizes.append(len(tokens))
        return markov(tokens, state)

    words = stream(step, start(1), (), Sampling(seed=1), end=None, most_steps=5)
    assert sizes == []
    next(words)
    next(words)
    assert sizes == [1, 1]
    assert len(list(words)) == 3


def test_what_is_drawn_last_is_possible() -> None:
    """A draw next to one meets the last word that has any probability."""
    probs = torch.tensor([[0.1, 0.2, 0.7, 0.0], [0.0, 1.0, 0.0, 0.0]], dtype=torch.float64)
    assert _inverse(probs, torch.tensor([1.0, 1.0]).double()).tolist() == [2, 1]
    assert _inverse(probs, torch.tensor([0.0, 0.0]).double()).tolist() == [0, 1]


def test_options_are_checked_together() -> None:
    with pytest.raises(OptionError) as caught:
        sample(
            markov, start(2), (), Sampling(seed=[1], temperature=-1.0, top_k=0, top_p=1.5), **ONCE
        )
    assert str(caught.value) == (
        "seed: expected one, or one for each of 2 rows, got 1\n"
        "temperature: expected a number ≥ 0, got -1.0\n"
        "top_k: expected a number of words ≥ 1, got 0\n"
        "top_p: expected a probability above 0, at most 1, got 1.5"
    )
    with pytest.raises(OptionError) as caught:
        stream(markov, start(2), (), Sampling(seed=1), **ONCE)
    assert str(caught.value) == "start: expected one row to stream, got 2; use sample"
