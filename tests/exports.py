"""Small models of every task that can be exported, with questions and what Python answers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from export_questions import (
    AHEAD,
    ASKED,
    DATED,
    FOREST,
    LINES,
    MATCHED,
    PAIRS,
    PANEL,
    PICTURES,
    REVIEWS,
    SAID,
    SALE,
    SALES,
    SENTENCES,
    SERIES,
    SHOWN,
    SIDES,
    SPOKEN,
    STEPS,
    TABLE,
    TEXTS,
    TREES,
    VECTORS,
    WORDS,
    Questions,
    dated,
    shop_rows,
)

import ensue
from ensue.export.model import TracedModel
from ensue.export.programs import node_program

LABELLED = [(text, "good" if k % 2 == 0 else "bad") for k, text in enumerate(TEXTS)] * 6
QUICK = {"epochs": 2, "rate": 0.05}
SMALL = {"hidden_size": 6, "embedding_size": 5}


def classes(answer: Any) -> dict[str, Any]:
    chosen = answer.label or list(answer.labels)
    return {"label": chosen, "probabilities": dict(answer.probabilities)}


def number(answer: Any) -> dict[str, Any]:
    return {"value": answer.value, "low": answer.low, "high": answer.high}


def tags(answer: Any) -> dict[str, Any]:
    return {"labels": list(answer.labels), "probabilities": list(answer.probabilities)}


def text(answer: Any) -> dict[str, Any]:
    return {"text": answer.text}


def bits(answer: Any) -> dict[str, Any]:
    return {"tokens": list(answer.tokens), "bits": list(answer.bits)}


@dataclass(frozen=True)
class Row:
    """make: a fitted model; answered: what is compared of an answer; ask: how questions are asked
    one by one."""

    make: Callable[[], Any]
    question_set: Questions
    answered: Callable[[Any], dict[str, Any]]
    slow: bool = True
    ask: Callable[[Any, Any], list[Any]] = lambda model, questions: model.predict(list(questions))

    @property
    def questions(self) -> Sequence[Any]:
        return self.question_set.chosen

    def expected_answers(self, model: Any, questions: Sequence[Any]) -> list[dict[str, Any]]:
        """What Python answers."""
        return [self.answered(answer) for answer in self.ask(model, questions)]


def classifier(**model: Any) -> Any:
    members = model.pop("members", 1)
    model_of_texts = ensue.Classifier(model={**SMALL, **model}, train=QUICK, members=members)
    return model_of_texts.fit(LABELLED)


def labeller(members: int = 1, **model: Any) -> Any:
    model_of_words = ensue.Labeller(model={**SMALL, **model}, train=QUICK, members=members)
    return model_of_words.fit(SENTENCES)


def _reviewed(kind: Any) -> Any:
    """Texts with columns next to them."""
    rows = [
        {
            "review": TEXTS[k % 6],
            "price": 5.0 + k % 30 if k % 11 else None,
            "country": ["nl", "fr", "de"][k % 3],
            "stars": float(k % 30) if kind is ensue.Regressor else ["bad", "good"][k % 30 > 15],
        }
        for k in range(60)
    ]
    estimator = kind(model=SMALL, train=QUICK)
    return estimator.fit(rows, text="review", label="stars", columns=["price", "country"])


def _sold() -> Any:
    """A table with a column of dates, which is read as features by default."""
    rows = [
        {
            "area": float(k % 50) + 40,
            "town": ["Delft", "Gouda", "Leiden"][k % 3],
            "sold": str(np.datetime64("2019-01-01") + 17 * k) if k % 9 else None,
            "price": 2.0 * (k % 50) + k,
        }
        for k in range(80)
    ]
    return ensue.TableModel(train={"epochs": 3}).fit(rows, target="price")


def subwords(kind: Any, *rows: Any) -> Any:
    text = {"level": "subwords", "subword_count": 60}
    model = {**SMALL, **({"family": "recurrent"} if kind is ensue.LanguageModel else {})}
    return kind(model=model, text=text, train=QUICK).fit(*rows)


def _trees(members: int = 1, whole: bool = False, **model: Any) -> Any:
    rows: list[Any] = TREES * 8
    if whole:
        rows = [(tree, "yes" if tree.startswith("(1") else "no") for tree in rows]
    settings = {"hidden_size": 6, "embedding_size": 5, **model}
    return ensue.TreeClassifier(model=settings, train=QUICK, members=members).fit(rows)


def in_tree(answer: Any) -> dict[str, Any]:
    return {**classes_of_tree(answer), "tree": answer.tree}


def classes_of_tree(answer: Any) -> dict[str, Any]:
    return {"label": answer.label, "probabilities": dict(answer.probabilities)}


def _table(target: str) -> Any:
    rows = [
        {
            "area": float(area) if area % 7 else None,
            "town": ["Delft", "Gouda", "Leiden"][area % 3],
            "price": 2.0 * area,
            "kind": "large" if area > 60 else "small",
        }
        for area in range(40, 100)
    ]
    columns_of_rows = [
        {k: v for k, v in row.items() if k in ("area", "town", target)} for row in rows
    ]
    model = ensue.TableModel(model={"missing": "indicator"}, train={"epochs": 3})
    return model.fit(columns_of_rows, target=target)


def _image() -> Any:
    return ensue.ImageModel(model={"blocks": "4 max", "batch_rows": 8}, train=QUICK).fit(PICTURES)


def _captioner() -> Any:
    model = {**SMALL, "blocks": "4 max"}
    return ensue.Captioner(model=model, train=QUICK).fit(PICTURES, PICTURES)


def translator(members: int = 1, **model: Any) -> Any:
    settings = {"hidden_size": 12, "embedding_size": 8, **model}
    train = {"epochs": 8, "rate": 0.02}
    return ensue.Translator(model=settings, train=train, members=members).fit(PAIRS, PAIRS)


def _language(**model: Any) -> Any:
    settings = {"hidden_size": 8, "embedding_size": 6, "family": "recurrent", **model}
    return ensue.LanguageModel(model=settings, train=QUICK).fit(LINES, LINES)


def _regressor(**model: Any) -> Any:
    rows = [(phrase, float(k)) for k, phrase in enumerate(TEXTS * 6)]
    return ensue.Regressor(model={**SMALL, **model}, train=QUICK).fit(rows)


def _matcher(**model: Any) -> Any:
    return ensue.Matcher(model={"hidden_size": 6, **model}, train=QUICK).fit(SIDES)


def _several() -> Any:
    rows = [("a fine film", ["good", "short"]), ("dull and long", ["bad"]), ("so so", [])] * 8
    return ensue.Classifier(model={**SMALL, "several": True}, train=QUICK).fit(rows)


def _characters() -> Any:
    character_classifier = ensue.Classifier(model=SMALL, text={"level": "characters"}, train=QUICK)
    return character_classifier.fit(LABELLED)


def _of_vectors() -> Any:
    return ensue.Classifier(model=SMALL, train=QUICK).fit(VECTORS)


def _forecaster(**model: Any) -> Any:
    settings = {"family": "direct", "horizon": 5, "look_back": 12, "hidden_size": 8, **model}
    made = ensue.Forecaster(model={"output": "squared", **settings}, train=QUICK)
    return made.fit({"sales": SALES}, target="sales")


def _noisy(kind: str) -> list[float]:
    random, t = np.random.default_rng(0), np.arange(160)
    if kind == "walk":
        return [float(v) for v in np.cumsum(random.normal(0, 1, 160)) + 50]
    season = 5 + 2 * np.sin(t * 2 * np.pi / 12)
    return [float(v) for v in np.exp(0.01 * t) * season * np.exp(random.normal(0, 0.05, 160))]


def _mixed(kind: str) -> Any:
    model = {"family": "mixed", "horizon": 5, "look_back": 12, "hidden_size": 8}
    made = ensue.Forecaster(model=model, train={"epochs": 1})
    return made.fit({"sales": _noisy(kind)}, target="sales")


def _dated(**model: Any) -> Any:
    settings = {"time": "month", "horizon": 5, "hidden_size": 8, **model}
    return ensue.Forecaster(model=settings, train={"epochs": 1}).fit(
        dated(_noisy("season")), target="sales"
    )


def _panel(**model: Any) -> Any:
    columns = {"time": "day", "ids": ["shop"], "known": ["offer"], "covariates": ["visits"]}
    settings = {
        **columns,
        "static": ["region", "size"],
        "horizon": AHEAD,
        "hidden_size": 8,
        **model,
    }
    made = ensue.Forecaster(model=settings, train={"epochs": 1})
    return made.fit(shop_rows(), target="sales")


def steps(answer: Any) -> dict[str, Any]:
    every = [step.expected["sales"] for step in answer]
    return {
        key: {"sales": [getattr(step, key) for step in every]} for key in ("value", "low", "high")
    }


def values_alone(answer: Any) -> dict[str, Any]:
    return {"value": steps(answer)["value"]}


def each_as_table(model: Any, questions: Any) -> list[Any]:
    """Columns of one length: what is known ahead is longer, a constant is one value."""
    frames = []
    for question in questions:
        count = max(len(value) for value in question.values() if isinstance(value, list))
        rows = {
            name: [*value, *[None] * (count - len(value))]
            if isinstance(value, list)
            else [value] * count
            for name, value in question.items()
        }
        frames.append(model.predict(rows))
    return frames


def each(model: Any, questions: Any) -> list[Any]:
    return [model.predict(question) for question in questions]


ROWS: dict[str, Row] = {
    "classify": Row(lambda: classifier(pooling="max+last"), WORDS, classes, slow=False),
    "classify, two": Row(lambda: classifier(members=2, pooling="mean"), WORDS, classes),
    "label": Row(lambda: labeller(affixes=2, shapes=True), ASKED, tags),
    "translate": Row(translator, SAID, text),
    "classify, transformer": Row(
        lambda: classifier(encoder="transformer", heads=2, pooling="attention"), WORDS, classes
    ),
    "classify, convolution": Row(lambda: classifier(encoder="convolution"), WORDS, classes),
    "classify, plain": Row(lambda: classifier(encoder="plain", pooling="mean"), WORDS, classes),
    "classify, both ways": Row(
        lambda: classifier(bidirectional=True, cell="LayerNormLSTM", layers=2), WORDS, classes
    ),
    "classify, ways apart": Row(
        lambda: classifier(bidirectional=True, directions="apart", layers=2, embedding_size=4),
        WORDS,
        classes,
    ),
    "classify, causal transformer": Row(
        lambda: classifier(encoder="transformer", heads=2, causal=True, context=3), WORDS, classes
    ),
    "classify, causal convolution": Row(
        lambda: classifier(encoder="convolution", causal=True, layers=2), WORDS, classes
    ),
    "classify, several": Row(_several, WORDS, classes),
    "classify, characters": Row(_characters, WORDS, classes),
    "classify, subwords": Row(lambda: subwords(ensue.Classifier, LABELLED), WORDS, classes),
    "translate, subwords": Row(lambda: subwords(ensue.Translator, PAIRS, PAIRS), SAID, text),
    "language, subwords": Row(lambda: subwords(ensue.LanguageModel, LINES, LINES), SPOKEN, bits),
    "classify, columns": Row(lambda: _reviewed(ensue.Classifier), REVIEWS, classes),
    "regress, columns": Row(lambda: _reviewed(ensue.Regressor), REVIEWS, number),
    "table, dates": Row(_sold, SALE, number),
    "classify, vectors": Row(_of_vectors, STEPS, classes),
    "regress": Row(_regressor, WORDS, number),
    "regress, mixture": Row(
        lambda: _regressor(distribution="mixture", linear="alone"), WORDS, number
    ),
    "match": Row(_matcher, MATCHED, classes),
    "match, attention": Row(lambda: _matcher(compare="attention"), MATCHED, classes),
    "table": Row(lambda: _table("kind"), TABLE, classes),
    "table, number": Row(lambda: _table("price"), TABLE, number),
    "image": Row(_image, SHOWN, classes),
    "tree": Row(_trees, FOREST, in_tree),
    "tree, whole, two": Row(
        lambda: _trees(2, whole=True, combine="mean", cell="LSTM"), FOREST, in_tree
    ),
    "label, alone": Row(lambda: labeller(linear_share=0, output="stepwise"), ASKED, tags),
    "label, two": Row(lambda: labeller(2, output="crf", character_size=4), ASKED, tags),
    "language": Row(_language, SPOKEN, bits),
    "language, convolution": Row(lambda: _language(family="convolution"), SPOKEN, bits),
    "language, clusters of words": Row(
        lambda: _language(softmax="adaptive", softmax_cuts=[5, 9]), SPOKEN, bits
    ),
    "language, window": Row(lambda: _language(family="window"), SPOKEN, bits),
    "language, transformer": Row(lambda: _language(family="transformer", heads=2), SPOKEN, bits),
    "translate, two": Row(
        lambda: translator(2, cell="LSTM", attention="general", input_feeding=True), SAID, text
    ),
    "translate, no attention": Row(lambda: translator(attention="none"), SAID, text),
    "translate, transformer": Row(
        lambda: translator(family="transformer", heads=2, hidden_size=8), SAID, text
    ),
    "caption": Row(_captioner, SHOWN, text),
    "forecast": Row(_forecaster, SERIES, steps, ask=each),
    "forecast, drawn paths": Row(
        lambda: _forecaster(output="gaussian", normalise="last"), SERIES, values_alone, ask=each
    ),
    "forecast, step by step": Row(
        lambda: _forecaster(family="recurrent", transform="log", difference=1),
        SERIES,
        steps,
        ask=each,
    ),
    "forecast, mixed": Row(lambda: _mixed("season"), SERIES, steps, ask=each),
    "forecast, mixed walk": Row(lambda: _mixed("walk"), SERIES, steps, ask=each),
    "forecast, dates": Row(_dated, DATED, steps, ask=each),
    "forecast, panel": Row(_panel, PANEL, steps, ask=each_as_table),
    "forecast, panel step by step": Row(
        lambda: _panel(family="recurrent", look_back=14, output="squared"),
        PANEL,
        steps,
        ask=each_as_table,
    ),
    "forecast, linear": Row(
        lambda: _forecaster(family="linear", output="auto", difference=12), SERIES, steps, ask=each
    ),
    "forecast, segments": Row(
        lambda: _forecaster(family="segment", segment=6), SERIES, steps, ask=each
    ),
}


@dataclass
class Made:
    """A row's model, what is to be written of it, and what Python answers."""

    model: Any
    traced: TracedModel
    expected: list[dict[str, Any]] = field(default_factory=list)


