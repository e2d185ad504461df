"""The translator: laws over every kind of it, from pairs in memory."""

from __future__ import annotations

import itertools
import math
import signal
import sys
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu
import torch
from hypothesis import given
from hypothesis import strategies as st

from ensue import PairSettings, Translated, Translator
from ensue.data.ragged import Ragged
from ensue.data.tasks import dates
from ensue.data.vocabulary import END_NUMBER, START_NUMBER
from ensue.decoding import score
from ensue.errors import ConfigError, DataError, MissingExtra, OptionError
from ensue.metrics.bleu import bleu_of, corpus_of, edit_distances, letters_of
from ensue.tasks.rows.part import Names
from ensue.tasks.rows.source import SequenceSource
from ensue.tasks.seq2seq.pairs import PairColumns, pair_networks
from ensue.tasks.seq2seq.search import SearchEnsemble
from ensue.training import Notice, Stopped, Update
from ensue.training.rows import Validated

WORDS = ["one", "two", "three", "four", "five", "six", "seven"]
ZAHLEN = ["eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben"]
Pairs = list[tuple[str, str]]


def numerals(count: int, seed: int) -> Pairs:
    """English numerals, and the German ones in reverse order."""
    draw = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        digits = draw.integers(len(WORDS), size=int(draw.integers(1, 6))).tolist()
        rows.append((" ".join(WORDS[k] for k in digits), " ".join(ZAHLEN[k] for k in digits[::-1])))
    return rows


@dataclass(frozen=True)
class Case:
    """A kind of translator."""

    text: dict[str, Any] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)
    members: int = 1

    def new(self, **train: Any) -> Translator:
        small = {
            **{"hidden_size": 6, "embedding_size": 5, "batch_rows": 12, "beam": 3},
            **{"heads": 2, "longest_extra": 4, "validation_rows": 4},
        }
        settings = {"epochs": 2, "rate": 0.01, **train}
        return Translator(self.text, {**small, **self.model}, settings, members=self.members)

    def fitted(self, **train: Any) -> Translator:
        return self.new(**train).fit(numerals(40, 1), numerals(12, 2))

    @property
    def attends(self) -> bool:
        return self.model.get("attention") != "none"


CASES = {
    "words": Case(),
    "characters, LSTM": Case({"level": "characters"}, {"cell": "LSTM", "attention": "general"}),
    "shared subwords": Case({"level": "subwords", "subword_count": 40}, {"shared": True}),
    "subwords apart": Case({"level": "subwords", "subword_count": 40}, {"attention": "concat"}),
    "dot": Case({"level": "spaces"}, {"attention": "dot", "bidirectional": False, "layers": 2}),
    "no attention": Case({}, {"attention": "none", "decoder_cell": "LSTM"}),
    "transformer": Case({}, {"family": "transformer", "hidden_size": 8, "layers": 2}),
    "two members": Case({}, {"tied": False}, members=2),
}
INPUTS = ["one two three", "seven", "five five six one two", "eight nine", "two " * 12]
every_case = pytest.mark.parametrize("name", CASES)


@pytest.fixture(scope="module")
def fitted() -> Callable[[str], Translator]:
    known: dict[str, Translator] = {}

    def find(name: str) -> Translator:
        if name not in known:
            known[name] = CASES[name].fitted()
        return known[name]

    return find


def with_settings(model: Translator, **changed: Any) -> Translator:
    """The same model with other settings of its search."""
    other = copy(model)
    other.settings = model.settings.model_copy(update=changed)
    return other


def same(one: list[Translated], other: list[Translated]) -> bool:
    """The same words, and scores that differ by rounding only."""
    return len(one) == len(other) and all(
        a.tokens == b.tokens and a.score == pytest.approx(b.score, abs=1e-4)
        for a, b in zip(one, other, strict=True)
    )


# --- laws over all of them -------------------------------------------------------------------


@every_case
def test_saved_and_loaded_it_answers_the_same(
    name: str, fitted: Callable[[str], Translator], tmp_path: Path
) -> None:
    model = fitted(name)
    model.save(tmp_path / "model")
    other = Translator.load(tmp_path / "model")
    assert other.predict(INPUTS) == model.predict(INPUTS)
    assert other.evaluate(numerals(9, 5)) == model.evaluate(numerals(9, 5))
    assert other.summary() == model.summary()


