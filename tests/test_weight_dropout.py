"""Dropout of single recurrent weights: in training only, the same at all steps, the mean kept."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

import ensue
from ensue.errors import OptionError
from ensue.layers.recurrent import Recurrent
from ensue.layers.stack import Way
from ensue.tasks.language.recurrent import RecurrentLanguage
from ensue.tasks.language.settings import LanguageSettings

RATE = 0.4


def layer(cell: str = "GRU", rate: float = RATE) -> Recurrent:
    torch.manual_seed(2)
    return Recurrent(cell, 3, 5, 2, weight_dropout=rate).double()


def thinned(way: Way, rate: float = RATE) -> dict[str, torch.Tensor]:
    torch.manual_seed(3)
    return dict(way.thinned(rate).parameters)


def test_only_matrices_of_the_state_are_thinned() -> None:
    way = layer("GRU").ways[0].way()
    thinned_parameters = thinned(way)
    for name in ("W", "b", "d"):
        assert thinned_parameters[name] is way.parameters[name]
    nonzero = thinned_parameters["U"] != 0
    assert 0.4 < float(nonzero.double().mean()) < 0.8
    assert_close(thinned_parameters["U"][nonzero], way.parameters["U"][nonzero] / (1 - RATE))


def test_a_training_step_is_that_of_the_thinned_matrices_at_all_steps() -> None:
    dropped, x = layer("LSTM"), torch.randn(6, 2, 3, dtype=torch.float64)
    torch.manual_seed(7)
    y, _ = dropped(x)
    torch.manual_seed(7)
    plain = layer("LSTM", rate=0.0)
    with torch.no_grad():
        torch.manual_seed(7)
        for way in plain.ways:
            way.U.copy_(torch.nn.functional.dropout(way.U, RATE))
    assert_close(y, plain(x)[0])


def test_outside_of_training_nothing_is_dropped() -> None:
    evaluated, x = layer().eval(), torch.randn(6, 2, 3, dtype=torch.float64)
    assert_close(evaluated(x)[0], layer(rate=0.0)(x)[0])


def test_gradients_are_those_of_entries_that_were_kept() -> None:
    dropped, x = layer(), torch.randn(6, 2, 3, dtype=torch.float64)
    dropped(x)[0].sum().backward()
    (first, *_) = dropped.ways
    assert int((first.U.grad == 0).sum()) > 0.2 * first.U.numel()
    assert not (first.W.grad == 0).any()


def test_a_rate_that_is_no_probability_is_refused() -> None:
    with pytest.raises(OptionError, match=r"weight_dropout: expected 0 ≤ rate < 1, got 1\.5"):
        Recurrent("GRU", 3, 5, weight_dropout=1.5)


def test_a_language_model_takes_it_from_its_settings() -> None:
    settings = LanguageSettings(dropout_weights=0.5, hidden_size=6, embedding_size=4)
    assert RecurrentLanguage.of(settings, 12).recurrent.weight_dropout == 0.5
    texts = ["the cat sees the dog", "the dog runs"] * 4
    options = {
        "hidden_size": 6,
        "embedding_size": 4,
        "columns": 2,
        "steps": 4,
        "dropout_weights": 0.5,
    }
    model = ensue.LanguageModel(model=options, train={"epochs": 1}).fit(texts, texts)
    assert model.perplexity(texts) > 1