@cache
def made(name: str) -> Made:
    row = ROWS[name]
    model = row.make()
    expected = row.expected_answers(model, row.questions)
    return Made(model, TracedModel(model.task.exported(model)), expected)


# --- asked in other processes --------------------------------------------------------------------

# Neither torch nor Ensue can be imported.
ALONE = """
import sys
sys.modules["torch"] = sys.modules["ensue"] = None
sys.path.insert(0, sys.argv[1])
import json, numpy, predict
def question(row):
    return numpy.array(row["data"]).reshape(row["shape"]) if "shape" in row else row
questions = [question(row) if isinstance(row, dict) else row for row in json.load(sys.stdin)]
print(json.dumps(predict.answers(sys.argv[2], questions)))
"""
ANSWERS = """
import { readFileSync } from "node:fs";
const { answer, MODEL } = await import(process.argv[2]);
const [{ step, labels }] = MODEL.after;
const answers = JSON.parse(readFileSync(0, "utf8")).map((question) => {
    const { values, seen, ...outputs } = answer(question);
    const p = outputs.probabilities;
    if (step === "labels")
        outputs.probabilities = Object.fromEntries(labels.map((n, k) => [n, p[k]]));
    return { ...outputs, cut: values.tokens };
});
process.stdout.write(JSON.stringify(answers));
"""