@every_case
def test_a_row_by_itself_gets_the_answer_it_gets_among_others(
    name: str, fitted: Callable[[str], Translator]
) -> None:
    model = fitted(name)
    assert same(model.predict(INPUTS), [model.predict([text])[0] for text in INPUTS])


@every_case
def test_nothing_becomes_nothing(name: str, fitted: Callable[[str], Translator]) -> None:
    answers = fitted(name).predict(["", "one", ""])
    assert [(answer.text, answer.tokens, answer.score) for answer in answers[::2]] == [
        ("", (), 0.0)
    ] * 2


class Stop:
    """A watcher that sends a signal to its own process after a number of updates."""

    def __init__(self, updates: int) -> None:
        self.left = updates

    def __call__(self, row: object) -> None:
        self.left -= isinstance(row, Update)
        if not self.left:
            self.left = 10**9
            signal.raise_signal(signal.SIGTERM)


@every_case
def test_interrupted_and_continued_is_never_stopped(
    name: str, fitted: Callable[[str], Translator], tmp_path: Path
) -> None:
    case = CASES[name]
    data = numerals(40, 1), numerals(12, 2)
    with pytest.raises(Stopped):
        case.new().fit(*data, folder=tmp_path / "run", watchers=[Stop(3 * case.members)])
    again = case.new().fit(*data, folder=tmp_path / "run")
    for one, other in zip(again.networks, fitted(name).networks, strict=True):
        state = other.state_dict()
        assert all(torch.equal(value, state[key]) for key, value in one.state_dict().items())


@every_case
def test_the_score_is_the_log_probability_of_the_words(
    name: str, fitted: Callable[[str], Translator]
) -> None:
    """Found by search, step by step; asked for again with all words given at once."""
    model = fitted(name)
    for answer in model.predict(INPUTS):
        source = Ragged.of([model.learned.source.words.ids(answer.source)], np.int32)
        target = Ragged.of([model.learned.target.words.ids(answer.tokens)], np.int32)
        batch = PairColumns(source, target).batch([0])
        logs = SearchEnsemble(pair_networks(model)).log_probabilities(batch)
        cut = len(answer.tokens) == 2 * len(answer.source) + 5  # the end was not predicted
        assert answer.score == pytest.approx(float(logs[: len(logs) - cut].sum()), abs=1e-4)


@every_case
def test_stepping_equals_all_at_once(name: str, fitted: Callable[[str], Translator]) -> None:
    model = fitted(name)
    part = model.reader.labelled(numerals(7, 8))
    batch = model.task.pair_columns(part, model).batch(range(7))
    ensemble = SearchEnsemble(pair_networks(model))
    at_once = ensemble.log_probabilities(batch)
    state = ensemble.begin(batch.source, batch.lengths)
    start = torch.full((7,), START_NUMBER)
    stepped = score(ensemble.step, start, state, batch.targets, batch.target_lengths)
    assert torch.allclose(stepped, at_once.double(), atol=1e-5)


@every_case
def test_the_n_best_differ_and_fall(name: str, fitted: Callable[[str], Translator]) -> None:
    model = with_settings(fitted(name), alpha=0.0)
    for answer in model.predict(INPUTS[:3], beam=4, n_best=4):
        scores = [other.score for other in answer.alternatives]
        assert len(scores) == 4
        assert scores == sorted(scores, reverse=True)
        assert answer.alternatives[0].text == answer.text
        lines = answer.as_line("").splitlines()
        assert lines[0] == f"{answer.score:.4f}\t{answer.text}"
        assert len(lines) == 4


@every_case
def test_what_no_text_has_is_never_said(name: str, fitted: Callable[[str], Translator]) -> None:
    for answer in fitted(name).predict(INPUTS):
        assert not {"<pad>", "<unk>", "<s>", "</s>"} & set(answer.tokens)
        assert len(answer.tokens) <= 2 * len(answer.source) + 5


@every_case
def test_the_alignment_is_a_distribution_over_the_source(
    name: str, fitted: Callable[[str], Translator]
) -> None:
    model = fitted(name)
    if not CASES[name].attends:
        for ask in (
            lambda: model.predict(["one"], alignment=True),
            lambda: model.evaluate(numerals(2, 1), alignment=True),
            lambda: model.explain("one"),
        ):
            with pytest.raises(OptionError, match="has no attention to show"):
                ask()
        return
    for answer in model.predict([*INPUTS, ""], alignment=True):
        assert answer.alignment is not None
        assert len(answer.alignment) == len(answer.tokens)
        for row in answer.alignment:
            assert len(row) == len(answer.source)
            assert sum(row) == pytest.approx(1, abs=1e-5)
            assert min(row) >= 0


