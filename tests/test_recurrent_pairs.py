"""Recurrent encoder and decoder: stepping equals the parallel pass, padding changes nothing, and
what is learned is looked at where it should be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from parity import needs_native
from torch import Tensor
from torch.testing import assert_close

from ensue.decoding import BeamSearch, Shared, beam, greedy, reordered, score
from ensue.engine import engines_used
from ensue.engine.rows import reverse_time
from ensue.errors import ConfigError, OptionError, ShapeError
from ensue.tasks.blocks.attention_decoder import AttentionDecoder
from ensue.tasks.seq2seq.network import RecurrentPairs, StateBridge, VectorBridge
from ensue.tasks.seq2seq.pairs import PairBatch
from ensue.tasks.seq2seq.settings import PairSettings
from ensue.tasks.settings import DecoderSettings

SOURCES, TARGETS, START, END = 11, 9, 1, 2
LENGTHS, WANTED = (6, 3, 0, 5), (3, 5, 4, 1)


def network(
    sources: int = SOURCES, targets: int = TARGETS, engine: str = "auto", **options: Any
) -> RecurrentPairs:
    return RecurrentPairs(sources, targets, settings_of(PairSettings, options), engine)


def settings_of(kind: type[Any], options: dict[str, Any]) -> Any:
    """Small, without dropout and smoothing, except for the given settings."""
    none = {"dropout_input": 0.0, "dropout_layers": 0.0, "dropout_output": 0.0, "smoothing": 0.0}
    return kind.of({"embedding_size": 4, "hidden_size": 5, **none, **options}, "model")


MODELS: dict[str, Callable[[], RecurrentPairs]] = {
    "GRU, additive": network,
    "LSTM, additive, deep": lambda: network(cell="LSTM", layers=2),
    "simple RNN, additive, one direction, from zero": lambda: network(
        cell="SimpleRNN", bidirectional=False, bridge="zero"
    ),
    "LSTM, general": lambda: network(cell="LSTM", attention="general"),
    "GRU, concat, deep": lambda: network(attention="concat", layers=2),
    "GRU, dot, one direction": lambda: network(attention="dot", bidirectional=False),
    "simple RNN, dot, projected, not tied": lambda: network(
        cell="SimpleRNN", attention="dot", project=True, tied=False
    ),
    "GRU, general, fed": lambda: network(attention="general", input_feeding=True),
    "LSTM, concat, fed, deep": lambda: network(
        cell="LSTM", attention="concat", input_feeding=True, layers=2
    ),
    "GRU, dot, fed, from the context": lambda: network(
        attention="dot", bidirectional=False, input_feeding=True, attend_output="context"
    ),
    "LSTM, general, from the context": lambda: network(
        cell="LSTM", attention="general", attend_output="context", tied=False
    ),
    "LSTM, no attention, deep": lambda: network(cell="LSTM", attention="none", layers=2),
    "GRU, no attention, reversed": lambda: network(
        attention="none", bidirectional=False, reverse_source=True
    ),
    "GRU reads, LSTM says": lambda: network(decoder_cell="LSTM"),
    "LSTM reads, GRU says, reversed": lambda: network(
        cell="LSTM", decoder_cell="GRU", reverse_source=True
    ),
    "all dropouts": lambda: network(
        layers=2,
        dropout_input=0.2,
        dropout_layers=0.2,
        dropout_output=0.2,
        dropout_recurrent=0.2,
        smoothing=0.1,
    ),
}


@pytest.fixture(params=MODELS, name="model")
def _model(request: pytest.FixtureRequest) -> Any:
    return made(request.param)


def made(name: str) -> RecurrentPairs:
    torch.manual_seed(3)
    model = MODELS[name]().double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    return model


def pairs(
    lengths: tuple[int, ...] = LENGTHS, target_lengths: tuple[int, ...] = WANTED, seed: int = 5
) -> PairBatch:
    drawn = torch.Generator().manual_seed(seed)
    source = torch.randint(3, SOURCES, (max(lengths), len(lengths)), generator=drawn)
    target = torch.randint(3, TARGETS, (max(target_lengths), len(target_lengths)), generator=drawn)
    return batch_of(
        [source[:n, k].tolist() for k, n in enumerate(lengths)],
        [target[: n - 1, k].tolist() for k, n in enumerate(target_lengths)],
    )


def padded(rows: list[list[int]]) -> Tensor:
    whole = torch.zeros(max(map(len, rows)), len(rows), dtype=torch.int64)
    for k, row in enumerate(rows):
        whole[: len(row), k] = torch.tensor(row, dtype=torch.int64)
    return whole


def batch_of(sources: list[list[int]], targets: list[list[int]]) -> PairBatch:
    return PairBatch(
        padded(sources),
        torch.tensor([len(row) for row in sources]),
        padded([[START, *row] for row in targets]),
        padded([[*row, END] for row in targets]),
        torch.tensor([len(row) + 1 for row in targets]),
    )


def columns(batch: PairBatch, rows: list[int]) -> PairBatch:
    """Some rows alone, with no more padding than they need."""
    lengths, target_lengths = batch.lengths[rows], batch.target_lengths[rows]
    steps = int(target_lengths.max())
    return PairBatch(
        batch.source[: int(lengths.max()), rows],
        lengths,
        batch.before[:steps, rows],
        batch.targets[:steps, rows],
        target_lengths,
    )


def gradients(cost: Tensor, model: torch.nn.Module) -> list[Tensor]:
    slopes = torch.autograd.grad(cost, list(model.parameters()), allow_unused=True)
    return [torch.zeros(()) if one is None else one for one in slopes]


# ---------------------------------------------------------------- laws of every model
def test_the_cost_is_the_sum_of_the_costs(model: Any) -> None:
    costs = model.costs(pairs())
    assert costs.shape == (5, 4)
    real = torch.arange(5)[:, None] < torch.tensor(WANTED)
    assert not costs[~real].any()
    assert bool((costs[real] > 0).all())
    if not model.decoder.smoothing:
        assert_close(model(pairs()), costs.sum())


def test_a_batch_equals_its_rows_alone(model: Any) -> None:
    whole = pairs()
    alone = [columns(whole, [row]) for row in range(4)]
    costs = model.costs(whole)
    for row, one in enumerate(alone):
        assert_close(model.costs(one)[:, 0], costs[: WANTED[row], row])
    summed = sum(model(one) for one in alone)
    assert_close(gradients(summed, model), gradients(model(whole), model))


def test_what_stands_in_the_padding_changes_nothing(model: Any) -> None:
    whole = pairs()
    steps = torch.arange(9)[:, None]

    def longer(tokens: Tensor, lengths: Tensor) -> Tensor:
        more = torch.cat([tokens, tokens.new_zeros(9 - len(tokens), 4)])
        return torch.where(steps < lengths, more, 7)

    other = PairBatch(
        longer(whole.source, whole.lengths),
        whole.lengths,
        longer(whole.before, whole.target_lengths),
        longer(whole.targets, whole.target_lengths),
        whole.target_lengths,
    )
    assert_close(model.costs(other)[:5], model.costs(whole))
    assert_close(gradients(model(other), model), gradients(model(whole), model))


def test_stepping_equals_scoring_also_when_reordered(model: Any) -> None:
    whole = pairs(target_lengths=(5, 5, 5, 5))
    costs = model.costs(whole)
    state, rows = model.begin(whole.source, whole.lengths), torch.arange(4)
    for t in range(5):
        logs, state = model.step(whole.before[t, rows], state)
        assert_close(logs.exp().sum(1), torch.ones(len(rows), dtype=torch.float64))
        assert_close(-logs.gather(1, whole.targets[t, rows, None])[:, 0], costs[t, rows])
        alpha = model.alignment(state)
        assert (alpha is None) == (model.decoder.attention is None)
        if alpha is not None:
            full = whole.lengths[rows] > 0
            assert_close(alpha.sum(1), full.double())
            assert not alpha[torch.arange(6) >= whole.lengths[rows, None]].any()
        if t in ORDERS:  # two of each; then another of each, and one sentence less; then any
            order = torch.tensor(ORDERS[t])
            rows, state = rows[order], reordered(state, order)


ORDERS = {0: [0, 0, 1, 1, 2, 2, 3, 3], 1: [1, 0, 3, 3, 6, 7], 2: [5, 0, 0, 2]}


def test_searches_find_what_the_parallel_pass_says(model: Any) -> None:
    whole = pairs()
    start, state = torch.full((4,), START), model.begin(whole.source, whole.lengths)
    best = greedy(model.step, start, state, end=END, most_steps=5)
    several = beam(model.step, start, state, BeamSearch(width=3, n_best=3), end=END, most_steps=5)
    for row, hypotheses in enumerate(several):
        for one in [best[row], *hypotheses]:
            tokens = torch.tensor(one.tokens)[:, None]
            before = torch.cat([start[:1, None], tokens[:-1]])
            whole_row = columns(whole, [row])
            batch_of_row = PairBatch(
                whole_row.source, whole_row.lengths, before, tokens, torch.tensor([len(tokens)])
            )
            assert -one.log_probability == pytest.approx(
                float(model.costs(batch_of_row).sum()), rel=1e-9
            )
    forced = score(model.step, start, state, whole.targets, whole.target_lengths)
    assert_close(-forced, model.costs(whole))


def test_the_future_cannot_change_the_past(model: Any) -> None:
    whole = pairs(target_lengths=(5, 5, 5, 5))
    before = whole.before.clone()
    before[3:] = 3 + (before[3:] - 2) % (TARGETS - 3)
    other = PairBatch(whole.source, whole.lengths, before, whole.targets, whole.target_lengths)
    assert_close(model.costs(other)[:3], model.costs(whole)[:3])
    assert not torch.equal(model.costs(other)[3:], model.costs(whole)[3:])


def test_the_source_is_read_to_both_ends(model: Any) -> None:
    whole = pairs()
    for at in (0, 5):
        source = whole.source.clone()
        source[at, 0] = 3 + (source[at, 0] - 2) % (SOURCES - 3)
        other = PairBatch(source, whole.lengths, whole.before, whole.targets, whole.target_lengths)
        assert float((model.costs(other) - model.costs(whole))[0, 0].abs()) > 1e-6
        assert_close(model.costs(other)[:, 1:], model.costs(whole)[:, 1:])


def test_every_parameter_learns(model: Any) -> None:
    model.train()
    for name, gradient in zip(
        dict(model.named_parameters()), gradients(model(pairs()), model), strict=True
    ):
        assert bool(gradient.any()), name


# ---------------------------------------------------------------- engines, gradients, randomness
@needs_native
@pytest.mark.parametrize("attention", ["additive", "general", "none"])
def test_native_equals_eager_and_runs(attention: str) -> None:
    costs, derivatives = [], []
    for engine in ("native", "eager"):
        torch.manual_seed(3)
        model = network(cell="LSTM", attention=attention, layers=2, engine=engine).double()
        with engines_used() as used:
            cost = model(pairs())
        assert set(used) == {engine}
        steps = 5 if attention == "additive" else 1  # without feeding all steps are one call
        assert len(used) == 2 * 2 + 2 * steps
        costs.append(cost)
        derivatives.append(gradients(cost, model))
    assert_close(*costs)
    assert_close(*derivatives)


SMALL = {
    "additive": {},
    "general, fed": {"attention": "general", "input_feeding": True, "cell": "LSTM"},
    "concat": {"attention": "concat"},
    "none": {"attention": "none", "layers": 2},
    "context": {"attention": "dot", "bidirectional": False, "attend_output": "context"},
}


@pytest.mark.parametrize("small", SMALL)
def test_gradients_equal_finite_differences(small: str) -> None:
    torch.manual_seed(3)
    settings = {"embedding_size": 2, "hidden_size": 2, "smoothing": 0.1, **SMALL[small]}
    model = network(**settings).double().eval()
    batch = pairs((3, 2), (2, 3))

    def cost(*_: Tensor) -> Tensor:  # gradcheck moves the parameters in place
        return model(batch)

    assert torch.autograd.gradcheck(cost, tuple(model.parameters()), fast_mode=True)


def test_dropout_in_training_only_and_drawn_from_the_generator() -> None:
    model = made("all dropouts").train()

    def seeded(seed: int) -> Tensor:
        torch.manual_seed(seed)
        cost: Tensor = model(pairs())
        return cost

    assert torch.equal(seeded(1), seeded(1))
    assert not torch.equal(seeded(1), seeded(2))
    model.eval()
    assert torch.equal(seeded(1), seeded(2))


# ---------------------------------------------------------------- scheduled sampling
SAMPLED = ["GRU, additive", "LSTM, general", "GRU, general, fed", "LSTM, no attention, deep"]


@pytest.mark.parametrize("name", SAMPLED)
def test_with_all_words_its_own_it_hears_what_greedy_says(name: str) -> None:
    model = made(name).train()
    whole = pairs(target_lengths=(5, 5, 5, 5))
    forced = model(whole)
    model.sampling = 1.0
    state = model.begin(whole.source, whole.lengths)
    hypotheses = greedy(model.step, whole.before[0], state, end=None, most_steps=5)
    predicted = torch.tensor([one.tokens for one in hypotheses]).T
    before = torch.cat([whole.before[:1], predicted[:-1]])
    heard = PairBatch(whole.source, whole.lengths, before, whole.targets, whole.target_lengths)
    free, followed = model(whole), model.costs(heard).sum()
    assert_close(free, followed)
    assert not torch.isclose(free, forced)
    assert_close(model.eval()(whole), forced)


@pytest.mark.parametrize("name", SAMPLED)
def test_the_share_of_own_words(name: str) -> None:
    """With few own words, the cost is that of teacher forcing in most draws, and never in all."""
    model = made(name).train()
    whole = pairs((4,), (5,))
    forced = model(whole)
    model.sampling = 0.1
    torch.manual_seed(1)
    same = [bool(torch.isclose(model(whole), forced)) for _ in range(60)]
    assert 60 * 0.9**4 - 15 < sum(same) < 60  # of four words each stays with 0.9


# ---------------------------------------------------------------- parts
@pytest.mark.parametrize("attention", ["additive", "general", "none"])
def test_reading_in_reverse_is_reading_the_reverse(attention: str) -> None:
    whole = pairs()
    turned = reverse_time(whole.source, whole.lengths)
    torch.manual_seed(3)
    plain = network(attention=attention).double()
    reverse = network(attention=attention, reverse_source=True).double()
    reverse.load_state_dict(plain.state_dict())
    other = PairBatch(turned, whole.lengths, whole.before, whole.targets, whole.target_lengths)
    assert_close(reverse.costs(whole), plain.costs(other))
    assert not torch.equal(reverse.costs(whole), plain.costs(whole))
    _, state = reverse.step(whole.before[0], reverse.begin(whole.source, whole.lengths))
    _, mirror = plain.step(whole.before[0], plain.begin(turned, whole.lengths))
    if attention != "none":  # weights stay with their words
        assert state.weights is not None
        assert mirror.weights is not None
        assert_close(state.weights.T, reverse_time(mirror.weights.T, whole.lengths))


def test_what_all_hypotheses_share_is_not_copied() -> None:
    model = made("GRU, additive")
    whole = pairs()
    state = model.begin(whole.source, whole.lengths)
    wide = reordered(state, torch.arange(4).repeat_interleave(3))
    assert all(isinstance(part, Shared) and part.each == 3 for part in wide.memory)
    _, wide = model.step(torch.full((12,), START), wide)
    for before, after in zip(state.memory, wide.memory, strict=True):
        assert after.values.data_ptr() == before.values.data_ptr()


def test_tied_and_shared_embeddings_are_one() -> None:
    model = network(9, 9, shared=True)
    assert model.decoder.table is model.table
    assert model.decoder.output.weight is model.table.weight
    apart = network(tied=False)
    assert apart.decoder.output.weight.shape == (TARGETS, 5)
    assert apart.decoder.table is not apart.table


def test_the_bridge_takes_states_that_fit_as_they_are() -> None:
    same = network(cell="LSTM", layers=2, bidirectional=False)
    assert not list(same.bridge.parameters())
    whole = pairs()
    _, ends = same.encoder(same.table(whole.source), lengths=whole.lengths)
    assert_close(same.begin(whole.source, whole.lengths).cells, ends)


def test_each_part_of_a_state_has_a_bridge_of_its_own() -> None:
    wide = network(cell="LSTM", layers=2)
    assert isinstance(wide.bridge, StateBridge)
    weights = [one for one in wide.bridge.parameters() if one.dim() == 2]
    assert [tuple(one.shape) for one in weights] == [(5, 10)] * 4  # h and c of two layers
    _, ends = wide.encoder(wide.table(pairs().source), lengths=pairs().lengths)
    (h, c), _ = wide.bridge(ends)
    first, second = wide.bridge.maps[0][0], wide.bridge.maps[1][0]
    assert_close(h, torch.tanh(first(torch.cat([ends[0][0], ends[1][0]], 1))))
    assert_close(c, torch.tanh(second(torch.cat([ends[0][1], ends[1][1]], 1))))


def test_a_vector_begins_a_sequence() -> None:
    """Vector → sequence: stepping equals scoring from a vector alone, and it matters."""
    torch.manual_seed(3)
    settings = settings_of(DecoderSettings, {"cell": "LSTM", "layers": 2, "attention": "none"})
    decoder = AttentionDecoder(TARGETS, settings, memory_size=None)
    bridge = VectorBridge(7, decoder.recurrent)
    vectors, whole = torch.randn(2, 4, 7), pairs()
    costs = []
    for vector in vectors:
        state = decoder.begin(4, bridge(vector), None, None)
        r, _ = decoder(whole.before, state, whole.target_lengths)
        costs.append(decoder.costs(r, whole.targets, whole.target_lengths))
        forced = score(decoder.step, whole.before[0], state, whole.targets, whole.target_lengths)
        assert_close(-forced.float(), costs[-1])
    assert not torch.isclose(*costs)[0].any()
    with pytest.raises(ShapeError) as wrong:
        bridge(torch.zeros(4, 6))
    assert str(wrong.value) == "vector: expected (rows, 7), got (4, 6)"


# ---------------------------------------------------------------- learning
def trained(model: RecurrentPairs, batches: Any, steps: int, rate: float) -> RecurrentPairs:
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    model.train()
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = rate * (1 - step / steps)
        batch = batches(step)
        optimiser.zero_grad()
        (model(batch) / len(batch)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    return model.eval()


OVERFITTED = {
    "additive": {},
    "general, fed": {"attention": "general", "input_feeding": True},
    "none": {"attention": "none", "cell": "LSTM"},
}


@pytest.mark.parametrize("name", OVERFITTED)
def test_ten_pairs_are_learned_by_heart(name: str) -> None:
    torch.manual_seed(3)
    batch = pairs((6, 3, 1, 5, 4, 2, 6, 5, 4, 3), (3, 5, 4, 1, 5, 5, 4, 2, 3, 5))
    model = network(embedding_size=16, hidden_size=24, **OVERFITTED[name])
    trained(model, lambda step: batch, 80, 3e-2)
    start = torch.full((10,), START)
    hypotheses = greedy(
        model.step, start, model.begin(batch.source, batch.lengths), end=END, most_steps=9
    )
    expected = [
        batch.targets[:n, row].tolist() for row, n in enumerate(batch.target_lengths.tolist())
    ]
    assert [list(one.tokens) for one in hypotheses] == expected


def symbols(seed: int, rows: int, turned: bool) -> PairBatch:
    drawn = torch.Generator().manual_seed(seed)
    lengths = torch.randint(2, 7, (rows,), generator=drawn).tolist()
    texts = [torch.randint(3, TARGETS, (n,), generator=drawn).tolist() for n in lengths]
    return batch_of(texts, [text[::-1] if turned else text for text in texts])


@pytest.mark.parametrize(
    ("attention", "turned"),
    [
        ("general", False),
        ("additive", True),
        pytest.param("additive", False, marks=pytest.mark.slow),
        pytest.param("general", True, marks=pytest.mark.slow),
    ],
)
def test_the_learned_alignment_is_the_right_one(attention: str, turned: bool) -> None:
    """Of a copy the same position, of a reverse the mirrored one."""
    torch.manual_seed(3)
    model = network(
        TARGETS,
        TARGETS,
        embedding_size=16,
        hidden_size=24,
        attention=attention,
        input_feeding=attention == "general",
        bridge="zero",
    )
    trained(model, lambda step: symbols(step, 24, turned), 250, 2e-2)
    batch = symbols(10_000, 50, turned)
    hypotheses = greedy(
        model.step,
        torch.full((50,), START),
        model.begin(batch.source, batch.lengths),
        end=END,
        most_steps=9,
        watch=model.alignment,
    )
    right_rows, right = [], []
    for row, (one, length) in enumerate(zip(hypotheses, batch.lengths.tolist(), strict=True)):
        right_rows.append(list(one.content) == batch.targets[:length, row].tolist())
        assert one.watched is not None
        looked = one.watched[: len(one.content)].argmax(1).tolist()
        expected = list(range(length))[:: -1 if turned else 1]
        right += [a == b for a, b in zip(looked, expected, strict=False)]
    assert sum(right_rows) >= 0.9 * len(right_rows)
    assert sum(right) >= 0.98 * len(right)


# ---------------------------------------------------------------- messages
REFUSED = {
    "attention: unknown": (
        {"attention": "dto"},
        "model.attention: expected one of additive, dot, general, concat, none, got 'dto', did you "
        "mean 'dot'?",
    ),
    "bridge: unknown": (
        {"bridge": "state"},
        "model.bridge: expected one of states, zero, random, got 'state', did you mean 'states'?",
    ),
    "attend_output: unknown": (
        {"attend_output": "contxt", "attention": "general"},
        "model.attend_output: expected one of combined, context, got 'contxt', did you mean "
        "'context'?",
    ),
    "nothing of the source": (
        {"bridge": "zero", "attention": "none"},
        "bridge: expected 'states' without attention, got 'zero': the decoder would know nothing "
        "of the source",
    ),
    "feeding": (
        {"input_feeding": True},
        "input_feeding: expected false with attention 'additive'; input feeding is for dot, "
        "general, concat: their decoder steps do not see the previous step's attention without it; "
        "with additive attention, its context enters each step",
    ),
    "context": (
        {"attend_output": "context"},
        "attend_output: expected 'combined' with attention 'additive'; only with "
        "dot, general, concat does the context know the previous word",
    ),
    "sampling": ({"sampling": 1.5}, "model.sampling: expected a number ≤ 1, got 1.5"),
    "smoothing": ({"smoothing": 1.0}, "model.smoothing: expected a number < 1, got 1.0"),
    "dropout": ({"dropout_input": -1.0}, "model.dropout_input: expected a number ≥ 0, got -1.0"),
    "shared": (
        {"shared": True},
        "shared: expected one vocabulary for both sides, got 11 source words and 9 target words",
    ),
    "dot": (
        {"attention": "dot"},
        "dot: expected a memory as wide as the queries, 5, got 10; choose 'general', which learns "
        "a map between them, or project the memory",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case: str) -> None:
    settings, message = REFUSED[case]
    with pytest.raises((OptionError, ConfigError)) as refused:
        network(**settings)
    assert str(refused.value) == message


def test_a_decoder_says_what_it_can_read_its_words_from() -> None:
    settings = settings_of(DecoderSettings, {"attention": "general"})
    with pytest.raises(OptionError) as refused:
        AttentionDecoder(TARGETS, settings, memory_size=3, attend_output="contxt")
    assert str(refused.value) == (
        "unknown attend_output 'contxt': did you mean 'context'? Known: combined, context"
    )


def test_a_decoder_with_attention_needs_a_memory() -> None:
    settings = settings_of(DecoderSettings, {})
    with pytest.raises(OptionError) as width:
        AttentionDecoder(TARGETS, settings, memory_size=None)
    assert str(width.value) == "memory_size: expected a width with attention, got None"
    with pytest.raises(OptionError) as memory:
        AttentionDecoder(TARGETS, settings, memory_size=3).begin(2, None, None, None)
    assert str(memory.value) == "memory, real: expected both, since the decoder has attention"
