"""Texts without labels that a classifier learns from as well."""

from __future__ import annotations

import csv
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from commands import Ensue, commands_in

import ensue as package
from ensue import Classifier, Regressor
from ensue.data.ragged import Ragged
from ensue.errors import ConfigError, DataError, OptionError
from ensue.runs.config import RunConfig
from ensue.tasks.baselines import text_linear
from ensue.tasks.baselines.margin import Margins
from ensue.tasks.baselines.sparse import SparseMatrix
from ensue.tasks.baselines.text_features import LETTERS, WORDS, Texts, joined, spelled_ngrams
from ensue.tasks.baselines.text_linear import (
    agreement,
    common_words,
    fit_with_topics,
    halves,
    topics,
)

SMALL: dict[str, Any] = {
    "model": {"hidden_size": 4, "embedding_size": 4},
    "train": {"epochs": 6, "rate": 0.03},
}
TOLD = {"good": ["fine", "warm", "witty"], "bad": ["dull", "cold", "bland"]}  # with labels
UNTOLD = {"good": ["superb", "tender", "bright"], "bad": ["dreary", "clumsy", "stale"]}
SPELLED = random.Random(5)
HINTED = {  # validation has them as well, each rarely twice
    label: ["".join(SPELLED.choices("abcdefghijklmnopqrstuvwxyz", k=7)) for _ in range(20)]
    for label in TOLD
}
REST = ["film", "cast", "plot", "scene", "a", "the", "of", "with"]


def text_of(label: str, words: Sequence[dict[str, list[str]]], draw: random.Random) -> str:
    words_drawn = [
        draw.choice(words_of_label[label]) for words_of_label in words for _ in range(2)
    ] + draw.choices(REST, k=4)
    draw.shuffle(words_drawn)
    return " ".join(words_drawn)


