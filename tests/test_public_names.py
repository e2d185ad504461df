"""The names that `import ensue` offers: on demand, to people, editors and type checkers."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import ensue
from ensue.cells import CELLS
from ensue.errors import OptionError, ShapeError
from ensue.layers.multihead import MultiHead
from ensue.tasks import ROOMS, TASKS

FACE = Path(ensue.__file__)
NAMES = [name for name in ensue.__all__ if name != "__version__"]


def for_type_checkers() -> ast.If:
    """The block of `ensue/__init__.py` that only type checkers see."""
    for node in ast.parse(FACE.read_text("utf-8")).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return node
    raise AssertionError("there is no block for type checkers")


def test_nothing_is_loaded_before_it_is_used() -> None:
    code = "import ensue, sys; dir(ensue); print(*{'torch', 'numpy', 'pydantic'} & {*sys.modules})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


def test_every_name_is_there_and_shown() -> None:
    names = dir(ensue)
    for name in (*NAMES, *ensue.NAMESPACES):
        assert getattr(ensue, name) is not None
        assert name in names


def test_all_that_a_newcomer_looks_for() -> None:
    expected = {TASKS[room].model_class.__name__ for room in ROOMS}
    expected |= {*CELLS, "Cell", "Matrix", "Vector", "Recurrent", "load", "sigmoid", "tanh"}
    assert expected <= {*NAMES}
    assert isinstance(ensue.LSTM(), ensue.Cell)
    for drop_in in ("RNN", "GRU", "LSTM"):
        assert issubclass(getattr(ensue.layers, drop_in), torch.nn.Module)


def test_type_checkers_see_the_same_names() -> None:
    origins: dict[str, str] = {}
    for node in for_type_checkers().body:
        if isinstance(node, ast.ImportFrom):
            origins |= {alias.asname: f"{node.module}" for alias in node.names if alias.asname}
    expected = {name: f"ensue.{module}" for name, module in ensue._PUBLIC.items()}
    assert origins == expected | dict.fromkeys(ensue.NAMESPACES, "ensue")


def test_every_model_is_checked_to_be_an_estimator() -> None:
    """mypy checks the tuple; here, that none is missing from it."""
    tuples = [node for node in for_type_checkers().body if isinstance(node, ast.AnnAssign)]
    assert isinstance(tuples[0].value, ast.Tuple)
    named = {ast.unparse(element) for element in tuples[0].value.elts}
    assert named == {TASKS[room].model_class.__name__ for room in ROOMS}


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match=r"module 'ensue' has no attribute 'Clasifier'$"):
        ensue.Clasifier  # type: ignore[attr-defined] # noqa: B018
    with pytest.raises(AttributeError, match=r"the drop-in for torch.nn's is ensue.layers.RNN"):
        ensue.RNN  # type: ignore[attr-defined] # noqa: B018


def test_a_cell_that_is_called_like_a_layer() -> None:
    with pytest.raises(OptionError) as error:
        ensue.LSTM(8, 16)
    assert str(error.value) == (
        "LSTM: a cell is its equations and has no sizes; a layer has: "
        "Recurrent(LSTM(), input_size, hidden_size). The drop-ins for torch.nn's layers are "
        "ensue.layers.RNN, GRU and LSTM"
    )


@pytest.mark.parametrize("lengths", [torch.tensor([3, 1]), [3, 1]], ids=["tensor", "list"])
@pytest.mark.parametrize("layer", ["Recurrent", "LSTM", "GRU"])
def test_lengths_where_a_state_belongs(layer: str, lengths: object) -> None:
    x = torch.zeros(3, 2, 4)
    if layer == "Recurrent":
        module: torch.nn.Module = ensue.Recurrent("GRU", 4, 5)
    else:
        module = getattr(ensue.layers, layer)(4, 5)
    with pytest.raises(ShapeError, match=r"lengths are given by name: layer\(x, lengths=lengths\)"):
        module(x, lengths)


def test_old_names_work_and_warn() -> None:
    model = ensue.Classifier(model={"cell": "GRU"})
    with pytest.warns(
        DeprecationWarning, match=r"^Classifier.model is now called settings; .*0.4$"
    ):
        assert model.model is model.settings
    layer, x = MultiHead(4, 2), torch.randn(3, 1, 4)
    mask = torch.eye(3, dtype=torch.bool)
    with pytest.warns(DeprecationWarning, match=r"^MultiHead.forward\(seen=\) is now called mask="):
        former = layer(x, seen=mask)
    assert torch.equal(former, layer(x, mask=mask))
    with pytest.warns(DeprecationWarning, match=r"^MultiHead.with_weights\(seen=\)"):
        layer.with_weights(x, seen=mask)


@pytest.mark.parametrize("verb", ["explain", "attention"])
def test_the_question_by_its_old_name(verb: str) -> None:
    with (
        pytest.warns(DeprecationWarning, match=rf"^Model.{verb}\(given=\) is now called question="),
        pytest.raises(OptionError, match="has not been fitted"),
    ):
        getattr(ensue.Classifier(), verb)(given="good")
