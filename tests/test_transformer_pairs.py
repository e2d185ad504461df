"""The Transformer over pairs: what is trained, what is searched, and where it looks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.testing import assert_close

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
)
from ensue.errors import ConfigError, OptionError
from ensue.layers.transformer import sinusoids
from ensue.tasks.seq2seq.network import TransformerPairs
from ensue.tasks.seq2seq.pairs import PairBatch
from ensue.tasks.seq2seq.settings import PairSettings

WORDS, START, END = 9, 1, 2
SMALL: dict[str, Any] = {"hidden_size": 8, "heads": 2, "layers": 2, "inner_size": 6}
KINDS: dict[str, dict[str, Any]] = {
    "norm before": {},
    "norm after": {"norm": "after"},
    "not tied": {"tied": False},
    "one vocabulary": {"shared": True},
    "one block, one head": {"layers": 1, "heads": 1},
    "all dropouts": {"dropout_layers": 0.3, "dropout_attention": 0.3},
}
Pair = tuple[Sequence[int], Sequence[int]]
PAIRS: list[Pair] = [
    ([4, 5, 6], [3, 8]),
    ([7], [5, 4, 3, 6]),
    ([], [8]),
    ([3, 3, 8, 4, 5], []),
]


def columns(rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """(time, batch) with padding, and lengths."""
    lengths = torch.tensor([len(row) for row in rows])
    values = torch.zeros(int(lengths.max()), len(rows), dtype=torch.int64)
    for k, row in enumerate(rows):
        values[: len(row), k] = torch.tensor(row, dtype=torch.int64)
    return values, lengths


def batch_of(pairs: Sequence[Pair]) -> PairBatch:
    source, lengths = columns([source for source, _ in pairs])
    before, _ = columns([[START, *target] for _, target in pairs])
    targets, target_lengths = columns([[*target, END] for _, target in pairs])
    return PairBatch(source, lengths, before, targets, target_lengths)


def fresh(source: int = WORDS, target: int = WORDS, **overrides: Any) -> TransformerPairs:
    settings = PairSettings.of({"family": "transformer", **overrides}, "model")
    return TransformerPairs(source, target, settings)


def network(**overrides: Any) -> TransformerPairs:
    torch.manual_seed(4)
    made = fresh(**{**SMALL, "smoothing": 0.0, **overrides}).double().eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return made


@pytest.fixture(params=KINDS, name="model")
def _model(request: pytest.FixtureRequest) -> TransformerPairs:
    return network(**KINDS[request.param])


# --- laws ------------------------------------------------------------------------------------


def test_the_cost_is_the_sum_of_the_costs(model: TransformerPairs) -> None:
    batch = batch_of(PAIRS)
    costs = model.costs(batch)
    assert costs.shape == batch.targets.shape
    assert_close(model(batch), costs.sum())
    real = torch.arange(len(costs))[:, None] < batch.target_lengths
    assert not costs[~real].any()
    assert (costs[real] > 0).all()


def test_a_batch_is_its_rows_one_by_one_and_padding_is_nothing(model: TransformerPairs) -> None:
    batch = batch_of(PAIRS)
    costs = model.costs(batch)
    for k, pair in enumerate(PAIRS):
        alone = model.costs(batch_of([pair]))
        assert_close(alone[:, 0], costs[: len(alone), k])
    more = torch.full((3, len(PAIRS)), 5)
    padded = replace(
        batch,
        source=torch.cat([batch.source, more]),
        before=torch.cat([batch.before, more]),
        targets=torch.cat([batch.targets, more]),
    )
    assert_close(model.costs(padded)[: len(costs)], costs)
    parameters = list(model.parameters())
    for one, other in zip(
        torch.autograd.grad(model(padded), parameters),
        torch.autograd.grad(model(batch), parameters),
        strict=True,
    ):
        assert_close(one, other)


def test_the_future_cannot_change_the_past(model: TransformerPairs) -> None:
    batch = batch_of([([4, 5, 6], [3, 8, 7, 5, 6]), ([7, 3], [5, 4, 3, 6, 8])])
    before = batch.before.clone()
    before[3:] = (before[3:] + 1) % WORDS
    costs, changed = model.costs(batch), model.costs(replace(batch, before=before))
    assert torch.equal(changed[:3], costs[:3]), "bit for bit"
    assert not torch.equal(changed[3:], costs[3:])


def test_stepping_is_the_parallel_pass(model: TransformerPairs) -> None:
    batch = batch_of(PAIRS)
    costs, state = model.costs(batch), model.begin(batch.source, batch.lengths)
    for t in range(len(batch.before)):
        logs, state = model.step(batch.before[t], state)
        assert_close(logs.exp().sum(1), torch.ones(len(PAIRS), dtype=torch.float64))
        real = t < batch.target_lengths
        log_probabilities = -logs.gather(1, batch.targets[t][:, None])[:, 0]
        assert_close(log_probabilities * real, costs[t])


def test_stepping_after_reordering(model: TransformerPairs) -> None:
    """Two hypotheses a sentence, then in another order, then without the second sentence."""
    batch = batch_of(PAIRS)
    _, state = model.step(batch.before[0], model.begin(batch.source, batch.lengths))
    pointers = [memory.values.data_ptr() for memory in state.memories]
    prefixes = [[START] for _ in PAIRS]
    sentences = list(range(4))
    for order, tokens in (
        ([0, 0, 1, 1, 2, 2, 3, 3], [3, 4, 5, 6, 7, 8, 3, 4]),
        ([1, 0, 2, 2, 5, 4, 7, 7], [8, 7, 6, 5, 4, 3, 8, 7]),
        ([1, 0, 4, 5, 7, 6], [5, 6, 7, 8, 3, 4]),
    ):
        state = reordered(state, torch.tensor(order))
        prefixes = [[*prefixes[k], token] for k, token in zip(order, tokens, strict=True)]
        sentences = [sentences[k] for k in order]
        if len(order) == 8:
            assert [memory.values.data_ptr() for memory in state.memories] == pointers, (
                "nothing is copied"
            )
        logs, state = model.step(torch.tensor(tokens), state)
        for row, sentence in enumerate(sentences):
            source, lengths = batch.source[:, sentence : sentence + 1], batch.lengths[[sentence]]
            alone = model.begin(source, lengths)
            for token in prefixes[row]:
                expected, alone = model.step(torch.tensor([token]), alone)
            assert_close(logs[row], expected[0])
            assert_close(model.alignment(state)[row], model.alignment(alone)[0])  # type: ignore[index]
    assert all(isinstance(memory, Shared) and len(memory.values) == 3 for memory in state.memories)


SEARCHES: dict[str, Any] = {
    "greedy": lambda *arguments, **options: [[one] for one in greedy(*arguments, **options)],
    "sample": lambda *arguments, **options: [
        [one] for one in sample(*arguments, Sampling(seed=3, top_k=6), **options)
    ],
    "exact": lambda *arguments, **options: [[one] for one in exact(*arguments, **options)],
    "beam": lambda *arguments, **options: beam(
        *arguments, BeamSearch(width=4, n_best=3, alpha=0.6), **options
    ),
}


@pytest.mark.parametrize("search", SEARCHES)
def test_what_is_found_costs_what_the_parallel_pass_says(
    search: str, model: TransformerPairs
) -> None:
    batch = batch_of(PAIRS)
    hypotheses: list[list[Hypothesis]] = SEARCHES[search](
        model.step,
        torch.full((4,), START),
        model.begin(batch.source, batch.lengths),
        end=END,
        most_steps=4,
        watch=model.alignment,
    )
    for (source, _), of_row in zip(PAIRS, hypotheses, strict=True):
        for one in of_row:
            costs = model.costs(batch_of([(source, one.content)]))[: len(one.tokens)]
            assert one.log_probability == pytest.approx(-float(costs.sum()), abs=1e-9)
            assert one.watched is not None
            assert_close(
                one.watched.sum(1), torch.full((len(one.tokens),), float(bool(source))).double()
            )
            assert not one.watched[:, len(source) :].any()


def test_gradients_are_those_of_finite_differences() -> None:
    model = network(hidden_size=4, layers=1, inner_size=3, smoothing=0.1)
    batch, names = batch_of(PAIRS), [name for name, _ in model.named_parameters()]

    def cost(*values: Tensor) -> Tensor:
        parameters = dict(zip(names, values, strict=True))
        value: Tensor = torch.func.functional_call(model, parameters, (batch,))
        return value

    values = [p.detach().clone().requires_grad_() for p in model.parameters()]
    assert torch.autograd.gradcheck(cost, values, fast_mode=True)


def test_it_is_the_transformer_of_torch() -> None:
    """Embeddings times √width, positions, torch.nn.Transformer, the output."""
    model, batch = network(), batch_of([pair for pair in PAIRS if pair[0]])
    layers = nn.TransformerEncoderLayer, nn.TransformerDecoderLayer
    one, other = (kind(8, 2, 6, 0.0, norm_first=True, dtype=torch.float64) for kind in layers)
    first, last = (nn.LayerNorm(8, dtype=torch.float64) for _ in layers)
    encoder = nn.TransformerEncoder(one, 2, first, enable_nested_tensor=False).eval()
    decoder = nn.TransformerDecoder(other, 2, last).eval()
    theirs = nn.Transformer(8, 2, custom_encoder=encoder, custom_decoder=decoder)
    theirs.encoder.load_state_dict(model.encoder.state_dict())
    theirs.decoder.load_state_dict(model.decoder.state_dict())
    hidden = torch.arange(len(batch.source)) >= batch.lengths[:, None]

    def entered(table: nn.Embedding, tokens: Tensor) -> Tensor:
        places = sinusoids(torch.arange(len(tokens)), 8, torch.float64)[:, None]
        vectors: Tensor = 8**0.5 * table(tokens) + places
        return vectors

    y = theirs(
        entered(model.source, batch.source),
        entered(model.target, batch.before),
        tgt_mask=torch.ones(len(batch.before), len(batch.before), dtype=torch.bool).triu(1),
        src_key_padding_mask=hidden,
        memory_key_padding_mask=hidden,
    )
    scores = y @ model.output.weight.t() + model.output.bias
    expected = cross_entropy(
        scores.transpose(1, 2), batch.targets, reduction="none", ignore_index=0
    )
    assert_close(model.costs(batch), expected.detach())


# --- parts -----------------------------------------------------------------------------------


def test_costs_know_no_dropout_and_no_smoothing() -> None:
    model, batch = network(**KINDS["all dropouts"], smoothing=0.2), batch_of(PAIRS)
    plain = model.costs(batch)
    smooth = model(batch)
    model.train()
    assert torch.equal(model.costs(batch), plain)
    assert model.training
    assert not torch.equal(model(batch), model(batch))
    sure = network(**KINDS["all dropouts"])
    assert_close(sure.costs(batch), plain)
    assert not torch.isclose(smooth, plain.sum())


def test_what_is_one_matrix() -> None:
    tied, untied, shared = network(), network(tied=False), network(shared=True)
    assert tied.output.weight is tied.target.weight
    assert untied.output.weight is not untied.target.weight
    assert shared.source is shared.target
    assert tied.source is not tied.target


def test_nothing_was_looked_at_before_the_first_step() -> None:
    model, batch = network(), batch_of(PAIRS)
    state = model.begin(batch.source, batch.lengths)
    assert model.alignment(state) is None


def test_sources_that_are_all_empty() -> None:
    model = network()
    assert torch.isfinite(model.costs(batch_of([([], [3, 4]), ([], [])]))).all()


def test_messages() -> None:
    with pytest.raises(OptionError) as words:
        fresh(8, 9, shared=True)
    assert str(words.value) == ("shared: expected one vocabulary for both sides, got 8 words and 9")
    with pytest.raises(ConfigError) as rates:
        fresh(8, 9, dropout_layers=1.0, smoothing=-1.0)
    assert set(str(rates.value).splitlines()) == {
        "2 problems in the settings",
        "  model.dropout_layers: expected a number < 1, got 1.0",
        "  model.smoothing: expected a number ≥ 0, got -1.0",
    }
    with pytest.raises(ConfigError) as heads:
        fresh(8, 9, hidden_size=10)
    assert str(heads.value) == (
        "model: heads: expected a divisor of model.hidden_size, the width of a transformer, 10; "
        "got 4"
    )


# --- learning --------------------------------------------------------------------------------


def drawn_pairs(count: int, seed: int, longest: int = 6) -> list[Pair]:
    """Sequences, and the same backwards."""
    random = torch.Generator().manual_seed(seed)
    pairs: list[Pair] = []
    for length in torch.randint(1, longest + 1, (count,), generator=random).tolist():
        # no word twice: the right place to look at is one
        source = (torch.randperm(WORDS - 3, generator=random)[:length] + 3).tolist()
        pairs.append((source, source[::-1]))
    return pairs


def taught(model: TransformerPairs, batches: Sequence[PairBatch], rate: float) -> None:
    optimiser = torch.optim.Adam(model.parameters(), rate, betas=(0.9, 0.98))
    for k, batch in enumerate(batches):
        for group in optimiser.param_groups:
            group["lr"] = rate * min(1.0, (k + 1) / 50)
        optimiser.zero_grad()
        (model(batch) / batch.target_lengths.sum()).backward()
        optimiser.step()


def best_hypotheses(
    model: TransformerPairs, pairs: Sequence[Pair], width: int = 1
) -> list[Hypothesis]:
    source, lengths = columns([source for source, _ in pairs])
    hypotheses = beam(
        model.step,
        torch.full((len(pairs),), START),
        model.begin(source, lengths),
        BeamSearch(width=width),
        end=END,
        most_steps=10,
        watch=model.alignment,
    )
    return [of_row[0] for of_row in hypotheses]


@pytest.mark.parametrize("norm", ["before", "after"])
def test_ten_pairs_are_learned_by_heart(norm: str) -> None:
    random = torch.Generator().manual_seed(1)
    sources = sorted({tuple(source) for source, _ in drawn_pairs(40, 5)})[::2][:10]
    pairs: list[Pair] = [
        (source, torch.randint(3, WORDS, (3,), generator=random).tolist()) for source in sources
    ]
    torch.manual_seed(1)
    model = fresh(hidden_size=32, heads=2, layers=1, norm=norm, dropout_layers=0.0, smoothing=0.0)
    taught(model, [batch_of(pairs)] * 150, 0.005)
    assert float(model.costs(batch_of(pairs)).mean()) < 0.1
    for (_, target), hypothesis in zip(pairs, best_hypotheses(model.eval(), pairs), strict=True):
        assert hypothesis.tokens == (*target, END)


@pytest.mark.slow
def test_reversing_is_learned_and_the_right_places_are_looked_at() -> None:
    torch.manual_seed(1)
    model = fresh(hidden_size=32, heads=1, layers=2, dropout_layers=0.0, smoothing=0.1)
    taught(model, [batch_of(drawn_pairs(64, seed)) for seed in range(700)], 0.003)
    test = drawn_pairs(100, 10_001)
    answers = best_hypotheses(model.eval(), test, width=3)
    right = [
        hypothesis.tokens == (*target, END)
        for (_, target), hypothesis in zip(test, answers, strict=True)
    ]
    assert sum(right) >= 97
    places = looked = 0
    for (source, _), hypothesis in zip(test, answers, strict=True):
        assert hypothesis.watched is not None
        expected = list(range(len(source)))[::-1]
        positions = hypothesis.watched.argmax(1).tolist()[: len(expected)]
        places += len(expected)
        looked += sum(a == b for a, b in zip(positions, expected, strict=False))
    assert looked / places > 0.9
