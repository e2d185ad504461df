"""N-gram models: what plain dictionaries say, sums of one, stepping and scoring the same."""

from __future__ import annotations

import gzip
import math
from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from ensue.data.ragged import Ragged
from ensue.errors import DataError, OptionError, ShapeError
from ensue.tasks.language.ngram import (
    SMOOTHINGS,
    NgramCounts,
    NgramModel,
    NgramSymbols,
    arrays_of,
    model_of,
    sentences,
)
from ensue.tasks.language.ngram.smoothing import GROUPS, estimate, modified_discounts

TOKENS = ("<pad>", "<unk>", "a", "b", "c", "</s>")
PAD, UNKNOWN, A, B, C, END = range(6)
SYMBOLS = NgramSymbols.of(TOKENS)
START = SYMBOLS.start
WORDS = (UNKNOWN, A, B, C, END)  # what is predicted
Sentences = list[list[int]]


def ragged(rows: Sentences) -> Ragged:
    return Ragged.of(rows, np.int32)


# --- the same from the formulas, with dictionaries -------------------------------------------


class Slow:
    """P(w | context) by the book. A context is a tuple that begins at the row's start."""

    def __init__(
        self,
        rows: Sentences,
        order: int,
        start: int = START,
        end: int | None = END,
        words: tuple[int, ...] = WORDS,
    ) -> None:
        self.order, self.words = order, words
        self.start, self.ends = start, [] if end is None else [end]
        self.count: Counter[tuple[int, ...]] = Counter()
        for row in rows:
            self.count.update(self.grams(row))
        self.after: dict[tuple[int, ...], set[int]] = defaultdict(set)
        self.before: dict[tuple[int, ...], set[int]] = defaultdict(set)
        for gram in self.count:
            self.after[gram[:-1]].add(gram[-1])
            if len(gram) > 1:
                self.before[gram[1:]].add(gram[0])

    def grams(self, row: list[int]) -> list[tuple[int, ...]]:
        whole = (self.start, *row, *self.ends)
        return [
            whole[last - k : last]
            for last in range(2, len(whole) + 1)
            for k in range(1, min(self.order, last) + 1)
        ]

    def count_after(self, h: tuple[int, ...]) -> int:
        return sum(self.count[*h, w] for w in self.after.get(h, ()))

    def cut(self, context: tuple[int, ...]) -> tuple[int, ...]:
        return context[len(context) - min(len(context), self.order - 1) :]

    def maximum_likelihood(self, w: int, context: tuple[int, ...]) -> float:
        h = self.cut(context)
        while h and not self.count_after(h):
            h = h[1:]
        return (
            self.count[*h, w] / self.count_after(h) if self.count_after(h) else 1 / len(self.words)
        )

    def add_k(self, w: int, context: tuple[int, ...], k: float) -> float:
        h = self.cut(context)
        return (self.count[*h, w] + k) / (self.count_after(h) + k * len(self.words))

    def adjusted(self, gram: tuple[int, ...]) -> int:
        if len(gram) == self.order or gram[0] == self.start:
            return self.count[gram]
        return len(self.before.get(gram, ()))

    def discounts(self, order: int, modified: bool) -> Callable[[int], float]:
        n = Counter(self.adjusted(gram) for gram in self.count if len(gram) == order)
        if not modified:
            d = n[1] / (n[1] + 2 * n[2]) if n[1] and n[2] else 0.5
            return lambda c: d if c else 0
        table = {0: 0.0, 1: 0.5, 2: 1.0, 3: 1.5}
        if n[1] and n[2] and n[3] and n[4]:
            y = n[1] / (n[1] + 2 * n[2])
            d1, d2, d3 = (
                1 - 2 * y * n[2] / n[1],
                2 - 3 * y * n[3] / n[2],
                3 - 4 * y * n[4] / n[3],
            )
            if min(d1, d2, d3) > 0:
                table = {0: 0.0, 1: d1, 2: d2, 3: d3}
        return lambda c: table[min(c, 3)]

    def kneser_ney(self, w: int, context: tuple[int, ...], modified: bool) -> float:
        tables = [self.discounts(k, modified) for k in range(1, self.order + 1)]

        def p(h: tuple[int, ...]) -> float:
            lower = p(h[1:]) if h else 1 / len(self.words)
            total = sum(self.adjusted((*h, v)) for v in self.after.get(h, ()))
            if not total:
                return lower
            discount = tables[len(h)]
            left = sum(discount(self.adjusted((*h, v))) for v in self.after[h])
            count = self.adjusted((*h, w))
            return (count - discount(count) + left * lower) / total

        return p(self.cut(context))

    def weights(self, held_out: Sentences) -> dict[tuple[int, int], float]:
        """λ by the length of the context and ⌊log₂ of its count⌋."""
        grams = [
            (self.cut(whole[:last]), whole[last])
            for row in held_out
            for whole in [(self.start, *row, *self.ends)]
            for last in range(1, len(whole))
        ]
        trust = {(k, g): 0.5 for k in range(self.order) for g in range(31)}
        before = -math.inf
        for _ in range(200):
            value = sum(math.log(t * (1 - t)) for t in trust.values())
            stopped, reached = dict.fromkeys(trust, 1.0), dict.fromkeys(trust, 2.0)
            for h, w in grams:
                value += math.log(self.mixed(w, h, trust))
                chance = 1.0
                for k in range(len(h), -1, -1):
                    part = h[len(h) - k :]
                    if not self.count_after(part):
                        continue
                    group = k, int(math.log2(self.count_after(part)))
                    by_count = self.count[*part, w] / self.count_after(part)
                    probability = chance * trust[group] * by_count / self.mixed(w, part, trust)
                    stopped[group] += probability
                    reached[group] += chance
                    chance -= probability
            trust = {group: stopped[group] / reached[group] for group in trust}
            if value - before < 1e-7 * max(1, len(grams)):
                break
            before = value
        return trust

    def mixed(self, w: int, h: tuple[int, ...], trust: dict[tuple[int, int], float]) -> float:
        lower = self.mixed(w, h[1:], trust) if h else 1 / len(self.words)
        if not self.count_after(h):
            return lower
        t = trust[len(h), int(math.log2(self.count_after(h)))]
        return t * self.count[*h, w] / self.count_after(h) + (1 - t) * lower