@every_case
def test_an_explanation_multiplies_to_the_score(
    name: str, fitted: Callable[[str], Translator]
) -> None:
    model = fitted(name)
    if not CASES[name].attends:
        return
    explanation, answer = model.explain("one two three"), model.predict(["one two three"])[0]
    assert explanation.text == answer.text
    assert explanation.tokens[: len(answer.tokens)] == answer.tokens
    assert math.log(math.prod(explanation.probabilities)) == pytest.approx(answer.score, abs=1e-4)
    assert len(explanation.alignment) == len(explanation.tokens) == len(explanation.probabilities)


@every_case
def test_a_summary(name: str, fitted: Callable[[str], Translator]) -> None:
    model = fitted(name)
    lines = model.summary().splitlines()
    count = sum(p.numel() for p in model.networks[0].parameters())
    times = f" × {model.members}" if model.members > 1 else ""
    assert lines[1] == f"  {count:,} parameters{times}"
    assert lines[2].endswith(" tokens in the vocabulary")


def test_an_ensemble_takes_the_mean_of_the_probabilities(
    fitted: Callable[[str], Translator],
) -> None:
    model = fitted("two members")
    part = model.reader.labelled(numerals(5, 3))
    batch = model.task.pair_columns(part, model).batch(range(5))
    ensemble = SearchEnsemble(pair_networks(model))
    tokens = torch.full((5,), START_NUMBER)
    logs, _ = ensemble.step(tokens, ensemble.begin(batch.source, batch.lengths))
    alone = [
        network.step(tokens, network.begin(batch.source, batch.lengths))[0]
        for network in pair_networks(model)
    ]
    mean = (alone[0].exp() + alone[1].exp()) / 2
    assert torch.allclose(logs.exp()[:, END_NUMBER:], mean[:, END_NUMBER:], atol=1e-6)
    assert not torch.allclose(alone[0], alone[1])
    assert bool((logs[:, :END_NUMBER] == -torch.inf).all())  # padding, unknown words, starts


def test_it_learns_and_looks_where_the_words_are() -> None:
    """Every word of the reversed sentence comes from its counterpart."""
    rows = numerals(600, 1)
    model = Translator(
        {},
        {
            **{"hidden_size": 24, "embedding_size": 16, "batch_rows": 16},
            **{"smoothing": 0.0, "dropout_input": 0.0, "dropout_output": 0.0},
        },
        {"epochs": 6, "rate": 0.02, "watch": "exact", "schedule": "linear"},
    ).fit(rows, numerals(30, 2))
    test = [pair for pair in numerals(80, 4) if pair not in rows]
    evaluation = model.evaluate(test)
    assert evaluation.main == "exact"
    assert evaluation.scores["exact"].value > 0.9
    assert "does not beat" not in evaluation.as_text()
    (answer,) = model.predict(["one three five seven"], alignment=True)
    assert answer.text == "sieben fünf drei eins"
    assert answer.as_line("") == "sieben fünf drei eins\t3-0 2-1 1-2 0-3"


# --- batches ---------------------------------------------------------------------------------


def columns(count: int, seed: int = 0) -> PairColumns:
    draw = np.random.default_rng(seed)
    sides = [[draw.integers(4, 9, draw.integers(1, 12)) for _ in range(count)] for _ in range(2)]
    return PairColumns(*(Ragged.of(side, np.int32) for side in sides))


def test_a_batch_says_the_start_before_and_the_end_behind() -> None:
    data = columns(6)
    batch = data.batch([4, 1])
    for column, row in enumerate([4, 1]):
        source, target = data.source.row(row), data.target.row(row)
        assert batch.source[: len(source), column].tolist() == source.tolist()
        assert batch.before[: len(target) + 1, column].tolist() == [START_NUMBER, *target]
        assert batch.targets[: len(target) + 1, column].tolist() == [*target, END_NUMBER]
        assert not batch.targets[len(target) + 1 :, column].any()
        assert batch.lengths[column] == len(source)
        assert batch.target_lengths[column] == len(target) + 1
    assert len(batch) == 2


