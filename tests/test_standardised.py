"""Pooled vectors in units of their own spread: what reaches the head of a network with a base."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ensue import Classifier, LanguageModel, Matcher, Regressor, load
from ensue.tasks.blocks.pooling import LEAST_SPREAD, ROWS, Standardised, settle_spreads

ROWS_OF_TEXT = [("a fine film", "good"), ("a dull film", "bad"), ("fine", "good"), ("dull", "bad")]
SMALL = {"hidden_size": 4, "embedding_size": 4, "columns": 2, "steps": 4}


class Noisy(nn.Module):
    """Dropout before, so that a network which learns would show another spread."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dropout, self.standard = nn.Dropout(0.9), Standardised(width)
        self.output = nn.Linear(width, 1)

    def forward(
        self, batch: Tensor, carried: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        return self.output(self.standard(self.dropout(batch))).sum(), {}


class Rows:
    """Batches of 100 rows."""

    def __init__(self, rows: Tensor) -> None:
        self.rows, self.rows_read = rows, 0

    def batches(self, epoch: int) -> Sequence[range]:
        assert epoch == 0
        return [range(k, min(k + 100, len(self.rows))) for k in range(0, len(self.rows), 100)]

    def batch(self, rows: range) -> Tensor:
        self.rows_read += len(rows)
        return self.rows[list(rows)]


def test_what_reaches_the_head_has_mean_0_and_spread_1() -> None:
    torch.manual_seed(0)
    rows = torch.randn(300, 3) * torch.tensor([0.01, 1.0, 50.0]) + torch.tensor([7.0, 0.0, -3.0])
    network = Noisy(3).train()
    settle_spreads(network, Rows(rows))
    assert network.training  # as it was
    standardised = network.standard(rows)
    torch.testing.assert_close(standardised.mean(0), torch.zeros(3), atol=2e-4, rtol=0)
    torch.testing.assert_close(
        standardised.std(0, correction=0), torch.ones(3), atol=1e-4, rtol=1e-4
    )


def test_a_feature_that_never_varies_is_not_blown_up() -> None:
    network = Noisy(2)
    settle_spreads(network, Rows(torch.tensor([[1.0, 2.0], [1.0, 4.0]])))
    assert network.standard.spread[0] == torch.tensor(LEAST_SPREAD)
    assert network.standard(torch.tensor([[1.0, 3.0]])).tolist() == [[0.0, 0.0]]


def test_no_more_rows_are_read_than_are_needed() -> None:
    rows = Rows(torch.randn(5000, 2))
    settle_spreads(Noisy(2), rows)
    assert ROWS <= rows.rows_read < ROWS + 100
    plain = Rows(torch.randn(10, 2))
    settle_spreads(nn.Linear(2, 1), plain)
    assert plain.rows_read == 0


@pytest.fixture(scope="module")
def lm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("base") / "lm"
    texts = [text for text, _ in ROWS_OF_TEXT]
    LanguageModel(model=SMALL, train={"epochs": 1}).fit(texts, texts).save(place)
    return place


def test_a_head_on_a_base_reads_standardised_vectors(lm: Path, tmp_path: Path) -> None:
    base = {"recipe": "frozen", "path": str(lm)}
    settings = {"linear": "alone", "batch_rows": 2}
    model = Classifier(base=base, model=settings, train={"epochs": 1}).fit(
        ROWS_OF_TEXT, ROWS_OF_TEXT
    )
    (network,) = model.networks
    outputs: list[Tensor] = []
    network.reader.standard.register_forward_hook(
        lambda module, before, after: outputs.append(after)
    )
    model.predict([text for text, _ in ROWS_OF_TEXT])
    values = torch.cat(outputs)
    torch.testing.assert_close(values.mean(0), torch.zeros(12), atol=1e-3, rtol=0)
    assert values.std(0, correction=0).max() <= 1.001
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.settings.standardise
    assert torch.equal(again.networks[0].reader.standard.mean, network.reader.standard.mean)


PAIRS = [(("a fine film", text), label) for text, label in ROWS_OF_TEXT]
NUMBERS = [(text, float(len(text))) for text, _ in ROWS_OF_TEXT]


@pytest.mark.parametrize(("kind", "rows"), [(Regressor, NUMBERS), (Matcher, PAIRS)])
def test_so_do_the_other_tasks_that_pool(lm: Path, kind: Any, rows: Any) -> None:
    base = {"recipe": "frozen", "path": str(lm)}
    model = kind(base=base, model={"batch_rows": 2}, train={"epochs": 1}).fit(rows, rows)
    (network,) = model.networks
    outputs: list[Tensor] = []
    network.reader.standard.register_forward_hook(
        lambda module, before, after: outputs.append(after)
    )
    model.predict([text for text, _ in rows])
    torch.testing.assert_close(torch.cat(outputs).mean(0), torch.zeros(12), atol=1e-3, rtol=0)


def test_a_network_without_a_base_reads_them_as_they_are() -> None:
    model = Classifier(model={"linear": "alone", "hidden_size": 4}, train={"epochs": 1})
    (network,) = model.fit(ROWS_OF_TEXT, ROWS_OF_TEXT).networks
    assert not any(isinstance(module, Standardised) for module in network.modules())
