"""What answers rest on: every number again by finite differences, by asking again, or by hand."""

import copy
import json
import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from commands import Ensue, commands_in
from torch import Tensor, nn
from toy_runs import toy_run

from ensue import Classifier, Labeller, Matcher, Regressor, load
from ensue.cells import CELLS
from ensue.data.ragged import Ragged
from ensue.errors import EnsueError
from ensue.layers import Recurrent
from ensue.runs.load import load_run
from ensue.tasks.baselines.contributions import ngram_contributions, text_contributions
from ensue.tasks.baselines.linear import LinearModel, Ngrams
from ensue.tasks.baselines.text_features import Texts
from ensue.tasks.baselines.text_linear import TextLinear, fit_text_linear
from ensue.tasks.explaining.attribution import Attributions
from ensue.tasks.explaining.methods import NEVER_SEEN, gradient_times_input, integrated_gradients
from ensue.tasks.label.predicted import answering_of, columns_of
from ensue.tasks.reader import QuestionFiles
from ensue.tasks.rows.batch import SequenceBatch, collate
from ensue.tasks.rows.part import texts_of
from ensue.training import RunFolder

CLASSES = [
    "classify-words",
    "classify-characters",
    "classify-convolution",
    "classify-ngrams",
    "classify-several",
    "classify-transformer",
    "classify-vectors",
    "classify-long-table",
]
LABELS = ["label-crf", "label-previous", "label-spans", "label-stepwise"]
OWN_CELL = """
from ensue.cells import Cell
from ensue.equations import Matrix, Vector, sigmoid, tanh


class UpdateCell(Cell):
    W, U, b = Matrix("x", "un"), Matrix("h", "un"), Vector("un")

    def step(self, x, h):
        u = sigmoid(self.W.u @ x + self.U.u @ h + self.b.u)
        return (1 - u) * h + u * tanh(self.W.n @ x + self.U.n @ (u * h) + self.b.n)
"""
TEXTS = [
    (f"the {who} {does} a {what} day", kind)
    for who in ("dog", "cat", "bird", "man")
    for does in ("has", "sees", "wants")
    for what, kind in (("fine", "good"), ("dull", "bad"), ("great", "good"), ("cold", "bad"))
]
STEPS = 1e-4  # of finite differences


# --- models --------------------------------------------------------------------------------------


def small(**more: Any) -> dict[str, Any]:
    return {"hidden_size": 6, "embedding_size": 5, "bidirectional": True, **more}