def as_json(questions: Sequence[Any]) -> str:
    def plain(value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return value
        if value.dtype == np.uint8:
            return {"shape": list(value.shape), "data": value.ravel().tolist()}
        return value.tolist()

    return json.dumps([plain(question) for question in questions])


def in_onnx(folder: Path, questions: Sequence[Any]) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(folder), str(folder / "model.onnx")],
        input=as_json(questions),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers


def in_node(folder: Path, questions: Sequence[Any]) -> list[dict[str, Any]]:
    (folder / "main.mjs").write_text(ANSWERS)
    (folder / "model.mjs").write_text((folder / "model.js").read_text())
    done = subprocess.run(
        [node_program(), str(folder / "main.mjs"), str(folder / "model.mjs")],
        input=as_json(questions),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers


def check_answer(got: Any, expected: Any) -> float:
    """The same label or text; numbers within 1e-4, of their size where they are larger than 1.
    Gives the largest difference."""
    if isinstance(expected, dict):
        return max((check_answer(got[key], value) for key, value in expected.items()), default=0.0)
    if isinstance(expected, list):
        assert len(got) == len(expected)
        return max((check_answer(*both) for both in zip(got, expected, strict=True)), default=0.0)
    if not isinstance(expected, float):
        assert got == expected
        return 0.0
    difference = abs(got - expected) / max(1.0, abs(expected))
    assert difference <= 1e-4
    return difference
