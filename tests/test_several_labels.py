"""Several labels at once: the confidence of an answer is that of what it says, yes or no."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ensue.data.ragged import Ragged
from ensue.data.tokenise import Tokeniser
from ensue.tasks.evaluation.calibration import reliability, reliability_lines
from ensue.tasks.rows.part import Names, Numbers, Part, Tokenisers
from ensue.tasks.targets.classes import SeveralTarget
from ensue.tasks.targets.target import NumberSettings, TargetOutputs


def test_reliability_is_that_of_every_label_there_or_not() -> None:
    numbers = Numbers()
    gold = [["a", "b"], ["a"], [], ["b"]]
    labels = Ragged.of([[numbers.labels[label] for label in row] for row in gold], np.int32)
    names = Names(("t.csv",), np.zeros(4, np.int32), np.arange(1, 5))
    tokenisers = Tokenisers(Tokeniser("spaces"))
    part = Part(Ragged.of([[0]] * 4, np.int32), labels, names, numbers, tokenisers)
    p = np.array([[0.9, 0.65], [0.8, 0.3], [0.6, 0.05], [0.45, 0.15]])  # of a and of b
    z = torch.from_numpy(np.log(p / (1 - p)))
    outputs = TargetOutputs([z], {"none": torch.zeros(4, 2)}, part, lambda row: ("", ""), seed=0)
    evaluation = SeveralTarget.learn(part, NumberSettings()).evaluate(outputs)

    says = [(True, 0.9), (True, 0.65), (True, 0.8), (True, 0.7)]
    says += [(False, 0.6), (True, 0.95), (True, 0.55), (False, 0.85)]
    right, sure = (np.array(column) for column in zip(*says, strict=True))
    assert evaluation.notes == reliability_lines(reliability(right, sure))
    assert evaluation.scores["accuracy"].value == pytest.approx(2 / 4)
