"""The loop and its parts: laws of optimisers, schedules, clipping, averaging, stopping."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import islice, pairwise
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close
from trainees import BATCH, ROWS, TIME, Fickle, Judge, Rows, build

from ensue.errors import ConfigError, OptionError, TrainingError
from ensue.training import (
    Began,
    Finished,
    Progress,
    TrainSettings,
    Update,
    Validated,
    find_rate,
    fit,
    train,
)
from ensue.training.gradients import clip, penalise
from ensue.training.optimiser import OPTIMISERS, Optimiser, plateau, scheduled_rate
from ensue.training.preflight import rehearse
from ensue.training.progress import Average, copy_of
from ensue.training.trainee import seeded

PER_EPOCH = ROWS // BATCH
TIGHT = {"rtol": 1e-6, "atol": 1e-7}


def settings(**values: Any) -> TrainSettings:
    return TrainSettings.of({"epochs": 2, "rate": 0.01, **values})


def weights_after(
    model: nn.Module, source: Rows, s: TrainSettings, judge: bool = False
) -> dict[str, Tensor]:
    list(train(model, source, Judge(model) if judge else None, s))
    return copy_of(model.state_dict())


def same(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[k], other[k]) for k in one)


# --- settings ------------------------------------------------------------------------------


def test_settings_are_read_back_from_their_table() -> None:
    for s in (TrainSettings(), settings(clip="off", check_every=5, averaging=0.9, patience=3)):
        assert TrainSettings.of(s.table()) == s
        assert None not in s.table().values()


KNOWN = f"Known: {', '.join(TrainSettings.model_fields)}"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"rate": -0.1}, "train.rate: expected a number > 0, got -0.1"),
        ({"epochs": 0}, "train.epochs: expected a number ≥ 1, got 0"),
        ({"epochs": "3"}, "train.epochs: expected a whole number, got '3'"),
        ({"epochs": True}, "train.epochs: expected a whole number, got True"),
        ({"momentum": 1.0}, "train.momentum: expected a number < 1, got 1.0"),
        ({"rate": math.nan}, "train.rate: expected a finite number, got nan"),
        ({"rate": "fast"}, "train.rate: expected a number, got 'fast'"),
        (
            {"optimiser": "adma"},
            f"train.optimiser: expected one of {', '.join(OPTIMISERS)}, got 'adma', "
            "did you mean 'adam'?",
        ),
        (
            {"betas": [0.9, 1.5]},
            "train.betas: expected two numbers, each 0 ≤ beta < 1, got [0.9, 1.5]",
        ),
        ({"raet": 1.0}, f"train.raet: unknown key, did you mean rate? {KNOWN}"),
        ({"zzz": 1.0}, f"train.zzz: unknown key. {KNOWN}"),
    ],
)
def test_a_wrong_setting_is_named(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        TrainSettings.of(values)
    assert str(caught.value) == message


def test_all_wrong_settings_are_named_together() -> None:
    with pytest.raises(ConfigError) as caught:
        TrainSettings.of({"rate": 0, "watch": "acuracy"})
    first, *rest = str(caught.value).splitlines()
    assert first == "2 problems in the settings"
    assert rest[0] == "  train.rate: expected a number > 0, got 0"
    assert rest[1].startswith("  train.watch: expected one of accuracy, cost, ")
    assert rest[1].endswith(", got 'acuracy', did you mean 'accuracy'?")


# --- schedules -----------------------------------------------------------------------------


def torchs_rates(kind: str, updates: int) -> list[float]:
    """The same schedule by torch.optim.lr_scheduler."""
    optimiser = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.01)
    schedulers = {
        "constant": lambda: torch.optim.lr_scheduler.ConstantLR(optimiser, 1.0),
        "linear": lambda: torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.0, updates),
        "cosine": lambda: torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, updates),
    }
    scheduler, rates = schedulers[kind](), []
    for _ in range(updates):
        rates.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        scheduler.step()
    return rates


@pytest.mark.parametrize("kind", ["constant", "linear", "cosine"])
def test_schedules_are_torchs(kind: str) -> None:
    s, updates = settings(schedule=kind), 17
    ours = [scheduled_rate(s, k, updates) for k in range(updates)]
    assert ours == pytest.approx(torchs_rates(kind, updates), rel=1e-9)


@pytest.mark.parametrize("kind", ["constant", "linear", "cosine", "inverse-sqrt", "plateau"])
def test_the_rate_grows_to_its_peak_and_never_beyond(kind: str) -> None:
    s = settings(schedule=kind, warmup=8)
    rates = [scheduled_rate(s, k, 40) for k in range(60)]  # also past the planned end
    assert rates[:8] == pytest.approx([0.01 * (k + 1) / 8 for k in range(8)])
    assert max(rates) == pytest.approx(0.01)
    assert all(a >= b >= 0 for a, b in pairwise(rates[8:]))
    assert all(rate > 0 for rate in rates[:40])


def test_inverse_sqrt_falls_with_the_root_of_the_update() -> None:
    s = settings(schedule="inverse-sqrt", warmup=4)
    assert scheduled_rate(s, 15, 99) == pytest.approx(0.01 / 2)
    assert scheduled_rate(s, 63, 99) == pytest.approx(0.01 / 4)


def test_plateaus_are_torchs() -> None:
    s = settings(schedule="plateau", decay=0.5, decay_patience=2)
    optimiser = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.01)
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimiser, factor=0.5, patience=2, threshold=0.0, eps=0.0
    )
    best: dict[str, float] | None = None
    factor, waited = 1.0, 0
    for score in [5, 4, 4, 4, 4, 4, 4, 4, 3, 3, 3, 3, 2, 3, 3, 3, 3, 3, 3]:
        improved = s.better({"cost": score}, best)
        best = {"cost": score} if improved else best
        factor, waited = plateau(s, factor, waited, improved)
        theirs.step(score)
        assert scheduled_rate(s, 0, 10, factor) == pytest.approx(optimiser.param_groups[0]["lr"])
    assert factor < 0.1


# --- optimisers ----------------------------------------------------------------------------


def torchs(name: str, model: nn.Module, decay: float) -> torch.optim.Optimizer:
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0}]
    if name == "sgd":
        return torch.optim.SGD(groups, lr=0.01, momentum=0.8)
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[name]
    return kind(groups, lr=0.01, betas=(0.8, 0.95))


@pytest.mark.parametrize("name", ["sgd", "adam", "adamw"])
def test_optimisers_are_torchs_without_decay_of_vectors(name: str) -> None:
    s = settings(optimiser=name, momentum=0.8, betas=[0.8, 0.95], weight_decay=0.1)
    ours, theirs = build("linear"), build("linear")
    optimiser, reference = Optimiser(ours.named_parameters(), s), torchs(name, theirs, 0.1)
    source = Rows()
    for rows in source.batches(0):
        for model in (ours, theirs):
            model.zero_grad()
            with seeded(1, 2, 3):
                model(source.batch(rows), {})[0].backward()
        optimiser.step(0.01)
        reference.step()
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert_close(one, other, **TIGHT)


# --- gradients -----------------------------------------------------------------------------


def with_gradients(*gradients: list[float]) -> list[Tensor]:
    parameters = [nn.Parameter(torch.zeros(len(g))) for g in gradients]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = torch.tensor(gradient)
    return list(parameters)


def test_clipping_keeps_the_direction_and_bounds_the_norm() -> None:
    parameters = with_gradients([3.0, 0.0], [0.0, 4.0])
    assert clip(parameters, 10.0) == 5.0
    assert parameters[1].grad.tolist() == [0.0, 4.0]  # below the bound nothing changes
    assert clip(parameters, 1.0) == 5.0
    assert_close(torch.cat([p.grad for p in parameters]), torch.tensor([0.6, 0, 0, 0.8]))
    assert clip(parameters, None) == pytest.approx(1.0)


def test_penalties_are_the_gradients_of_their_costs() -> None:
    s = settings(l1=0.3, l2=0.7)
    matrix, vector = nn.Parameter(torch.randn(3, 2)), nn.Parameter(torch.randn(4))
    matrix.grad, vector.grad = torch.zeros(3, 2), torch.zeros(4)
    penalise([matrix, vector], s)
    other = matrix.detach().clone().requires_grad_()
    (0.3 * other.abs().sum() + 0.35 * (other**2).sum()).backward()
    assert_close(matrix.grad, other.grad)
    assert vector.grad.abs().sum() == 0


def test_the_average_is_the_weighted_sum_of_all_weights() -> None:
    torch.manual_seed(0)
    history = [torch.randn(3) for _ in range(30)]
    average = Average({"w": history[0], "n": torch.tensor(0)}, 0.9)
    shares = [1.0]
    for n, weights in enumerate(history[1:], 1):
        average.include({"w": weights, "n": torch.tensor(n)}, n)
        decay = min(0.9, (1 + n) / (10 + n))
        shares = [share * decay for share in shares] + [1 - decay]
    assert sum(shares) == pytest.approx(1)
    expected = sum(share * weights for share, weights in zip(shares, history, strict=True))
    assert_close(average.weights["w"], expected, rtol=1e-5, atol=1e-6)
    assert average.weights["n"] == 29


# --- the loop ------------------------------------------------------------------------------


def test_rows_come_in_order() -> None:
    model = build("linear")
    rows = list(train(model, Rows(), Judge(model), settings()))
    assert rows[0] == Began(0, 2 * PER_EPOCH, "cost")
    updates = [row for row in rows if isinstance(row, Update)]
    assert [row.update for row in updates] == list(range(1, 2 * PER_EPOCH + 1))
    assert [row.epoch for row in updates] == [1] * PER_EPOCH + [2] * PER_EPOCH
    assert all(row.targets == BATCH for row in updates)
    evaluations = [row for row in rows if isinstance(row, Validated)]
    assert [(row.update, row.epoch) for row in evaluations] == [(PER_EPOCH, 1), (2 * PER_EPOCH, 2)]
    assert rows[-1] == Finished(2 * PER_EPOCH, "epochs")


def test_a_training_lowers_its_cost() -> None:
    model = build("linear")
    rows = list(train(model, Rows(), Judge(model), settings(epochs=15)))
    scores = [row.scores["cost"] for row in rows if isinstance(row, Validated)]
    assert scores[-1] < 0.8 * scores[0]


def test_the_updates_are_bounded_and_the_last_is_evaluated() -> None:
    model = build("linear")
    rows = list(train(model, Rows(), Judge(model), settings(most_updates=5, check_every=3)))
    assert [row.update for row in rows if isinstance(row, Validated)] == [3, 5]
    assert rows[0] == Began(0, 5, "cost")
    assert rows[-1] == Finished(5, "updates")


def test_a_training_that_is_left_can_be_collected_within_a_transform() -> None:
    """Garbage is collected anywhere; torch forbids `requires_grad_` within its transforms."""
    rows = train(build("linear"), Rows(), None, settings())
    assert isinstance(list(islice(rows, 2))[-1], Update)

    def cost(x: Tensor) -> Tensor:
        rows.close()  # type: ignore[attr-defined]
        return (x * x).sum()

    assert_close(torch.func.grad(cost)(torch.ones(3)), torch.full((3,), 2.0))


def test_two_half_batches_are_one_whole() -> None:
    halves = settings(accumulate=2)
    without_dropout = []
    for source, s in ((Rows(batch=4), settings()), (Rows(batch=2), halves)):
        model = build("linear")
        model.dropout.p = 0.0
        without_dropout.append(weights_after(model, source, s))
    for name, weight in without_dropout[0].items():
        assert_close(weight, without_dropout[1][name], **TIGHT)


def test_a_parameter_without_use_only_decays() -> None:
    model = build("linear")
    model.idle = nn.Parameter(torch.ones(2, 2))
    model.vain = nn.Parameter(torch.ones(2))
    list(train(model, Rows(), None, settings(optimiser="adamw", weight_decay=0.1, epochs=1)))
    assert torch.equal(model.vain, torch.ones(2))
    assert_close(model.idle, torch.full((2, 2), (1 - 0.01 * 0.1) ** PER_EPOCH))


def test_dropout_does_not_depend_on_what_was_drawn_before() -> None:
    weights_of_runs = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        weights_of_runs.append(weights_after(build("linear"), Rows(), settings()))
    assert same(*weights_of_runs)
    other = weights_after(build("linear"), Rows(), settings(seed=2))
    assert not same(weights_of_runs[0], other)


def test_the_callers_random_state_is_left_alone() -> None:
    model = build("linear")
    before = torch.get_rng_state()
    fit(model, Rows(), Judge(model), settings())
    assert torch.equal(before, torch.get_rng_state())


def test_bfloat16_is_used_and_the_weights_stay_float32() -> None:
    plain = weights_after(build("linear"), Rows(), settings())
    low = weights_after(build("linear"), Rows(), settings(precision="bfloat16"))
    assert not same(plain, low)
    for name, weight in low.items():
        assert weight.dtype == torch.float32
        assert_close(weight, plain[name], rtol=0.2, atol=0.05)


# --- stopping ------------------------------------------------------------------------------


class FixedCosts:
    """A validation that returns these costs, one after another, and notes the weights it saw."""

    def __init__(self, model: nn.Module, costs: list[float]) -> None:
        self.model, self.costs = model, list(costs)
        self.weights: list[dict[str, Tensor]] = []

    def __call__(self) -> Mapping[str, float]:
        self.weights.append(copy_of(self.model.state_dict()))
        return {"cost": self.costs.pop(0)}


@pytest.mark.parametrize("averaging", ["off", 0.9])
def test_the_best_weights_are_restored_and_of_equals_the_earlier(averaging: Any) -> None:
    model = build("linear")
    validation = FixedCosts(model, [0.0, 3.0, 2.0, 2.0, 4.0, 2.5, 9.0])
    s = settings(epochs=50, patience=3, averaging=averaging)
    validation.costs.pop(0)
    rehearsed = FixedCosts(model, [5.0])  # what preflight asks for is no part of the law
    outcome = fit(model, Rows(), _first(rehearsed, validation), s)
    assert outcome.reason == "patience"
    assert outcome.best_update == 2 * PER_EPOCH
    assert outcome.updates == 5 * PER_EPOCH
    assert outcome.scores == {"cost": 2.0}
    assert same(model.state_dict(), validation.weights[1])
    assert not same(model.state_dict(), validation.weights[2])


def _first(once: Any, then: Any) -> Any:
    calls = iter([once])
    return lambda: next(calls, then)()


def test_more_is_better_of_accuracy() -> None:
    model = build("linear")
    scores = iter([0.0, 0.1, 0.3, 0.2])
    outcome = fit(
        model, Rows(), lambda: {"accuracy": next(scores)}, settings(epochs=3, watch="accuracy")
    )
    assert outcome.scores == {"accuracy": 0.3}


def test_of_equal_scores_the_lower_cost_is_kept_and_patience_ends_all_the_same() -> None:
    """Few validation rows are all right after an epoch, when the network is not."""
    model = build("linear")
    scores_and_costs = [(0.0, 9.0), (1.0, 3.0), (1.0, 2.0), (1.0, 2.5), (0.5, 0.1)]
    scores = iter([{"accuracy": right, "cost": cost} for right, cost in scores_and_costs])
    outcome = fit(
        model, Rows(), lambda: next(scores), settings(epochs=9, watch="accuracy", patience=3)
    )
    assert outcome.reason == "patience"
    assert outcome.stale == 3
    assert outcome.updates == 4 * PER_EPOCH  # three evaluations after the first of all right
    assert outcome.scores == {"accuracy": 1.0, "cost": 2.0}
    assert outcome.best_update == 2 * PER_EPOCH


def test_averaged_weights_are_judged_and_the_own_ones_go_on() -> None:
    plain, averaged = build("linear"), build("linear")
    validation = FixedCosts(averaged, [3.0, 2.0])
    at = Progress.begin(averaged, settings(averaging=0.9))
    rows = train(averaged, Rows(), validation, settings(averaging=0.9), at)
    for _ in rows:
        pass
    weights = weights_after(plain, Rows(), settings())
    assert same(weights, averaged.state_dict())
    assert at.average is not None
    assert same(at.average.weights, validation.weights[-1])
    assert not same(weights, validation.weights[-1])


def test_a_score_that_is_not_there_is_named() -> None:
    model = build("linear")
    with pytest.raises(ConfigError) as caught:
        fit(model, Rows(), Judge(model), settings(watch="f1"))
    assert str(caught.value) == (
        "train.watch: expected one of this model's scores, accuracy, cost, got 'f1'"
    )


def test_a_score_that_is_not_finite_ends_the_run() -> None:
    model = build("linear")
    with pytest.raises(TrainingError) as caught:
        list(train(model, Rows(), FixedCosts(model, [math.nan]), settings()))
    assert str(caught.value) == (
        f"the evaluation after update {PER_EPOCH}: cost is nan. Next: lower the rate, or look at "
        "the rows of the validation part"
    )


def test_nothing_to_learn_from_is_an_error() -> None:
    with pytest.raises(TrainingError, match="epoch 0 has no batches: the training part is empty"):
        list(train(build("linear"), Rows(rows=0), None, settings()))
    source = Rows()
    source.targets = lambda rows: 0.0  # type: ignore[method-assign]
    with pytest.raises(TrainingError, match=r"update 1: no target to learn from in rows rows.csv:"):
        list(train(build("linear"), source, None, settings()))


# --- continuing ----------------------------------------------------------------------------

OPTIMISERS = ["sgd", "adam", "adamw"]
SCHEDULES = ["constant", "linear", "cosine", "inverse-sqrt", "plateau"]


@pytest.mark.parametrize("averaging", ["off", 0.9])
@pytest.mark.parametrize("kind", SCHEDULES)
@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_going_on_from_any_row_is_never_having_stopped(
    optimiser: str, kind: str, averaging: Any
) -> None:
    s = settings(
        optimiser=optimiser, schedule=kind, averaging=averaging, check_every=2, warmup=3,
        accumulate=2, patience=9, decay_patience=2,
    )  # fmt: skip
    subject = "carrying" if optimiser == "sgd" else "linear"
    whole = build(subject)
    rows = list(train(whole, Rows(), Fickle(whole), s))
    for stop in (3, 9, 12, len(rows) - 2):  # between updates, before and after evaluations
        model = build(subject)
        at = Progress.begin(model, s)
        first = list(islice(train(model, Rows(), Fickle(model), s, at), stop))
        tensors = {group: copy_of(table) for group, table in at.tensors(model).items()}
        other = build(subject, seed=9)
        later = Progress.begin(other, s)
        later.load(other, tensors, at.scalars())
        rest = list(train(other, Rows(), Fickle(other), s, later))[1:]
        assert [*first, *rest] == rows
        assert same(whole.state_dict(), other.state_dict())


# --- before the first update ---------------------------------------------------------------


def test_rehearsing_changes_nothing() -> None:
    model, source = build("linear"), Rows()
    model.norm = nn.BatchNorm1d(FEATURES_OF_NORM)
    plain = copy_of(model.state_dict())
    before = torch.get_rng_state()
    at = Progress.begin(model, settings())
    rehearse(model, source, Judge(model), settings(), at, None)
    assert same(plain, model.state_dict())
    assert all(p.grad is None for p in model.parameters())
    assert torch.equal(before, torch.get_rng_state())
    assert at.optimiser.tensors() == {}


FEATURES_OF_NORM = 3


class Hungry(Rows):
    """Runs out of memory for batches of more than two rows."""

    def batch(self, rows: Any) -> Any:
        if len(rows) > 2:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried …")
        return super().batch(rows)


def test_a_batch_that_does_not_fit_is_named_before_the_first_update() -> None:
    model = build("linear")
    with pytest.raises(TrainingError) as caught:
        fit(model, Hungry(rows=4), Judge(model), settings())
    names = ", ".join(f"rows.csv:{row + 1}" for row in Rows(rows=4).batches(0)[0])
    assert str(caught.value) == (
        f"a batch of 4 rows and {4 * TIME} tokens does not fit in memory. Rows: {names}. "
        "Next: lower the number of tokens in a batch, or cut long rows"
    )


# --- the rate finder -----------------------------------------------------------------------


def test_the_finder_finds_a_rate_that_learns_and_puts_all_back() -> None:
    model, source = build("linear"), Rows()
    before = copy_of(model.state_dict())
    state = torch.get_rng_state()
    curve = find_rate(model, source, settings(clip="off", optimiser="sgd"), 1e-5, 1e3)
    assert same(before, model.state_dict())
    assert torch.equal(state, torch.get_rng_state())
    assert len(curve.rates) == len(curve.costs) == len(curve.smoothed)
    lowest = curve.smoothed.index(min(curve.smoothed))
    assert curve.suggestion == curve.rates[lowest] / 10
    assert 1e-3 < curve.suggestion < 1
    assert curve.rates[-1] < 1e3  # it ended where the cost rose


def test_the_finders_rates_grow_by_a_factor() -> None:
    curve = find_rate(build("linear"), Rows(), settings(), 1e-6, 1e-4, 21)
    ratios = [b / a for a, b in pairwise(curve.rates)]
    assert ratios == pytest.approx([100 ** (1 / 20)] * 20)
    with pytest.raises(OptionError, match="expected 0 < low < high and updates ≥ 2, got low 1"):
        find_rate(build("linear"), Rows(), settings(), 1.0, 0.1)