def test_batches_hold_every_row_once_in_an_order_that_follows_from_seed_and_epoch() -> None:
    data = columns(200)
    names = Names(("row",), np.zeros(200, np.int32), np.arange(200))

    def rows(seed: int, epoch: int) -> list[list[int]]:
        source = SequenceSource(data, names, seed=seed, budget=60, most_rows=8)
        return [batch.tolist() for batch in source.batches(epoch)]

    assert sorted(itertools.chain(*rows(1, 0))) == list(range(200))
    assert rows(1, 0) == rows(1, 0)
    assert rows(1, 0) != rows(1, 1)
    assert rows(1, 0) != rows(2, 0)
    for indices in rows(1, 0):
        batch = data.batch(indices)
        assert max(batch.source.numel(), batch.targets.numel()) <= 60
        assert len(indices) <= 8
    source = SequenceSource(data, names, seed=1, budget=60, most_rows=8)
    assert source.targets([3, 5]) == len(data.target.row(3)) + len(data.target.row(5)) + 2
    sides = len(data.source.row(3)) + len(data.source.row(5))
    assert source.tokens([3, 5]) == sides + source.targets([3, 5])
    assert source.name(7) == "row:7"


# --- scores ----------------------------------------------------------------------------------


def plain_distance(one: list[int], other: list[int]) -> int:
    if not one or not other:
        return len(one) + len(other)
    return min(
        plain_distance(one[1:], other) + 1,
        plain_distance(one, other[1:]) + 1,
        plain_distance(one[1:], other[1:]) + (one[0] != other[0]),
    )


short_rows = st.lists(st.lists(st.integers(0, 3), max_size=5), min_size=1, max_size=6)


@given(short_rows, short_rows)
def test_edit_distances_are_those_of_the_definition(one: Any, other: Any) -> None:
    count = min(len(one), len(other))
    one, other = one[:count], other[:count]
    distances = edit_distances(Ragged.of(one, np.int32), Ragged.of(other, np.int32))
    assert distances.tolist() == [plain_distance(a, b) for a, b in zip(one, other, strict=True)]


def test_letters() -> None:
    distances = edit_distances(letters_of(["kitten", ""]), letters_of(["sitting", "ab"]))
    assert distances.tolist() == [3, 2]


def sentences(count: int, seed: int, words: int) -> list[str]:
    draw = np.random.default_rng(seed)
    return [
        " ".join(f"w{k}" for k in draw.integers(words, size=draw.integers(1, 12)))
        for _ in range(count)
    ]


