"""The linear chain next to a labeller's network: its sums, its gradient, and both mixed."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.testing import assert_close

from ensue import Labeller
from ensue.data.ragged import Ragged
from ensue.data.tasks import dates
from ensue.metrics.classes import span_f1
from ensue.metrics.spans import spans_of
from ensue.tasks.evaluation.bootstrap import bootstrap
from ensue.tasks.label.linear_chain import (
    Chain,
    ChainCost,
    ChainFeatures,
    DistinctWords,
    LinearChain,
    PackedRows,
    expectations,
    fit_linear_chain,
    own_features,
)
from ensue.tasks.label.mixture import ScoredChains, best_outside, fitted_weights, joined, without

WORDS = ["the", "Dog", "runs", "ÉCOLE", "2026", "дом"]
ROWS = Ragged.of([[0, 1, 2], [], [3], [4, 0, 1, 5, 2], [5, 5]], np.int64)
LABELS = 3
TARGETS = Ragged(np.arange(len(ROWS.values)) * 2 % LABELS, ROWS.starts)
PEOPLE = [
    (["Ann", "met", "Bob", "Lee", "in", "Rome"], ["B-PER", "O", "B-PER", "I-PER", "O", "B-LOC"]),
    (["nobody", "came", "to", "Oslo"], ["O", "O", "O", "B-LOC"]),
    (["Eve", "Lee", "sleeps"], ["B-PER", "I-PER", "O"]),
] * 8
TINY = {"hidden_size": 6, "embedding_size": 6, "character_size": 3, "character_hidden": 3}


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(1)


def links(dtype: torch.dtype = torch.float64) -> list[Tensor]:
    return [torch.randn(size, dtype=dtype) for size in ((LABELS,), (LABELS, LABELS), (LABELS,))]


def fitted() -> LinearChain:
    return fit_linear_chain(WORDS, ROWS, TARGETS, LABELS)


# --- sums --------------------------------------------------------------------------------------


def test_expectations_are_those_of_all_sequences() -> None:
    emissions = 3 * torch.randn(len(ROWS.values), LABELS, dtype=torch.float64)
    first, follow, last = links()
    expected_counts = expectations(PackedRows(ROWS), emissions, first, follow, last)
    total, counts = 0.0, [torch.zeros_like(weights) for weights in (first, follow, last)]
    for row in range(len(ROWS)):
        emissions_of_row = emissions[ROWS.starts[row] : ROWS.starts[row + 1]]
        if not len(emissions_of_row):
            continue
        every = list(product(range(LABELS), repeat=len(emissions_of_row)))
        scores = torch.stack(
            [_score(emissions_of_row, path, first, follow, last) for path in every]
        )
        total += float(scores.logsumexp(0))
        marginals = torch.zeros_like(emissions_of_row)
        for path, p in zip(every, scores.softmax(0), strict=True):
            marginals[torch.arange(len(emissions_of_row)), torch.tensor(path)] += p
            counts[0][path[0]] += p
            counts[2][path[-1]] += p
            for a, b in pairwise(path):
                counts[1][a, b] += p
        assert_close(expected_counts.labels[ROWS.starts[row] : ROWS.starts[row + 1]], marginals)
    assert float(expected_counts.log_partition) == pytest.approx(total)
    for emissions_of_row, count in zip(
        (expected_counts.first, expected_counts.follow, expected_counts.last), counts, strict=True
    ):
        assert_close(emissions_of_row, count)


def _score(
    emissions: Tensor, path: tuple[int, ...], first: Tensor, follow: Tensor, last: Tensor
) -> Tensor:
    total = first[path[0]] + last[path[-1]]
    total = total + sum(emissions[t, label] for t, label in enumerate(path))
    return total + sum(follow[a, b] for a, b in pairwise(path))


def test_the_gradient_is_that_of_finite_differences() -> None:
    features = ChainFeatures.learn(dict.fromkeys(WORDS, 1))
    seen_words = DistinctWords(features, WORDS, ROWS)
    cost = ChainCost(seen_words, ROWS, TARGETS, LABELS, strength=0.2)
    weights = [torch.randn_like(weight).double() for weight in cost.zeros()]
    cost(weights)
    for k, weight in enumerate(weights):
        slope = weight.grad
        assert slope is not None
        for place in {0, weight.numel() // 2, weight.numel() - 1}:
            moved = [[w.clone() for w in weights] for _ in range(2)]
            for sign, changed in zip((1, -1), moved, strict=True):
                changed[k].view(-1)[place] += sign * 1e-5
            high, low = (float(cost(changed)) for changed in moved)
            assert (high - low) / 2e-5 == pytest.approx(float(slope.view(-1)[place]), abs=1e-3)


def test_batches_are_as_rows_one_by_one_and_padding_changes_nothing() -> None:
    chain = fitted().of_words(WORDS)
    labels, scores = chain.chain(ROWS).best()
    marginals = chain.chain(ROWS).log_marginals()
    for row in range(len(ROWS)):
        alone = chain.chain(ROWS.take([row]))
        length = int(ROWS.lengths[row])
        assert_close(alone.best()[0][:, 0], labels[:length, row])
        assert_close(alone.best()[1][0], scores[row])
        assert_close(alone.log_marginals()[:, 0], marginals[:length, row])
        assert not labels[length:, row].any()


def test_words_that_training_has_not_give_what_their_features_give() -> None:
    chain = fitted()
    known = {feature for word in WORDS for feature in own_features(word)}
    assert "ends ol" not in known
    new = chain.of_words([*WORDS, "dogs"])  # begins as a known word does
    old = chain.of_words(WORDS)
    assert_close(new.chain(ROWS).first, old.chain(ROWS).first)
    assert new.scores[0][len(WORDS)].any()


def test_the_features_of_scripts_without_capitals_say_nothing_of_case() -> None:
    for word in ("東京", "बच्चा", "المدرسة"):
        assert not {"capitals", "title", "small"} & {*own_features(word)}
    assert "title" in {*own_features("Österreich")}
    assert {"ends ung", "lower wohnung"} <= {*own_features("Wohnung")}


# --- mixed -------------------------------------------------------------------------------------


def chain_of(emissions: Tensor, lengths: list[int]) -> Chain:
    """emissions (time, batch, labels)."""
    return Chain(
        emissions[0],
        lambda t: emissions[t][:, None, :].expand(-1, emissions.shape[2], -1),
        emissions.new_zeros(emissions.shape[2]),
        torch.tensor(lengths),
        len(emissions),
    )


def test_of_two_chains_the_one_that_is_right_counts() -> None:
    lengths = [6] * 40
    gold = torch.randint(0, 2, (6, 40))
    right = torch.nn.functional.one_hot(gold, 2) * 3.0
    noise = torch.randn(6, 40, 2)
    good, bad = chain_of(right, lengths), chain_of(noise, lengths)
    assert (
        mixture := fitted_weights([ScoredChains([good], bad, gold)])
    ).network > 3 * mixture.linear
    other = fitted_weights([ScoredChains([bad], good, gold)])
    assert other.linear > 3 * other.network
    cost = -_likelihood(other.joined(bad, good), gold)
    assert cost < -_likelihood(joined(bad, good, 0.5, 0.5), gold)


def _likelihood(chain: Chain, gold: Tensor) -> float:
    logs = chain.log_marginals()
    return float(logs.gather(2, gold[..., None]).sum())


def test_less_for_a_label_is_that_much_less_at_every_step() -> None:
    emissions = torch.randn(4, 3, 3)
    lengths = [4, 2, 3]
    changed = emissions.clone()
    changed[..., 1] -= 0.7
    assert_close(
        without(chain_of(emissions, lengths), 1, 0.7).log_marginals(),
        chain_of(changed, lengths).log_marginals(),
    )


def test_a_peak_by_chance_is_not_followed() -> None:
    tried = [-0.5, 0.0, 0.5, 1.0, 1.5, 2.0]
    assert best_outside(lambda less: 0.5, tried) == 0
    assert best_outside(lambda less: 0.5 + 0.1 * (less >= 1), tried) in (1.0, 1.5)
    assert best_outside(lambda less: 0.503 if less == 2 else 0.5, tried) == 0


def _planted(rows: int, seed: int) -> list[tuple[list[str], list[str]]]:
    """A rare letter at the end of a word determines its label: words are rarely seen twice."""
    draw = np.random.default_rng(seed)
    labelled = []
    for _ in range(rows):
        words = ["".join(draw.choice(list("abcdefgh"), 6)) for _ in range(5)]
        ends = draw.choice(["xx", "yy", "zz"], 5)
        joined_words = [word + end for word, end in zip(words, ends, strict=True)]
        labelled.append((joined_words, [{"xx": "X", "yy": "Y", "zz": "Z"}[end] for end in ends]))
    return labelled


def test_what_only_the_linear_chain_can_learn_is_answered() -> None:
    blind = {"character_size": 0, "affixes": 0, "shapes": False, "hidden_size": 4}
    model = Labeller(model=blind, train={"epochs": 2}).fit(_planted(60, 1))
    evaluation = model.evaluate(_planted(30, 2))
    assert evaluation.scores["accuracy"].value > 0.97
    assert evaluation.baselines["linear chain"] > 0.97
    assert evaluation.baselines["network alone"] < 0.6


def test_what_only_the_network_can_learn_is_answered() -> None:
    """The label of the last word is the first word, which is too far away for a chain."""
    draw = np.random.default_rng(3)

    def rows(many: int) -> list[tuple[list[str], list[str]]]:
        first = draw.choice(["a", "b"], many).tolist()
        return [([one, "c", "c", "c"], ["O", "O", "O", one]) for one in first]

    sure = {"dropout_input": 0.0, "dropout_output": 0.0, "word_dropout": 0.0}
    train = {"epochs": 15, "rate": 0.05, "averaging": "off", "patience": "off"}
    model = Labeller(model={**TINY, **sure, "hidden_size": 16}, train=train).fit(rows(100))
    evaluation = model.evaluate(rows(40))
    assert evaluation.scores["accuracy"].value == evaluation.baselines["network alone"] == 1
    assert evaluation.baselines["linear chain"] < 0.95


def test_a_mixed_model_is_saved_as_it_is(tmp_path: Path) -> None:
    model = Labeller(model=TINY, train={"epochs": 2}).fit(PEOPLE, PEOPLE)
    assert model.learned.mixture is not None
    model.save(tmp_path / "model")
    again = Labeller.load(tmp_path / "model")
    questions = [words for words, _ in PEOPLE[:3]]
    assert again.predict(questions) == model.predict(questions)
    assert again.learned.mixture == model.learned.mixture
    assert "linear chain" in again.evaluate(PEOPLE[:3]).baselines


def test_a_share_that_is_told_stays(tmp_path: Path) -> None:
    model = Labeller(model={**TINY, "linear_share": 0.25}, train={"epochs": 1}).fit(PEOPLE, PEOPLE)
    assert model.learned.mixture is not None
    assert model.learned.mixture[:2] == (0.75, 0.25)
    alone = Labeller(model={**TINY, "linear_share": 0.0}, train={"epochs": 1}).fit(PEOPLE, PEOPLE)
    assert alone.learned.mixture is None
    assert "network alone" not in alone.evaluate(PEOPLE).baselines


# --- defaults by the data ----------------------------------------------------------------------


def fitted_with(rows: Any, model: dict[str, Any]) -> Labeller:
    return Labeller(model={**TINY, **model}, train={"epochs": 1}).fit(rows, PEOPLE)


def test_spans_have_a_crf_that_is_watched_by_their_f1() -> None:
    config = fitted_with(PEOPLE, {})
    assert (config.settings.output, config.settings.legal_only) == ("crf", True)
    assert config.train.watch == "span_f1"
    tags = [(words, [word[0] for word in words]) for words, _ in PEOPLE]
    plain = Labeller(model=TINY, train={"epochs": 1}).fit(tags, tags)
    assert (plain.settings.output, plain.train.watch) == ("stepwise", "accuracy")


@pytest.mark.parametrize("part", ["train", "validation"])
def test_spans_that_break_their_scheme_are_learned_from_all_the_same(part: str) -> None:
    broken = [(["so", "Ann", "Lee"], ["O", "I-PER", "I-PER"])] * 3
    train, validation = (PEOPLE + broken, PEOPLE) if part == "train" else (PEOPLE, PEOPLE + broken)
    model = Labeller(model=TINY, train={"epochs": 1}).fit(train, validation)
    assert model.settings.legal_only == (part == "validation")
    assert np.isfinite(model.curves.members[0][-1].scores["cost"])
    assert model.predict([["so", "Ann"]])[0].labels


def test_what_is_told_is_not_changed() -> None:
    config = fitted_with(PEOPLE, {"output": "previous", "search": "beam"})
    assert (config.settings.output, config.settings.search, config.settings.linear_share) == (
        "previous",
        "beam",
        0.0,
    )
    assert fitted_with(PEOPLE, {"class_weights": "balanced"}).settings.output == "stepwise"


def test_a_cell_that_reads_the_labels_before_is_searched_by_beam() -> None:
    rows = [(list(date.tokens), list(date.tags)) for date in dates(1, "train", 60)]
    cell = {"output": "previous", "previous_cell": "GRU", "hidden_size": 8}
    model = Labeller(model=cell, train={"epochs": 1}).fit(rows)
    assert model.settings.search == "beam"
    assert len(model.predict([rows[0][0]])[0].labels) == len(rows[0][0])
    assert model.evaluate(rows).baselines["linear chain"] > 0.8


@pytest.mark.parametrize(
    ("settings", "mentions", "unsaid"),
    [
        ({}, ["a CRF", "mixed with a linear chain"], []),
        ({"output": "previous"}, ["mixed with a linear chain"], ["CRF"]),
        (
            {"output": "previous", "previous_cell": "GRU"},
            ["compared with a linear chain"],
            ["CRF", "mixed"],
        ),
        ({"linear_share": 0.0}, ["a CRF"], ["chain"]),
        ({"search": "exact"}, [], ["CRF", "chain"]),
    ],
)
def test_what_is_said_to_be_built_is_built(
    settings: dict[str, Any], mentions: list[str], unsaid: list[str]
) -> None:
    heard: list[str] = []
    model = Labeller(model={**TINY, **settings}, train={"epochs": 1})
    model.fit(PEOPLE, PEOPLE, watchers=[lambda row: heard.append(getattr(row, "text", ""))])
    (line,) = (line for line in heard if "judged by span F1" in line or "epochs" in line)
    assert all(words in line for words in mentions)
    assert not any(words in line for words in unsaid)
    assert ("CRF" in line) == (model.settings.output == "crf")
    assert ("mixed" in line) == (model.learned.mixture is not None)


# --- evaluated ---------------------------------------------------------------------------------


def test_spans_of_each_type_are_counted() -> None:
    model = fitted_with(PEOPLE, {})
    rows = [*PEOPLE[:3], (["Ann", "sees", "Rome"], ["O", "O", "B-ORG"])]
    evaluation = model.evaluate(rows)
    answers = model.predict([words for words, _ in rows])
    gold = {(k, *span) for k, (_, tags) in enumerate(rows) for span in spans_of(tags)}
    guess = {(k, *span) for k, answer in enumerate(answers) for span in answer.spans or ()}
    assert {row.name for row in evaluation.types} == {span[-1] for span in gold | guess}
    for row in evaluation.types:
        gold_spans = {span for span in gold if span[-1] == row.name}
        guessed_spans = {span for span in guess if span[-1] == row.name}
        right = len(gold_spans & guessed_spans)
        assert row.support == len(gold_spans)
        assert row.precision == pytest.approx(right / len(guessed_spans) if guessed_spans else 0)
        assert row.recall == pytest.approx(right / len(gold_spans) if gold_spans else 0)
    total = span_f1(np.array([len(gold & guess), len(gold), len(guess)]))
    assert evaluation.scores["span_f1"].value == pytest.approx(float(total))
    assert "precision" in evaluation.as_text().split("class")[0]
    assert "spans by type" in evaluation.as_html()
    assert type(evaluation).of_json(evaluation.as_json()).types == evaluation.types


def test_the_memory_of_a_bootstrap_does_not_grow_with_its_draws() -> None:
    def peak(rows: int, draws: int) -> int:
        sums: NDArray[np.float64] = np.ones((rows, 3))
        tracemalloc.start()
        bootstrap(sums, span_f1, seed=1, draws=draws)
        bytes_used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return bytes_used

    assert peak(5_000, 1000) < 30e6
    assert peak(5_000, 1000) < 1.2 * peak(5_000, 200)
