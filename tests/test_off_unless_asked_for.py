"""What was not asked for is off: penalties, and what several processes need of one another."""

from __future__ import annotations

import torch
from trainees import Rows, build

from ensue.tasks.supervised.inputs.text import NgramScores
from ensue.training import TrainSettings
from ensue.training.loop import Updates


def test_ngram_scores_are_not_penalised() -> None:
    scores = NgramScores(5, 2)
    torch.nn.init.normal_(scores.weight)
    assert scores.penalty() is None


def test_one_process_alone_adds_nothing_to_its_cost() -> None:
    updates = Updates(build("linear"), Rows(), TrainSettings())
    assert updates.shared is None
    assert updates.cost.alone