def slowly(
    slow: Slow, smoothing: str, k: float, held_out: Sentences
) -> Callable[[int, tuple[int, ...]], float]:
    if smoothing == "interpolated":
        trust = slow.weights(held_out)
        return lambda w, context: slow.mixed(w, slow.cut(context), trust)
    return {
        "maximum-likelihood": slow.maximum_likelihood,
        "add-k": lambda w, context: slow.add_k(w, context, k),
        "kneser-ney": lambda w, context: slow.kneser_ney(w, context, modified=False),
        "modified-kneser-ney": lambda w, context: slow.kneser_ney(w, context, modified=True),
    }[smoothing]


# --- laws --------------------------------------------------------------------------------------

texts = st.lists(st.lists(st.sampled_from([UNKNOWN, A, B, C]), max_size=5), max_size=7)
some_smoothing = st.sampled_from(SMOOTHINGS)
some_order = st.integers(1, 8)  # longer than any sentence


@examples(max_examples=150)
@given(texts, texts, some_order, some_smoothing, st.sampled_from([0.1, 1.0, 2.5]))
def test_dictionaries_say_the_same(
    rows: Sentences, others: Sentences, order: int, smoothing: str, k: float
) -> None:
    model = NgramModel.fit(
        ragged(rows), SYMBOLS, order=order, smoothing=smoothing, k=k, held_out=ragged(others)
    )
    p = slowly(Slow(rows, order), smoothing, k, others)
    prefixes = [[], [A], [UNKNOWN, C], *others, *(row[:3] for row in rows)]
    probabilities = np.exp(model.log_probabilities(ragged(prefixes)))
    expected = [
        [p(w, (START, *prefix)) if w in WORDS else 0.0 for w in range(len(TOKENS))]
        for prefix in prefixes
    ]
    tolerance = 1e-4 if smoothing == "interpolated" else 1e-12  # rounds of EM may differ by one
    np.testing.assert_allclose(probabilities, expected, rtol=tolerance, atol=1e-15)
    np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-12)