@pytest.fixture(scope="module")
def own_cell(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("cell") / "own.py"
    path.write_text(OWN_CELL)
    return f"{path}:UpdateCell"


@pytest.fixture(scope="module")
def mixed(own_cell: str) -> Classifier:
    """Two networks of a custom cell, and a linear model next to them."""
    settings = small(cell=own_cell, linear="mixed", pooling="mean")
    return Classifier(model=settings, train={"epochs": 3, "rate": 0.05}, members=2).fit(TEXTS)


@cache
def model_of(name: str) -> Any:
    return load_run(RunFolder(toy_run(name) / "run"))


@cache
def question(name: str) -> Any:
    """The first input of a run that has more than two steps: tokens, or vectors."""
    config, model = model_of(name)
    (file,) = toy_run(name).glob("input.*")
    for questions in model.reader.question_files(QuestionFiles([str(file)], config.data)):
        for row in range(len(questions.part)):
            steps = questions.part.inputs.row(row)
            if len(steps) > 2:
                if not questions.part.texts:
                    return steps
                names = questions.part.numbers.token_names
                return [names[k] for k in steps][:8]
    raise AssertionError(name)


def doubled(network: nn.Module) -> nn.Module:
    return copy.deepcopy(network).double().eval()


def batch_of(model: Any, sample: Any, rows: int) -> SequenceBatch:
    part = model.reader.questions([sample])
    if isinstance(model, Labeller):
        columns = model.learned.columns(part, model.text, model.settings)
    else:
        columns = model.learned.input.encode(part, model)
    batch = collate(columns, [0] * rows)
    if "vectors" in batch.inputs:
        batch.inputs["vectors"] = batch.inputs["vectors"].double()
    return batch


def odds(p: Any, label: int) -> Any:
    """Of probabilities (…, labels)."""
    rest = p.sum(-1) - p[..., label]
    return (p[..., label] / rest).log() if isinstance(p, Tensor) else np.log(p[..., label] / rest)


def labels_of(model: Any) -> Any:
    learned = model.learned
    return learned.labels.tokens if isinstance(model, Labeller) else learned.target.labels.tokens


def embedding(network: Any) -> nn.Module:
    """Of a network for whole rows, or for each step."""
    layer: nn.Module = getattr(network, "reader", network).embed
    return layer


Outputs = Callable[[Tensor], Tensor]  # x (time, rows, width) → (rows, answers)


def outputs_of(model: Any, network: nn.Module, sample: Any, attributions: Attributions) -> Outputs:
    """The log-odds of what was explained, by a network that is made to see x."""

    def outputs(x: Tensor) -> Tensor:
        batch = batch_of(model, sample, x.shape[1])
        hook = embedding(network).register_forward_hook(lambda *arguments: x)
        names = labels_of(model)
        with torch.no_grad():
            if attributions.answers[0].step is None:
                z = network.scores(batch) / model.learned.temperature
                several = getattr(model.settings, "several", False)
                values = [
                    z[:, names.index(answer.answer)]
                    if several
                    else odds(z.softmax(-1), names.index(answer.answer))
                    for answer in attributions.answers
                ]
            else:
                # the labels that a step is given are those of the answer
                labels = torch.tensor(
                    [names.index(answer.answer) for answer in attributions.answers]
                )
                encoded, _ = network.encoder(x, batch.lengths)
                p = network.output.probabilities(
                    encoded, batch.lengths, labels[:, None].expand(-1, x.shape[1])
                )
                values = [odds(p[k], int(label)) for k, label in enumerate(labels)]
        hook.remove()
        return torch.stack(values, 1)

    return outputs


def slopes(f: Outputs, x: Tensor, directions: Tensor) -> Tensor:
    """Central differences of f (rows, answers) along directions (time, rows, width): one for each
    step alone, (rows, answers, time)."""
    slopes_of_units = []
    for t in range(len(x)):
        step = torch.zeros_like(x)
        step[t] = STEPS * directions[t]
        slopes_of_units.append((f(x + step) - f(x - step)) / (2 * STEPS))
    return torch.stack(slopes_of_units, -1)


EVERY = pytest.mark.parametrize("name", CLASSES + LABELS)


# --- gradients -----------------------------------------------------------------------------------


def check_gradient(model: Any, sample: Any) -> None:
    attributions = model.explain(sample, method="gradient")
    scores, output = [], []
    for network in map(doubled, model.networks):
        f = outputs_of(model, network, sample, attributions)
        x = embedding(network)(batch_of(model, sample, 1).inputs).detach()
        scores.append(slopes(f, x, x)[0])
        output.append(f(x)[0])
    attribution_scores = torch.tensor([answer.scores for answer in attributions.answers])
    expected = torch.stack(scores).mean(0)
    torch.testing.assert_close(
        attribution_scores.double(), expected, rtol=1e-4, atol=1e-6, check_dtype=False
    )
    torch.testing.assert_close(
        torch.tensor([answer.output for answer in attributions.answers]).double(),
        torch.stack(output).mean(0),
        rtol=1e-6,
        atol=1e-7,
        check_dtype=False,
    )


@EVERY
def test_gradient_times_input_is_the_slope_along_each_step(name: str) -> None:
    check_gradient(model_of(name)[1], question(name))


def test_gradients_of_an_own_cell_are_the_mean_of_the_members(mixed: Classifier) -> None:
    check_gradient(mixed, TEXTS[0][0].split())


@pytest.mark.parametrize("ngrams", [0, 2])
def test_a_network_that_answers_alone_is_explained_as_it_answers(ngrams: int) -> None:
    """Its scores are divided by a temperature, which explanations had left out."""
    settings = small(linear="alone", ngrams=ngrams)
    model = Classifier(model=settings, train={"epochs": 3, "rate": 0.05}).fit(TEXTS)
    model._learned = replace(model.learned, temperature=2.5)
    tokens = TEXTS[0][0].split()
    (answer,) = model.predict([tokens])
    expected = math.log(answer.probability / (1 - answer.probability))
    for method in ("occlusion", "gradient", "integrated"):
        attributions = model.explain(tokens, method=method)
        assert attributions.answers[0].output == pytest.approx(expected, abs=1e-5)
        assert bool(attributions.linear) == (bool(ngrams) and method != "occlusion")
        if attributions.linear:
            side = model.networks[0].side(batch_of(model, tokens, 1))[0]
            first, second = side.tolist()
            number = labels_of(model).index(answer.label)
            apart = (first - second) * (1 if number == 0 else -1) / 2.5
            assert sum(attributions.linear[0].scores) == pytest.approx(apart, abs=1e-5)
    check_gradient(model, tokens)


def integral(
    model: Any, network: nn.Module, sample: Any, attributions: Attributions, x0: Tensor
) -> Tensor:
    """(answers, steps), by the midpoints of many pieces and finite differences."""
    pieces = 200
    x = embedding(network)(batch_of(model, sample, 1).inputs).detach()
    at = ((torch.arange(pieces) + 0.5) / pieces).double()[:, None]
    points = x0 + at * (x - x0)  # (time, pieces, width)
    f = outputs_of(model, network, sample, attributions)
    return slopes(f, points, (x - x0).expand_as(points)).mean(0)


KINKS = 1e-2  # the mean of a slope that jumps, by few points of either kind
BOUNDS = {
    "label-crf": 1e-4,
    "label-previous": 1e-4,
    "classify-words": KINKS,
    "classify-vectors": KINKS,
    "classify-transformer": KINKS,
    "classify-convolution": KINKS,
}


@pytest.mark.parametrize("name", BOUNDS)
def test_integrated_gradients_are_the_integral(name: str) -> None:
    model, inputs = model_of(name)[1], question(name)
    zero = {"baseline": "padding"} if isinstance(inputs, list) else {"baseline": "mean"}
    attributions = model.explain(inputs, method="integrated", **zero)
    network = doubled(model.networks[0])
    x = embedding(network)(batch_of(model, inputs, 1).inputs).detach()
    expected = integral(model, network, inputs, attributions, torch.zeros_like(x))
    scores = torch.tensor([answer.scores for answer in attributions.answers]).double()
    assert float((scores - expected).abs().max()) <= BOUNDS[name] * float(expected.abs().max())
    f = outputs_of(model, network, inputs, attributions)
    for k, answer in enumerate(attributions.answers):
        assert answer.output == pytest.approx(float(f(x)[0, k]), abs=1e-7)
        assert answer.reference == pytest.approx(float(f(torch.zeros_like(x))[0, k]), abs=1e-7)


@EVERY
def test_integrated_gradients_are_complete_but_for_the_error_that_is_told(name: str) -> None:
    model, inputs = model_of(name)[1], question(name)
    attributions = model.explain(inputs, method="integrated")
    for answer in attributions.answers:
        assert answer.reference is not None
        assert answer.error is not None
        change = answer.output - answer.reference
        assert abs(sum(answer.scores) - change) == pytest.approx(answer.error, abs=1e-9)
        assert answer.error <= 1e-3 * max(abs(change), 1e-3) or attributions.points == 256
        assert answer.error <= 0.02 * max(abs(change), 0.1)


def test_the_unknown_baseline_is_a_text_of_words_never_seen(mixed: Classifier) -> None:
    tokens = TEXTS[0][0].split()
    attributions = mixed.explain(tokens, method="integrated")
    nothing = mixed.explain(
        [NEVER_SEEN] * len(tokens), method="gradient", label=attributions.answers[0].answer
    )
    assert attributions.answers[0].reference == pytest.approx(nothing.answers[0].output, abs=1e-9)
    assert attributions.baseline == "as many tokens that training never saw"


@pytest.mark.parametrize("cell", CELLS)
def test_every_cell_is_explained(cell: str) -> None:
    """Gradient × input by finite differences, the integral by its completeness."""
    torch.manual_seed(1)
    layer = Recurrent(cell, 3, 4, bidirectional=True).double()
    x, x0 = (torch.randn(4, 1, 3, dtype=torch.float64) for _ in range(2))

    def f(sides: tuple[Tensor, ...]) -> Tensor:
        y, _ = layer(sides[0])
        return torch.stack([y[-1, :, 0], y.sum((0, 2))], 1)

    with torch.no_grad():
        expected = slopes(lambda inputs: f((inputs,)), x, x)[0]
    torch.testing.assert_close(gradient_times_input(f, (x,)).scores, expected, rtol=1e-5, atol=1e-7)
    attribution = integrated_gradients(f, (x,), (x0,))
    change = attribution.output - attribution.reference
    torch.testing.assert_close(attribution.scores.sum(1), change, rtol=1e-3, atol=1e-6)


def test_a_linear_function_has_its_terms() -> None:
    """w·x of each step, and w·(x − x̄), whatever the method."""
    w, x, x0 = (torch.randn(4, 1, 3, dtype=torch.float64) for _ in range(3))

    def f(sides: tuple[Tensor, ...]) -> Tensor:
        return (w * sides[0]).sum((0, 2))[:, None] + 2 * sides[1].sum((0, 2))[:, None]

    sides, start = (x, x0[:2]), (x0, x[:2])
    terms = torch.cat([(w * x).sum((1, 2)), 2 * x0[:2].sum((1, 2))])
    torch.testing.assert_close(gradient_times_input(f, sides).scores[0], terms)
    attribution = integrated_gradients(f, sides, start)
    apart = torch.cat([(w * (x - x0)).sum((1, 2)), 2 * (x0[:2] - x[:2]).sum((1, 2))])
    torch.testing.assert_close(attribution.scores[0], apart)
    assert float(attribution.error[0]) < 1e-12


# --- occlusion -----------------------------------------------------------------------------------


def answered(model: Any, inputs: list[Any], attributions: Attributions) -> np.ndarray:
    """(inputs, answers): the log-odds of what was explained, by asking."""
    rows = []
    for answer in model.predict(inputs):
        if attributions.measure == "value":
            rows.append([answer.value])
            continue
        p = [answer.probabilities[explained.answer] for explained in attributions.answers]
        rows.append([math.log(probability / (1 - probability)) for probability in p])
    return np.array(rows)


def without(steps: Any) -> list[Any]:
    """The input without each of its steps."""
    if isinstance(steps, list):
        return [steps[:k] + steps[k + 1 :] for k in range(len(steps))]
    return [np.delete(steps, k, 0) for k in range(len(steps))]


@pytest.mark.parametrize("name", CLASSES)
def test_occlusion_is_asking_without_each_step(name: str) -> None:
    model, inputs = model_of(name)[1], question(name)
    check_occlusion(model, inputs)


def check_occlusion(model: Any, sample: Any) -> None:
    attributions = model.explain(sample)
    whole, rest = (
        answered(model, [sample], attributions),
        answered(model, without(sample), attributions),
    )
    scores = np.array([answer.scores for answer in attributions.answers])
    np.testing.assert_allclose(scores, (whole - rest).T, rtol=1e-4, atol=2e-5)
    assert [answer.output for answer in attributions.answers] == pytest.approx(whole[0], abs=1e-5)


def test_occlusion_is_of_the_mixture(mixed: Classifier) -> None:
    tokens = TEXTS[1][0].split()
    check_occlusion(mixed, tokens)
    attributions = mixed.explain(tokens, baseline="unknown")
    replaced = [[*tokens[:k], NEVER_SEEN, *tokens[k + 1 :]] for k in range(len(tokens))]
    change = answered(mixed, [tokens], attributions) - answered(mixed, replaced, attributions)
    np.testing.assert_allclose([attributions.answers[0].scores], change.T, rtol=1e-4, atol=2e-5)
    assert attributions.of.startswith("the whole answer (network and linear model, weights")


@pytest.mark.parametrize("name", LABELS)
def test_occlusion_of_labels_replaces_each_word(name: str) -> None:
    model, inputs = model_of(name)[1], question(name)
    attributions = model.explain(inputs)
    names = model.learned.labels.tokens

    def marginals(tokens: list[str]) -> np.ndarray:
        part = model.reader.questions([tokens])
        return answering_of(part, model).predicted(columns_of(part, model))[1]

    whole = marginals(inputs)
    for k in range(len(inputs)):
        other = marginals([*inputs[:k], NEVER_SEEN, *inputs[k + 1 :]])
        for t, explained in enumerate(attributions.answers):
            label = names.index(explained.answer)
            change = odds(whole[t], label) - odds(other[t], label)
            assert explained.scores[k] == pytest.approx(change, rel=1e-3, abs=1e-4)
    assert [explained.answer for explained in attributions.answers] == list(
        model.predict([inputs])[0].labels
    )


# --- the linear model ----------------------------------------------------------------------------


def test_ngrams_are_shared_by_their_words() -> None:
    """a b a: "a" stands twice, "a b" and "b a" once; by hand."""
    rows = Ragged.of([[1, 2, 1]], np.int32)
    ngrams, _ = Ngrams.listed(rows, 2)
    weights = np.arange(len(ngrams), dtype=np.float32)[:, None] + 1
    spelled = {ngrams.spelled(k): float(weights[k, 0]) for k in range(len(ngrams))}
    model = LinearModel(ngrams, weights, np.zeros(1, np.float32), True)
    contributions = ngram_contributions(
        ngrams, weights, Texts(["", "a", "b"], rows), np.ones((1, 1))
    )
    a, b, ab, ba = (spelled[ngram] for ngram in ((1,), (2,), (1, 2), (2, 1)))
    expected = [a / 2 + ab / 2, b + ab / 2 + ba / 2, a / 2 + ba / 2]
    np.testing.assert_allclose(contributions.by_word[:, 0], expected)
    assert contributions.by_word.sum() == pytest.approx(float(model.scores(rows)[0, 0]))
    assert {name: float(v[0]) for name, v in contributions.features.items()} == pytest.approx(
        {"a": a, "b": b, "a b": ab, "b a": ba}
    )


def test_each_feature_counts_for_what_is_lost_without_its_weight() -> None:
    words = sorted({word for text, _ in TEXTS for word in text.split()})
    numbers = [[words.index(word) for word in text.split()] for text, _ in TEXTS]
    texts = Texts(words, Ragged.of(numbers, np.int32))
    targets = np.array([kind == "good" for _, kind in TEXTS]).astype(np.int64)
    model = fit_text_linear(texts, texts, np.concatenate([targets, targets]), 2).model
    one = Texts(words, Ragged.of([[*numbers[0], numbers[0][0]]], np.int32))
    direction = np.array([[-1.0], [1.0]])
    contributions = text_contributions(model, one, direction)
    whole = (model.scores(one).numpy() @ direction).item()
    bias = float(model.bias @ direction[:, 0])
    assert bias + contributions.by_word.sum() == pytest.approx(whole, abs=1e-5)
    losses = []
    for column in model.features.matrix(one).columns.row(0):
        weights = model.weights.copy()
        weights[column] = 0
        less = TextLinear(model.features, weights, model.bias)
        losses.append(whole - (less.scores(one).numpy() @ direction).item())
    values = [float(value[0]) for value in contributions.features.values()]
    np.testing.assert_allclose(sorted(values), sorted(losses), atol=2e-6, rtol=1e-5)  # of float32


def test_the_linear_model_of_an_answer_is_told_exactly(mixed: Classifier) -> None:
    tokens = TEXTS[0][0].split()
    attributions = mixed.explain(tokens, method="gradient")
    (linear,), (answer,) = attributions.linear, attributions.answers
    part = mixed.reader.questions([tokens])
    scores = mixed.learned.linear.model.scores(texts_of(part))[0]
    number = labels_of(mixed).index(answer.answer)
    assert linear.output == pytest.approx(float(scores[number] - scores[1 - number]), abs=1e-5)
    assert linear.output == pytest.approx(linear.bias + sum(linear.scores), abs=1e-9)
    assert attributions.linear_measure == "log-odds"
    assert attributions.of.startswith("the mean of the 2 networks alone, not of the whole answer")


def test_the_linear_chain_is_told_exactly() -> None:
    rows = [(text.split(), ["D", "N", "V", "D", "A", "N"]) for text, _ in TEXTS]
    model = Labeller(model=small(), train={"epochs": 1}).fit(rows)
    tokens = TEXTS[0][0].split()
    attributions = model.explain(tokens, method="gradient")
    part = model.reader.questions([tokens])
    linear = answering_of(part, model).linear
    chain = linear.chain(part.inputs)
    for linear_answer in attributions.linear:
        t, label = linear_answer.step - 1, model.learned.labels.tokens.index(linear_answer.answer)
        follow = torch.from_numpy(linear.linear.follow[0])
        e = chain.first[0] - torch.from_numpy(linear.linear.first)
        if t:
            e = chain.pair(t)[0, 0] - follow
        others = (e.sum() - e[label]) / (len(e) - 1)
        assert linear_answer.output == pytest.approx(float(e[label] - others), abs=1e-4)
        assert linear_answer.output == pytest.approx(
            linear_answer.bias + sum(linear_answer.scores), abs=1e-9
        )


def test_numbers_and_pairs_are_explained() -> None:
    """Values by asking; completeness of both sides together."""
    numbers = [(text, float(len(text)) + (kind == "good")) for text, kind in TEXTS]
    train = {"epochs": 1}
    model = Regressor(model=small(linear="mixed"), train=train).fit(numbers)
    tokens = TEXTS[0][0].split()
    check_occlusion(model, tokens)
    attributions = model.explain(tokens, method="integrated")
    explained = attributions.answers[0]
    assert explained.error <= 0.02 * max(abs(explained.output - explained.reference), 0.1)
    part = model.reader.questions([tokens])
    value = model.learned.linear.scores(part)
    target = model.learned.target
    assert attributions.linear[0].output == pytest.approx(
        float(value) * target.spread + target.mean, 1e-5
    )
    pairs = [((text, "a " + kind), kind) for text, kind in TEXTS]
    matcher = Matcher(model=small(), train=train).fit(pairs)
    pair = (tokens, ["a", "good"])
    attributions = matcher.explain(pair)
    assert attributions.tokens == (*tokens, "a", "good")
    assert attributions.sides == (6, 2)
    rest = [(first_text, pair[1]) for first_text in without(tokens)] + [
        (tokens, second_text) for second_text in without(pair[1])
    ]
    change = answered(matcher, [pair], attributions) - answered(matcher, rest, attributions)
    np.testing.assert_allclose([attributions.answers[0].scores], change.T, rtol=1e-3, atol=2e-5)
    attributions = matcher.explain(pair, method="integrated", baseline="padding")
    explained = attributions.answers[0]
    assert abs(sum(explained.scores) - (explained.output - explained.reference)) == pytest.approx(
        explained.error, abs=1e-9
    )


# --- the command ---------------------------------------------------------------------------------


@pytest.fixture
def ensue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ensue:
    return commands_in(tmp_path, capsys, monkeypatch)


def run_of(name: str) -> str:
    return str(toy_run(name) / "run")


def test_explanations_as_text_picture_page_and_json(ensue: Ensue, tmp_path: Path) -> None:
    text = " ".join(question("classify-words"))
    command = ("explain", run_of("classify-words"), "--text", text)
    code, out, err = ensue(
        *command, "--method", "integrated", "--picture", "a.svg", "--html", "a.html"
    )
    assert code == 0, err
    assert "wrote a.svg" in err
    assert "wrote a.html" in err
    assert "integrated gradients, baseline: as many tokens that training never saw" in out
    assert "completeness error" in out
    assert "\x1b" not in out
    svg = (tmp_path / "a.svg").read_text("utf-8")
    assert svg in (tmp_path / "a.html").read_text("utf-8")
    facts = json.loads(ensue(*command, "--json")[1])
    assert facts["method"] == "occlusion"
    model = load(run_of("classify-words"))
    attributions = model.explain(text)
    assert facts["answers"][0]["scores"] == pytest.approx(attributions.answers[0].scores)
    coloured = attributions.as_text(60, colour=True)
    assert "\x1b[38;5;231;48;5;" in coloured
    assert attributions._repr_html_().count("<svg") == 1


def test_rows_of_files_are_explained(ensue: Ensue) -> None:
    """Vectors have no other way in."""
    (file,) = toy_run("classify-vectors").glob("input.*")
    command = ("explain", run_of("classify-vectors"), "--file", str(file))
    facts = json.loads(ensue(*command, "--row", "2", "--json")[1])
    assert facts["tokens"][:2] == ["1", "2"]
    assert facts["baseline"] == "each step left out"
    code, _, err = ensue(*command, "--row", "999")
    assert code == 2
    assert "--row: expected a row of" in err


def test_one_step_and_another_label(ensue: Ensue) -> None:
    text = " ".join(question("label-crf"))
    label = model_of("label-crf")[1].learned.labels.tokens[0]
    command = ("explain", run_of("label-crf"), "--text", text, "--json")
    facts = json.loads(ensue(*command, "--step", "2", "--label", label)[1])
    (explained,) = facts["answers"]
    assert (explained["step"], explained["answer"]) == (2, label)


def mistaken(ensue: Ensue, *words: str) -> str:
    """The error; a line on the age of the run may stand before it."""
    code, out, err = ensue(*words)
    assert (code, out) == (2, "")
    return err.splitlines()[-1]


def test_mistakes(ensue: Ensue, mixed: Classifier) -> None:
    words, crf = run_of("classify-words"), run_of("label-crf")
    vectors = run_of("classify-vectors")
    assert mistaken(ensue, "explain", words, "--text", "") == (
        "OptionError: explain: expected a text with at least one token, got none"
    )
    assert "unknown method 'gradients': did you mean 'gradient'?" in mistaken(
        ensue, "explain", words, "--text", "a", "--method", "gradients"
    )
    assert "unknown label 'x'" in mistaken(ensue, "explain", words, "--text", "a", "--label", "x")
    assert mistaken(ensue, "explain", words, "--text", "a", "--baseline", "padding") == (
        "OptionError: --baseline: expected left-out or unknown with this method of texts, got "
        "padding"
    )
    assert "expected none with --method gradient" in mistaken(
        ensue, "explain", words, "--text", "a", "--method", "gradient", "--baseline", "unknown"
    )
    assert "--step: expected a run of task label, got one of task classify" in mistaken(
        ensue, "explain", words, "--text", "a", "--step", "1"
    )
    assert "--step: expected a step from 1 to 2, got 3" in mistaken(
        ensue, "explain", crf, "--text", "the dog", "--step", "3"
    )
    assert "where each step has a label, got left-out" in mistaken(
        ensue, "explain", crf, "--text", "the dog", "--baseline", "left-out"
    )
    assert "expected sequences of vectors" in mistaken(ensue, "explain", vectors, "--text", "a b")
    assert "--layer: expected --attention as well" in mistaken(
        ensue, "explain", words, "--text", "a", "--layer", "1"
    )
    long = ["the"] * 1001
    with pytest.raises(EnsueError, match="at most 1,000 steps with --method occlusion"):
        mixed.explain(long)
    with pytest.raises(EnsueError, match="unknown word of explain 'methods'"):
        mixed.explain("a", methods="gradient")
