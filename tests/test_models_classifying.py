"""Networks that classify: laws over every encoder, pooling and head; features; costs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from pooled import PooledNetwork
from torch import Tensor
from torch.autograd import gradcheck
from torch.testing import assert_close

from ensue.data.ragged import Ragged
from ensue.errors import DataError, OptionError, ShapeError
from ensue.tasks.blocks.embeddings import Characters, Embed, Symbols, Vectors, Words
from ensue.tasks.blocks.encoders import ENCODERS, PlainEncoder, RecurrentEncoder
from ensue.tasks.blocks.heads import HEADS, BernoulliHead, CategoricalHead, balanced
from ensue.tasks.blocks.pooling import POOLINGS, Pooling
from ensue.tasks.rows.batch import UNKNOWN, Columns, SequenceBatch, collate
from ensue.tasks.rows.surfaces import (
    ends_of,
    part_counts,
    shape_of,
    starts_of,
    surface_table,
)
from ensue.tasks.supervised.inputs.text import NgramScores
from ensue.training.processes import moved

WORDS, CLASSES, NGRAMS, FEATURES = 12, 3, 9, 2
LENGTHS = [4, 1, 0, 6, 3]
TIGHT = {"rtol": 1e-10, "atol": 1e-10}
ENCODER_OPTIONS = {
    "recurrent": {"cell": "LSTM", "hidden_size": 4, "bidirectional": True, "num_layers": 2},
    "plain": {},
    "transformer": {"width": 6, "heads": 2, "num_layers": 2},
    "convolution": {"width": 4, "num_layers": 2, "size": 4, "dilated": True},
}
TABLE = [*product(ENCODERS, [*POOLINGS, "mean+max+last"], HEADS)]


@pytest.fixture(autouse=True)
def _seeded_and_double() -> Iterator[None]:
    torch.manual_seed(1)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def columns(head: str = "categorical") -> Columns:
    """A row of each length, one of them empty."""
    random = np.random.default_rng(7)
    rows = len(LENGTHS)
    classes = random.integers(0, CLASSES, rows)
    return Columns(
        words=Ragged.of([random.integers(1, WORDS, n) for n in LENGTHS], np.int32),
        vectors=Ragged.of([random.normal(size=(n, FEATURES)) for n in LENGTHS], float, (FEATURES,)),
        ngrams=Ragged.of([random.integers(0, NGRAMS, n) for n in LENGTHS], np.int32),
        targets=classes if head == "categorical" else random.integers(0, 2, (rows, CLASSES)),
    )


def network(encoder: str, pooling: str, head: str) -> PooledNetwork:
    embed = Embed([Words(WORDS, 5), Vectors(FEATURES)])
    encoder_made = ENCODERS[encoder](embed.width, **ENCODER_OPTIONS[encoder])
    made = PooledNetwork(
        embed,
        encoder_made,
        Pooling(pooling, encoder_made.output_size, encoder_made.final_size),
        HEADS[head](CLASSES),
        ngrams=NgramScores(NGRAMS, CLASSES),
    )
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return made.eval()


# --- laws over all combinations ----------------------------------------------------------------


def with_padding(batch: SequenceBatch, steps: int) -> SequenceBatch:
    """More padding, filled with anything."""
    words = torch.cat([batch.inputs["words"], torch.full((steps, len(batch)), 3)])
    noise = torch.randn(steps, len(batch), FEATURES) * 100
    vectors = torch.cat([batch.inputs["vectors"], noise])
    return replace(batch, inputs={**batch.inputs, "words": words, "vectors": vectors})


@pytest.mark.parametrize(("encoder", "pooling", "head"), TABLE)
def test_padding_changes_nothing(encoder: str, pooling: str, head: str) -> None:
    made, batch = network(encoder, pooling, head), collate(columns(head), range(5))
    padded = with_padding(batch, 3)
    assert_close(made.scores(padded), made.scores(batch), **TIGHT)
    for batch_made in (batch, padded):
        made.zero_grad()
        cost, carried = made(batch_made, {})
        cost.backward()
        assert carried == {}
        gradients = [p.grad.clone() for p in made.parameters() if p.grad is not None]
        if batch_made is batch:
            expected = gradients
    assert_close(gradients[1:], expected[1:], **TIGHT)
    assert_close(gradients[0][1:], expected[0][1:], **TIGHT)  # words; padding itself has none
    assert not gradients[0][0].any()


@pytest.mark.parametrize(("encoder", "pooling", "head"), TABLE)
def test_a_batch_is_its_rows_one_by_one(encoder: str, pooling: str, head: str) -> None:
    made, data = network(encoder, pooling, head), columns(head)
    together, cost = made.scores(collate(data, range(5))), made(collate(data, range(5)), {})[0]
    alone = [collate(data, [row]) for row in range(5)]
    assert_close(together, torch.cat([made.scores(one) for one in alone]), **TIGHT)
    assert_close(cost, sum(made(one, {})[0] for one in alone), **TIGHT)
    assert torch.isfinite(together).all()  # the empty row too


@pytest.mark.parametrize(("encoder", "pooling", "head"), TABLE)
def test_the_order_of_rows_is_nothing(encoder: str, pooling: str, head: str) -> None:
    made, data = network(encoder, pooling, head), columns(head)
    order = [3, 1, 4, 0, 2]
    scores = made.log_probabilities(collate(data, range(5)))
    assert_close(made.log_probabilities(collate(data, order)), scores[order], **TIGHT)
    if head == "categorical":
        assert_close(scores.exp().sum(1), torch.ones(5), **TIGHT)


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("head", HEADS)
def test_ten_rows_are_learned_by_heart(encoder: str, head: str) -> None:
    random = np.random.default_rng(0)
    words = Ragged.of([random.integers(2, WORDS, n) for n in range(1, 11)], np.int64)
    targets = random.integers(0, 2, 10) if head == "categorical" else random.integers(0, 2, (10, 2))
    embed = Embed([Words(WORDS, 8)])
    options: dict[str, dict[str, Any]] = {
        "recurrent": {"cell": "GRU", "hidden_size": 8},
        "plain": {},
        "transformer": {"width": 8, "heads": 2},
        "convolution": {"width": 8},
    }
    encoder_made = ENCODERS[encoder](embed.width, **options[encoder])
    made = PooledNetwork(
        embed,
        encoder_made,
        Pooling("mean+max", encoder_made.output_size, encoder_made.final_size),
        HEADS[head](2),
    )
    batch = collate(Columns(words=words, targets=targets), range(10))
    optimiser = torch.optim.Adam(made.parameters(), 0.05)
    for _ in range(120):
        optimiser.zero_grad()
        made(batch, {})[0].backward()
        optimiser.step()
    assert made(batch, {})[0] < 0.5
    probabilities = made.log_probabilities(batch).exp()
    answer = probabilities.argmax(1) if head == "categorical" else probabilities > 0.5
    assert (answer.numpy() == targets).all()


# --- pooling -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*POOLINGS, "attention+last"])
def test_pooling_is_that_of_the_real_steps(name: str) -> None:
    made = Pooling(name, 4, 3)
    y, final = torch.randn(6, 3, 4), torch.randn(3, 3)
    lengths = torch.tensor([6, 2, 0])
    together = made(y, final, lengths)
    for row, length in enumerate(lengths.tolist()):
        alone = made(y[:length, row : row + 1], final[row : row + 1], lengths[row : row + 1])
        assert_close(together[row], alone[0], **TIGHT)
    if "last" not in name:
        assert not together[2].any()


def test_poolings_by_hand() -> None:
    y = torch.tensor([[1.0, -4.0], [3.0, -2.0], [99.0, 99.0]])[:, None]
    final, lengths = torch.tensor([[7.0]]), torch.tensor([2])
    for name, expected in {"mean": [2.0, -3.0], "max": [3.0, -2.0], "last": [7.0]}.items():
        assert Pooling(name, 2, 1)(y, final, lengths).tolist() == [expected]
    made = Pooling("attention", 2, 1)
    weights = made.attention(y, lengths)
    assert_close(weights.sum(0), torch.ones(1))
    assert not weights[2].any()
    assert_close(made(y, final, lengths), (weights[..., None] * y).sum(0))


@pytest.mark.parametrize("name", POOLINGS)
def test_the_gradient_of_pooling(name: str) -> None:
    made = Pooling(name, 3, 2)
    lengths = torch.tensor([4, 0, 2])
    y = torch.randn(4, 3, 3, requires_grad=True)
    final = torch.randn(3, 2, requires_grad=True)
    assert gradcheck(lambda a, b: made(a, b, lengths), (y, final))


def test_what_the_final_state_is() -> None:
    x, lengths = torch.randn(5, 2, 3), torch.tensor([5, 2])
    options = {"cell": "GRU", "hidden_size": 4, "num_layers": 2, "bidirectional": True}
    top = RecurrentEncoder(3, **options)
    every = RecurrentEncoder(3, **options, final="all")
    every.load_state_dict(top.state_dict())
    y, final = top(x, lengths)
    assert final.shape == (2, top.final_size) == (2, 8)
    assert_close(final[0], torch.cat([y[4, 0, :4], y[0, 0, 4:]]))
    assert_close(final[1], torch.cat([y[1, 1, :4], y[0, 1, 4:]]))
    deep = every(x, lengths)[1]
    assert deep.shape == (2, every.final_size) == (2, 16)
    assert_close(deep[:, 8:], final)
    plain, last = PlainEncoder(3)(x, lengths)
    assert_close(last, torch.stack([x[4, 0], x[1, 1]]))
    assert not plain[2:, 1].any()


def test_recurrent_dropout_acts_in_training_only() -> None:
    made = RecurrentEncoder(3, cell="LSTM", hidden_size=4, recurrent_dropout=0.5)
    plain = RecurrentEncoder(3, cell="LSTM", hidden_size=4)
    plain.load_state_dict(made.state_dict())
    x, lengths = torch.randn(5, 2, 3), torch.tensor([5, 5])
    assert not torch.equal(made(x, lengths)[0], made(x, lengths)[0])
    assert_close(made.eval()(x, lengths), plain(x, lengths), **TIGHT)


# --- features ----------------------------------------------------------------------------------


class Spelling:
    """A numbering that knows some tokens, from 2 on."""

    def __init__(self, known: list[str]) -> None:
        self.known = known

    def ids(self, tokens: list[str]) -> list[int]:
        return [self.known.index(t) + 2 if t in self.known else 1 for t in tokens]


SENTENCES = [["The", "cat", "the", "mat"], ["cat"], [], ["a", "Mat", "cat", "sat", "up"]]


def spelled() -> Columns:
    known: dict[str, int] = {}
    numbers = [[known.setdefault(word, len(known) + 1) for word in s] for s in SENTENCES]
    surfaces, forms = Ragged.of(numbers, np.int64), ["", *known]
    affixes = Spelling(["t", "th", "c", "ca", "cat", "at"])
    table = surface_table(
        forms,
        Spelling(["the", "cat", "mat", "sat"]),
        fold=str.lower,
        characters=Spelling(list("acehmTM")),
        prefixes=(affixes, 3),
        suffixes=(affixes, 2),
        shapes=Spelling(["x", "xx", "Xxx"]),
    )
    return Columns(surfaces=surfaces, table=table)


def test_what_the_table_says_of_a_word() -> None:
    batch = collate(spelled(), [0, 1])
    inputs = batch.inputs
    assert inputs["words"].tolist() == [[2, 3], [3, 0], [2, 0], [4, 0]]
    assert inputs["prefix"][1, 0].tolist() == [4, 5, 6]  # c ca cat
    assert inputs["suffix"][1, 0].tolist() == [2, 7]  # t at
    assert inputs["prefix"][1, 1].tolist() == [0, 0, 0]
    assert inputs["shape"].tolist() == [[4, 3], [3, 0], [3, 0], [3, 0]]
    short = collate(spelled(), [3]).inputs
    assert short["prefix"][0, 0].tolist() == [1, 0, 0]  # one letter, which is unknown
    spelling = inputs["characters"][:, inputs["characters.index"][1, 0]]
    assert spelling.tolist() == [3, 2, 1]
    assert inputs["characters.lengths"][inputs["characters.index"][:, 1]].tolist() == [3, 0, 0, 0]


def test_the_letters_of_a_word_are_read_once_and_mean_the_same() -> None:
    made = Characters(9, 4, "LSTM", 3)
    batch = collate(spelled(), range(4))
    distinct = {word for sentence in SENTENCES for word in sentence}
    assert batch.inputs["characters"].shape[1] == len(distinct) + 1  # and padding
    vectors = made(batch.inputs)
    assert vectors.shape == (5, 4, made.width) == (5, 4, 6)
    assert_close(vectors[1, 0], vectors[0, 1], **TIGHT)  # cat
    assert_close(vectors[1, 0], vectors[2, 3], **TIGHT)
    assert not torch.allclose(vectors[0, 0], vectors[2, 0])  # The, the
    assert not vectors[:, 2].any()
    alone = made(collate(spelled(), [1]).inputs)
    assert_close(alone[0, 0], vectors[0, 1], **TIGHT)


def test_all_features_stand_side_by_side() -> None:
    features = [
        Words(6, 4),
        Characters(9, 4, "GRU", 3),
        Symbols("prefix", 8, 2, 3),
        Symbols("suffix", 8, 2, 2),
        Symbols("shape", 5, 3),
    ]
    embed = Embed(features)
    x = embed(collate(spelled(), range(4)).inputs)
    assert x.shape == (5, 4, embed.width) == (5, 4, 4 + 6 + 6 + 4 + 3)
    assert not x[1:, 1].any()  # padding is nothing in all of them


def test_words_are_replaced_by_the_unknown_one_as_often_as_asked() -> None:
    once = torch.zeros(WORDS, dtype=torch.bool)
    once[5] = True
    made = Words(WORDS, 1, dropout=0.2, once=once, once_dropout=0.6)
    with torch.no_grad():
        made.table.weight[:, 0] = torch.arange(float(WORDS))
    ids = torch.tensor([0, 4, 5]).expand(20_000, 3)
    ids_left = made({"words": ids})[..., 0]
    replaced = (ids_left == UNKNOWN).double().mean(0)
    assert replaced[0] == 0
    assert replaced[1:].tolist() == pytest.approx([0.2, 0.6], abs=0.02)
    assert ((ids_left == UNKNOWN) | (ids_left == ids)).all()
    assert torch.equal(made.eval()({"words": ids})[..., 0], ids.double())


def test_given_word_vectors_and_whether_they_stay() -> None:
    start = torch.randn(WORDS, 3)
    for frozen in (True, False):
        made = Words(WORDS, 3, start=start, frozen=frozen)
        assert_close(made.table.weight[1:], start[1:])
        assert not made.table.weight[0].any()
        assert made.table.weight.requires_grad != frozen
    with pytest.raises(ShapeError, match=re.escape("start: expected (12, 4), words and width")):
        Words(WORDS, 4, start=start)


@pytest.mark.parametrize(("over", "same"), [("element", ()), ("step", (2,)), ("sequence", (0,))])
def test_what_is_dropped_together(over: str, same: tuple[int, ...]) -> None:
    embed = Embed([Vectors(50)], dropout=0.3, over=over)
    x = embed({"vectors": torch.ones(40, 30, 50)})
    assert sorted(x.unique().tolist()) == pytest.approx([0, 1 / 0.7])
    assert (x == 0).double().mean().item() == pytest.approx(0.3, abs=0.03)
    for axis in range(3):
        constant = (x.amax(axis) == x.amin(axis)).all().item()
        assert constant == (axis in same)
    assert (embed.eval()({"vectors": torch.ones(2, 2, 50)}) == 1).all()


def test_vectors_are_scaled() -> None:
    made = Vectors(2, torch.tensor([1.0, 2.0]), torch.tensor([2.0, 4.0]))
    assert made({"vectors": torch.tensor([[[3.0, 2.0]]])}).tolist() == [[[1.0, 0.0]]]
    assert set(made.state_dict()) == {"mean", "scale"}  # they are saved with the weights


def test_shapes_and_affixes() -> None:
    assert shape_of("McDonald's") == "XxXxx'x"
    assert shape_of("2026-11-15") == "dd-dd-dd"
    assert shape_of("") == ""
    assert starts_of("up", 3) == ["u", "up"]
    assert ends_of("sat", 2) == ["t", "at"]
    counts = part_counts({"up": 2, "to": 1}, lambda w: ends_of(w, 1))
    assert counts == {"p": 2, "o": 1}


# --- costs -------------------------------------------------------------------------------------


def test_the_categorical_cost_by_its_formula() -> None:
    z, targets = torch.randn(6, CLASSES), torch.tensor([0, 1, 2, 2, 1, 0])
    w = torch.tensor([1.0, 2.0, 0.5])
    made = CategoricalHead(CLASSES, smoothing=0.2, class_weights=w)
    q = 0.8 * torch.eye(CLASSES)[targets] + 0.2 / CLASSES
    assert_close(made.cost(z, targets), -(q * w * z.log_softmax(1)).sum(1), **TIGHT)
    plain = -(w * torch.eye(CLASSES)[targets] * z.log_softmax(1)).sum(1)
    assert_close(made.eval().cost(z, targets), plain, **TIGHT)


def test_the_cost_of_several_labels_by_its_formula() -> None:
    z, targets = torch.randn(6, CLASSES), torch.randint(0, 2, (6, CLASSES)).double()
    w = torch.tensor([1.0, 2.0, 0.5])
    made = BernoulliHead(CLASSES, smoothing=0.2, class_weights=w)
    q, p = 0.8 * targets + 0.1, z.sigmoid()
    assert_close(
        made.cost(z, targets), -(w * q * p.log() + (1 - q) * (1 - p).log()).sum(1), **TIGHT
    )
    assert_close(made.log_probabilities(z).exp(), p, **TIGHT)


def test_balanced_classes_count_alike() -> None:
    counts = torch.tensor([8, 2, 0])
    weights = balanced(counts)
    assert weights[0] * 8 == weights[1] * 2
    assert weights[2] == 1


# --- n-gram scores -----------------------------------------------------------------------------


def test_ngram_scores_are_sums_over_a_rows_ngrams() -> None:
    start = torch.randn(NGRAMS, CLASSES)
    made = NgramScores(NGRAMS, CLASSES, start=start, l2=0.5)
    batch = collate(columns(), range(5))
    ids = columns().ngrams
    assert ids is not None
    expected = torch.stack([start[ids.row(row).tolist()].sum(0) for row in range(5)])
    assert_close(made(batch), expected, **TIGHT)
    assert made.penalty() == 0
    with torch.no_grad():
        made.weight += 2
    assert made.penalty().item() == pytest.approx(0.25 * 4 * NGRAMS * CLASSES)
    assert not NgramScores(NGRAMS, CLASSES)(batch).any()


def test_dropped_ngrams_keep_their_expectation() -> None:
    made = NgramScores(1, 1, start=torch.ones(1, 1), dropout=0.4)
    ngrams = {"ngrams": torch.zeros(30_000, dtype=torch.int64), "ngrams.starts": torch.tensor([0])}
    inputs = SequenceBatch(ngrams, torch.tensor([1]))
    assert made(inputs).item() == pytest.approx(30_000, rel=0.02)
    assert made(inputs).item() != made(inputs).item()
    assert made.eval()(inputs).item() == pytest.approx(30_000)


def test_the_penalty_is_part_of_the_training_cost_only() -> None:
    made, batch = network("plain", "mean", "categorical"), collate(columns(), range(5))
    plain = made(batch, {})[0]
    assert isinstance(made.side, NgramScores)
    made.side.l2 = 0.1
    assert_close(made(batch, {})[0], plain)
    expected = plain + 5 * 0.05 * (made.side.weight**2).sum()
    assert_close(made.train()(batch, {})[0], expected, **TIGHT)


def test_the_attention_of_the_network() -> None:
    made, batch = network("recurrent", "attention", "categorical"), collate(columns(), range(5))
    weights = made.reader.attention(batch)
    assert weights.shape == (6, 5)
    assert_close(weights.sum(0), (batch.lengths > 0).double(), **TIGHT)


# --- messages ----------------------------------------------------------------------------------


def test_messages() -> None:
    def refuse(kind: type[Exception], message: str, make: object, *arguments: object) -> None:
        with pytest.raises(kind, match=re.escape(message)):
            make(*arguments)  # type: ignore[operator]

    refuse(OptionError, "unknown pooling 'men': did you mean 'mean'?", Pooling, "men", 2, 2)
    refuse(OptionError, "expected each name once, got 'max+max'", Pooling, "max+max", 2, 2)
    attention = Pooling("mean", 2, 2).attention
    no_weights = "pooling: mean has no attention weights; use attention, or mean+attention"
    refuse(OptionError, no_weights, attention, torch.zeros(1, 1, 2), torch.tensor([1]))
    refuse(OptionError, "features: expected at least one", Embed, [])
    refuse(OptionError, "dropout: expected 0 ≤ rate < 1, got 1.0", Embed, [Vectors(2)], 1.0)
    refuse(OptionError, "unknown dropout over 'steps'", Embed, [Vectors(2)], 0.1, "steps")
    weights = "class_weights: expected 2 numbers > 0, one for each class, got [1.0, 0.0]"
    refuse(ShapeError, weights, lambda: CategoricalHead(2, class_weights=torch.tensor([1.0, 0.0])))
    refuse(
        ShapeError,
        "start: expected (3, 2), n-grams and classes, got (2, 2)",
        lambda: NgramScores(3, 2, start=torch.zeros(2, 2)),
    )
    refuse(OptionError, "l2: expected a number ≥ 0, got -1", lambda: NgramScores(3, 2, l2=-1))
    refuse(
        OptionError,
        "unknown final 'first'",
        lambda: RecurrentEncoder(2, cell="GRU", hidden_size=2, final="first"),
    )


def test_columns_that_do_not_fit_together_are_refused() -> None:
    words = Ragged.of([[1, 2], [3]], np.int64)
    with pytest.raises(DataError, match="same number of rows, got words 2, targets 3"):
        Columns(words=words, targets=np.zeros(3))
    with pytest.raises(DataError, match="row 1: words has 1 steps and targets has 2; every step"):
        Columns(words=words, targets=Ragged.of([[1, 2], [3, 4]], np.int64))
    with pytest.raises(DataError, match="surfaces and their table go together"):
        Columns(surfaces=words)


def test_a_cost_needs_targets() -> None:
    made = network("plain", "mean", "categorical")
    batch = collate(replace(columns(), targets=None), [0])
    with pytest.raises(DataError, match="targets: expected for a cost, got a batch without"):
        made(batch, {})


def test_a_batch_moves_as_one() -> None:
    batch = moved(collate(columns(), range(5)), torch.device("meta"))
    tensors: list[Tensor | None] = [*batch.inputs.values(), batch.targets]
    assert all(t is not None and t.device.type == "meta" for t in tensors)
    assert batch.lengths.device.type == "cpu"