@examples(max_examples=100)
@given(texts, texts, some_order, some_smoothing, st.booleans())
def test_scoring_stepping_and_asking_are_the_same(
    rows: Sentences, others: Sentences, order: int, smoothing: str, stream: bool
) -> None:
    symbols = NgramSymbols.of(TOKENS, sentences=not stream)
    model = NgramModel.fit(
        ragged(rows), symbols, order=order, smoothing=smoothing, held_out=ragged(rows)
    )
    scores = model.score(ragged(others))
    assert scores.lengths.tolist() == [len(row) + (not stream) for row in others]
    assert not np.isnan(scores.values).any()
    for k, row in enumerate(others):
        state = model.begin(1)
        following = [*row, *([] if stream else [END])]
        for i, (read, then) in enumerate(zip([START, *row], following, strict=False)):
            log_p, state = model.step(torch.tensor([read]), state)
            probabilities = model.log_probabilities(ragged([row[:i]]))
            assert np.array_equal(log_p.numpy(), probabilities)
            assert log_p[0, then].item() == scores.row(k)[i]


@pytest.mark.parametrize("modified", [False, True])
def test_discounts_from_counts_of_counts(modified: bool) -> None:
    """A text large enough that no discount is the substitute of small texts."""
    chance = np.random.default_rng(3)
    rows = [np.minimum(chance.zipf(1.3, chance.integers(1, 12)), 40).tolist() for _ in range(400)]
    end, start, order = 0, 41, 3
    slow = Slow(rows, order, start, end, tuple(range(41)))
    for k in range(1, order + 1):
        discount = slow.discounts(k, modified)
        assert discount(1) != 0.5
        assert discount(3) != 1.5
    name = "modified-kneser-ney" if modified else "kneser-ney"
    model = NgramModel.fit(ragged(rows), NgramSymbols(42, start, end), order=order, smoothing=name)
    prefixes = [[], [2], [2, 2], [2, 3], [3, 2], [40, 39], rows[0][:2], rows[1][:3]]
    probabilities = np.exp(model.log_probabilities(ragged(prefixes)))
    expected = [
        [slow.kneser_ney(w, (start, *prefix), modified) for w in range(41)] for prefix in prefixes
    ]
    np.testing.assert_allclose(probabilities[:, :41], expected, rtol=1e-11)
    assert (probabilities[:, start] == 0).all()


def test_modified_discounts_by_hand() -> None:
    """n₁ … n₄ = 4, 2, 1, 1: Y = ½."""
    assert modified_discounts(np.array([9, 4, 2, 1, 1, 7])).tolist() == [0, 0.5, 1.25, 1]
    assert modified_discounts(np.array([9, 4, 0, 1, 1, 7])).tolist() == [0, 0.5, 1, 1.5]
    assert modified_discounts(np.array([9, 9, 1, 1, 9, 7])).tolist() == [0, 0.5, 1, 1.5]


def test_the_course_example() -> None:
    """ "students opened their" 1000 times: 400 times "books", 100 times "exams"."""
    words = ("students", "opened", "their", "books", "exams", "minds", "</s>")
    rows = [[0, 1, 2, 3]] * 400 + [[0, 1, 2, 4]] * 100 + [[0, 1, 2, 5]] * 500
    counts = NgramCounts.of(ragged(rows), NgramSymbols.of(words), 4)
    model = NgramModel.smoothed(counts, "maximum-likelihood")
    p = np.exp(model.log_probabilities(ragged([[0, 1, 2]])))[0]
    np.testing.assert_allclose(p, [0, 0, 0, 0.4, 0.1, 0.5, 0], atol=1e-15)
    short = NgramCounts.of(ragged([[0, 1, 2, 3]]), NgramSymbols.of(words, sentences=False), 4)
    # also those with the start of the row: one of each order except the first
    assert short.sizes == (4, 3 + 1, 2 + 1, 1 + 1)