def texts(words: Sequence[dict[str, list[str]]], count: int, seed: int) -> list[tuple[str, str]]:
    draw = random.Random(seed)
    return [(text_of(label, words, draw), label) for label in ["good", "bad"] * (count // 2)]


LABELLED = texts([TOLD], 60, 1)
HELD = [*texts([TOLD], 10, 2), *texts([HINTED], 30, 2)]
MORE = [  # what goes with the known words
    text for words in (UNTOLD, HINTED) for text, _ in texts([TOLD, words], 150, 3)
]
TEST = texts([UNTOLD], 200, 4)


@pytest.fixture(scope="module")
def model() -> Classifier:
    return Classifier(**SMALL).fit(LABELLED, HELD, unlabelled=MORE)


def right(model: Classifier, rows: Sequence[tuple[str, str]] = TEST) -> float:
    answers = model.predict([text for text, _ in rows])
    return float(np.mean([a.label == label for a, (_, label) in zip(answers, rows, strict=True)]))


def test_words_that_only_texts_without_labels_have_are_learned(model: Classifier) -> None:
    assert right(model) > 0.95
    without = Classifier(**SMALL).fit(LABELLED, HELD)
    assert right(without) < 0.7
    assert right(model, HELD) == right(without, HELD) == 1
    assert {"superb", "tender", "bright"} & {*model.most_telling("good", 10)}


def test_a_saved_model_answers_alike(model: Classifier, tmp_path: Path) -> None:
    model.save(tmp_path / "m")
    questions = [text for text, _ in TEST]
    assert Classifier.load(tmp_path / "m").predict(questions) == model.predict(questions)


def test_frames_files_and_lists_are_learned_from_alike(model: Classifier, tmp_path: Path) -> None:
    frame = pd.DataFrame(LABELLED, columns=["review", "stars"])
    validation = pd.DataFrame(HELD, columns=["review", "stars"])
    questions, roles = [text for text, _ in TEST], {"text": "review", "label": "stars"}
    unlabelled_frame = pd.DataFrame({"review": MORE})
    (tmp_path / "more.txt").write_text("\n".join(MORE) + "\n")
    halves = [tmp_path / "one.csv", tmp_path / "two.csv"]
    unlabelled_frame[:100].to_csv(halves[0], index=False)
    unlabelled_frame[100:].to_csv(halves[1], index=False)
    for unlabelled in (unlabelled_frame, str(tmp_path / "more.txt"), halves):
        other_model = Classifier(**SMALL).fit(frame, validation, unlabelled=unlabelled, **roles)
        pairs = zip(other_model.predict(questions), model.predict(questions), strict=True)
        assert all(abs(a.probability - b.probability) < 1e-6 for a, b in pairs)


def test_a_file_of_one_column_goes_with_rows_in_memory(model: Classifier, tmp_path: Path) -> None:
    pd.DataFrame({"any": MORE}).to_csv(tmp_path / "more.csv", index=False)
    other_model = Classifier(**SMALL).fit(LABELLED, HELD, unlabelled=tmp_path / "more.csv")
    assert right(other_model) == right(model)


def test_long_texts_are_no_names_of_files() -> None:
    long = [f"{text} \0 " * 400 for text in MORE[:20]]
    assert Classifier(**SMALL).fit(LABELLED, HELD, unlabelled=long).fitted


def test_halves_of_characters_are_texts_like_any_other() -> None:
    """Halves of surrogate pairs, as JSON can have them, raised an encoding error."""
    rows = [(f"{text} \ud800", label) for text, label in LABELLED]
    classifier = Classifier(**SMALL).fit(rows, HELD, unlabelled=["\ud800 fine", *MORE])
    assert right(classifier) > 0.9
    assert classifier.predict(["\ud800 superb"])[0].label in TOLD


def test_texts_that_tell_nothing_are_not_said_to_help() -> None:
    messages: list[str] = []
    watchers: list[Any] = [lambda row: messages.append(getattr(row, "text", ""))]
    for nothing in ([""] * 2, ["zzz qqq xxx vvv"]):
        Classifier(**SMALL).fit(LABELLED, HELD, unlabelled=nothing, watchers=watchers)
        assert messages[-1].endswith("not clearly lower with them, so they are left out"), messages[
            -1
        ]


@pytest.mark.parametrize("several", [False, True])
def test_few_validation_rows_that_are_all_right_make_no_answer_too_sure(several: bool) -> None:
    """Of 20 rows that are all answered rightly, the scores of a linear model are not scaled up
    until nothing is in doubt: its answers to other rows are as sure as they are right."""
    draw = np.random.default_rng(1)
    targets = torch.from_numpy(draw.integers(0, 2, (20, 3) if several else 20))
    problem = text_linear._Classes(targets, 3 if several else 2)
    sign = 2 * targets.double() - 1
    scores = sign * 0.5 if several else torch.stack([-sign / 4, sign / 4], 1)
    _, scale = problem.scaled(scores, np.arange(20))
    sure = torch.sigmoid(torch.tensor(scale * 0.5))
    assert 0.9 < float(sure) < 0.97  # 21 of 22


def test_several_labels_and_columns_beside_the_text_are_learned_with_them() -> None:
    several = [(text, [label]) for text, label in LABELLED]
    settings: dict[str, Any] = {**SMALL, "model": {**SMALL["model"], "several": True}}
    validation = [(text, [label]) for text, label in HELD]
    classifier = Classifier(**settings).fit(several, validation, unlabelled=MORE)
    answers = classifier.predict([text for text, _ in TEST])
    assert (
        np.mean([a.labels == (label,) for a, (_, label) in zip(answers, TEST, strict=True)]) > 0.9
    )
    rows = [{"review": text, "stars": label, "price": 1.0} for text, label in LABELLED]
    more = [{"review": text} for text in MORE]  # other columns than the text are not needed
    roles = {"text": "review", "label": "stars", "columns": "price"}
    held_rows = [{"review": text, "stars": label, "price": 1.0} for text, label in HELD]
    framed = Classifier(**SMALL).fit(
        pd.DataFrame(rows), pd.DataFrame(held_rows), unlabelled=pd.DataFrame(more), **roles
    )
    questions_frame = pd.DataFrame([{"review": text, "price": 1.5} for text, _ in TEST])
    assert (framed.predict(questions_frame)["label"] == [label for _, label in TEST]).mean() > 0.9


# --- topics ---------------------------------------------------------------------------------------


def words(rows: Iterable[str]) -> Texts:
    return numbered(
        rows, sorted({word for text, _ in (*LABELLED, *HELD) for word in text.split()} | {*UNSEEN})
    )


def numbered(rows: Iterable[str], known: list[str]) -> Texts:
    cut = [[known.index(word) for word in row.split()] for row in rows]
    starts = np.cumsum([0, *map(len, cut)])
    return Texts(known, Ragged(np.concatenate(cut).astype(np.int32), starts))


UNSEEN = {word for text in MORE for word in text.split()}
PARTS = [words(text for text, _ in rows) for rows in (LABELLED, HELD)] + [words(MORE)]
CLASSES = np.array([int(label == "good") for _, label in (*LABELLED, *HELD)])


def test_topics_are_what_both_halves_of_a_text_have_in_common() -> None:
    """The eigenvectors of M = Σ (a·bᵀ + b·aᵀ)/2 with the largest eigenvalues, a and b less their
    means; what each half has by itself is as large, and is not among them."""
    draw = np.random.default_rng(2)
    both, apart = draw.normal(size=(400, 4)), draw.normal(size=(2, 400, 4))
    shared_directions, hidden = draw.normal(size=(2, 4, 30))
    dense = [3 + both @ shared_directions + noise @ hidden for noise in apart]
    values, directions = agreement(
        *(SparseMatrix.of_dense(torch.from_numpy(matrix)) for matrix in dense)
    )
    one, other = (matrix - matrix.mean(0) for matrix in dense)
    true, vectors = np.linalg.eigh((one.T @ other + other.T @ one) / 2)
    np.testing.assert_allclose(values[:4], true[::-1][:4], rtol=1e-3)
    expected, actual = vectors[:, ::-1][:, :4], directions[:, :4].double().numpy()
    np.testing.assert_allclose(actual @ actual.T, expected @ expected.T, atol=1e-2)
    assert float(values[4]) < 0.3 * float(values[3])


def test_matrices_without_rank_have_fewer_topics() -> None:
    rows = torch.tensor([[1.0], [2.0]]).repeat(30, 5)
    values, directions = agreement(*[SparseMatrix.of_dense(rows)] * 2)
    assert (values.shape, directions.shape) == ((1,), (5, 1))
    for same in (torch.zeros(60, 5), torch.ones(60, 5)):
        values, directions = agreement(*[SparseMatrix.of_dense(same)] * 2)
        assert bool(values.isfinite().all() & directions.isfinite().all())
    few = words(["film cast"])
    assert bool(topics(common_words(few, few)[0], few).isfinite().all())


def test_a_text_is_cut_in_the_middle() -> None:
    block_texts = ["a film with the cast", "film", "cast plot"]
    texts = words([*block_texts, ""])
    first, second = (
        [[h.words[n] for n in row] for row in map(h.rows.row, range(4))] for h in halves(texts)
    )
    assert first == [["a", "film"], [], ["cast"], []]
    assert second == [["with", "the", "cast"], ["film"], ["plot"], []]


def test_topics_tell_words_apart_that_go_on_with_each_other() -> None:
    """Words of like tone stand in both halves of a text: the first topic has one sign for each."""
    block, _ = common_words(PARTS[0], PARTS[2])
    weights = topics(block, joined(PARTS[0], PARTS[2]))[:, 0]
    spelled = spelled_ngrams(PARTS[2], block.hashes)
    weight = {
        spelled[int(hash_)]: float(w)
        for hash_, w in zip(block.hashes, weights, strict=True)
        if int(hash_) in spelled
    }
    tones = [np.mean([weight[word] for word in UNTOLD[label]]) for label in TOLD]
    assert tones[0] * tones[1] < 0
    assert min(map(abs, tones)) > 3 * max(abs(weight[word]) for word in REST)


def test_words_are_kept_that_have_labels_or_are_not_rare() -> None:
    few, others = words(["film cast"]), words(["superb film"] * 5 + ["dreary plot"])
    block, x = common_words(few, others)
    assert (len(x), x.width) == (1, len(block.hashes))
    assert x.width == 5  # film, cast, film cast; superb, superb film; not what stands once


@pytest.mark.parametrize("by_rows", [0, 1_200], ids=["over columns", "over rows"])
def test_weights_of_topics_are_weights_of_words(
    by_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scores of the words alone are those of words and topics side by side."""
    monkeypatch.setattr(text_linear, "BY_ROWS", by_rows)
    monkeypatch.setattr(text_linear, "SHARES", (0.0, 4.0))
    all_margins: list[Margins] = []
    path = text_linear._Classes.path

    def watched(self: Any, x: SparseMatrix, *arguments: Any) -> Iterable[Margins]:
        for margins in path(self, x, *arguments):
            all_margins.append(Margins(x.times(margins.weights) + margins.bias, margins.bias))
            yield margins

    monkeypatch.setattr(text_linear._Classes, "path", watched)
    fit = fit_with_topics(*PARTS, CLASSES, 2, [WORDS, LETTERS])
    assert fit.share == 4.0
    assert fit.best < fit.without
    scores = fit.linear.model.scores(joined(PARTS[0], PARTS[1])).float()
    both = all_margins[-1].weights  # of all rows, by the last model
    scale = float(scores.norm() / both.norm())
    torch.testing.assert_close(scores, scale * both, atol=2e-3 * scale, rtol=0)


def test_a_row_is_scored_by_models_that_never_saw_its_label(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another label of a validation row changes nothing of its own score."""
    monkeypatch.setattr(text_linear, "SCALES", (1.0,))
    monkeypatch.setattr(text_linear, "WORSE", 0.0)
    monkeypatch.setattr(text_linear, "SHARES", (4.0,))
    monkeypatch.setattr(text_linear._Classes, "strengths", (0.03, 0.3))
    for row in (0, len(HELD) - 1):
        other = CLASSES.copy()
        other[len(LABELLED) + row] ^= 1
        one, two = (
            fit_with_topics(*PARTS, classes, 2, [WORDS]).linear.out_of_sample[row]
            for classes in (CLASSES, other)
        )
        torch.testing.assert_close(one, two, atol=1e-6, rtol=0)


def of_other_subjects(seed: int) -> list[Texts]:
    """24, 8 and 800 texts of four subjects, which are most of what their words tell, and of two
    tones, one for each label, which are rare in texts without a label."""
    draw = random.Random(seed)

    def some(count: int) -> list[str]:
        return ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(count)]

    tones, rest, subjects = [some(60), some(60)], some(500), [some(60) for _ in range(4)]

    def text(label: int, share: float) -> str:
        subject = draw.choice(subjects)
        among, shares = [tones[label], subject, subject + rest], [share, 0.3, 0.7 - share]
        return " ".join(draw.choice(*draw.choices(among, shares)) for _ in range(25))

    parts = [[text(k % 2, 0.12) for k in range(count)] for count in (24, 8)]
    parts.append([text(draw.randrange(2), 0.05) for _ in range(800)])
    known = [*tones[0], *tones[1], *rest, *(word for subject in subjects for word in subject)]
    return [numbered(part, known) for part in parts]


def test_few_rows_are_not_enough_to_say_that_topics_help() -> None:
    """Of 32 rows any two models differ by a hundredth of their cost: subjects that have nothing to
    do with the labels were used in half of these cases, and cost 5 to 16 points."""
    labels = np.arange(32) % 2
    fits = [
        fit_with_topics(*of_other_subjects(seed), labels, 2, [WORDS, LETTERS])
        for seed in range(100, 106)
    ]
    assert sum(fit.share > 0 for fit in fits) <= 1


def test_topics_without_a_clear_gain_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_linear, "WORSE", 1e9)
    messages: list[str] = []
    watchers: list[Any] = [lambda row: messages.append(getattr(row, "text", ""))]
    classifier = Classifier(**SMALL).fit(LABELLED, HELD, unlabelled=MORE, watchers=watchers)
    assert right(classifier) < 0.7
    assert "300 rows without labels" in messages[-1]
    assert messages[-1].endswith("not clearly lower with them, so they are left out")


# --- as a command ---------------------------------------------------------------------------------

TINY = ("--set", "model.hidden_size=4", "--set", "model.embedding_size=4", "--epochs", "2")


@pytest.fixture
def ensue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ensue:
    for name, rows in (("few.csv", LABELLED), ("held.csv", HELD), ("test.csv", TEST)):
        with open(tmp_path / name, "w", newline="") as file:
            csv.writer(file).writerows([("review", "stars"), *rows])
    with open(tmp_path / "more.csv", "w", newline="") as file:
        csv.writer(file).writerows([("review",), *([text] for text in MORE)])
    return commands_in(tmp_path, capsys, monkeypatch)


SAID = ("few.csv", "--validation", "held.csv", "--test", "test.csv", "--unlabelled", "more.csv")


def test_a_run_keeps_its_files_and_comes_out_the_same(ensue: Ensue, tmp_path: Path) -> None:
    for run in ("one", "two"):
        code, _, err = ensue("train", *SAID, *TINY, "--run", run)
        assert code == 0, err
        assert "300 rows without labels: cost of the linear model" in err
    config = RunConfig.read(tmp_path / "one/config.toml")
    assert config.data.unlabelled == [str(tmp_path / "more.csv")]
    assert "40 to validate, 300 without labels" in (tmp_path / "one/card.md").read_text()
    one, two = (tmp_path / run / "model/arrays.safetensors" for run in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    assert right(package.load(tmp_path / "one")) > 0.95
    (tmp_path / "moved").mkdir()
    for name in ("few.csv", "held.csv", "test.csv", "more.csv"):
        (tmp_path / "moved" / name).write_bytes((tmp_path / name).read_bytes())
    (tmp_path / "two").rename(tmp_path / "moved/two")
    (tmp_path / "more.csv").write_text("review\nanother text\n")
    code, _, err = ensue("train", "--run", "moved/two")
    assert code == 0, err
    code, _, err = ensue("train", "--run", "one")
    assert code != 0
    assert "more.csv: changed since one was trained on it" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("few.csv", "--unlabelled", "none.csv"), "none.csv"),
        (
            ("few.csv", "--unlabelled", "few.csv"),
            "given twice (train and --unlabelled): rows that have labels are learned from or kept "
            "to validate and test",
        ),
        (
            ("few.csv", "--unlabelled", "more.csv", "--task", "label"),
            "expected a run of task classify",
        ),
        (
            ("few.csv", "--unlabelled", "more.csv", "--set", "model.linear=alone"),
            "model.linear = mixed, got alone",
        ),
        (("few.csv", "--unlabelled", "empty.csv"), "empty.csv:1: the file has no rows"),
        (("few.csv", "--unlabelled", "test.csv", "--text", "text"), "text"),
        (
            ("few.csv", "--unlabelled", "other.csv"),
            "--unlabelled: texts stand in the column of the same name as in training, or a line "
            "each in a .txt file",
        ),
        (
            ("table.csv", "--unlabelled", "more.csv"),
            "--unlabelled: only classify has this option, so the task is classify; "
            "leave it out to infer the task",
        ),
    ],
)
def test_what_cannot_be_learned_from_is_refused(
    ensue: Ensue, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    (tmp_path / "empty.csv").write_text("review\n")
    (tmp_path / "other.csv").write_text("words\na fine film\n")
    table = [f"{20 + k},{1000 + 7 * k},{'yes' if k % 3 else 'no'}\n" for k in range(60)]
    (tmp_path / "table.csv").write_text("age,income,bought\n" + "".join(table))
    code, _, err = ensue("train", *options, *TINY, "--run", "r")
    assert code != 0
    assert message in err
    assert not (tmp_path / "r").exists()


def test_python_refuses_it_too() -> None:
    with pytest.raises(
        OptionError, match="unlabelled=: a regress model learns only from rows with"
    ):
        Regressor(**SMALL).fit([("a", 1.0), ("b", 2.0)] * 6, unlabelled=["c"])
    refused = {
        "a text": r"or an existing file, got 'a text'; pass a single text as \[text\]",
        3: "expected a list of texts, or a data frame, got 3",
        ("nosuch.csv",): r"expected texts, or files that are there, got 'nosuch\.csv': no such",
        (__file__, "nosuch.csv"): "got 'nosuch.csv': no such file",
        tuple(LABELLED): r"got pairs such as .*; leave out the labels: \[text for text, label in",
    }
    for unlabelled, message in refused.items():
        with pytest.raises(OptionError, match=message):
            Classifier(**SMALL).fit(LABELLED, HELD, unlabelled=unlabelled)
    with pytest.raises(OptionError, match=r"or a data frame, got \{'review': "):
        Classifier(**SMALL).fit(LABELLED, HELD, unlabelled={"review": MORE})
    with pytest.raises(DataError, match="expected rows without labels, got none"):
        Classifier(**SMALL).fit(LABELLED, HELD, unlabelled=[])
    with pytest.raises(ConfigError, match=r"data\.unlabelled: learned from by classify; expected"):
        RunConfig.of({"task": "regress", "data": {"train": ["a.csv"], "unlabelled": ["b.csv"]}})
