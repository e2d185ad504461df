"""Texts without labels: the linear model beside the networks learns which words go together.

It knows the words of the rows with labels only. Which words stand in the same texts tells it about
the others, and about those that few of its rows have.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from ensue.tasks.baselines.mixture import FEW_TEXTS, fitted_mixture
from ensue.tasks.baselines.text_features import joined
from ensue.tasks.baselines.text_linear import fit_with_topics, most_telling
from ensue.tasks.classify.learned import LearnedClasses, class_targets
from ensue.tasks.classify.scoring import ClassifierModel, columns_of, network_scores
from ensue.tasks.rows.part import Part
from ensue.tasks.rows.words import shared_texts


class WordTopics:
    """The linear model is fitted anew, with the topics of all texts."""

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
        """With the linear model and the mixture learned anew, if topics make its answers to rows
        that it did not learn from better; else as before."""
        learned, several = model.learned, model.model.several
        assert learned.text_linear is not None
        parts = (train, validation)
        known = [class_targets(part, learned.labels.tokens, several) for part in parts]
        first, second, others = shared_texts(*parts, unlabelled)
        found = fit_with_topics(
            first,
            second,
            others,
            np.concatenate(known),
            len(learned.labels),
            [block.kind for block in learned.text_linear.features.blocks],
            None if learned.beside is None else learned.beside.matrix(*parts),
        )
        told = (
            f"{len(unlabelled):,} row{'s' * (len(unlabelled) > 1)} without labels: cost of the "
            f"linear model on rows that it did not learn from {found.without:.4f} without the "
            "topics of all texts"
        )
        if not found.share:
            return learned, f"{told}, not clearly lower with them, so they are left out"
        columns = columns_of(replace(validation, labels=None), model)
        scores = [network_scores(network, columns, model) for network in model.networks]
        fitted = found.linear
        new = replace(
            learned,
            text_linear=fitted.model,
            held=fitted.held,
            mixture=fitted_mixture(scores, fitted.held, torch.from_numpy(known[1]), FEW_TEXTS),
            telling=most_telling(fitted.model, joined(first, others), learned.labels.tokens),
        )
        return new, f"{told}, {found.best:.4f} with them"
