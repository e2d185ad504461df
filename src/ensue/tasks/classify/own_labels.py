"""Texts without labels: the networks and the linear model label them together, and the linear model
learns from them, too.

The networks have begun from a base, or at least read whole sentences; the linear model knows the
words of few rows only. What both answer for many more texts tells it about the other words.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import logsigmoid

from ensue.tasks.baselines.mixture import BaselineMixture, fitted_mixture
from ensue.tasks.baselines.text_linear import fit_with_own_labels, joined, most_telling
from ensue.tasks.classify.learned import LearnedClasses, class_targets
from ensue.tasks.classify.scoring import ClassifierModel, columns_of, decided_of, network_scores
from ensue.tasks.rows.part import Part
from ensue.tasks.rows.words import shared_texts


class OwnLabels:
    """The linear model beside the networks learns from rows that both have labelled."""

    def refused(self, model: ClassifierModel) -> str:
        """Why a model with these settings cannot; "" where it can."""
        if model.model.linear == "mixed":
            return ""
        return (
            "expected a linear model that answers beside the network and learns from these texts, "
            f"model.linear = mixed, got {model.model.linear}"
        )

    def learned(
        self, unlabelled: Part, train: Part, validation: Part, model: ClassifierModel
    ) -> tuple[LearnedClasses, str]:
        """With the linear model and the mixture learned anew, if that makes the answers to the
        validation part surely better; else as before."""
        learned, several = model.learned, model.model.several
        assert learned.text_linear is not None
        parts = (train, validation)
        known = [class_targets(part, learned.labels.tokens, several) for part in parts]
        targets = torch.from_numpy(known[1])
        held = _scores(validation, model)
        own = _scores(unlabelled, model)

        def label(linear: Tensor, of_held: Tensor) -> NDArray[np.int64]:
            mixture = fitted_mixture(held, of_held, targets)
            return decided_of(_probabilities(mixture, own, linear, several), model)

        texts = shared_texts(train, validation, unlabelled)
        fitted, alone = fit_with_own_labels(
            texts,
            np.concatenate(known),
            len(learned.labels),
            label,
            [block.kind for block in learned.text_linear.features.blocks],
            None if learned.beside is None else learned.beside.matrix(*parts, unlabelled),
        )
        mixture = fitted_mixture(held, fitted.held, targets)
        before = _costs(fitted_mixture(held, alone, targets), held, alone, targets)
        after = _costs(mixture, held, fitted.held, targets)
        told = (
            f"{len(unlabelled):,} row{'s' * (len(unlabelled) > 1)} without labels: cost of the "
            f"answers to the validation part {float(before.mean()):.4f} where the linear model "
            f"learns from the training part alone, {float(after.mean()):.4f} with them"
        )
        if not surely_lower(after, before):
            return learned, f"{told}: not surely better, so they are left out"
        found = replace(
            learned,
            text_linear=fitted.model,
            held=fitted.held,
            mixture=mixture,
            telling=most_telling(fitted.model, joined(texts[0], texts[2]), learned.labels.tokens),
        )
        return found, told


def _scores(part: Part, model: ClassifierModel) -> list[Tensor]:
    """(rows, classes) of each network."""
    columns = columns_of(replace(part, labels=None), model)
    return [network_scores(network, columns, model) for network in model.networks]


def _probabilities(
    mixture: BaselineMixture, networks: list[Tensor], linear: Tensor, several: bool
) -> NDArray[np.float64]:
    """(rows, classes), the mean over the members."""
    logs = [mixture.logs(z, linear, several) for z in networks]
    return np.asarray(torch.stack(logs).exp().mean(0).numpy())


def _costs(
    mixture: BaselineMixture, networks: list[Tensor], linear: Tensor, targets: Tensor
) -> Tensor:
    """−log p of each row; the mean over several labels."""
    several = targets.ndim == 2
    mixed = torch.stack([mixture.scores(z, linear, several) for z in networks])
    if several:
        right = logsigmoid(mixed * (2 * targets - 1))  # (members, rows, labels)
    else:
        right = mixed[:, torch.arange(len(targets)), targets][:, :, None]
    return (math.log(len(networks)) - right.logsumexp(0)).mean(1)


def surely_lower(after: Tensor, before: Tensor) -> bool:
    """Whether the mean of paired costs has fallen by more than its standard error, and all rows
    together have become twice as likely: a few that are answered rightly either way are a little
    surer or less sure with any change, all alike."""
    fall = before - after
    surely = float(fall.mean()) > float(fall.std(correction=0)) / math.sqrt(len(fall))
    return surely and float(fall.sum()) > math.log(2)
