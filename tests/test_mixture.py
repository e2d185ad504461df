"""A network and the linear n-grams that answer together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from test_estimators import CASES, reviews, several

from ensue import Classifier
from ensue.errors import ConfigError
from ensue.tasks.baselines.mixture import (
    EQUAL,
    FEW_TEXTS,
    FIRST,
    BaselineMixture,
    FirstGuess,
    fitted_mixture,
    fitted_numbers,
)
from ensue.tasks.evaluation.calibration import surest_mistaken_sets
from ensue.tasks.evaluation.report import Evaluation

ROWS = 4000


def draws(classes: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    """Calibrated scores (rows, classes), and classes drawn from them."""
    generator = torch.Generator().manual_seed(1)
    z = 1.5 * torch.randn(ROWS, classes, generator=generator, dtype=torch.float64)
    return z, torch.multinomial(z.softmax(1), 1, generator=generator)[:, 0]


def cost(
    mixture: BaselineMixture, z: torch.Tensor, other: torch.Tensor, targets: torch.Tensor
) -> float:
    return float(-mixture.logs(z, other, False).gather(1, targets[:, None]).mean())


def test_a_model_three_times_too_sure_is_brought_back_and_noise_is_left_out() -> None:
    z, targets = draws()
    noise = torch.randn(z.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    mixture = fitted_mixture([3 * z], 3 * noise, targets)
    assert mixture.network == pytest.approx(1 / 3, abs=0.02)
    assert 0 < mixture.ngrams < 0.1
    assert mixture.logs(3 * z, 3 * noise, False).exp().sum(1) == pytest.approx(np.ones(ROWS))


def test_what_is_fitted_costs_less_than_any_neighbour() -> None:
    z, targets = draws()
    generator = torch.Generator().manual_seed(3)
    one, two = (
        z + torch.randn(z.shape, generator=generator, dtype=torch.float64) for _ in range(2)
    )
    best = fitted_mixture([one], two, targets)
    least = cost(best, one, two, targets)
    assert least < cost(EQUAL, one, two, targets)
    for a, b in ((1.2, 1), (1 / 1.2, 1), (1, 1.2), (1, 1 / 1.2)):
        assert least < cost(BaselineMixture(best.network * a, best.ngrams * b), one, two, targets)


def test_a_member_that_is_wrong_by_far_still_counts_less() -> None:
    """Its probabilities are 0 in floating point, their logarithms are not."""
    z, targets = draws()
    wrong = -1500.0 * torch.nn.functional.one_hot(targets, 3).double()
    mixture = fitted_mixture([wrong], z, targets)
    assert mixture.network < 0.01
    assert fitted_mixture([wrong, z], z, targets).ngrams > 0.1


def test_scores_that_are_no_numbers_are_mixed_equally() -> None:
    z, targets = draws()
    assert fitted_mixture([torch.full_like(z, float("nan"))], z, targets) == EQUAL


def test_few_rows_move_it_little() -> None:
    z, targets = draws()
    few = fitted_mixture([9 * z[:4]], z[:4], targets[:4])
    many = fitted_mixture([9 * z], z, targets)
    assert abs(np.log(2 * few.network)) < abs(np.log(2 * many.network))


def test_without_evidence_the_first_guess_stays_and_many_rows_overrule_it() -> None:
    z, targets = draws()
    none = fitted_mixture([0 * z[:4]], 0 * z[:4], targets[:4], FEW_TEXTS)
    assert none == pytest.approx(FEW_TEXTS.weights)
    equal, leaning = (
        fitted_mixture([z], 0 * z, targets, first_guess) for first_guess in (FIRST, FEW_TEXTS)
    )
    assert equal.network == pytest.approx(leaning.network, rel=0.15)


def test_a_network_that_only_its_own_stop_flatters_counts_for_little() -> None:
    """Of 100 rows that chose it among many, a network of chance alone looks as if it knew; new
    rows are answered better by weights that begin near the linear model."""
    draw = torch.Generator().manual_seed(1)
    classes = torch.randint(0, 2, (4100,), generator=draw)
    sign = 2.0 * classes - 1
    evidence = sign + 1.2 * torch.randn(4100, generator=draw)
    linear = torch.stack([-evidence, evidence], 1).double()
    tries = [2 * torch.randn(4100, 2, generator=draw).double() for _ in range(20)]
    validation, new = slice(0, 100), slice(100, None)
    network = max(tries, key=lambda z: int((z[validation].argmax(1) == classes[validation]).sum()))

    def cost(first: FirstGuess) -> float:
        mixture = fitted_mixture(
            [network[validation]], linear[validation], classes[validation], first
        )
        p = mixture.logs(network[new], linear[new], False)
        return float(-p[torch.arange(4000), classes[new]].mean())

    assert cost(FEW_TEXTS) < cost(FIRST)


def test_of_several_labels_each_is_weighed_by_itself() -> None:
    z, _ = draws()
    targets = (torch.rand(z.shape, generator=torch.Generator().manual_seed(4)) < z.sigmoid()).long()
    mixture = fitted_mixture([2 * z, 2 * z], torch.zeros_like(z), targets)
    assert mixture.network == pytest.approx(0.5, abs=0.03)
    assert mixture.logs(2 * z, z, True).exp() == pytest.approx(
        torch.sigmoid(2 * mixture.network * z + mixture.ngrams * z)
    )


def test_a_share_of_one_is_the_linear_model_and_of_almost_none_the_network() -> None:
    rows = reviews(30, 4)
    texts = [text for text, _ in rows]

    def answers(share: float) -> NDArray[np.float64]:
        model = (
            CASES["words"]
            .kind(
                {},
                {"hidden_size": 5, "embedding_size": 6, "ngrams": 2, "ngram_share": share},
                {"epochs": 2},
            )
            .fit(reviews(40, 1), reviews(16, 2))
        )
        evaluations.append(model.evaluate(rows))
        return np.array(
            [
                [answer.probabilities[name] for name in model.learned.target.labels.tokens]
                for answer in model.predict(texts)
            ]
        )

    evaluations: list[Evaluation] = []
    whole, little, none = answers(1), answers(1e-9), answers(0)
    assert evaluations[0].scores["accuracy"].value == evaluations[0].baselines["linear n-grams"]
    assert evaluations[1].scores["accuracy"].value == evaluations[1].baselines["network alone"]
    assert "network alone" not in evaluations[2].baselines
    assert not np.allclose(whole, little)
    assert none.shape == whole.shape


def test_the_fitted_mixture_is_kept_with_the_model_and_named_in_the_evaluation(
    tmp_path: Path,
) -> None:
    model = CASES["n-grams mixed in"].fitted()
    assert isinstance(model, Classifier)
    assert model.learned.mixture not in (None, EQUAL)
    model.save(tmp_path / "model")
    assert Classifier.load(tmp_path / "model").learned.mixture == model.learned.mixture
    assert "network alone" in model.evaluate(reviews(20, 5)).as_text()


def test_wrong_sets_of_labels_are_listed_with_their_surest_mistake() -> None:
    gold = np.array([[1, 0], [0, 0], [1, 1]])
    guess = np.array([[1, 1], [0, 0], [0, 0]])
    probabilities = np.array([[0.9, 0.8], [0.1, 0.2], [0.4, 0.05]])
    mistakes = surest_mistaken_sets(
        gold, guess, probabilities, ["a", "b"], lambda k: (f"row:{k}", "t")
    )
    assert [(mistake.place, mistake.gold, mistake.predicted) for mistake in mistakes] == [
        ("row:2", "a, b", "none"),
        ("row:0", "a", "a, b"),
    ]
    assert [mistake.probability for mistake in mistakes] == pytest.approx([0.95, 0.8])


def test_an_evaluation_of_several_labels_shows_mistakes() -> None:
    model = CASES["several labels"].fitted()
    rows = several(30, 4)
    evaluation = model.evaluate(rows)
    wrong = sum(
        set(answer.labels) != set(gold)
        for answer, (_, gold) in zip(model.predict([text for text, _ in rows]), rows, strict=True)
    )
    assert len(evaluation.worst) == min(wrong, 10)
    assert "most confident mistakes, gold → predicted" in evaluation.as_text()


def test_a_share_without_n_grams_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"ngram_share: expected model.ngrams ≥ 1 as well, got 0"):
        Classifier({}, {"ngram_share": "fitted"})
    with pytest.raises(
        ConfigError, match="share: expected a number from 0 to 1, or fitted, got 'half'"
    ):
        Classifier({}, {"ngrams": 2, "ngram_share": "half"})


def test_the_spread_of_mixed_numbers_is_that_of_new_rows_though_few_were_fitted() -> None:
    """σ of the network is 1, its error and that of the linear model 1 each, so that of their mean
    √½: the interval of 90 % must hold as many of rows that the mixture was not fitted to."""
    draw = torch.Generator().manual_seed(1)
    one = float(torch.tensor(1.0).expm1().log())  # softplus of it is 1
    coverages = []
    for _ in range(60):
        y, network, linear = torch.randn(3, 520, 1, generator=draw, dtype=torch.float64)
        z = torch.cat([y + network, torch.full_like(y, one)], 1)
        mixture = fitted_numbers([z[:20]], (y + linear)[:20], y[:20])
        mean, wide = mixture.outputs(z[20:], (y + linear)[20:]).split(1, 1)
        off = (y[20:] - mean).abs() / torch.nn.functional.softplus(wide)
        coverages.append((off < 1.645).double().mean())
    assert 0.875 < float(torch.stack(coverages).mean()) < 0.935