def test_boundaries_in_a_stream() -> None:
    """Ends cut a stream into rows: empty ones, and one that is not closed, among them."""
    stream = np.array([2, 3, 9, 9, 4, 9, 2], np.int32)
    rows = sentences(stream, end=9)
    assert [rows.row(k).tolist() for k in range(len(rows))] == [[2, 3], [], [4], [2]]
    assert len(sentences(stream[:0], end=9)) == 0
    assert [len(sentences(stream[:n], end=9)) for n in (1, 3, 4)] == [1, 1, 2]


def test_no_ngram_crosses_two_rows() -> None:
    apart = NgramCounts.of(ragged([[A, B], [C]]), SYMBOLS, 3)
    spelled = [tuple(gram) for gram in apart.index.spelled(2, np.arange(len(apart.counts[1])))]
    assert sorted(spelled) == [(A, B), (B, END), (C, END), (START, A), (START, C)]
    assert apart.counts[0].tolist() == [0, 0, 1, 1, 1, 2, 0]  # a start is no token of its own


@pytest.mark.parametrize("block", [1, 2, 3, 7])
def test_counts_do_not_depend_on_blocks(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    rows = ragged([list(row) for row in product([A, B, C], repeat=3)] + [[], [A]])
    whole = NgramCounts.of(rows, SYMBOLS, 5)
    tails = whole.index.tails()
    monkeypatch.setattr("ensue.tasks.language.ngram.counts.BLOCK", block)
    cut = NgramCounts.of(rows, SYMBOLS, 5)
    for one, other in zip(whole.index.keys, cut.index.keys, strict=True):
        assert np.array_equal(one, other)
    for one, other in zip([*whole.counts, *tails], [*cut.counts, *cut.index.tails()], strict=True):
        assert np.array_equal(one, other)


def test_keys_above_32_bits() -> None:
    """70,000 words: context · width does not fit in 32 bits."""
    size = 70_000
    row = np.random.default_rng(0).permutation(size - 1) + 1
    symbols = NgramSymbols(size, start=size, end=0)
    counts = NgramCounts.of(Ragged(row.astype(np.int32), np.array([0, len(row)])), symbols, 3)
    assert counts.sizes == (size, size, size - 1)
    model = NgramModel.smoothed(counts, "maximum-likelihood")
    assert model.perplexity(ragged([row.tolist()])) == pytest.approx(1)
    prefixes = [row[: k + 1].tolist() for k in (0, 1, 60_000)]
    following = model.log_probabilities(ragged(prefixes)).argmax(1)
    assert following.tolist() == [row[len(prefix)] for prefix in prefixes]
    spelled = counts.index.spelled(3, np.arange(5))
    tails = counts.index.tails()[2][:5]
    assert np.array_equal(counts.index.spelled(2, tails.astype(np.int64)), spelled[:, 1:])


def test_orders_of_one_count_nest() -> None:
    rows = ragged([[A, B, A, C], [B, A], []])
    counts = NgramCounts.of(rows, SYMBOLS, 4)
    for order in (1, 2, 3, 4):
        part, recounted = counts.upto(order), NgramCounts.of(rows, SYMBOLS, order)
        assert part.sizes == recounted.sizes
        one, other = NgramModel.smoothed(part), NgramModel.smoothed(recounted)
        assert np.array_equal(one.score(rows).values, other.score(rows).values)


def test_sizes_and_the_share_never_seen() -> None:
    model = NgramModel.fit(ragged([[A, B], [A, C]]), SYMBOLS, order=3)
    assert model.sizes == (4, 5, 4)  # a b c </s>; <s>a ab ac b</s> c</s>; <s>ab <s>ac ab</s> …
    # <s> a c a </s>: of 4 single tokens none, of (<s>a ac ca a</s>) 2, of (<s>ac aca ca</s>) 2
    assert model.unseen(ragged([[A, C, A]])) == (0, 2 / 4, 2 / 3)
    assert model.unseen(ragged([[UNKNOWN]])) == (1 / 2, 1, 1)
    assert model.unseen(ragged([])) == (0, 0, 0)
    assert model.bytes == sum(array.nbytes for array in arrays_of(model).values()) - 8 * 6


def test_a_word_never_seen_has_a_probability_where_smoothed() -> None:
    rows, other = ragged([[A, B, A], [B]]), ragged([[UNKNOWN, C]])
    for smoothing in SMOOTHINGS:
        model = NgramModel.fit(rows, SYMBOLS, order=3, smoothing=smoothing, held_out=rows)
        perplexity = model.perplexity(other)
        assert (perplexity == math.inf) == (smoothing == "maximum-likelihood")
        assert not np.isnan(model.log_probabilities(other)).any()


def test_no_probability_is_above_one() -> None:
    """Where only one token is predicted, own and left add up to 1, or a bit more by rounding."""
    for count in range(1, 60):
        for smoothing in SMOOTHINGS:
            rows = ragged([[]] * count)
            model = NgramModel.fit(
                rows,
                NgramSymbols(1, start=1, end=0),
                order=2,
                smoothing=smoothing,
                held_out=rows,
                k=0.3,
            )
            assert all((log_p <= 0).all() for log_p in model.log_p)
            assert model.perplexity(rows) == pytest.approx(1)


def test_perplexity_counts_the_ends() -> None:
    """Two rows, "a" and nothing: P(a) = P(</s>) = ⅓ and ⅔ of three tokens."""
    model = NgramModel.fit(ragged([[A], []]), SYMBOLS, order=1, smoothing="maximum-likelihood")
    expected = math.exp(-(math.log(1 / 3) + 2 * math.log(2 / 3)) / 3)
    assert model.perplexity(ragged([[A], []])) == pytest.approx(expected)


def test_characters_are_tokens_too() -> None:
    text = "to be or not to be that is the question"
    letters = ("</s>", *sorted(set(text)))
    numbers = {letter: number for number, letter in enumerate(letters)}
    rows = ragged([[numbers[letter] for letter in text]])
    for sentence in (True, False):
        symbols = NgramSymbols.of(letters, sentences=sentence)
        model = NgramModel.fit(rows, symbols, order=4)
        after = model.log_probabilities(ragged([[numbers[letter] for letter in "or not t"]]))
        assert letters[int(after.argmax())] == "o"
        assert model.perplexity(rows) < 3


def test_the_weights_of_interpolation_are_those_of_a_maximum() -> None:
    """No other weights of a grid make the held-out text, with the prior, more likely."""
    rows, held_out = [[A, B, C], [A, B], [A, C, C], [B]], [[A, B, B], [C], [A, C]]
    slow = Slow(rows, 2)
    grams = [(h, w) for row in held_out for h, w in contexts_of(slow, row)]
    weights = estimate(NgramCounts.of(ragged(rows), SYMBOLS, 2), ragged(held_out))
    trust = {(k, g): weights[k, g] for k in range(2) for g in range(GROUPS)}
    used = {(len(h), int(math.log2(slow.count_after(h)))) for h, _ in grams if slow.count_after(h)}

    def value(trust: dict[tuple[int, int], float]) -> float:
        prior = sum(math.log(t * (1 - t)) for t in trust.values())
        return prior + sum(math.log(slow.mixed(w, h, trust)) for h, w in grams)

    best = value(trust)
    for group in used:
        for other in np.linspace(0.02, 0.98, 49):
            assert value({**trust, group: other}) < best + 1e-5


def contexts_of(slow: Slow, row: list[int]) -> list[tuple[tuple[int, ...], int]]:
    whole = (START, *row, END)
    return [(slow.cut(whole[:last]), whole[last]) for last in range(1, len(whole))]


# --- arrays ------------------------------------------------------------------------------------


@examples(max_examples=40)
@given(texts, st.integers(1, 5), some_smoothing)
def test_arrays_bring_the_model_back(rows: Sentences, order: int, smoothing: str) -> None:
    held_out = ragged([[A], [C, B]])
    model = NgramModel.fit(
        ragged(rows), SYMBOLS, order=order, smoothing=smoothing, held_out=held_out
    )
    again = model_of(arrays_of(model))
    assert again.symbols == model.symbols
    assert (again.smoothing, again.sizes) == (model.smoothing, model.sizes)
    assert np.array_equal(again.score(held_out).values, model.score(held_out).values)


def test_arrays_go_through_safetensors(tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    model = NgramModel.fit(ragged([[A, B], [C]]), SYMBOLS, order=3)
    save_file(arrays_of(model), tmp_path / "model.safetensors")
    again = model_of(load_file(tmp_path / "model.safetensors"))
    assert np.array_equal(
        again.score(ragged([[A, C]])).values, model.score(ragged([[A, C]])).values
    )


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("symbols", None, "symbols: expected at least 5 whole numbers"),
        ("symbols", [3, 4], "symbols: expected at least 5 whole numbers"),
        ("symbols", [9, 4, 6, 6, 5], "symbols: expected an order and a kind of smoothing"),
        ("symbols", [2, 9, 6, 6, 5], "symbols: expected an order and a kind of smoothing"),
        (
            "symbols",
            [2, 4, 10**15, 6, 5],
            "symbols: expected at most the size of seen",
        ),
        ("keys.2", None, "keys.2: missing"),
        ("odd", [1], "odd: not known"),
        ("log_p.1", [1.0], "log_p.1: expected float64 (7,), got float64 (1,)"),
        (
            "back_off.1",
            [math.nan] * 7,
            "back_off.1: expected logarithms, got another number",
        ),
        ("log_p.1", [0.5] * 7, "log_p.1: expected logarithms, got another number"),
        (
            "keys.2",
            [5, 4, 3, 2, 1],
            "keys.2: expected rising keys of known contexts, got others",
        ),
        (
            "keys.2",
            [1, 2, 3, 4, 49],
            "keys.2: expected rising keys of known contexts, got others",
        ),
        (
            "keys.2",
            [1, 2, 3, 4, 6],
            "keys.2: expected rising keys of known contexts, got others",
        ),
    ],
)
def test_other_arrays_are_refused(name: str, value: object, message: str) -> None:
    arrays = arrays_of(NgramModel.fit(ragged([[A, B], [A, C]]), SYMBOLS, order=2))
    if value is None:
        del arrays[name]
    else:
        arrays[name] = np.array(value)
    with pytest.raises(DataError) as caught:
        model_of(arrays)
    assert str(caught.value) == f"these are not the arrays of an n-gram model\n  {message}"


