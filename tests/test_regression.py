"""Linear, logistic and softmax regression; hand-made features; random-feature networks."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.linear_model
import torch
from torch import Tensor

from ensue.errors import DataError, OptionError, ShapeError
from ensue.layers.feedforward import MLP
from ensue.tasks.baselines.features import (
    Constant,
    CrossPolynomial,
    FeatureColumn,
    Features,
    MonthDistance,
    Polynomial,
    Weekday,
)
from ensue.tasks.baselines.regression import KINDS, RandomFeatures, Regression, least_squares
from ensue.tasks.codec import weights
from ensue.tasks.rows.fixed_width import RowSource
from ensue.training import TrainSettings

ROWS, WIDTH = 60, 3


def table(kind: str, seed: int = 0) -> tuple[Tensor, Tensor]:
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(ROWS, WIDTH))
    scores = x @ draw.normal(size=(WIDTH, 3)) + draw.normal(size=(ROWS, 3))
    y = {"linear": scores, "logistic": (scores > 0) * 1.0, "softmax": scores.argmax(1)}[kind]
    return torch.from_numpy(x), torch.from_numpy(y)


def settings(**overrides: object) -> TrainSettings:
    plain = {"optimiser": "sgd", "momentum": 0.0, "clip": "off", "rate": 0.1, "epochs": 400}
    return TrainSettings.of({**plain, **overrides})


def regression(kind: str) -> Regression:
    return Regression(WIDTH, 3, kind).double()


def gap(one: Regression, other: Regression) -> float:
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return max(float((a - b).detach().abs().max()) for a, b in pairs)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_read_back_from_its_arrays_it_is_the_same(kind: str, dtype: torch.dtype) -> None:
    x, y = table(kind)
    model = Regression(WIDTH, 3, kind).to(dtype)
    model.solve(x.to(dtype), y.to(dtype) if y.is_floating_point() else y, 0.1)
    form = weights(lambda _: Regression(WIDTH, 3, kind))
    again = form.made(form.of(model), None)
    assert again.weight.dtype == dtype
    assert torch.equal(again.answers(x.to(dtype)), model.answers(x.to(dtype)))


# --- the minimum, found in several ways ------------------------------------------------------


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_the_closed_form_is_that_of_scikit_learn(ridge: float) -> None:
    x, y = table("linear")
    weight, bias = least_squares(x, y, ridge)
    other = sklearn.linear_model.Ridge(alpha=max(ridge * ROWS, 1e-12)).fit(x.numpy(), y.numpy())
    np.testing.assert_allclose(weight.numpy(), other.coef_, atol=1e-8)
    np.testing.assert_allclose(bias.numpy(), other.intercept_, atol=1e-8)


def test_the_closed_form_is_a_minimum_where_columns_depend_on_one_another() -> None:
    x, y = table("linear")
    x = torch.cat([x, x[:, :1] + x[:, 1:2]], 1)
    weight, bias = least_squares(x, y)
    rest = y - x @ weight.t() - bias
    assert float((rest.t() @ x).abs().max()) < 1e-10  # nothing is left that x could explain
    assert float(rest.mean(0).abs().max()) < 1e-12


def test_gradient_descent_finds_the_closed_form() -> None:
    x, y = table("linear")
    solved = regression("linear").solve(x, y)
    walked = regression("linear")
    walked.descend(x.numpy(), y.numpy(), settings(rate=0.5))
    assert gap(solved, walked) < 1e-6


@pytest.mark.parametrize("kind", ["logistic", "softmax"])
def test_gradient_descent_finds_what_solve_finds(kind: str) -> None:
    x, y = table(kind)
    solved = regression(kind).solve(x, y, ridge=0.1)
    walked = regression(kind)
    walked.descend(x.numpy(), y.numpy(), settings(l2=0.1, rate=1.0))
    assert gap(solved, walked) < 1e-5


def test_solve_is_the_regression_of_scikit_learn() -> None:
    x, y = table("softmax")
    model = regression("softmax").solve(x, y, ridge=0.1)
    other = sklearn.linear_model.LogisticRegression(C=1 / (0.1 * ROWS), tol=1e-10, max_iter=2000)
    probabilities = other.fit(x.numpy(), y.numpy()).predict_proba(x.numpy())
    with torch.no_grad():
        np.testing.assert_allclose(model.answers(x).numpy(), probabilities, atol=1e-5)


# --- one objective, whatever the batch -------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch_rows", [1, 10, None])
def test_the_gradient_of_the_mean_is_the_mean_of_gradients(
    kind: str, batch_rows: int | None
) -> None:
    x, y = table(kind)
    model = regression(kind)
    torch.nn.init.normal_(model.weight)
    source = RowSource({"x": x.numpy(), "y": y.numpy()}, seed=1, batch_rows=batch_rows)
    whole = torch.autograd.grad(model.costs(x, y).mean(), model.weight)[0]
    total = torch.zeros_like(whole)
    for rows in source.batches(0):
        cost, _ = model(source.batch(rows), {})
        total += torch.autograd.grad(cost, model.weight)[0] / ROWS
    torch.testing.assert_close(total, whole)


@pytest.mark.parametrize("batch_rows", [1, 16])
def test_smaller_batches_go_to_the_same_place(batch_rows: int) -> None:
    x, y = table("linear")
    solved = regression("linear").solve(x, y)
    model = regression("linear")
    epochs = 8 if batch_rows == 1 else 60
    train_settings = settings(epochs=epochs, rate=0.02, schedule="linear")
    model.descend(x.numpy(), y.numpy(), train_settings, batch_rows)
    with torch.no_grad():
        cost, best = (float(one.costs(x, y).mean()) for one in (model, solved))
        start = float(regression("linear").costs(x, y).mean())
    assert cost - best < 0.02 * (start - best)


def test_every_row_is_in_one_batch_of_an_epoch() -> None:
    source = RowSource({"x": np.zeros((10, 1))}, seed=3, batch_rows=4)
    for epoch in range(2):
        assert sorted(np.concatenate(source.batches(epoch)).tolist()) == list(range(10))
    assert [len(b) for b in RowSource({"x": np.zeros((5, 1))}, seed=3).batches(0)] == [5]
    assert np.concatenate(source.batches(0)).tolist() != np.concatenate(source.batches(1)).tolist()


def test_wrong_regressions_are_told() -> None:
    x, y = table("linear")
    cases: dict[str, object] = {
        "unknown kind of regression 'linar'": lambda: Regression(1, 1, "linar"),
        "ridge: expected a number ≥ 0, got -1": lambda: least_squares(x, y, -1),
        "learned ones have no closed form, use descend": lambda: Regression(
            3, 3, features=MonthDistance(0, learned=True)
        ).solve(x, y),
    }
    for message, make in cases.items():
        with pytest.raises(OptionError) as error:
            make()  # type: ignore[operator]
        assert message in str(error.value)
    with pytest.raises(ShapeError, match=r"one or more, got \(60, 3\) and \(60,\)"):
        least_squares(x, y[:, 0])
    with pytest.raises(DataError, match="expected rows and a target for each, got 60 and 59"):
        regression("linear").descend(x.numpy(), y[1:].numpy())


# --- features --------------------------------------------------------------------------------


def test_features_side_by_side() -> None:
    x = torch.tensor([[2.0, 12.0, 6.0], [-1.0, 1.0, 0.0]], dtype=torch.float64)
    features = Features(
        [Constant(), FeatureColumn(0), Polynomial(0, 3), MonthDistance(1, 1.0), Weekday(2)]
    )
    assert features.width == 13
    days = torch.eye(7, dtype=torch.float64)[[6, 0]]
    front = torch.tensor([[1, 2, 2, 4, 8, 1], [1, -1, -1, 1, -1, 0]], dtype=torch.float64)
    torch.testing.assert_close(features(x), torch.cat([front, days], 1))
    torch.testing.assert_close(features(x[None]).squeeze(0), features(x))


def test_months_lie_on_a_circle() -> None:
    months = torch.arange(1.0, 13.0)[:, None]
    distances = MonthDistance(0, 7.0)(months)[:, 0].tolist()
    assert distances == [6, 5, 4, 3, 2, 1, 0, 1, 2, 3, 4, 5]
    for alpha in (0.5, 6.5, 11.9):
        around = MonthDistance(0, alpha)
        torch.testing.assert_close(around(months), around(months + 12))
        assert float(around(months).max()) <= 6


def test_alpha_is_learned() -> None:
    """Sales peak at month 8.3; descent moves α there, along with its weight."""
    months = torch.arange(1.0, 13.0, dtype=torch.float64)[:, None]
    y = 10 - 1.5 * MonthDistance(0, 8.3).double()(months)
    model = Regression(1, 1, features=MonthDistance(0, 6.5, learned=True)).double()
    with torch.no_grad():  # far from the other optimum, half a year away with the sign turned
        model.weight.fill_(-1.0)
        model.bias.fill_(9.0)
    model.descend(months.numpy(), y.numpy(), settings(rate=0.1, epochs=500))
    assert float(model.features.alpha.detach()) == pytest.approx(8.3, abs=0.02)  # type: ignore[union-attr,arg-type]
    x = torch.tensor([[2.2], [9.7]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(model.features, (x,))


def test_wrong_features_are_told() -> None:
    with pytest.raises(DataError, match=r"weekday: expected a whole number 0 … 6, got 7"):
        Weekday(0)(torch.tensor([[7.0]]))
    with pytest.raises(OptionError, match="degree: expected a whole number ≥ 1, got 0"):
        Polynomial(0, 0)
    with pytest.raises(OptionError, match="features: expected one transform or more, got none"):
        Features([])


def test_features_bring_what_a_line_lacks() -> None:
    x = torch.linspace(-1, 1, 30, dtype=torch.float64)[:, None]
    y = 2 * x**2 - 0.5 * x
    plain = Regression(1, 1).double().solve(x, y)
    squared = Regression(1, 1, features=Polynomial(0, 2)).double().solve(x, y)
    with torch.no_grad():
        assert float(squared.costs(x, y).mean()) < 1e-20 < float(plain.costs(x, y).mean())


# --- random features -------------------------------------------------------------------------


def test_random_features_leave_the_first_layer_alone() -> None:
    x, y = table("linear")
    model = RandomFeatures(WIDTH, 20, 3, seed=4).double()
    first = model.network.layers[0].weight.clone()
    model.solve(x, y)
    assert torch.equal(first, model.network.layers[0].weight)
    assert not model.network.layers[0].weight.requires_grad
    weight, bias = least_squares(model.features(x), y)
    torch.testing.assert_close(model(x).detach(), model.features(x) @ weight.t() + bias)
    same = RandomFeatures(WIDTH, 20, 3, seed=4).double()
    assert torch.equal(first, same.network.layers[0].weight)


def test_enough_random_features_fit_every_training_row() -> None:
    x, y = table("linear")
    model = RandomFeatures(WIDTH, 200, 3, seed=1).double().solve(x, y)
    assert float((model(x) - y).detach().abs().max()) < 1e-6
    assert isinstance(model.network, MLP)
    with pytest.raises(OptionError, match=r"scale: expected a number > 0, got 0"):
        RandomFeatures(1, 2, 1, scale=0)


def test_cross_terms_are_learned_by_the_closed_form() -> None:
    """y = x₀·x₁ − x₁², which powers of single columns cannot be."""
    x = torch.randn(60, 2, dtype=torch.float64, generator=torch.manual_seed(1))
    y = x[:, :1] * x[:, 1:] - x[:, 1:] ** 2
    crossed = CrossPolynomial([0, 1], 2)
    assert crossed.width == 5
    model = Regression(2, 1, features=crossed).double()
    model.solve(x, y)
    assert model.weight[0].tolist() == pytest.approx([0, 0, 0, 1, -1], abs=1e-9)
    with pytest.raises(OptionError, match="expected a degree ≥ 1 and one column or more"):
        CrossPolynomial([], 2)
