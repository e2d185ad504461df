"""The searches over networks that say what comes next: what they find scores as it should."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from ensue.decoding import BeamSearch, Hypothesis, Sampling, beam, exact, greedy, sample, score
from ensue.layers.recurrent import Recurrent
from ensue.tasks.language.families import ConvolutionLanguage, TransformerLanguage, WindowLanguage
from ensue.tasks.language.networks import LanguageNetwork
from ensue.tasks.language.recurrent import RecurrentLanguage
from ensue.tasks.language.streams import StreamBatch

WORDS, END = 12, 0


def recurrent(cell: str) -> Callable[[], LanguageNetwork]:
    return lambda: RecurrentLanguage(WORDS, Recurrent(cell, 8, 10, 2), tied=False)


def transformer(context: int) -> Callable[[], LanguageNetwork]:
    return lambda: TransformerLanguage(
        WORDS, width=8, embedding_size=8, heads=2, layers=2, context=context
    )


MODELS: dict[str, Callable[[], LanguageNetwork]] = {
    "LSTM": recurrent("LSTM"),
    "GRU": recurrent("GRU"),
    "window": lambda: WindowLanguage(WORDS, window=3, embedding_size=8, hidden_size=10, before=1),
    "transformer": transformer(40),
    "transformer, short context": transformer(3),
    "convolution": lambda: ConvolutionLanguage(WORDS, width=8, embedding_size=8, layers=2),
}

SEARCHES: dict[str, Any] = {
    "greedy": lambda *arguments, **options: [[one] for one in greedy(*arguments, **options)],
    "sample": lambda *arguments, **options: [
        [one] for one in sample(*arguments, Sampling(seed=3, top_k=9), **options)
    ],
    "exact": lambda *arguments, **options: [[one] for one in exact(*arguments, **options)],
    "beam": lambda *arguments, **options: beam(
        *arguments, BeamSearch(width=5, n_best=3, alpha=0.6), **options
    ),
}


@pytest.fixture(params=MODELS, name="model")
def _model(request: pytest.FixtureRequest) -> Any:
    torch.manual_seed(3)
    model = MODELS[request.param]().double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
    return model, model.reorder


def cost_in_parallel(model: LanguageNetwork, one: Hypothesis, prompt: list[int]) -> float:
    text = torch.tensor([*prompt, *one.tokens])[:, None]
    costs, _ = model.costs(StreamBatch(text[:-1], text[1:]), model.begin(1))
    return float(costs[len(prompt) - 1 :].sum())


@pytest.mark.parametrize("search", SEARCHES)
def test_what_is_found_costs_what_the_parallel_pass_says(search: str, model: Any) -> None:
    network, reorder = model
    prompts = torch.randint(1, WORDS, (3, 5), generator=torch.Generator().manual_seed(1))
    state = network.begin(5)
    for tokens in prompts[:-1]:
        _, state = network.step(tokens, state)
    hypotheses = SEARCHES[search](
        network.step, prompts[-1], state, end=END, most_steps=4, reorder=reorder
    )
    for of_row, prompt in zip(hypotheses, prompts.T.tolist(), strict=True):
        for one in of_row:
            expected = -cost_in_parallel(network, one, prompt)
            assert one.log_probability == pytest.approx(expected, abs=1e-9)


def test_forced_scores_are_the_costs_of_the_parallel_pass(model: Any) -> None:
    network, reorder = model
    text = torch.randint(WORDS, (8, 4), generator=torch.Generator().manual_seed(2))
    costs, _ = network.costs(StreamBatch(text[:-1], text[1:]), network.begin(4))
    lengths = torch.tensor([7, 2, 0, 5])
    scores = score(network.step, text[0], network.begin(4), text[1:], lengths, reorder=reorder)
    real = torch.arange(7)[:, None] < lengths
    torch.testing.assert_close(scores, -costs * real)


def test_exact_is_at_least_as_good_as_a_beam(model: Any) -> None:
    network, reorder = model
    options: dict[str, Any] = {"end": END, "most_steps": 4, "reorder": reorder}
    start = torch.arange(1, 7)
    best = exact(network.step, start, network.begin(6), **options)
    full = beam(network.step, start, network.begin(6), BeamSearch(width=WORDS**3), **options)
    narrow = beam(network.step, start, network.begin(6), BeamSearch(width=2), **options)
    for one, whole, other in zip(best, full, narrow, strict=True):
        assert one.tokens == whole[0].tokens
        assert one.log_probability >= other[0].log_probability - 1e-12
