"""Task models: laws over every kind of classifier and labeller, from pairs in memory."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.metrics
import torch
from pages import check_page, words

from ensue import Classified, Classifier, Labelled, Labeller, Model
from ensue.data.tokenise import NUMBER
from ensue.data.vocabulary import Vocabulary
from ensue.errors import DataError, OptionError, RunError
from ensue.tasks.rows.batch import collate
from ensue.tasks.rows.inputs import LearnedInputs
from ensue.training import Notice, Stopped, Update

GOOD = ["good", "fine", "great", "lovely", "superb"]
BAD = ["bad", "dull", "poor", "awful", "boring"]
REST = ["the", "film", "was", "and", "its", "story", "with", "a", "cast", "of", "music"]
NAMES = ["Ada", "Turing", "Noether", "Gauss"]
PLACES = ["Paris", "Delft"]

Pairs = list[tuple[Any, Any]]
AnyModel = Model[Any, Any, Any]


def chosen(kinds: Sequence[str], count: int, draw: np.random.Generator) -> list[str]:
    return [kinds[k] for k in draw.integers(len(kinds), size=count)]


def reviews(count: int, seed: int) -> Pairs:
    """Texts whose class one of their words tells."""
    draw = np.random.default_rng(seed)
    rows = []
    for k in range(count):
        words = chosen(REST, int(draw.integers(1, 8)), draw) + chosen((BAD, GOOD)[k % 2], 2, draw)
        rows.append((" ".join(words), ("bad", "very good")[k % 2]))
    return rows


def several(count: int, seed: int) -> Pairs:
    """Texts with any of two labels, or none, as their words tell."""
    rows = []
    for text, label in reviews(count, seed):
        presence = {"pleased": label == "very good", "music": {"film", "music"} & {*text.split()}}
        rows.append((text, [name for name, is_present in presence.items() if is_present]))
    return rows


def waves(count: int, seed: int) -> Pairs:
    """Sequences of two numbers a step, rising or falling."""
    draw = np.random.default_rng(seed)
    rows = []
    for k in range(count):
        steps = int(draw.integers(2, 9))
        up = np.arange(steps) * (1 if k % 2 else -1)
        vectors = np.stack([up + draw.normal(size=steps), np.full(steps, 7.0)], 1)
        rows.append((vectors.astype(np.float32), "rises" if k % 2 else "falls"))
    return rows


def sentences(count: int, seed: int) -> Pairs:
    """Tokens with a tag each."""
    draw = np.random.default_rng(seed)
    tagged = [("NOUN", REST[1::2]), ("DET", REST[::2]), ("PROPN", NAMES)]
    rows = []
    for _ in range(count):
        kinds = draw.integers(3, size=int(draw.integers(1, 9)))
        words = [chosen(tagged[k][1], 1, draw)[0] for k in kinds]
        rows.append((words, [tagged[k][0] for k in kinds]))
    return rows


def spans(count: int, seed: int) -> Pairs:
    """Names of people and places as BIO tags."""
    draw = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        words, tags = chosen(REST, 2, draw), ["O", "O"]
        if draw.random() < 0.7:
            words, tags = [*words, *chosen(NAMES, 2, draw)], [*tags, "B-PER", "I-PER"]
        if draw.random() < 0.5:
            words, tags = [*words, *chosen(PLACES, 1, draw)], [*tags, "B-LOC"]
        rows.append((words, tags))
    return rows


def steps(count: int, seed: int) -> Pairs:
    """Sequences of vectors with a label for each of them."""
    return [(v, ["up" if d > 0 else "down" for d in v[:, 0]]) for v, _ in waves(count, seed)]


@dataclass(frozen=True)
class Case:
    """A kind of model, and data it can learn."""

    kind: type[AnyModel]
    data: Callable[[int, int], Pairs]
    text: dict[str, Any] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)
    train: dict[str, Any] = field(default_factory=dict)
    members: int = 1

    def new(self, **train: Any) -> AnyModel:
        small = {"hidden_size": 5, "embedding_size": 6, "batch_rows": 16}
        if self.kind is Labeller:
            small |= {"character_size": 4, "character_hidden": 3, "affixes": 2}
        return self.kind(
            self.text,
            {**small, **self.model},
            {"epochs": 2, "rate": 0.01, **self.train, **train},
            members=self.members,
        )

    def fitted(self, **train: Any) -> AnyModel:
        return self.new(**train).fit(self.data(40, 1), self.data(16, 2))

    def inputs(self) -> list[Any]:
        """Rows that training has not seen, with words it has not, and an empty one."""
        values = [value for value, _ in self.data(12, 3)]
        if isinstance(values[0], np.ndarray):
            return [*values, values[0][:0]]
        if isinstance(values[0], str):
            return [*values, "", "zebra 東京", "the " * 30]
        return [*values, [], ["zebra", "東京"], ["the"] * 30]


CASES = {
    "words": Case(Classifier, reviews),
    "characters": Case(Classifier, reviews, {"level": "characters"}, {"cell": "GRU"}),
    "subwords": Case(Classifier, reviews, {"level": "subwords", "subword_count": 60}),
    "vectors": Case(Classifier, waves),
    "several labels": Case(Classifier, several, {}, {"several": True}),
    "n-grams": Case(Classifier, reviews, {}, {"ngrams": 2, "class_weights": "balanced"}),
    "n-grams mixed in": Case(
        Classifier, reviews, {}, {"ngrams": 3, "ngram_share": "fitted"}, members=2
    ),
    "n-grams of several labels": Case(
        Classifier, several, {}, {"ngrams": 2, "ngram_share": 0.3, "several": True}
    ),
    "cut texts": Case(Classifier, reviews, {"max_length": 4, "cut": "start", "numbers": "tag"}),
    "bag of words": Case(Classifier, reviews, {}, {"encoder": "plain", "pooling": "mean"}),
    "mean and attention": Case(Classifier, reviews, {}, {"pooling": "mean+attention", "layers": 2}),
    "last state": Case(Classifier, reviews, {}, {"pooling": "last", "bidirectional": False}),
    "transformer": Case(
        Classifier, reviews, {}, {"encoder": "transformer", "hidden_size": 6, "heads": 2}
    ),
    "transformer of vectors": Case(
        Classifier,
        waves,
        {},
        {
            "encoder": "transformer",
            "hidden_size": 6,
            "heads": 3,
            "norm": "after",
            "pooling": "last+attention",
            "layers": 2,
            "dropout_layers": 0.1,
            "dropout_attention": 0.1,
        },
    ),
    "convolution": Case(
        Classifier, reviews, {}, {"encoder": "convolution", "layers": 2, "dropout_layers": 0.1}
    ),
    "convolution of vectors": Case(
        Classifier, waves, {}, {"encoder": "convolution", "filter_size": 4, "dilated": True}
    ),
    "two classifiers": Case(Classifier, reviews, members=2),
    "stepwise": Case(Labeller, sentences, {"numbers": "tag"}),
    "crf": Case(Labeller, sentences, {}, {"output": "crf"}),
    "previous label": Case(Labeller, sentences, {}, {"output": "previous", "search": "beam"}),
    "transformer with a crf": Case(
        Labeller,
        sentences,
        {},
        {"encoder": "transformer", "hidden_size": 6, "heads": 2, "inner_size": 5, "output": "crf"},
    ),
    "convolution with a crf": Case(
        Labeller, sentences, {}, {"encoder": "convolution", "output": "crf"}
    ),
    "previous labels by a cell": Case(
        Labeller, sentences, {}, {"output": "previous", "previous_cell": "GRU", "beam": 3}
    ),
    "labelled vectors": Case(Labeller, steps),
    "span tags": Case(Labeller, spans, {}, {"output": "crf", "legal_only": True}),
    "words alone": Case(
        Labeller, sentences, {}, {"character_size": 0, "affixes": 0, "shapes": False}
    ),
    "two labellers": Case(Labeller, spans, members=2),
}
every_case = pytest.mark.parametrize("name", CASES)


@pytest.fixture(scope="module")
def fitted() -> Callable[[str], AnyModel]:
    """Each model of the table, fitted once."""
    known: dict[str, AnyModel] = {}

    def of(name: str) -> AnyModel:
        if name not in known:
            known[name] = CASES[name].fitted()
        return known[name]

    return of


def weights(model: AnyModel) -> list[torch.Tensor]:
    return [tensor for network in model.networks for tensor in network.state_dict().values()]


def same_weights(one: AnyModel, other: AnyModel) -> bool:
    pairs = zip(weights(one), weights(other), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def likelihoods(answer: Classified | Labelled) -> list[float]:
    """The probabilities of an answer, in an order that does not depend on them."""
    if isinstance(answer, Labelled):
        return list(answer.probabilities)
    return [answer.probabilities[name] for name in sorted(answer.probabilities)]


# --- laws ------------------------------------------------------------------------------------


@every_case
def test_a_model_read_back_gives_the_same_answers_bit_for_bit(
    name: str, fitted: Callable[[str], AnyModel], tmp_path: Path
) -> None:
    model, inputs = fitted(name), CASES[name].inputs()
    model.save(tmp_path / "model")
    again = type(model).load(tmp_path / "model")
    assert again.predict(inputs) == model.predict(inputs)
    rows = CASES[name].data(20, 4)
    assert again.evaluate(rows) == model.evaluate(rows)
    assert again.summary() == model.summary()
    assert {p.suffix for p in (tmp_path / "model").iterdir()} == {".json", ".safetensors"}


@every_case
def test_an_answer_does_not_depend_on_the_rows_beside_it(
    name: str, fitted: Callable[[str], AnyModel]
) -> None:
    model, inputs = fitted(name), CASES[name].inputs()
    together = model.predict(inputs)
    backwards = model.predict(inputs[::-1])[::-1]
    for value, one, other in zip(inputs, together, backwards, strict=True):
        (alone,) = model.predict([value])
        for answer in (one, other):
            assert answer.labels == alone.labels
            assert likelihoods(answer) == pytest.approx(likelihoods(alone), abs=1e-5)


@every_case
def test_the_same_seed_gives_the_same_weights(name: str, fitted: Callable[[str], AnyModel]) -> None:
    again = CASES[name].fitted()
    assert same_weights(fitted(name), again)
    again.fit(CASES[name].data(40, 1), CASES[name].data(16, 2))
    assert same_weights(fitted(name), again), "a second fit starts from scratch"
    assert not same_weights(fitted(name), CASES[name].fitted(seed=7))


def labels_of(model: AnyModel) -> Vocabulary:
    learned: Any = model.learned
    labels: Vocabulary = learned.labels if isinstance(model, Labeller) else learned.target.labels
    return labels


def inputs_of(model: AnyModel) -> LearnedInputs:
    learned: Any = model.learned
    inputs: LearnedInputs = learned.inputs if isinstance(model, Labeller) else learned.input.inputs
    return inputs


@every_case
def test_validation_teaches_no_words(name: str, fitted: Callable[[str], AnyModel]) -> None:
    case = CASES[name]
    more = [*case.data(16, 2), *[(v, t) for v, t in case.data(30, 9)]]
    if not isinstance(more[0][0], np.ndarray):
        value, label = more[0]
        more.append((f"{value} zebra", label) if isinstance(value, str) else (value, label))
    model = case.new().fit(case.data(40, 1), more)
    alone = fitted(name)
    assert labels_of(model) == labels_of(alone)
    if isinstance(model, Labeller):
        assert model.learned.parts == alone.learned.parts
    elif not model.learned.linear.knows_validation:
        one, other = model.learned.linear.pack(), alone.learned.linear.pack()
        assert one.vocabularies == other.vocabularies
        assert all((values == other.arrays[name]).all() for name, values in one.arrays.items())
    learned, inputs = inputs_of(model), inputs_of(alone)
    assert learned.words == inputs.words
    assert (learned.scale is None) == (inputs.scale is None)
    if learned.scale is not None:
        assert inputs.scale is not None
        assert (learned.scale.mean == inputs.scale.mean).all()
        assert (learned.scale.spread == inputs.scale.spread).all()


@every_case
def test_scores_agree_with_scikit_learn(name: str, fitted: Callable[[str], AnyModel]) -> None:
    model, rows = fitted(name), CASES[name].data(30, 4)
    evaluation, answers = model.evaluate(rows), model.predict([value for value, _ in rows])
    gold: Any = [label for _, label in rows]
    several_labels = isinstance(gold[0], tuple | list) and isinstance(model, Classifier)
    if several_labels:
        names = labels_of(model).tokens
        gold = np.array([[label in labels for label in names] for labels in gold])
        guess: Any = np.array([[label in answer.labels for label in names] for answer in answers])
    elif isinstance(model, Labeller):
        gold = [label for labels in gold for label in labels]
        guess = [label for answer in answers for label in answer.labels]
    else:
        guess = [answer.label for answer in answers]
    scores = {n: score.value for n, score in evaluation.scores.items()} | dict(evaluation.others)
    assert scores["accuracy"] == pytest.approx(sklearn.metrics.accuracy_score(gold, guess))
    macro = sklearn.metrics.f1_score(gold, guess, average="macro", zero_division=0)
    assert scores["macro_f1"] == pytest.approx(macro)
    if not several_labels:
        labels = list(labels_of(model).tokens)
        columns = sklearn.metrics.precision_recall_fscore_support(
            gold, guess, labels=labels, zero_division=0
        )
        assert np.array([row[1:] for row in evaluation.classes]) == pytest.approx(
            np.array(columns).T
        )
        confused = sklearn.metrics.confusion_matrix(gold, guess, labels=labels)
        assert evaluation.confusion == confused.tolist()
        wrong = sum(a != b for a, b in zip(gold, guess, strict=True))
        assert len(evaluation.worst) == min(10, wrong)
        assert all(error.gold != error.predicted for error in evaluation.worst)
    for score in evaluation.scores.values():
        assert score.low <= score.value <= score.high


@every_case
def test_a_label_that_training_lacks_is_a_mistake_and_stops_nothing(
    name: str, fitted: Callable[[str], AnyModel]
) -> None:
    case = CASES[name]
    rows = case.data(16, 2)
    before = fitted(name).evaluate(rows)
    value, label = rows[4]
    rows[4] = (value, "odd one" if isinstance(label, str) else ["odd one"] * max(1, len(label)))
    evaluation = fitted(name).evaluate(rows)
    assert evaluation.rows == before.rows
    assert evaluation.scores[evaluation.main].value <= before.scores[before.main].value
    assert (
        "odd one" in evaluation.as_text()
        or "labels that the training part does not" in evaluation.as_text()
    )
    messages: list[str] = []
    train = case.data(40, 1)
    model = case.new().fit(train, rows, watchers=[lambda row: note(messages, row)])
    assert (
        "1 row of the validation part left out, with labels that the training part does not have: "
        "row:5"
    ) in messages
    assert same_weights(model, case.new().fit(train, [*rows[:4], *rows[5:]]))


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
    name: str, fitted: Callable[[str], AnyModel], tmp_path: Path
) -> None:
    case = CASES[name]
    data = case.data(40, 1), case.data(16, 2)
    model = case.new()
    with pytest.raises(Stopped):
        model.fit(*data, folder=tmp_path / "run", watchers=[Stop(2 if case.members == 1 else 8)])
    again = case.new().fit(*data, folder=tmp_path / "run")
    assert same_weights(again, fitted(name))


@every_case
def test_a_summary_for_people_and_for_notebooks(
    name: str, fitted: Callable[[str], AnyModel]
) -> None:
    model = fitted(name)
    lines = model.summary().splitlines()
    assert lines[0].startswith(f"{type(model).__name__}: ")
    names = ", ".join(labels_of(model).tokens)
    if isinstance(model, Labeller):
        assert f"{len(labels_of(model))} labels: {names}" in lines[2]
    else:
        assert lines[2] == f"  {'any' if model.settings.several else 'one'} of {names}"
    count = sum(p.numel() for p in model.networks[0].parameters())
    times = f" × {model.members}" if model.members > 1 else ""
    assert lines[1] == f"  {count:,} parameters{times}"
    assert repr(model) == model.summary()
    page_words = words(check_page(model._repr_html_()))
    for line in (*lines[0].split(": ", 1), *lines[1:]):
        assert " ".join(line.split()) in page_words


# --- classifiers -----------------------------------------------------------------------------


def test_it_learns() -> None:
    model = CASES["words"].new(epochs=12).fit(reviews(80, 1), reviews(20, 2))
    evaluation = model.evaluate(reviews(60, 3))
    assert evaluation.scores["accuracy"].value > 0.9
    (answer,) = model.predict(["the film was superb"])
    assert answer.label == "very good"
    assert sum(answer.probabilities.values()) == pytest.approx(1)
    assert answer.labels == ("very good",)
    assert next(iter(answer.probabilities)) == "very good"
    assert answer.as_line("a\tb\nc").startswith("very good\t0.")
    assert answer.as_line("a\tb\nc").endswith("\ta b c")
    assert set(model.most_telling("bad", 3)) & {*BAD}  # type: ignore[attr-defined]


def test_several_labels_are_any_number_of_them() -> None:
    model = CASES["several labels"].new(epochs=30).fit(several(80, 1), several(20, 2))
    answers = model.predict([value for value, _ in several(30, 3)])
    assert {len(answer.labels) for answer in answers} == {0, 1, 2}
    for answer in answers:
        assert answer.label == ""
        assert all(
            (p > 0.5) == (label in answer.labels) for label, p in answer.probabilities.items()
        )
    none = Classified("", (), {"music": 0.2, "pleased": 0.1})
    assert none.as_line("text") == "\t\ttext"
    both = Classified("", ("music", "pleased"), {"pleased": 0.9, "music": 0.6})
    assert (none.probability, both.probability) == (0, 0.6)
    assert both.as_line("text") == "music,pleased\t0.6000\ttext"


def test_an_ensemble_is_the_mean_of_its_members() -> None:
    network = {"linear": "alone"}  # mixed with a linear model, each would have weights of its own
    both = replace(CASES["two classifiers"], model=network).fitted()
    case, rows = replace(CASES["words"], model=network), [value for value, _ in reviews(12, 3)]
    members = [case.fitted(seed=seed) for seed in (1, 2)]
    assert len({model.learned.temperature for model in (both, *members)}) == 3
    for member in members:  # each by itself has another temperature
        member._learned = replace(member.learned, temperature=both.learned.temperature)
    alone = [member.predict(rows) for member in members]
    for k, answer in enumerate(both.predict(rows)):
        for label, probability in answer.probabilities.items():
            mean = sum(answers_alone[k].probabilities[label] for answers_alone in alone) / 2
            assert probability == pytest.approx(mean, abs=1e-12)


def test_long_texts_are_cut_and_it_is_said() -> None:
    messages: list[str] = []
    rows = [*reviews(20, 1), ("the " * 30, "bad")]
    model = Classifier({"max_length": 25}, {"hidden_size": 4}, {"epochs": 1})
    model.fit(rows, reviews(9, 2), watchers=[lambda row: note(messages, row)])
    assert (
        "1 row longer than text.max_length = 25 steps: cut at the end (the longest, row:21, has 30)"
    ) in messages
    assert Classifier().text.max_length == 20_000


def note(messages: list[str], row: object) -> None:
    if isinstance(row, Notice):
        messages.append(row.text)


def test_word_vectors_are_needed_to_train_and_not_to_load(tmp_path: Path) -> None:
    file = tmp_path / "vectors.txt"
    file.write_text("".join(f"{word} {k} 0.5 {k * k}\n" for k, word in enumerate(GOOD + BAD)))
    settings = {"vectors": str(file), "freeze_vectors": True, "hidden_size": 4}
    for kind, data in ((Classifier, reviews), (Labeller, sentences)):
        if kind is Labeller:
            file.write_text("".join(f"{word} {k} 0.5 {k}\n" for k, word in enumerate(REST)))
        model = kind({}, settings, {"epochs": 1}).fit(data(40, 1), data(9, 2))
        model.save(tmp_path / kind.__name__)
        file.rename(tmp_path / "gone")
        inputs = [value for value, _ in data(5, 3)]
        assert kind.load(tmp_path / kind.__name__).predict(inputs) == model.predict(inputs)
        (tmp_path / "gone").rename(file)
        words = inputs_of(model).words
        assert words is not None
        known = words.numbers["fine" if kind is Classifier else "film"]
        network: Any = model.networks[0]
        reader = network.reader if kind is Classifier else network
        vectors = reader.embed.features[0].table.weight
        assert vectors[known].tolist() == [1.0, 0.5, 1.0]


def test_numbers_are_names_of_classes() -> None:
    model = Classifier({}, {"hidden_size": 4}, {"epochs": 1})
    model.fit([(text, len(label)) for text, label in reviews(40, 1)])
    assert labels_of(model).tokens == ("3", "9")


# --- labellers -------------------------------------------------------------------------------


def test_texts_are_cut_into_words_as_they_are_written(fitted: Callable[[str], AnyModel]) -> None:
    text, tokens = fitted("stepwise").predict(["Ada saw Zürich!", ["Ada", "saw", "Zürich", "!"]])
    assert text == tokens
    assert text.tokens == ("Ada", "saw", "Zürich", "!")
    assert text.as_line("") == " ".join(
        f"{t}/{label}" for t, label in zip(text.tokens, text.labels, strict=True)
    )


def test_the_vocabulary_folds_case_and_numbers(fitted: Callable[[str], AnyModel]) -> None:
    words = fitted("stepwise").learned.inputs.words
    assert words is not None
    assert "ada" in words
    assert "Ada" not in words
    rows = [*sentences(30, 1), (["in", "1984", "and", "2001"], ["DET", "NOUN", "DET", "NOUN"])]
    model = Labeller({"numbers": "tag"}, {"hidden_size": 4}, {"epochs": 1}).fit(rows, rows)
    words = model.learned.inputs.words
    assert words is not None
    assert "1984" not in words
    assert words.counts[words.numbers[NUMBER]] == 2


def test_spans_come_with_span_tags_only(fitted: Callable[[str], AnyModel]) -> None:
    inputs = [value for value, _ in spans(6, 5)]
    assert all(answer.spans is None for answer in fitted("stepwise").predict(inputs))
    for answer in fitted("span tags").predict(inputs):
        assert answer.spans is not None
        begun = [at for at, tag in enumerate(answer.labels) if tag.startswith("B")]
        assert [span.start for span in answer.spans] == begun, "only legal sequences"
    evaluation = fitted("span tags").evaluate(spans(30, 4))
    assert list(evaluation.scores) == ["span_f1", "accuracy"]


def test_a_labeller_has_a_label_for_each_word() -> None:
    for text in ({"level": "subwords"}, {"max_length": 5}):
        with pytest.raises(OptionError, match=r"^a labeller has a label for each word: .* leave"):
            Labeller(text).fit(sentences(20, 1))
    rows = sentences(20, 1)
    rows[3] = (["a", "b"], ["DET"])
    with pytest.raises(
        DataError, match=r"^row:4: expected a label for each of the 2 steps, got 1$"
    ):
        Labeller().fit(rows, sentences(5, 2))


def test_labellers_together_give_the_best_label_of_their_mean(
    fitted: Callable[[str], AnyModel],
) -> None:
    """Of one network its search answers, of several the mean at each step."""
    both = replace(CASES["two labellers"], model={"linear_share": 0.0}).fitted()
    with torch.no_grad():
        for network in both.networks:  # surer of themselves, so that they disagree
            network.output.scores.weight *= 20  # type: ignore[union-attr, operator]
    part = both.reader.questions([value for value, _ in spans(12, 3)])
    columns = both.learned.columns(part, both.text, both.settings)
    members = [network.label(collate(columns, range(12))) for network in both.networks]  # type: ignore[operator]
    means = sum(member.probabilities for member in members) / 2
    assert not any(torch.equal(member.labels, means.argmax(-1)) for member in members)
    for row, answer in enumerate(both.task.answers(part, both)):
        mean, best = means[: len(answer.labels), row].max(-1)
        assert answer.labels == tuple(both.learned.labels.tokens[k] for k in best)
        assert answer.probabilities == pytest.approx(mean.tolist(), abs=1e-6)
    alone = fitted("previous label")
    part = alone.reader.questions([value for value, _ in sentences(12, 3)])
    batch = collate(alone.learned.columns(part, alone.text, alone.settings), range(12))
    labels = alone.networks[0].label(batch, "beam", 8).labels  # type: ignore[operator]
    for row, answer in enumerate(alone.task.answers(part, alone)):
        names = [alone.learned.labels.tokens[k] for k in labels[: len(answer.labels), row]]
        assert answer.labels == tuple(names)


# --- mistakes --------------------------------------------------------------------------------


TINY = {"hidden_size": 4, "embedding_size": 4}


def refused(do: Callable[[], object]) -> str:
    with pytest.raises((DataError, OptionError, RunError)) as error:
        do()
    return str(error.value)


def test_what_cannot_be_learned_from() -> None:
    one = [(text, "good") for text, _ in reviews(20, 1)]
    assert refused(lambda: Classifier().fit(one, one)) == (
        "the training part has one label only, 'good': expected at least two. "
        "Is this the right column?"
    )
    assert refused(lambda: Classifier().fit(reviews(20, 1), [])) == (
        "the validation part: expected rows with labels, got 0 rows"
    )
    bare = [(text, None) for text, _ in reviews(20, 1)]
    assert refused(lambda: Classifier().fit(bare, bare)) == (
        "the training part: expected rows with labels, got 20 rows with some or all of them "
        "missing, the first of them row:1"
    )
    empty = [("", "a"), ("", "b")]
    assert refused(lambda: Classifier().fit(empty, empty)) == (
        "row:1: text: expected texts to learn words from, got none with a word in it: is this the "
        "right column?"
    )
    assert refused(lambda: Classifier().fit(empty, reviews(2, 1))) == (
        "2 rows of the validation part left out, with labels that the training part does not have: "
        "row:1, row:2; no row is left: is this the right column?"
    )
    two = [(text, ["a", "b"]) for text, _ in reviews(20, 1)]
    assert refused(lambda: Classifier().fit(two, two)) == (
        "row:1: expected one label, got 2; for several labels at once set model.target = several, "
        "of texts model.several = true"
    )
    assert refused(lambda: Classifier().fit([(3.5, "a"), (1.0, "b")])) == (
        "row:1: expected a text, a list of tokens, or a numpy array (steps, n) of vectors, "
        "got float"
    )
    mixed = [*reviews(4, 1), *waves(4, 1)]
    assert refused(lambda: Classifier().fit(mixed, mixed)) == (
        "row:5: expected text as in the rows before, got vectors"
    )
    assert refused(lambda: Classifier().fit(mixed[::-1], mixed)) == (
        "row:5: expected vectors as in the rows before, got text"
    )
    flat = [(np.zeros(3), "a"), (np.ones(3), "b")]
    assert refused(lambda: Classifier().fit(flat, flat)) == (
        "row:1: expected an array (steps, n), steps of numbers each, got shape (3,)"
    )
    no_steps = [(np.zeros((0, 2)), "a"), (np.ones((0, 2)), "b")]
    assert refused(lambda: Classifier().fit(no_steps, no_steps)) == (
        "the training part: expected sequences with steps, got empty ones only"
    )


def test_what_a_fitted_model_cannot_take(fitted: Callable[[str], AnyModel]) -> None:
    assert refused(lambda: fitted("words").predict("one text")) == (
        "predict: expected a list of inputs, got one text; write [text]"
    )
    assert refused(lambda: fitted("words").predict([np.zeros((3, 2))])) == (
        "row:1: expected text, as in training, got vectors"
    )
    assert refused(lambda: fitted("stepwise").predict([np.zeros((3, 2))])) == (
        "row:1: expected text, as in training, got vectors"
    )
    assert refused(lambda: fitted("vectors").predict(["text"])) == (
        "row:1: expected sequences of vectors with 2 numbers a step, as in training, got text"
    )
    assert refused(lambda: fitted("vectors").predict([np.zeros((3, 5))])) == (
        "row:1: expected sequences of vectors with 2 numbers a step, as in training, "
        "got steps of 5 numbers"
    )
    for name in ("words", "stepwise"):
        bare = [("text", None), ("more", None)]
        assert refused(lambda name=name, bare=bare: fitted(name).evaluate(bare)) == (  # type: ignore[misc]
            "the test part: expected rows with labels, got 2 rows with some or all of them "
            "missing, the first of them row:1"
        )
    assert refused(lambda: fitted("words").evaluate([])) == "evaluate: expected rows, got none"
    assert fitted("words").predict([]) == []
    assert fitted("vectors").predict([]) == []
    assert refused(lambda: fitted("vectors").most_telling("rises")) == (  # type: ignore[attr-defined]
        "most_telling: expected a model of text, got one of vectors"
    )


def test_what_is_not_fitted_or_not_that_kind(
    fitted: Callable[[str], AnyModel], tmp_path: Path
) -> None:
    assert refused(lambda: Classifier().predict(["text"])) == (
        "this classify model has not been fitted: call fit or load first"
    )
    assert refused(lambda: Classifier().save(tmp_path / "m")).startswith("this classify model")
    assert refused(lambda: Classifier(members=0)) == (
        "members: expected a number of networks ≥ 1, got 0"
    )
    fitted("words").save(tmp_path / "m")
    assert refused(lambda: Labeller.load(tmp_path / "m")) == (
        f"{tmp_path / 'm'}: expected a label model, got a classify model; "
        "load it with the class of that task"
    )
    assert refused(lambda: Classifier.load(tmp_path / "n")) == (
        f"{tmp_path / 'n'}: there is no model here; train one: "
        f"`ensue train FILE --run {tmp_path / 'n'}`"
    )


def test_a_flipped_bit_of_a_model_is_refused(
    fitted: Callable[[str], AnyModel], tmp_path: Path
) -> None:
    fitted("words").save(tmp_path / "m")
    for file in sorted((tmp_path / "m").iterdir()):
        sound = file.read_bytes()
        file.write_bytes(sound[:-2] + bytes([sound[-2] ^ 1]) + sound[-1:])
        assert "this is not a whole model" in refused(lambda: Classifier.load(tmp_path / "m"))
        file.write_bytes(sound)
    assert Classifier.load(tmp_path / "m").networks


def test_another_setting_does_not_continue_a_run(tmp_path: Path) -> None:
    data = reviews(20, 1), reviews(8, 2)
    Classifier({}, TINY, {"epochs": 1}).fit(*data, folder=tmp_path)
    other = Classifier({}, {**TINY, "dropout_input": 0.1}, {"epochs": 1})
    assert "model.dropout_input: was 0.5, now 0.1" in refused(
        lambda: other.fit(*data, folder=tmp_path)
    )


def test_labels_are_escaped_in_a_notebook() -> None:
    rows = [(text, f"<i>{label}") for text, label in reviews(20, 1)]
    html = Classifier({}, TINY, {"epochs": 1}).fit(rows, rows)._repr_html_()
    assert "&lt;i&gt;bad" in html
    assert "<i>" not in html


def test_an_answer_is_plain_data(fitted: Callable[[str], AnyModel]) -> None:
    (answer,) = fitted("words").predict(["a fine film"])
    assert set(asdict(answer)) == {"label", "labels", "probabilities"}
    assert isinstance(fitted("words").learned.target.labels, Vocabulary)
