"""A softmax in clusters of words: probabilities that sum to 1, and one cost by every way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

import ensue
from ensue.errors import OptionError
from ensue.tasks.blocks.softmax_output import Output
from ensue.tasks.language import task as language_task
from ensue.tasks.language.networks import embedded
from ensue.tasks.language.softmaxes import AdaptiveOutput, ClusteredTable, small

WORDS, WIDTH = 40, 12
CUTS = {"two clusters": (7, 20), "three": (5, 11, 30), "a head of one word": (1,), "last": (39,)}


@pytest.fixture(params=CUTS, name="cuts")
def _cuts(request: pytest.FixtureRequest) -> tuple[int, ...]:
    return CUTS[request.param]


def made(cuts: tuple[int, ...], tied: bool = True) -> tuple[AdaptiveOutput, ClusteredTable | None]:
    torch.manual_seed(5)
    table = ClusteredTable(WORDS, WIDTH, cuts, nn.init.normal_) if tied else None
    output = AdaptiveOutput(WORDS, WIDTH, cuts, table, nn.init.normal_)
    for bias in (output.bias, output.cluster_bias):
        nn.init.normal_(bias)
    return output.double(), table


def random_targets(steps: int = 9, batch: int = 5) -> tuple[Tensor, Tensor]:
    torch.manual_seed(6)
    y = torch.randn(steps, batch, WIDTH, dtype=torch.float64, requires_grad=True)
    return y, torch.randint(0, WORDS, (steps, batch))


def by_definition(output: AdaptiveOutput, y: Tensor) -> Tensor:
    """p (…, words), word by word from the equations of the file."""
    table = output.table
    size, count = table.bounds[0][1], len(table.bounds) - 1
    ahead = [y @ table.rows[0][w] + output.bias[w] for w in range(size)]
    ahead += [y @ output.clusters[k] + output.cluster_bias[k] for k in range(count)]
    head = torch.stack(ahead, -1).softmax(-1)
    columns = [head[..., w] for w in range(size)]
    for k, (low, high) in enumerate(table.bounds[1:], 1):
        narrow = y @ table.maps[k - 1].T
        scores = [narrow @ table.rows[k][w - low] + output.bias[w] for w in range(low, high)]
        inside = torch.stack(scores, -1).softmax(-1)
        columns += [head[..., size + k - 1] * inside[..., j] for j in range(high - low)]
    return torch.stack(columns, -1)


@pytest.mark.parametrize("tied", [True, False])
def test_probabilities_are_those_of_the_definition_and_sum_to_one(
    cuts: tuple[int, ...], tied: bool
) -> None:
    output, _ = made(cuts, tied)
    y, _ = random_targets()
    p = output.log_probabilities(y).exp()
    assert_close(p, by_definition(output, y))
    assert_close(p.sum(-1), torch.ones(p.shape[:-1], dtype=p.dtype))


def test_the_cost_is_minus_the_log_of_the_probability(cuts: tuple[int, ...]) -> None:
    output, _ = made(cuts)
    y, targets = random_targets()
    logs = output.log_probabilities(y).gather(-1, targets[..., None])[..., 0]
    assert_close(output.costs(y, targets), -logs)
    assert_close(output.cost(y, targets), -logs.sum())
    real = torch.rand(targets.shape) < 0.5
    assert_close(output.cost(y, targets, real), -logs[real].sum())


def test_gradients_are_those_of_the_probabilities(cuts: tuple[int, ...]) -> None:
    output, _ = made(cuts)
    y, targets = random_targets()
    over = [y, *output.parameters()]
    logs = output.log_probabilities(y).gather(-1, targets[..., None])
    for gradient, expected in zip(
        torch.autograd.grad(output.cost(y, targets), over),
        torch.autograd.grad(-logs.sum(), over),
        strict=True,
    ):
        assert_close(gradient, expected)


def test_every_weight_has_a_gradient_where_a_cluster_has_no_target() -> None:
    """Processes that train together wait for all of them."""
    output, _ = made((7, 20))
    y, _ = random_targets()
    output.cost(y, torch.zeros(y.shape[:2], dtype=torch.int64)).backward()
    assert all(parameter.grad is not None for parameter in output.parameters())
    assert not output.table.rows[2].grad.any()


def test_one_cluster_is_the_full_softmax() -> None:
    table = ClusteredTable(WORDS, WIDTH, (), small)
    one_cluster = AdaptiveOutput(WORDS, WIDTH, (), table, small).double()
    full = Output(WORDS, WIDTH, None).double()
    full.load_state_dict({"weight": table.weight.detach(), "bias": one_cluster.bias.detach()})
    y, targets = random_targets()
    assert_close(one_cluster.log_probabilities(y), full.log_probabilities(y))
    assert_close(one_cluster.cost(y, targets), full.cost(y, targets))
    assert_close(one_cluster.costs(y, targets), full.costs(y, targets))


def test_tied_scores_are_products_with_the_vectors_that_are_read(cuts: tuple[int, ...]) -> None:
    output, table = made(cuts)
    assert table is not None
    table = table.double()
    words = torch.arange(WORDS)
    assert_close(table(words), table.weight)
    y = torch.randn(WIDTH, dtype=torch.float64)
    logs = output.log_probabilities(y)
    for low, high in table.bounds:
        scores = table.weight[low:high] @ y + output.bias[low:high]
        assert_close(logs[low:high].log_softmax(-1), scores.log_softmax(-1))


def test_vectors_of_rare_words_are_narrower_and_as_long() -> None:
    torch.manual_seed(1)
    table = ClusteredTable(30_000, 200, (1_000, 8_000), small)
    assert [row.shape[1] for row in table.rows] == [200, 50, 12]
    lengths = [table.weight[low:high].norm(dim=1).mean() for low, high in table.bounds]
    assert max(lengths) / min(lengths) < 1.1


def test_a_word_that_is_dropped_is_zero_wherever_it_stands() -> None:
    torch.manual_seed(1)
    tokens = torch.arange(WORDS).repeat(3, 1)
    for table in (nn.Embedding(WORDS, WIDTH), ClusteredTable(WORDS, WIDTH, (7,), nn.init.normal_)):
        x = embedded(tokens, table, 0.5)
        present_words = x[0].abs().sum(-1) > 0
        assert 5 < int(present_words.sum()) < WORDS - 5
        assert_close(x, 2 * table(tokens) * present_words[None, :, None])


@pytest.mark.parametrize("cuts", [(0,), (40,), (20, 7), (7, 7), (50,)])
def test_cuts_outside_the_vocabulary_are_refused(cuts: tuple[int, ...]) -> None:
    with pytest.raises(
        OptionError, match=r"^model\.softmax_cuts: expected rising numbers from 1 to 39"
    ):
        ClusteredTable(WORDS, WIDTH, cuts, small)


# ------------------------------------------------------------- whole models
TEXTS = [f"the {a} {b} sees the {c}" for a in "abcdef" for b in "ghi" for c in "jkl"]
MODEL = {"hidden_size": 8, "embedding_size": 8, "layers": 1, "columns": 2, "steps": 5}


def fitted(**overrides: Any) -> ensue.LanguageModel:
    settings = {**MODEL, "softmax": "adaptive", "softmax_cuts": [6, 10], **overrides}
    return ensue.LanguageModel(model=settings, train={"epochs": 2}).fit(TEXTS, TEXTS[:9])


@pytest.mark.parametrize("family", ["recurrent", "both", "window", "transformer", "convolution"])
def test_every_family_scores_what_it_says_step_by_step(family: str) -> None:
    model = fitted(family=family)
    (scored,) = model.score(["the a g sees the l"])
    state, token = model.begin(1), torch.tensor([model.first])
    numbers = [*model.learned.words.ids(["the", "a", "g", "sees", "the", "l"]), 3]
    for number, bits in zip(numbers, scored.bits, strict=True):
        logs, state = model.step(token, state)
        assert float(torch.logsumexp(logs, -1)) == pytest.approx(0, abs=1e-5)
        assert -float(logs[0, number]) / np.log(2) == pytest.approx(bits, rel=1e-4)
        token = torch.tensor([number])


def test_a_large_vocabulary_is_scored_in_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language_task, "MANY", 10)
    settings = {**MODEL, "family": "recurrent"}
    model = ensue.LanguageModel(model=settings, train={"epochs": 1}).fit(TEXTS, TEXTS[:9])
    assert model.settings.softmax == "adaptive"
    assert model.settings.softmax_cuts == [4], "a saved model keeps its own, whatever the default"
    full = ensue.LanguageModel(model={**settings, "softmax": "full"}, train={"epochs": 1})
    assert full.fit(TEXTS, TEXTS[:9]).settings.softmax == "full"
