"""The scores and the probabilities of classes: of the networks, of the linear model, of both."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from ensue.tasks.blocks.pooled_network import PooledNetwork
from ensue.tasks.classify.learned import LearnedClasses
from ensue.tasks.classify.settings import ClassifierSettings
from ensue.tasks.model import Model
from ensue.tasks.rows.batch import Columns
from ensue.tasks.rows.part import Part
from ensue.tasks.rows.source import in_batches
from ensue.tasks.targets.classes import THRESHOLD

Floats = NDArray[np.float64]
ClassifierModel = Model[ClassifierSettings, Part, LearnedClasses]


def columns_of(part: Part, model: ClassifierModel) -> Columns:
    """A part as the networks see it."""
    return model.learned.columns(part, model.text, model.model)


@torch.no_grad()
def network_scores(network: nn.Module, columns: Columns, model: ClassifierModel) -> Tensor:
    """(rows, classes), of the network alone."""
    assert isinstance(network, PooledNetwork)
    found = torch.zeros(len(columns), len(model.learned.labels), dtype=torch.float64)
    for rows, batch in in_batches(columns, network, 2 * model.model.batch_tokens):
        found[torch.from_numpy(rows)] = network.scores(batch).double().cpu()
    return found


def linear_scores(columns: Columns, model: ClassifierModel) -> Tensor:
    """(rows, classes), of the n-grams alone."""
    assert columns.ngrams is not None
    assert model.learned.linear is not None
    return torch.from_numpy(model.learned.linear.present_scores(columns.ngrams)).double()


def mixed_in(part: Part, columns: Columns, model: ClassifierModel) -> Tensor | None:
    """(rows, classes): the scores that those of the networks are mixed with, if any are."""
    learned = model.learned
    if learned.text_linear is not None:
        return learned.text_scores(part)
    return None if learned.mixture is None else linear_scores(columns, model)


def probabilities_of(
    scores: Sequence[Tensor], linear: Tensor | None, model: ClassifierModel
) -> Floats:
    """(rows, classes), the mean over the members whose scores these are, each mixed with those of
    a linear model, if there are any."""
    several, mixture = model.model.several, model.learned.mixture
    if mixture is None or linear is None:
        logs = [logsigmoid(z) if several else z.log_softmax(1) for z in scores]
    else:
        logs = [mixture.logs(z, linear, several) for z in scores]
    return np.asarray(sum(own.exp().numpy() for own in logs) / len(logs))


def decided_of(probabilities: Floats, model: ClassifierModel) -> NDArray[np.int64]:
    if model.model.several:
        return (probabilities > THRESHOLD).astype(np.int64)
    return np.asarray(probabilities.argmax(1))