@pytest.mark.parametrize(("count", "words"), [(40, 2), (40, 6), (5, 40), (3, 10**6), (1, 3)])
def test_sums_over_rows_give_the_bleu_of_sacrebleu(count: int, words: int) -> None:
    hypotheses, references = sentences(count, 1, words), sentences(count, 2, words)
    corpus = corpus_of(hypotheses, references, tokenize="none", lowercase=False)
    theirs = sacrebleu.corpus_bleu(hypotheses, [references], tokenize="none", force=True)
    assert corpus.bleu == pytest.approx(theirs.score)
    assert bleu_of(corpus.sums.sum(0, keepdims=True))[0] == pytest.approx(theirs.score)
    assert corpus.chrf == pytest.approx(sacrebleu.corpus_chrf(hypotheses, [references]).score)
    assert "tok:none" in corpus.bleu_signature
    half = corpus_of(
        hypotheses[: count // 2 + 1], references[: count // 2 + 1], tokenize="none", lowercase=False
    )
    bleu = bleu_of(corpus.sums[: count // 2 + 1].sum(0, keepdims=True))[0]
    assert bleu == pytest.approx(half.bleu)


def test_an_evaluation_says_all_there_is(fitted: Callable[[str], Translator]) -> None:
    model, rows = fitted("words"), numerals(30, 6)
    evaluation = model.evaluate(rows)
    answers = model.predict([source for source, _ in rows])
    references = [target for _, target in rows]
    theirs = sacrebleu.corpus_bleu([answer.text for answer in answers], [references])
    assert evaluation.main == "bleu"
    assert evaluation.scores["bleu"].value == pytest.approx(theirs.score)
    assert evaluation.scores["bleu"].low <= theirs.score <= evaluation.scores["bleu"].high
    right = [answer.text == w for answer, w in zip(answers, references, strict=True)]
    assert evaluation.scores["exact"].value == pytest.approx(np.mean(right))
    edits = [
        plain_distance(answer.text.split(), w.split())
        for answer, w in zip(answers, references, strict=True)
        if len(answer.tokens) < 7
    ]
    if len(edits) == len(rows):
        total = sum(len(w.split()) for w in references)
        assert evaluation.others["token errors"] == pytest.approx(sum(edits) / total)
    copied = sacrebleu.corpus_bleu([source for source, _ in rows], [references])
    assert evaluation.baselines["copied source"] == pytest.approx(copied.score)
    assert sum(bucket.rows for bucket in evaluation.buckets) == 30
    assert [bucket.name for bucket in evaluation.buckets] == ["1–5"]
    assert evaluation.buckets[0].score == pytest.approx(theirs.score)
    text = evaluation.as_text()
    assert "BLEU nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:" in text
    assert "\nworst answers\n" in text
    assert f"    expected  {evaluation.worst[0].gold}\n" in text
    assert evaluation.as_json()["buckets"][0]["rows"] == 30


def test_the_most_frequent_target_is_a_baseline() -> None:
    rows = [*numerals(30, 1), *[("six", "sechs")] * 20]
    model = CASES["words"].new(epochs=1, watch="exact").fit(rows, numerals(8, 2))
    assert model.learned.target.frequent == ("sechs",)
    evaluation = model.evaluate([("one", "sechs"), ("two", "zwei"), ("ja", "ja"), ("six", "sechs")])
    assert evaluation.baselines == {"copied source": 0.25, "frequent target": 0.5}


def test_without_sacrebleu_everything_but_bleu(
    monkeypatch: pytest.MonkeyPatch, fitted: Callable[[str], Translator]
) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    evaluation = fitted("words").evaluate(numerals(10, 6))
    assert evaluation.main == "exact"
    assert "BLEU and chrF are not counted: pip install 'ensue[mt]'" in evaluation.as_text()
    assert "chrf" not in evaluation.others
    with pytest.raises(MissingExtra) as error:
        CASES["words"].fitted(watch="bleu")
    assert str(error.value) == (
        "BLEU and chrF need the package sacrebleu, which is not installed: pip install 'ensue[mt]'"
    )


@pytest.mark.parametrize("watch", ["cost", "perplexity", "exact", "bleu", "chrf"])
def test_what_may_be_watched(watch: str) -> None:
    model = CASES["words"].new(epochs=1, watch=watch)
    events: list[Any] = []
    model.fit(numerals(24, 1), numerals(8, 2), watchers=[events.append])
    (scores,) = [row.scores for row in events if isinstance(row, Validated)]
    expected = {"cost", "perplexity", "exact"}
    assert set(scores) == expected | ({"bleu", "chrf"} if watch in ("bleu", "chrf") else set())


# --- mistakes --------------------------------------------------------------------------------


def refused(kind: type[Exception], do: Callable[[], Any]) -> str:
    with pytest.raises(kind) as error:
        do()
    return str(error.value)


def test_rows_that_are_no_pairs() -> None:
    new, validation = CASES["words"].new, numerals(5, 2)
    assert refused(DataError, lambda: new().fit([("one", "eins"), ("two", "")], validation)) == (
        "the training part: 1 row has an empty target, the first of them row:2: nothing can be "
        "learned from it; leave it out"
    )
    assert refused(DataError, lambda: new().fit(validation, [("  ", "eins")])) == (
        "the validation part: 1 row has an empty source, the first of them row:1: nothing can be "
        "learned from it; leave it out"
    )
    assert refused(DataError, lambda: new().fit([("one", "eins"), ("two", None)], validation)) == (
        "the training part: expected pairs of source and target, got 2 rows, the first without a "
        "target is row:2"
    )
    assert refused(DataError, lambda: new().fit(["one"], validation)).startswith(
        "row:1: expected a pair (input, label), got 'one'"
    )


def test_pairs_that_are_too_long_are_left_out_of_training() -> None:
    rows = [*numerals(30, 1), ("one " * 9, "eins")]
    events: list[Any] = []
    model = replace_text(max_length=8)
    model.fit(rows, numerals(8, 2), watchers=[events.append])
    messages = [row.text for row in events if isinstance(row, Notice)]
    assert messages == [
        "1 of 31 pairs left out, longer than text.max_length, 8 tokens, the first of them row:31"
    ]
    assert model.predict(["two " * 12])[0].tokens
    long = [("one two", "zwei eins")] * 3
    assert refused(DataError, lambda: replace_text(max_length=1).fit(long, long)) == (
        "all 3 pairs are longer than text.max_length, 1 tokens: raise it, or leave it out"
    )


def replace_text(**text: Any) -> Translator:
    return replace(CASES["words"], text=text).new(epochs=1)


def test_settings_that_do_not_fit() -> None:
    def of(**table: Any) -> str:
        return refused(ConfigError, lambda: PairSettings.of(table, "model"))

    assert of(cell="GRUU").startswith("model.cell: unknown cell 'GRUU': did you mean 'GRU'?")
    assert of(family="transformer", hidden_size=10, heads=4) == (
        "model: heads: expected a divisor of model.hidden_size, the width of a transformer, 10; "
        "got 4"
    )
    assert of(attention="luong") == (
        "model.attention: expected one of additive, dot, general, concat, none, got 'luong'"
    )
    assert of(cell="").startswith("model.cell: unknown cell ''. Known: CoupledLSTM, GRU,")
    assert PairSettings.of({"decoder_cell": ""}, "model").decoder_cell == ""  # the encoder's
    assert PairSettings.of(PairSettings().table(), "model") == PairSettings()


def test_a_key_that_there_is_not_is_refused() -> None:
    message = refused(ConfigError, lambda: PairSettings.of({"width": 12}, "model"))
    assert message.startswith("model.width: unknown key. Known: ")
    assert " hidden_size" in message


def test_each_family_has_the_defaults_that_it_had() -> None:
    """A complete table shows the values that are used."""
    recurrent = PairSettings.of({}, "model").table()
    assert (recurrent["hidden_size"], recurrent["dropout_layers"]) == (256, 0.2)
    transformer = PairSettings.of({"family": "transformer"}, "model").table()
    assert (transformer["hidden_size"], transformer["inner_size"]) == (256, "off")
    assert (transformer["dropout_layers"], transformer["layers"]) == (0.1, 1)
    settings = {"family": "transformer", "dropout_layers": 0.2}
    assert PairSettings.of(settings, "model").dropout_layers == 0.2


def test_options_of_the_search() -> None:
    model = CASES["words"].new(epochs=1).fit(numerals(20, 1), numerals(5, 2))
    how = model.task.search(model)
    assert (how.width, how.n_best, how.aligned) == (3, 1, False)
    how = model.task.search(model, {"n_best": 7})
    assert (how.width, how.n_best) == (7, 7)
    assert refused(OptionError, lambda: model.predict(["one"], beam=2, n_best=3)) == (
        "--nbest: expected at most --beam, 2, got 3"
    )
    assert refused(OptionError, lambda: model.predict(["one"], beam=-1)) == (
        "--beam: expected a number ≥ 1, got -1"
    )
    rows = numerals(9, 5)
    greedy, wide = (model.evaluate(rows, beam=width) for width in (1, 6))
    assert model.evaluate(rows, beam=3) == model.evaluate(rows)
    translations = [answer.text for answer in model.predict([source for source, _ in rows], beam=6)]
    right = sum(text == target for text, (_, target) in zip(translations, rows, strict=True))
    assert wide.scores["exact"].value == pytest.approx(right / len(rows))
    assert greedy.rows == wide.rows == 9


def test_a_dot_of_unequal_widths_says_what_to_do() -> None:
    case = replace(CASES["words"], model={"attention": "dot"})
    message = refused(OptionError, case.fitted)
    assert "dot: expected a memory as wide as the queries" in message
    assert replace(case, model={"attention": "dot", "project": True}).fitted().predict(["one"])


def test_a_model_that_has_not_learned() -> None:
    assert refused(OptionError, lambda: Translator().predict(["one"])) == (
        "this translate model has not been fitted: call fit or load first"
    )


@pytest.mark.slow
def test_dates() -> None:
    """Most dates after half a minute; the demo goes further. Batches are small, for the number of
    updates counts: with 64 rows in each there are half as many, and 13 % of the dates are right."""
    train, test = (
        [(date.text, date.iso) for date in dates(1, part, count)]
        for part, count in (("train", 6000), ("test", 400))
    )
    model = Translator(
        {"level": "characters"},
        {"hidden_size": 64, "embedding_size": 32, "smoothing": 0.0, "batch_rows": 32},
        {"epochs": 8, "rate": 0.005, "watch": "exact", "schedule": "linear"},
    ).fit(train)
    assert model.evaluate(test).scores["exact"].value > 0.9
