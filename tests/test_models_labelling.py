"""Networks that label: chains against enumeration, searches, laws over every output."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.func import functional_call
from torch.testing import assert_close

from ensue.data.ragged import Ragged
from ensue.errors import DataError, OptionError
from ensue.metrics.spans import illegal_step, legal
from ensue.tasks.baselines.majority import MajorityLabel, majority_class
from ensue.tasks.blocks.embeddings import Embed, Words
from ensue.tasks.blocks.encoders import ENCODERS, RecurrentEncoder
from ensue.tasks.label.linear_chain import Chain
from ensue.tasks.label.network import (
    LABEL_OUTPUTS,
    LabellerNetwork,
    PreviousLabel,
    beam,
    best_first,
    greedy,
)
from ensue.tasks.label.outputs import CRF, Stepwise, score_of
from ensue.tasks.rows.batch import Columns, collate

LABELS, WIDTH, WORDS = 3, 4, 9
LENGTHS = [4, 1, 0, 3]
TIGHT = {"rtol": 1e-9, "atol": 1e-9}
JOINED = {"label_width": 3, "hidden_size": 5}
TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
MARKS = ["O", "B-X", "I-X", "E-X", "S-X"]
OUTPUTS: dict[str, tuple[str, dict[str, Any]]] = {
    "stepwise": ("stepwise", {}),
    "crf": ("crf", {}),
    "previous, layer": ("previous", JOINED),
    "previous, cell": ("previous", {**JOINED, "cell": "LSTM"}),
    "previous, cell, zero start": ("previous", {**JOINED, "cell": "GRU", "start": "zero"}),
}


@pytest.fixture(autouse=True)
def _seeded_and_double() -> Iterator[None]:
    torch.manual_seed(1)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def output(name: str, labels: int = LABELS, **more: Any) -> Any:
    kind, options = OUTPUTS[name]
    made = LABEL_OUTPUTS[kind](WIDTH, labels, **options, **more)
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter)
    if options.get("start") == "zero":
        with torch.no_grad():
            made.table.weight[labels] = 0
    return made.eval()


def rows(lengths: list[int] = LENGTHS, width: int = WIDTH) -> tuple[Tensor, Tensor]:
    return torch.randn(max(lengths), len(lengths), width), torch.tensor(lengths)


def all_labels(length: int, labels: int = LABELS) -> list[tuple[int, ...]]:
    return list(product(range(labels), repeat=length))


def costs_of_all(made: Any, y: Tensor, row: int, length: int, labels: int = LABELS) -> Tensor:
    """The cost of every sequence of labels of one row."""
    every = all_labels(length, labels)
    targets = torch.tensor(every, dtype=torch.int64).reshape(len(every), length).T
    repeated = y[:length, row : row + 1].expand(-1, len(every), -1)
    return made.cost(repeated, torch.full((len(every),), length), targets)


# --- chains, against all that there are --------------------------------------------------------


def chain() -> Chain:
    pairs = torch.randn(max(LENGTHS), len(LENGTHS), LABELS, LABELS)
    return Chain(
        torch.randn(len(LENGTHS), LABELS),
        lambda t: pairs[t],
        torch.randn(LABELS),
        torch.tensor(LENGTHS),
        max(LENGTHS),
    )


def scored(chain_made: Chain, row: int, labels: tuple[int, ...]) -> float:
    if not labels:
        return 0.0
    total = chain_made.first[row, labels[0]] + chain_made.last[labels[-1]]
    for t in range(1, len(labels)):
        total = total + chain_made.pair(t)[row, labels[t - 1], labels[t]]
    return float(total)


def test_a_chain_is_the_sum_over_all_its_labels() -> None:
    chain_made = chain()
    partition, marginals, (best, score) = (
        chain_made.log_partition(),
        chain_made.log_marginals(),
        chain_made.best(),
    )
    for row, length in enumerate(LENGTHS):
        every = all_labels(length)
        scores = torch.tensor([scored(chain_made, row, labels) for labels in every])
        assert_close(partition[row], scores.logsumexp(0), **TIGHT)
        chosen = every[int(scores.argmax())]
        assert best[:, row].tolist() == [*chosen, *[0] * (max(LENGTHS) - length)]
        assert_close(score[row], scores.max(), **TIGHT)
        for t, label in product(range(length), range(LABELS)):
            has_label = torch.tensor([labels[t] == label for labels in every])
            assert_close(
                marginals[t, row, label].exp(), scores.softmax(0)[has_label].sum(), **TIGHT
            )
        assert not marginals[length:, row].any()
        padded = torch.zeros(max(LENGTHS), 1, dtype=torch.int64)
        padded[:length, 0] = torch.tensor(chosen, dtype=torch.int64)
        path_score = score_of(chain_made, padded.expand(-1, len(LENGTHS)))[row]
        assert_close(path_score, scores.max(), **TIGHT)


def test_long_chains_have_exact_marginals() -> None:
    """Of scores that sum to thousands, too: those of float32 are those of float64."""
    torch.manual_seed(3)
    steps, labels = 200, 12
    emissions, follow = 8 * torch.randn(steps, 1, labels), torch.randn(labels, labels)

    def marginals(dtype: torch.dtype) -> Tensor:
        e, links = emissions.to(dtype), follow.to(dtype)
        start, end = e[0], e.new_zeros(labels)
        long_chain = Chain(
            start, lambda t: links + e[t][:, None], end, torch.tensor([steps]), steps
        )
        return long_chain.log_marginals().exp()

    probabilities = marginals(torch.float32)
    assert probabilities.dtype == torch.float32
    assert (probabilities.double() - marginals(torch.float64)).abs().max() < 1e-5


def test_the_gradient_of_a_chain() -> None:
    lengths = torch.tensor([3, 0, 2])

    def cost(first: Tensor, pairs: Tensor, last: Tensor) -> Tensor:
        return Chain(first, lambda t: pairs[t], last, lengths, 3).log_partition()

    inputs = (torch.randn(3, LABELS), torch.randn(3, 3, LABELS, LABELS), torch.randn(LABELS))
    assert gradcheck(cost, tuple(v.requires_grad_() for v in inputs))


def test_marginals_are_the_gradient_of_the_partition() -> None:
    made, (y, lengths) = output("crf"), rows()
    with torch.no_grad():
        emissions = made.scores(y)
    made.scores = torch.nn.Identity()
    emissions.requires_grad_()
    made.chain(emissions, lengths).log_partition().sum().backward()
    assert_close(made.probabilities(emissions, lengths, None), emissions.grad, **TIGHT)


def crf_score(made: CRF, y: Tensor, labels: tuple[int, ...]) -> Tensor:
    """Of the labels of one row y (steps, width), by the formula: first, emissions, transitions,
    last."""
    if not labels:
        return torch.zeros(())
    at = list(labels)
    emissions = made.scores(y)[range(len(at)), at].sum()
    return made.first[at[0]] + emissions + made.follow[at[:-1], at[1:]].sum() + made.last[at[-1]]


def test_the_crf_is_its_formula_the_last_score_counted() -> None:
    made, (y, lengths) = output("crf"), rows()
    best = made.label(y, lengths, "exact", 1)
    for row, length in enumerate(LENGTHS):
        every = all_labels(length)
        scores = torch.stack([crf_score(made, y[:length, row], labels) for labels in every])
        costs = costs_of_all(made, y, row, length)
        assert_close(costs, scores.logsumexp(0) - scores, **TIGHT)
        assert tuple(best[:length, row].tolist()) == every[int(scores.argmax())]


def test_the_scores_of_first_and_last_labels_decide_where_nothing_else_does() -> None:
    made, (y, lengths) = output("crf"), rows()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.zero_()
        made.first[1], made.last[2] = 5, 7
    best = made.label(y, lengths, "exact", 1)
    p = made.probabilities(y, lengths, best)
    for row, length in enumerate(LENGTHS):
        if length:
            assert best[length - 1, row] == 2
            assert p[length - 1, row].argmax() == 2
            assert best[0, row] == (1 if length > 1 else 2)
            assert_close(p[length - 1, row, 2] / p[length - 1, row, 0], torch.tensor(7.0).exp())
    targets = torch.zeros(y.shape[:2], dtype=torch.int64)
    made.cost(y, lengths, targets).sum().backward()
    assert (made.last.grad[[0, 2]].sign() == torch.tensor([-1.0, 1.0])).all()


class Costs(torch.nn.Module):
    """An output as a module whose call is its cost."""

    def __init__(self, made: Any) -> None:
        super().__init__()
        self.made = made

    def forward(self, *values: Tensor) -> Tensor:
        return self.made.cost(*values)


def test_the_gradient_of_the_crf() -> None:
    made, (y, lengths) = output("crf"), rows()
    targets = torch.randint(0, LABELS, y.shape[:2])
    crf = Costs(made)
    names = [name for name, _ in crf.named_parameters()]
    values = [p.detach().requires_grad_() for p in crf.parameters()]

    def cost(y: Tensor, *values: Tensor) -> Tensor:
        return functional_call(crf, dict(zip(names, values, strict=True)), (y, lengths, targets))

    assert gradcheck(cost, (y.requires_grad_(), *values))


# --- every output is a distribution over label sequences ---------------------------------------


@pytest.mark.parametrize("name", OUTPUTS)
def test_the_probabilities_of_all_sequences_sum_to_one(name: str) -> None:
    made, (y, _) = output(name), rows()
    for row, length in enumerate(LENGTHS):
        total = (-costs_of_all(made, y, row, length)).logsumexp(0)
        assert_close(total, torch.zeros(()), **TIGHT)


@pytest.mark.parametrize("name", OUTPUTS)
def test_exact_search_finds_the_best_of_all(name: str) -> None:
    made, (y, lengths) = output(name), rows()
    predicted = made.label(y, lengths, "exact", 1)
    for row, length in enumerate(LENGTHS):
        best = all_labels(length)[int(costs_of_all(made, y, row, length).argmin())]
        assert predicted[:, row].tolist() == [*best, *[0] * (max(LENGTHS) - length)]


@pytest.mark.parametrize("name", ["stepwise", "crf", "previous, layer"])
def test_probabilities_are_marginals(name: str) -> None:
    made, (y, lengths) = output(name), rows()
    labels = made.label(y, lengths, "exact", 1)
    probabilities = made.probabilities(y, lengths, labels)
    for row, length in enumerate(LENGTHS):
        p = (-costs_of_all(made, y, row, length)).exp()
        every = torch.tensor(all_labels(length), dtype=torch.int64).reshape(len(p), length)
        for t, label in product(range(length), range(LABELS)):
            assert_close(probabilities[t, row, label], p[every[:, t] == label].sum(), **TIGHT)
        assert not probabilities[length:, row].any()


def test_probabilities_with_a_cell_follow_the_labels_before() -> None:
    made, (y, lengths) = output("previous, cell"), rows()
    labels = made.label(y, lengths, "greedy", 1)
    probabilities = made.probabilities(y, lengths, labels)
    costs = made.cost(y, lengths, labels)
    of_labels = probabilities.gather(2, labels[..., None])[..., 0]
    for row, length in enumerate(LENGTHS):
        assert_close(-of_labels[:length, row].log().sum(), costs[row], **TIGHT)
        assert_close(probabilities[:length, row].sum(-1), torch.ones(length), **TIGHT)


def test_a_start_of_zero_stays_zero_and_a_learned_one_is_learned() -> None:
    y, lengths = rows()
    targets = torch.zeros(y.shape[:2], dtype=torch.int64)
    for start, moves in {"zero": False, "learned": True}.items():
        made = PreviousLabel(WIDTH, LABELS, **JOINED, start=start)
        made.cost(y, lengths, targets).sum().backward()
        assert bool(made.table.weight.grad[LABELS].any()) == moves
        if not moves:
            assert not made.table.weight[LABELS].any()


# --- searches ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in OUTPUTS if "previous" in name])
def test_beam_of_full_width_is_exact_and_of_one_is_greedy(name: str) -> None:
    made, (y, lengths) = output(name), rows()
    exact = made.label(y, lengths, "exact", 1)
    assert torch.equal(made.label(y, lengths, "beam", LABELS ** max(LENGTHS)), exact)
    greedy_labels = made.label(y, lengths, "greedy", 1)
    assert torch.equal(made.label(y, lengths, "beam", 1), greedy_labels)
    costs = [made.cost(y, lengths, made.label(y, lengths, "beam", k)) for k in (1, 81)]
    assert (costs[1] <= costs[0] + 1e-9).all()


@pytest.mark.parametrize("name", [name for name in OUTPUTS if "previous" in name])
def test_stepping_is_the_parallel_pass(name: str) -> None:
    made, (y, lengths) = output(name), rows()
    labels = torch.randint(0, LABELS, y.shape[:2])
    expected = made.logits(y, lengths, labels).log_softmax(-1)
    before, state = made.begin(y)
    step = made.step(y, lengths)
    for t in range(len(y)):
        logs, state = step(before, state)
        before = labels[t]
        for row, length in enumerate(LENGTHS):
            if t < length:
                assert_close(logs[row], expected[t, row], **TIGHT)
            else:
                assert logs[row, 0] == 0
                assert (logs[row, 1:] < -1000).all()


def test_greedy_takes_the_best_at_each_step() -> None:
    made, (y, lengths) = output("previous, cell"), rows()
    labels = made.label(y, lengths, "greedy", 1)
    best = made.logits(y, lengths, labels).argmax(-1)
    for row, length in enumerate(LENGTHS):
        assert torch.equal(labels[:length, row], best[:length, row])


def table_step(logs: Tensor) -> Any:
    """A model in one table: log p(label | label before), the last row for none."""

    def step(before: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        return logs[before], state

    return step


def test_searches_on_a_table_where_greedy_is_wrong() -> None:
    p = torch.tensor([[0.5, 0.5], [0.95, 0.05], [0.6, 0.4]])  # after 0, after 1, at the start
    step, begin = table_step(p.log()), torch.tensor([2, 2])
    labels, scores = greedy(step, begin, (), 2)
    assert labels[:, 0].tolist()[0] == 0
    assert scores[0].exp().item() == pytest.approx(0.3)
    for search in (lambda: beam(step, begin, (), 2, 2), lambda: best_first(step, begin, (), 2)):
        labels, scores = search()
        assert labels.tolist() == [[1, 1], [0, 0]]
        assert scores.exp().tolist() == pytest.approx([0.38, 0.38])
    assert best_first(step, begin[:0], (), 2)[0].shape == (2, 0)
    assert beam(step, begin, (), 0, 2)[0].shape == (0, 2)


def test_exact_search_says_when_it_gives_up() -> None:
    step = table_step(torch.full((3, 2), 0.5).log())
    message = (
        "search: exact search looked at 50 beginnings of a sequence of 9 steps without reaching "
        "the end of the best; use beam"
    )
    with pytest.raises(OptionError, match=re.escape(message)):
        best_first(step, torch.tensor([2]), (), 9, limit=50)
    with pytest.raises(OptionError, match="width: expected a number of beginnings ≥ 1, got 0"):
        beam(step, torch.tensor([2]), (), 1, 0)


# --- labels that must be legal -----------------------------------------------------------------


@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.parametrize(("tags", "scheme"), [(TAGS, "IOB2"), (MARKS, "BIOES")])
def test_constrained_labels_are_the_best_legal_ones(
    name: str, tags: list[str], scheme: str
) -> None:
    made = output(name, len(tags), legal=legal(tags, scheme))
    y, lengths = rows([3, 2, 0, 1, 3, 3])
    y = 3 * y
    free = output(name, len(tags))
    free.load_state_dict(made.state_dict())
    for search in made.searches:
        predicted = made.label(y, lengths, search, 4)
        for row, length in enumerate(lengths.tolist()):
            assert illegal_step([tags[k] for k in predicted[:length, row]], scheme) is None
    exact = made.label(y, lengths, "exact", 4)
    if name in ("stepwise", "crf"):  # these compare sequences as they would without the limit
        for row, length in enumerate(lengths.tolist()):
            costs = costs_of_all(free, y, row, length, len(tags))
            for at, labels in enumerate(all_labels(length, len(tags))):
                if illegal_step([tags[k] for k in labels], scheme) is not None:
                    costs[at] = torch.inf
            assert all_labels(length, len(tags))[int(costs.argmin())] == tuple(
                exact[:length, row].tolist()
            )
    wrong = any(
        illegal_step([tags[k] for k in labels[:length]], scheme) is not None
        for labels, length in zip(
            free.label(y, lengths, "exact", 4).T.tolist(), lengths.tolist(), strict=True
        )
    )
    assert wrong  # so that the test would see a constraint that does nothing


@pytest.mark.parametrize("name", [name for name in OUTPUTS if name != "stepwise"])
def test_illegal_targets_are_named(name: str) -> None:
    made = output(name, len(TAGS), legal=legal(TAGS, "IOB2"))
    y, lengths = rows([2, 2])
    made.cost(y, lengths, torch.tensor([[1, 0], [2, 3]]))
    message = (
        "targets: row 1 of the batch, step 1: label 2 after label 0 is against the labelling "
        "scheme; correct the data or train without the constraint"
    )
    with pytest.raises(DataError, match=re.escape(message)):
        made.cost(y, lengths, torch.tensor([[1, 0], [2, 2]]))
    with pytest.raises(DataError, match="row 0 of the batch, step 0: label 4 at the start"):
        made.cost(y, lengths, torch.tensor([[4, 0], [0, 0]]))
    made.cost(y, torch.tensor([2, 1]), torch.tensor([[1, 0], [2, 2]]))  # padding is not looked at


def test_a_label_without_a_legal_way_makes_no_nan() -> None:
    tags = ["O", "I-X"]  # nothing begins an X
    made = CRF(WIDTH, 2, legal=legal(tags, "IOB2"))
    y, lengths = rows([3, 1])
    cost = made.cost(y, lengths, torch.zeros(3, 2, dtype=torch.int64)).sum()
    cost.backward()
    assert cost.item() == pytest.approx(0, abs=1e-6)
    assert all(torch.isfinite(p.grad).all() for p in made.parameters() if p.grad is not None)


# --- networks ----------------------------------------------------------------------------------


def columns() -> Columns:
    random = np.random.default_rng(3)
    return Columns(
        words=Ragged.of([random.integers(1, WORDS, n) for n in LENGTHS], np.int32),
        targets=Ragged.of([random.integers(0, LABELS, n) for n in LENGTHS], np.int64),
    )


def network(encoder: str, name: str) -> LabellerNetwork:
    embed = Embed([Words(WORDS, 5)])
    options: dict[str, dict[str, Any]] = {
        "recurrent": {"cell": "GRU", "hidden_size": 3, "bidirectional": True},
        "plain": {},
        "transformer": {"width": 6, "heads": 2, "norm": "after"},
        "convolution": {"width": 5, "num_layers": 2},
    }
    encoder_made = ENCODERS[encoder](embed.width, **options[encoder])
    kind, options_of_output = OUTPUTS[name]
    made = LabellerNetwork(
        embed,
        encoder_made,
        LABEL_OUTPUTS[kind](encoder_made.output_size, LABELS, **options_of_output),
    )
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return made.eval()


TABLE = [*product(ENCODERS, OUTPUTS)]


@pytest.mark.parametrize(("encoder", "name"), TABLE)
def test_padding_changes_nothing(encoder: str, name: str) -> None:
    made, batch = network(encoder, name), collate(columns(), range(4))
    assert batch.targets is not None
    words = torch.cat([batch.inputs["words"], torch.full((2, 4), 3)])
    targets = torch.cat([batch.targets, torch.ones(2, 4, dtype=torch.int64)])
    padded = replace(batch, inputs={"words": words}, targets=targets)
    assert_close(made(padded, {})[0], made(batch, {})[0], **TIGHT)
    labels, p = made.label(batch)
    more_labels, more_p = made.label(padded)
    assert torch.equal(more_labels[:4], labels)
    assert_close(more_p[:4], p, **TIGHT)
    assert not more_labels[4:].any()
    assert not more_p[4:].any()


@pytest.mark.parametrize(("encoder", "name"), TABLE)
def test_a_batch_is_its_rows_one_by_one(encoder: str, name: str) -> None:
    made, data = network(encoder, name), columns()
    together = collate(data, range(4))
    cost, (labels, p) = made(together, {})[0], made.label(together)
    total = torch.zeros(())
    for row, length in enumerate(LENGTHS):
        alone = collate(data, [row])
        total = total + made(alone, {})[0]
        own_labels, own_p = made.label(alone)
        assert torch.equal(own_labels[:, 0], labels[:length, row])
        assert_close(own_p[:, 0], p[:length, row], **TIGHT)
    assert_close(cost, total, **TIGHT)


@pytest.mark.parametrize(("encoder", "name"), TABLE)
def test_the_order_of_rows_is_nothing(encoder: str, name: str) -> None:
    made, data, order = network(encoder, name), columns(), [2, 0, 3, 1]
    labels, p = made.label(collate(data, range(4)))
    other_labels, other_p = made.label(collate(data, order))
    assert torch.equal(other_labels, labels[:, order])
    assert_close(other_p, p[:, order], **TIGHT)


@pytest.mark.parametrize("name", OUTPUTS)
def test_ten_rows_are_learned_by_heart(name: str) -> None:
    random = np.random.default_rng(0)
    lengths = range(1, 11)
    data = Columns(
        words=Ragged.of([random.integers(2, WORDS, n) for n in lengths], np.int64),
        targets=Ragged.of([random.integers(0, LABELS, n) for n in lengths], np.int64),
    )
    embed = Embed([Words(WORDS, 8, deviation=1.0)])
    encoder_made = RecurrentEncoder(embed.width, cell="LSTM", hidden_size=16, bidirectional=True)
    kind, options_of_output = OUTPUTS[name]
    made = LabellerNetwork(
        embed,
        encoder_made,
        LABEL_OUTPUTS[kind](encoder_made.output_size, LABELS, **options_of_output),
    )
    batch = collate(data, range(10))
    optimiser = torch.optim.Adam(made.parameters(), 0.05)
    for _ in range(100):
        optimiser.zero_grad()
        made(batch, {})[0].backward()
        optimiser.step()
    assert made(batch, {})[0] < 1
    labels = made.eval().label(batch).labels
    assert batch.targets is not None
    assert torch.equal(labels, batch.targets)


def test_unknown_searches_and_starts_are_named() -> None:
    y, lengths = rows()
    with pytest.raises(OptionError, match=r"unknown search 'beam'\. Known: exact"):
        Stepwise(WIDTH, LABELS).label(y, lengths, "beam", 2)
    with pytest.raises(OptionError, match="unknown search 'greedi': did you mean 'greedy'"):
        output("previous, layer").label(y, lengths, "greedi", 2)
    with pytest.raises(OptionError, match=r"unknown start 'one'\. Known: learned, zero"):
        PreviousLabel(WIDTH, LABELS, **JOINED, start="one")


# --- baselines ---------------------------------------------------------------------------------


def test_each_word_has_its_most_frequent_label() -> None:
    words = Ragged.of([[2, 3, 2], [2, 3, 4], [3, 4]], np.int32)
    targets = Ragged.of([[1, 0, 1], [0, 2, 2], [2, 1]], np.int64)
    made = MajorityLabel.fitted(words, targets, 7)
    assert made.overall == 1  # three of each of 1 and 2: the first
    assert made.by_word.tolist() == [1, 1, 1, 2, 1, 1, 1]
    assert made.label(Ragged.of([[3, 6], []], np.int64)).row(0).tolist() == [2, 1]


def test_the_most_frequent_class() -> None:
    assert majority_class(np.array([2, 1, 2])) == 2
    with pytest.raises(DataError, match="expected at least one row"):
        majority_class(np.array([], np.int64))
