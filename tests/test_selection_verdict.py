"""What a selection reports about its winner and the baselines."""

from __future__ import annotations

import pytest

from ensue.study.selection.entries import WinnerVerdict
from ensue.study.selection.table import _tested

ACCURACY = ("accuracy", 1.0, {"majority class": 0.65, "linear model": 1.0}, True)
ERROR = ("mean absolute error", 2.0, {"naive": 3.0, "linear model": 1.5}, False)


@pytest.mark.parametrize(("measure", "value", "baselines", "higher"), [ACCURACY, ERROR])
def test_the_direction_is_that_of_the_measure_of_the_test(
    measure: str, value: float, baselines: dict[str, float], higher: bool
) -> None:
    """Whatever the models were ranked by: it may be a cost, where the test has an accuracy."""
    document = _tested(WinnerVerdict("lstm", measure, 50, value, 0.9, 2.5, baselines, 1, higher))
    assert document.blocks[-1].text == "The winner does not beat the linear model."
