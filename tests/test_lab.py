"""The learning lab: golden numbers of descent, what each experiment must show, the picture."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from functools import lru_cache

import pytest
import torch

from ensue.drawing.document import as_text
from ensue.errors import OptionError
from ensue.study.foundations import lab as experiments
from ensue.study.foundations.lab import (
    Lab,
    Networks,
    choose_family,
    compare_costs,
    compare_estimators,
    compare_learning,
    descend,
    divergence,
    watch_early_stopping,
)
from ensue.study.foundations.lab_report import as_json, document, draw


@lru_cache
def small_lab() -> Lab:
    return Lab(
        1,
        tuple(descend(rate) for rate in experiments.RATES),
        compare_costs(1),
        choose_family(1),
        Networks((3, 10), (0.5, 0.2), (0.3, 0.1)),
        compare_estimators(1, draws=500),
        compare_learning(1),
        watch_early_stopping(1),
    )


def test_descent_is_golden() -> None:
    descent = descend(0.01)
    assert descent.places[1:4] == pytest.approx((-0.706017, -0.787320, -0.795398), abs=1e-6)
    assert descent.places[-1] == pytest.approx(-0.795415, abs=1e-6)
    assert descent.ending == "finds the minimum"
    assert experiments.slope(-0.6) == pytest.approx(10.601703, abs=1e-6)
    assert math.sin(10 * -0.795415) - 0.795415 == pytest.approx(-1.790402, abs=1e-6)


def test_steps_may_be_too_small_or_too_large() -> None:
    endings = [descend(rate).ending for rate in (0.001, 0.02, 0.05, 0.1)]
    assert endings[0] == "has not arrived yet"
    assert endings[1] == "overshoots, and swings around it"
    assert endings[2] == "diverges: it never comes to rest"
    assert descend(0.01, 3).ending != "diverges: it never comes to rest"


def test_another_valley_is_told() -> None:
    ending = experiments._ending([-0.6, -1.423734])
    assert ending == "lands in another valley, at -1.424"


def test_a_negative_rate_finds_no_valley() -> None:
    descent = descend(-0.01)
    assert experiments.curvature(descent.places[-1]) < 0
    assert "maximum" in descent.ending
    assert "valley" not in descent.ending


def test_the_minima_of_the_two_costs_lie_apart() -> None:
    """The family a·x does not contain the truth; the expected minimum is ∫x·f / ∫x²."""
    costs = compare_costs(1)
    truth = 3 * ((math.sin(10) - 10 * math.cos(10)) / 100 + 1 / 3)
    assert costs.best("expected") == pytest.approx(truth, abs=0.01)
    assert min(costs.expected) > 0.1, "no line is the truth"
    apart = [abs(minimum - truth) for minimum in costs.minima]
    assert len(apart) == 20
    assert sum(distance > 0.05 for distance in apart) > 12
    assert costs.best("empirical") == pytest.approx(costs.minima[0], abs=0.01)
    assert compare_costs(2).expected == costs.expected


def test_sgd_is_there_sooner_and_early_stopping_keeps_the_best() -> None:
    learning = compare_learning(1)
    first = learning.examples.index(64)
    assert learning.stochastic[first] < learning.descent[first]
    assert learning.descent[-1] == pytest.approx(learning.least, rel=0.01)
    for seed in (1, 2, 3):
        stopping = watch_early_stopping(seed)
        before = [
            v
            for u, v in zip(stopping.updates, stopping.validation, strict=True)
            if u <= stopping.stopped
        ]
        assert stopping.best_cost == min(before)
        assert stopping.best < stopping.stopped < stopping.updates[-1]
        assert stopping.validation[-1] > stopping.best_cost, "it overfits afterwards"


def test_divergence_is_that_of_torch_and_may_be_infinite() -> None:
    p, q = [0.2, 0.3, 0.5], [0.4, 0.4, 0.2]
    result = divergence(p, q)
    a, b = (torch.tensor(probabilities, dtype=torch.float64) for probabilities in (p, q))
    kl = torch.nn.functional.kl_div(b.log(), a, reduction="sum")
    assert result.forward == pytest.approx(float(kl), rel=1e-12)
    assert result.forward == pytest.approx(result.cross_entropy - result.entropy, rel=1e-12)
    assert math.isinf(divergence([0.5, 0.5], [1, 0]).forward)
    assert divergence([1, 0], [0.5, 0.5]).forward == pytest.approx(math.log(2))
    with pytest.raises(OptionError, match="expected as many probabilities as p, 2, got 1"):
        divergence([1, 0], [1])
    with pytest.raises(OptionError, match="q: expected numbers ≥ 0, not all 0"):
        divergence([1, 0], [1, -1])


def test_validation_chooses_and_only_the_winner_is_tested() -> None:
    choice = choose_family(1)
    assert choice.winner.name == "sinusoid"
    assert [family.name for family in choice.all if family.test is not None] == ["sinusoid"]
    train = {family.name: family.train for family in choice.all}
    assert train["quadratic"] <= train["linear"]  # the larger family fits no worse


def test_tuning_all_layers_wins() -> None:
    networks = experiments.compare_networks(1, (10,))
    assert networks.tuned[0] < networks.random[0] / 2


def test_estimators_are_what_they_are_said_to_be() -> None:
    estimators = compare_estimators(1)
    distance = {
        estimator.name: max(
            abs(m - e) / s
            for m, e, s in zip(estimator.mean, estimators.exact, estimator.error, strict=True)
        )
        for estimator in estimators.all
    }
    assert distance["score function"] < 4
    assert distance["score function, baseline"] < 4
    assert distance["straight-through, σ"] > 6
    assert distance["straight-through, identity"] > 6
    spread = {estimator.name: sum(estimator.deviation) for estimator in estimators.all}
    assert spread["score function, baseline"] < spread["score function"]


def test_all_is_said_and_drawn() -> None:
    lab = small_lab()
    text = as_text(document(lab))
    assert "0.01   -0.600000  -0.706017  -0.787320  -0.795398" in text
    assert "Validation chooses the sinusoid." in text
    assert text.count("sealed") == 2
    picture = draw(lab)
    ElementTree.fromstring(picture)
    assert "Why all layers are tuned" in picture
    assert draw(lab) == picture
    assert set(as_json(lab)) >= {"format", "seed", "walks", "costs", "families", "estimators"}
