"""The run of an ensemble: the first network's folder is that of the run, the others lie inside."""

from __future__ import annotations

from pathlib import Path

from ensue import Classifier

TEXTS = [("good film", "yes"), ("bad film", "no")] * 4


def test_the_second_and_third_network_have_their_number(tmp_path: Path) -> None:
    small = {"hidden_size": 3, "embedding_size": 3}
    model = Classifier(model=small, train={"epochs": 1}, members=3)
    model.fit(TEXTS, TEXTS[:2], folder=tmp_path / "run")
    inside = sorted(path.name for path in (tmp_path / "run" / "members").iterdir())
    assert inside == ["2", "3"]
    first = (tmp_path / "run" / "history.jsonl").read_bytes()
    assert first != (tmp_path / "run" / "members" / "2" / "history.jsonl").read_bytes()
