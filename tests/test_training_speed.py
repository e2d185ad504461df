"""Tokens a second while models are compared: what was trained on, by the time that updates took."""

from __future__ import annotations

import pytest

from ensue.study.selection import entries
from ensue.training import Update


def test_speed_is_tokens_by_seconds_of_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(entries.time, "monotonic", lambda: now)
    watch = entries.Pace()
    assert watch.speed is None
    for seconds, row in [(2.0, update(300)), (50.0, object()), (3.0, update(200))]:
        now += seconds
        watch(row)
    assert watch.speed == pytest.approx((300 + 200) / (2 + 3))


def update(tokens: float) -> Update:
    return Update(1, 1, 0.0, 0.0, 0.0, 1.0, tokens)
