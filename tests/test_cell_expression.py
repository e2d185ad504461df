"""Cells as texts with their options: read by a small grammar, never run."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from ensue import Recurrent
from ensue.cells import CELLS, LSTM, OutputLayer, RecurrentDropout, Residual, SimpleRNN, Zoneout
from ensue.cells.cell import Cell
from ensue.cells.expression import LONGEST, canonical, cell_of_text
from ensue.cells.load import load_cell
from ensue.cells.reference import as_reference, equations_digest
from ensue.errors import EnsueError, OptionError

SPELT: dict[str, tuple[Cell, str]] = {
    "SimpleRNN(activation='relu')": (SimpleRNN("relu"), "SimpleRNN(activation='relu')"),
    'simplernn("maxout",pieces = 3)': (SimpleRNN("maxout", 3), "SimpleRNN('maxout', pieces=3)"),
    "Zoneout(LSTM, 0.1)": (Zoneout(LSTM(), 0.1), "Zoneout(LSTM, 0.1)"),
    "Zoneout(LSTM(), rate={'h': 0.05, 'c': 0.5})": (
        Zoneout(LSTM(), {"h": 0.05, "c": 0.5}),
        "Zoneout(LSTM, rate={'h': 0.05, 'c': 0.5})",
    ),
    "Zoneout(RecurrentDropout(SimpleRNN('tanh'), 0.2))": (
        Zoneout(RecurrentDropout(SimpleRNN(), 0.2)),
        "Zoneout(RecurrentDropout(SimpleRNN('tanh'), 0.2))",
    ),
    "OutputLayer(lstm)": (OutputLayer(LSTM()), "OutputLayer(LSTM)"),
    "Residual(LSTM)": (Residual(LSTM()), "Residual(LSTM)"),
    "LSTM()": (LSTM(), "LSTM"),
}


def digest(cell: Cell) -> str:
    return equations_digest(cell) if not isinstance(cell, Residual) else repr(cell.cell.parts)


@pytest.mark.parametrize("text", SPELT)
def test_a_text_is_the_cell_that_python_makes(text: str) -> None:
    cell, spelt = SPELT[text]
    assert digest(cell_of_text(text)) == digest(cell)
    assert canonical(text) == spelt == canonical(spelt)
    assert as_reference(text) == spelt
    assert digest(load_cell(text)) == digest(cell)


@pytest.mark.parametrize("name", CELLS)
def test_every_cell_can_be_wrapped_by_text(name: str) -> None:
    layer = Recurrent(f"Zoneout({name}, 0.25)", 3, 4)
    assert layer(torch.zeros(2, 1, 3))[0].shape == (2, 1, 4)


WRONG = {
    "SimpelRNN(activation='relu')": "unknown cell 'SimpelRNN': did you mean 'SimpleRNN'?",
    "SimpleRNN(activaton='relu')": (
        "unknown option of SimpleRNN 'activaton': did you mean 'activation'?"
    ),
    "SimpleRNN(activation='rleu')": "unknown activation 'rleu': did you mean 'relu'?",
    "LSTM(0.1)": "LSTM takes no options; expected LSTM",
    "Zoneout()": "Zoneout needs cell, Zoneout(LSTM) for example",
    "Zoneout(LSTM, 0.1, rate=0.2)": "rate is given twice",
    "Zoneout(LSTM, 0.1, 0.2)": "takes at most 2 options (cell, rate)",
    "Zoneout(LSTM, 2)": "expected a number from 0",
    "Zoneout(0.1)": "expected a cell to wrap",
    "Zoneout(LSTM, 0.1": "expected a cell, such as GRU",
    "Zoneout(LSTM, 1/10)": "expected a number, a text in quotes, True, False or a cell, got 1/10",
    "Zoneout(LSTM, [0.1])": "expected a number",
    "Zoneout(LSTM, f'{1}')": "expected a number",
    "Zoneout(*LSTM)": "expected plain options",
    "Zoneout(**LSTM)": "expected plain options",
    "Zoneout(LSTM, {**LSTM})": "expected a number",
    "__import__('os').system('touch ran')": "expected the name of a cell",
    "(lambda: LSTM)()": "expected the name of a cell",
    "open('ran', 'w')": "unknown cell 'open'",
    "Zoneout(open('ran', 'w'))": "unknown cell 'open'",
    "(" * 200 + ")" * 200: "such as GRU",
    "Zoneout(" * 90 + "LSTM" + ")" * 90: f"at most {LONGEST} characters",
}


@pytest.mark.parametrize("text", WRONG, ids=[text[:40] for text in WRONG])
def test_what_is_no_cell_is_refused_and_not_run(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EnsueError) as wrong:
        cell_of_text(text)
    assert WRONG[text] in str(wrong.value)
    if text.endswith(")"):
        with pytest.raises(ValueError, match=r"expected|unknown|takes|needs|twice"):
            as_reference(text)
    assert not (tmp_path / "ran").exists()


def test_an_output_layer_is_v_h_plus_d() -> None:
    torch.manual_seed(1)
    layer = Recurrent(LSTM(), 3, 4, 2, output_layers=True).double()
    below, above = (Recurrent(LSTM(), n, 4).double() for n in (3, 4))
    names = dict(below.forwards[0].named_parameters())
    for name, parameter in layer.forwards[0].named_parameters():
        if name in names:
            names[name].data.copy_(parameter.data)
    above.forwards[0].load_state_dict(layer.forwards[1].state_dict())
    x, lengths = torch.randn(6, 2, 3).double(), torch.tensor([6, 4])
    between = below(x, lengths=lengths)[0] @ layer.forwards[0].V.T + layer.forwards[0].d
    expected = above(between, lengths=lengths)[0]
    torch.testing.assert_close(layer(x, lengths=lengths)[0], expected)


def test_an_output_layer_gives_way_to_names_of_the_cell() -> None:
    assert {"V", "d", "V2", "d2"} <= {*OutputLayer(OutputLayer(LSTM())).parameters}


def test_a_layer_without_such_a_cell_says_what_there_is() -> None:
    with pytest.raises(OptionError, match="unknown cell 'LSTN': did you mean 'LSTM'"):
        Recurrent("LSTN", 3, 4)