# --- messages ----------------------------------------------------------------------------------

MODEL = NgramModel.fit(ragged([[A, B], [C]]), SYMBOLS, order=3)
ADVICE = "encode texts with the model's vocabulary"


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda: MODEL.score(ragged([[A], [B, 6, 9]])),
            DataError,
            f"row 1, token 1: expected tokens 0 … 5, got 6 (2 such tokens in all); {ADVICE}",
        ),
        (
            lambda: NgramCounts.of(ragged([[A], [], [B, PAD]]), SYMBOLS, 2),
            DataError,
            "row 2, token 1: expected no start, end or padding inside a row, got 0 "
            f"(1 such tokens in all); {ADVICE}",
        ),
        (
            lambda: MODEL.log_probabilities(ragged([[A, END]])),
            DataError,
            "row 0, token 1: expected no start, end or padding inside a row, got 5 "
            f"(1 such tokens in all); {ADVICE}",
        ),
        (
            lambda: MODEL.score(Ragged(np.zeros(2), np.array([0, 2]))),
            DataError,
            "tokens: expected whole numbers, one for each, got float64 of shape (2,)",
        ),
        (
            lambda: MODEL.perplexity(ragged([])),
            DataError,
            "perplexity: expected a text with at least one token, got none",
        ),
        (
            lambda: MODEL.step(torch.tensor([7]), MODEL.begin(1)),
            DataError,
            "step: expected tokens 0 … 6, got 7 … 7",
        ),
        (
            lambda: MODEL.step(torch.tensor([1, 2]), MODEL.begin(1)),
            ShapeError,
            "step: expected tokens (batch,) and a state (batch, 2), got (2,) and (1, 2)",
        ),
        (
            lambda: NgramCounts.of(ragged([]), SYMBOLS, 0),
            OptionError,
            "order: expected a number ≥ 1, got 0",
        ),
        (
            lambda: NgramCounts.of(ragged([]), SYMBOLS, 2).upto(3),
            OptionError,
            "order: expected 1 … 2, got 3",
        ),
        (
            lambda: NgramModel.fit(ragged([]), SYMBOLS, smoothing="kneser"),
            OptionError,
            "unknown smoothing 'kneser': did you mean 'kneser-ney'? Known: add-k, interpolated, "
            "kneser-ney, maximum-likelihood, modified-kneser-ney",
        ),
        (
            lambda: NgramModel.fit(ragged([]), SYMBOLS, smoothing="interpolated"),
            OptionError,
            "interpolated: its weights are estimated on a text that was not counted: give held_out",
        ),
        (
            lambda: NgramModel.fit(ragged([]), SYMBOLS, smoothing="add-k", k=0),
            OptionError,
            "k: expected a number > 0, got 0",
        ),
        (
            lambda: NgramSymbols.of(["a", "b"]),
            OptionError,
            "the vocabulary has no '</s>', which is predicted after every sentence: "
            "build it with that token, or use sentences=False for a stream",
        ),
        (
            lambda: NgramSymbols(3, start=4, end=3, unpredicted=(5,)),
            OptionError,
            "these are not the symbols of a language\n"
            "  start: expected 0 … 3, got 4\n"
            "  end: expected 0 … 2, got 3\n"
            "  unpredicted: expected 0 … 2, got 5",
        ),
        (
            lambda: NgramSymbols(2, start=1, end=1),
            OptionError,
            "these are not the symbols of a language\n"
            "  end: expected a token that is predicted, got 1",
        ),
        (
            lambda: NgramSymbols(1, start=0),
            OptionError,
            "these are not the symbols of a language\n"
            "  size: expected at least one token that is predicted",
        ),
    ],
)
def test_messages(call: Callable[[], object], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == message


def test_too_many_tokens_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ensue.tasks.language.ngram.counts.MOST_TOKENS", 5)
    with pytest.raises(DataError) as caught:
        NgramCounts.of(ragged([[A, B], [C]]), SYMBOLS, 2)
    assert str(caught.value) == (
        "expected at most 5 tokens with the boundaries of rows, got 7: count a part of the text"
    )


# --- the bar -----------------------------------------------------------------------------------


def test_penn_treebank(data_folder: Path) -> None:
    """Kneser–Ney 5-grams at the published perplexity of 141, ends counted, within 5 %."""
    texts, numbers = {}, {"</s>": 0}
    for part in ("train", "test"):
        rows = read_words(data_folder / "ptb" / f"ptb.{part}.txt.gz")
        texts[part] = ragged([[numbers.setdefault(w, len(numbers)) for w in row] for row in rows])
    assert len(numbers) == 10_000  # closed: the test text has no other words
    model = NgramModel.fit(texts["train"], NgramSymbols.of(list(numbers)), order=5)
    assert len(model.score(texts["test"]).values) == 82_430
    assert 134 < model.perplexity(texts["test"]) < 148
    assert model.sizes == (10_000, 264_990, 586_558, 717_733, 737_952)


def read_words(path: Path) -> list[list[str]]:
    return [line.split() for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
