"""Language models of every family: one interface, one measure."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from commands import commands_in
from torch.testing import assert_close

from ensue.data.settings import DataSettings
from ensue.data.vocabulary import END, END_NUMBER
from ensue.errors import DataError, OptionError
from ensue.tasks.abilities import Choice
from ensue.tasks.fitting import Fitting
from ensue.tasks.language.generate import Writer
from ensue.tasks.language.settings import LanguageSettings
from ensue.tasks.language.task import TASK, LanguageModel
from ensue.tasks.rows.part import Part
from ensue.tasks.sample import Sample
from ensue.training import RunFolder

LINES = [
    f"the {animal} {verb} the {thing}"
    for animal in ("cat", "dog", "bird", "fish")
    for verb in ("sees", "likes", "takes")
    for thing in ("house", "ball", "tree", "river", "boat")
]
SMALL = {"hidden_size": 8, "embedding_size": 8, "layers": 1, "columns": 4, "steps": 7}
FAMILIES: dict[str, dict[str, Any]] = {
    "ngram": {"family": "ngram", "order": 3},
    "add-k": {"family": "ngram", "order": 2, "ngram_smoothing": "add-k", "add": 0.1},
    "window": {"family": "window", "window": 2, **SMALL},
    "one-hot window": {"family": "window", "window": 2, "one_hot": True, "tied": False, **SMALL},
    "recurrent": {"family": "recurrent", "cell": "GRU", **SMALL},
    "deep": {"family": "recurrent", "cell": "LSTM", **SMALL, "layers": 2},
    "transformer": {"family": "transformer", "heads": 2, **SMALL},
    "transformer, short context": {"family": "transformer", "heads": 2, "context": 3, **SMALL},
    "convolution": {"family": "convolution", **SMALL, "layers": 2},
}


def fitted(family: str, **train: Any) -> LanguageModel:
    settings = {"epochs": 2, "rate": 0.02, **train}
    return LanguageModel(model=FAMILIES[family], train=settings).fit(LINES[::2], LINES[1::2])


@pytest.fixture(scope="module", params=FAMILIES, name="model")
def _model(request: pytest.FixtureRequest) -> LanguageModel:
    return fitted(request.param)


def test_probabilities_sum_to_one(model: LanguageModel) -> None:
    state = model.begin(2)
    tokens = torch.full((2,), model.first)
    for _ in range(3):
        logs, state = model.step(tokens, state)
        assert_close(
            logs.double().exp().sum(1), torch.ones(2, dtype=torch.float64), rtol=1e-5, atol=0
        )
        tokens = logs.argmax(1)


def test_stepping_equals_scoring(model: LanguageModel) -> None:
    text = "the dog likes the boat"
    (scored,) = model.score([text])
    ids = [*model.learned.words.ids(text.split()), model.learned.words.numbers["</s>"]]
    state, token, bits = model.begin(1), model.first, []
    for number in ids:
        logs, state = model.step(torch.tensor([token]), state)
        bits.append(-float(logs[0, number]) / math.log(2))
        token = number
    assert scored.tokens == (*text.split(), "</s>")
    assert scored.bits == pytest.approx(bits, rel=1e-4)


def test_perplexity_is_that_of_the_scores(model: LanguageModel) -> None:
    # networks read texts as one, from the first to the last
    texts = LINES[:7] if model.settings.family == "ngram" else LINES[:1]
    bits = [b for scored in model.score(texts) for b in scored.bits]
    assert model.perplexity(texts) == pytest.approx(2 ** np.mean(bits), rel=1e-4)


def test_saved_and_loaded(model: LanguageModel, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    again = LanguageModel.load(tmp_path / "model")
    assert again.perplexity(LINES) == model.perplexity(LINES)
    choice = Choice(seed=4, most_tokens=6)
    assert Writer(again, "the").texts(choice, 3) == Writer(model, "the").texts(choice, 3)


def test_a_seed_repeats_and_another_differs(model: LanguageModel) -> None:
    writer = Writer(model, "the cat")
    one = writer.texts(Choice(seed=1, most_tokens=8), 4)
    assert one == writer.texts(Choice(seed=1, most_tokens=8), 4)
    assert one != writer.texts(Choice(seed=2, most_tokens=8), 4)
    assert all(text.startswith("the cat") for text in one)
    assert not any("<" in text for text in one)


def test_the_stream_is_the_text(model: LanguageModel) -> None:
    choice = Choice(seed=3, most_tokens=8, top_k=5)
    writer = Writer(model, "the")
    assert "the" + "".join(writer.pieces(choice)) == writer.texts(choice)[0]


def test_a_beam_finds_what_is_at_least_as_likely_as_greedy(model: LanguageModel) -> None:
    writer = Writer(model, "the dog")
    greedy = writer.texts(Choice(temperature=0, most_tokens=4))
    wide = writer.texts(Choice(width=20, most_tokens=4))

    def bits(text: str) -> float:
        (scored,) = model.score([text])
        complete = len(text.split()) < 6
        return sum(scored.bits if complete else scored.bits[:-1])

    assert bits(wide[0]) <= bits(greedy[0]) + 1e-6


def test_suggestions_go_on_from_what_is_typed(model: LanguageModel) -> None:
    every = Writer(model, "the ", whole=True).suggestions(50)
    assert END not in [suggestion.token for suggestion in every]  # users do not type it
    logs, _ = Writer(model, "the ").after()
    ends = float(logs[0, END_NUMBER].exp())
    assert sum(suggestion.probability for suggestion in every) == pytest.approx(1 - ends, rel=1e-3)
    begun = Writer(model, "the ca", whole=False).suggestions(5)
    assert [suggestion.token for suggestion in begun] == ["cat"]


@pytest.mark.parametrize("level", ["characters", "subwords"])
def test_words_are_suggested_where_tokens_are_parts_of_them(level: str) -> None:
    pytest.importorskip("tokenizers")
    text = {"level": level, "subword_count": 20} if level == "subwords" else {"level": level}
    spelling = LanguageModel(text=text, model={"family": "ngram", "order": 6})
    spelling.fit(LINES, LINES[::7])
    words = {word for line in LINES for word in line.split()}
    for typed, whole in (("the ", True), ("the d", False), ("", True), ("t", False)):
        suggestions = Writer(spelling, typed, whole=whole).suggestions(4)
        begun = typed.rpartition(" ")[2]
        assert suggestions[0].token in words
        assert all(suggestion.token.startswith(begun) for suggestion in suggestions)
        assert sum(suggestion.probability for suggestion in suggestions) <= 1
    assert Writer(spelling, "the do", whole=False).suggestions(1)[0].token == "dog"


def test_a_suggested_word_has_the_probability_that_it_is_written() -> None:
    """Of all words of two letters at most, spelt by a model that knows but a and b."""
    model = LanguageModel(text={"level": "characters"}, model={"family": "ngram", "order": 3})
    model.fit(["ab a", "b ab", "a ba", "aa bb"] * 5, ["ab ba"])
    writer, total = Writer(model, "a ", whole=True), 0.0
    for suggestion in writer.suggestions(100):
        if len(suggestion.token) > 2:
            continue
        logs, state = writer.after()
        log = 0.0
        for letter in suggestion.token:
            number = model.learned.words.ids([letter])[0]
            log += float(logs[0, number])
            logs, state = writer._step(torch.tensor([number]), state)
        over = [k for k, t in enumerate(model.learned.words.tokens) if t not in ("a", "b")]
        log += float(logs[0, over].logsumexp(0))
        assert suggestion.probability == pytest.approx(math.exp(log), rel=1e-5)
        total += suggestion.probability
    assert 0.5 < total < 1


def test_an_evaluation_says_what_it_counted(model: LanguageModel) -> None:
    part = model.reader.labelled([*LINES[:3], "the zebra sees"])
    evaluation = model.evaluate_part(part, {})
    assert evaluation.rows == 4
    assert evaluation.steps == 3 * 6 + 4
    assert evaluation.others["unknown tokens"] == pytest.approx(1 / 18)
    letters = sum(len(text) + 1 for text in [*LINES[:3], "the zebra sees"])
    bits = evaluation.others["bits a token"] * evaluation.steps
    assert evaluation.others["bits a character"] == pytest.approx(bits / letters)
    assert evaluation.scores["perplexity"].value == pytest.approx(
        2 ** evaluation.others["bits a token"]
    )
    assert "perplexity" in evaluation.as_text()


@pytest.mark.parametrize("family", ["recurrent", "transformer", "convolution"])
def test_networks_learn(family: str) -> None:
    """Twelve epochs of a tiny grammar: better than counting single words."""
    model = fitted(family, epochs=12)
    evaluation = model.evaluate(LINES[1::2])
    assert evaluation.scores["perplexity"].value < 0.7 * evaluation.baselines["unigrams"]


@pytest.mark.parametrize(
    "family", ["window", "recurrent", "transformer, short context", "convolution"]
)
def test_interrupted_and_continued_is_never_stopped(family: str, tmp_path: Path) -> None:
    whole = LanguageModel(model=FAMILIES[family], train={"epochs": 4})
    whole.fit(LINES[::2], LINES[1::2], folder=tmp_path / "whole")
    for epochs in (2, 4):
        model = LanguageModel(model=FAMILIES[family], train={"epochs": epochs})
        if epochs == 4:  # what the first half did must be allowed to go on
            how = Fitting(RunFolder(tmp_path / "halves"), allow=["train.epochs"])
            model.fit_parts(*_parts(model), how)
        else:
            model.fit(LINES[::2], LINES[1::2], folder=tmp_path / "halves")
    for one, other in zip(
        whole.networks[0].state_dict().values(),
        model.networks[0].state_dict().values(),
        strict=True,
    ):
        assert torch.equal(one, other)


def _parts(model: LanguageModel) -> tuple[Part, Part]:
    train = model.reader.labelled(LINES[::2])
    return train, model.reader.labelled(LINES[1::2], before=train)


def test_ensembles_average() -> None:
    settings = {"model": FAMILIES["recurrent"], "train": {"epochs": 1}}
    both = LanguageModel(**settings, members=2).fit(LINES[::2], LINES[1::2])
    state, tokens = both.begin(1), torch.tensor([both.first])
    logs, _ = both.step(tokens, state)
    each = [
        net.step(tokens, state_of_network)[0].exp()
        for net, state_of_network in zip(both.networks, state, strict=True)
    ]
    assert_close(logs.exp(), (each[0] + each[1]) / 2)


def test_messages() -> None:
    with pytest.raises(OptionError, match="this language model has not been fitted"):
        LanguageModel().perplexity(["a"])
    with pytest.raises(DataError, match="the training part: expected text, got none"):
        LanguageModel(model=FAMILIES["ngram"]).fit([""], ["a"])
    with pytest.raises(OptionError, match="a beam knows its text at the end only"):
        next(Writer(fitted("ngram"), "the").pieces(Choice(width=3)))


def test_the_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lines.txt").write_text("\n".join(LINES) + "\n")
    run = commands_in(tmp_path, capsys, monkeypatch)

    def ensue(*words: str, text: str = "") -> str:
        code, out, err = run(*words, stdin=text.encode())
        assert code == 0, err
        return out

    ensue("train", "lines.txt", "--task", "language", "--run", "r", "--set", "model.family=ngram")
    assert "perplexity" in ensue("evaluate", "r")
    assert ensue("generate", "r", "--prompt", "the cat", "--seed", "2").startswith("the cat")
    assert ensue("suggest", "r", text="the do\n").startswith("dog ")
    assert ensue("predict", "r", text="the dog sees the tree\n").endswith("the dog sees the tree\n")


def test_the_unigram_baseline_counts_ends() -> None:
    """a b </s>, a </s>: with one more of each, a 3, b 2, </s> 3, unknown 1 of 9."""
    model = LanguageModel(model={"family": "ngram", "order": 1}).fit(["a b", "a"], ["a"])
    perplexity = model.evaluate(["a", "c"]).baselines["unigrams"]
    expected = (3 / 9) * (3 / 9) * (1 / 9) * (3 / 9)  # a </s> <unk> </s>
    assert perplexity == pytest.approx(expected ** (-1 / 4))


def test_members_of_counts_are_refused() -> None:
    model = LanguageModel(model={"family": "ngram", "order": 2}, members=3)
    with pytest.raises(OptionError) as error:
        model.fit(["a b", "b a"], ["a b"])
    assert str(error.value) == (
        "members: expected 1 with model.family = ngram, which is fitted in closed form and "
        "has no seed, got 3"
    )


def test_every_family_of_the_settings_is_a_row_of_the_table() -> None:
    assert set(TASK.families) == set(get_args(LanguageSettings.model_fields["family"].annotation))
    assert [name for name, family in TASK.families.items() if family.solved] == ["ngram"]


def test_a_counted_model_has_no_network_and_no_learning_rate() -> None:
    model = fitted("ngram")
    assert model.networks == []
    with pytest.raises(
        OptionError, match=r"model\.family = ngram is estimated by counting and has no network"
    ):
        model.fresh(1)
    with pytest.raises(OptionError) as error:
        model.find_rate(model.reader.labelled(LINES))
    assert str(error.value) == (
        "find-rate: model.family = ngram is fitted in closed form and has no learning rate"
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_a_loaded_model_answers_and_is_saved_as_it_was(family: str, tmp_path: Path) -> None:
    model = fitted(family)
    model.save(tmp_path / "before")
    loaded = LanguageModel.load(tmp_path / "before")
    assert loaded.score(LINES[:4]) == model.score(LINES[:4])
    loaded.save(tmp_path / "after")
    before, after = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("before", "after")
    )
    assert before == after


def test_the_task_says_how_its_models_go_on_from_a_prompt() -> None:
    model = fitted("ngram")
    assert TASK.generates is not None
    writer = TASK.generates.writer(model, "the  dog ta", whole=False)
    assert writer.prompt == "the dog"
    assert [suggestion.token for suggestion in writer.suggestions(3)] == ["takes"]


def test_the_column_of_the_text_is_found(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("id,said,by\n" + "".join(f"{k},{line},me\n" for k, line in enumerate(LINES)))
    data = DataSettings(train=[str(path)])
    assert TASK.infer(Sample(data)).data == {"text": "said"}
    assert TASK.infer(Sample(data.model_copy(update={"text": "by"}))).data == {"text": "by"}
    assert TASK.recognise(Sample(data)) is None  # a text alone is learned where that is asked for
    twice = data.model_copy(update={"text": "by", "label": "by"})
    with pytest.raises(OptionError) as error:
        TASK.infer(Sample(twice))
    assert str(error.value) == "--text and --label: expected two columns, got 'by' twice"
    with pytest.raises(OptionError, match="--sequence: a language model learns from text"):
        TASK.infer(Sample(data.model_copy(update={"sequence": "id"})))
    with pytest.raises(DataError, match="nobody"):
        TASK.infer(Sample(data.model_copy(update={"group": "nobody"})))


def test_one_text_is_no_list_of_texts() -> None:
    with pytest.raises(DataError, match=r"got the text 'the cat'; pass a single row as \[row\]"):
        LanguageModel(model=FAMILIES["ngram"]).fit("the cat")
    with pytest.raises(OptionError, match="expected a list of inputs, got one text"):
        fitted("ngram").score("the cat")
