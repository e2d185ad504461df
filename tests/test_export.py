"""Layers in other languages: every row of the table of laws, random cells, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from laws import TABLE, Row
from random_cells import random_cells
from torch import nn

import ensue
from ensue import cli
from ensue.cells import GRU, LSTM, Cell, LayerNormLSTM, PeepholeLSTM, SimpleRNN
from ensue.cli.cells import in_language
from ensue.equations import Matrix, Vector, maximum, minimum, sigmoid, tanh
from ensue.equations.functions import Spelling
from ensue.errors import MissingExtra, OptionError, ShapeError
from ensue.export import from_onnx, write, writing
from ensue.export import targets as target_table
from ensue.export.c import CFile
from ensue.export.grid import (
    CASES,
    Expected,
    ExportMismatch,
    cases_of,
    compare,
    expected,
    with_stored_weights,
)
from ensue.export.javascript import javascript_source
from ensue.export.languages import C99, JavaScript
from ensue.export.onnx import layer, operators
from ensue.export.onnx import layer as onnx_layer
from ensue.export.onnx.layer import onnx_model
from ensue.export.onnx.operators import operator_of
from ensue.export.onnx.run import run_onnx
from ensue.export.programs import (
    CPrograms,
    NodePrograms,
    NoProgram,
    c_compiler,
    compile_c,
    node_program,
)
from ensue.export.stack import Stack, stack_of
from ensue.layers import Recurrent

pytest.importorskip("onnxruntime")

SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
EXPORTED = [row for row in TABLE if not row.name.startswith("Recursive")]
SAMPLE = EXPORTED[::7]


def has(program: Any) -> bool:
    try:
        program()
    except NoProgram:
        return False
    return True


needs_c = pytest.mark.skipif(not has(c_compiler), reason="no C compiler")
needs_node = pytest.mark.skipif(not has(node_program), reason="no Node.js")


class Subjects:
    """Layers of some rows with what Python says of them."""

    def __init__(self, layers: Sequence[nn.Module], weights: str = "float32") -> None:
        plain = [with_stored_weights(layer, "float32") for layer in layers]
        self.stacks = [stack_of(layer, weights) for layer in plain]
        self.cases = [cases_of(stack) for stack in self.stacks]
        rounded = [with_stored_weights(layer, weights) for layer in plain]
        self.expected = [
            expected(layer, stack, cases)
            for layer, stack, cases in zip(rounded, self.stacks, self.cases, strict=True)
        ]

    def in_c(self, folder: Path, flags: Sequence[str] = SANITIZERS) -> None:
        files = [CFile(stack, f"model{k}") for k, stack in enumerate(self.stacks)]
        works = [file.code.work_per_step for file in files]
        self._compare(CPrograms(folder, [f.text() for f in files], self.stacks, works, flags), "C")

    def in_node(self, folder: Path) -> None:
        sources = [javascript_source(stack) for stack in self.stacks]
        self._compare(NodePrograms(folder, sources, self.stacks), "JavaScript")

    def in_onnx(self) -> None:
        for stack, cases, outcomes in zip(self.stacks, self.cases, self.expected, strict=True):
            compare(outcomes, run_onnx(onnx_model(stack), stack, cases), "ONNX")

    def _compare(self, programs: Any, target: str) -> None:
        for outcomes, got in zip(self.expected, programs.run(self.cases), strict=True):
            compare(outcomes, got, target)
        streams = [
            cases if stack.streams else []
            for stack, cases in zip(self.stacks, self.cases, strict=True)
        ]
        for outcomes, got in zip(self.expected, programs.run(streams, mode=1), strict=True):
            compare(outcomes[: len(got)], got, f"{target} step by step")


def layer_of(row: Row) -> nn.Module:
    return row.subject().module.float()


@pytest.fixture(scope="module")
def sample() -> Subjects:
    return Subjects([layer_of(row) for row in SAMPLE])


# --- every row in every language -------------------------------------------------------------


@needs_c
def test_c_computes_what_python_does(sample: Subjects, tmp_path: Path) -> None:
    sample.in_c(tmp_path, (*SANITIZERS, "-O0"))


@needs_node
def test_javascript_computes_what_python_does(sample: Subjects, tmp_path: Path) -> None:
    sample.in_node(tmp_path)


def test_onnx_computes_what_python_does(sample: Subjects) -> None:
    sample.in_onnx()


def test_a_state_that_is_the_input_itself_enters_the_scan() -> None:
    """The graph of QRNN keeps x, which no operator of a step read: a KeyError."""
    Subjects([Recurrent("QRNN", 3, 4)]).in_onnx()


@pytest.mark.slow
@needs_c
@needs_node
def test_every_row_of_the_table_in_every_language(tmp_path: Path) -> None:
    every = Subjects([layer_of(row) for row in EXPORTED])
    every.in_onnx()
    every.in_node(tmp_path)
    every.in_c(tmp_path)


@pytest.mark.parametrize("weights", ["bf16", "int8"])
@needs_c
@needs_node
def test_fewer_bits_a_weight(tmp_path: Path, weights: str) -> None:
    torch.manual_seed(1)
    both = Recurrent(GRU(), 3, 4, 2, bidirectional=True, initial="learned")
    subjects = Subjects([Recurrent(LayerNormLSTM(), 3, 5), both], weights)
    subjects.in_onnx()
    subjects.in_node(tmp_path)
    subjects.in_c(tmp_path, (*SANITIZERS, "-O0"))


@settings(
    max_examples=2,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(cell=random_cells())
@needs_c
@needs_node
def test_random_cells(cell: Cell, tmp_path: Path) -> None:
    one_random_cell(cell, tmp_path)


@pytest.mark.slow
@settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(cell=random_cells())
@needs_c
@needs_node
def test_many_random_cells(cell: Cell, tmp_path: Path) -> None:
    one_random_cell(cell, tmp_path)


def one_random_cell(cell: Any, folder: Path) -> None:
    torch.manual_seed(0)
    layer = Recurrent(cell, cell.input_size, cell.hidden_size)
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.4)
    subjects = Subjects([layer])
    subjects.in_onnx()
    subjects.in_node(folder)
    subjects.in_c(folder, ("-O0",))


# --- which operator a cell is ------------------------------------------------------------------


class MyLSTM(Cell):
    """torch's LSTM as another author writes it: other names and order, two biases."""

    A, B = Matrix("x", ("in_", "keep", "new", "out")), Matrix("s", ("in_", "keep", "new", "out"))
    k, m = Vector(("in_", "keep", "new", "out")), Vector(("in_", "keep", "new", "out"))

    def step(self, x: Any, s: Any, memory: Any) -> Any:
        A, B, k, m = self.A, self.B, self.k, self.m
        out = sigmoid(k.out + B.out @ s + m.out + A.out @ x)
        new = tanh(B.new @ s + k.new + A.new @ x + m.new)
        keep = sigmoid(k.keep + (B.keep @ s + A.keep @ x) + m.keep)
        memory = new * sigmoid(A.in_ @ x + B.in_ @ s + k.in_ + m.in_) + memory * keep
        return tanh(memory) * out, memory


class ClippedRNN(Cell):
    W, U = Matrix("x"), Matrix("h")

    def step(self, x: Any, h: Any) -> Any:
        return tanh(minimum(maximum(self.W @ x + self.U @ h, -0.7), 0.7))


class AlmostGRU(Cell):
    """The candidate reads the reset state, and the update gate too."""

    W, U, b = Matrix("x", "rzn"), Matrix("h", "rzn"), Vector("rzn")

    def step(self, x: Any, h: Any) -> Any:
        W, U, b = self.W, self.U, self.b
        r = sigmoid(W.r @ x + U.r @ h + b.r)
        z = sigmoid(W.z @ x + U.z @ (r * h) + b.z)
        n = tanh(W.n @ x + U.n @ (r * h) + b.n)
        return (1 - z) * n + z * h


@pytest.mark.parametrize(
    ("cell", "name", "attributes"),
    [
        (SimpleRNN("relu"), "RNN", {"activations": ["Relu"]}),
        (GRU(), "GRU", {"linear_before_reset": 1}),
        (ensue.GRUResetBefore(), "GRU", {"linear_before_reset": 0}),
        (ensue.MGU(), "GRU", {"linear_before_reset": 0}),
        (LSTM(), "LSTM", {}),
        (PeepholeLSTM(), "LSTM", {}),
        (ensue.CoupledLSTM(), "LSTM", {"input_forget": 1}),
        (ensue.RecurrentDropout(LSTM()), "LSTM", {}),
        (MyLSTM(), "LSTM", {}),
        (ClippedRNN(), "RNN", {"clip": 0.7}),
        (AlmostGRU(), None, {}),
        (ensue.LSTM1997(), None, {}),
        (LayerNormLSTM(), None, {}),
    ],
    ids=lambda part: type(part).__name__ if isinstance(part, Cell) else "",
)
def test_standard_operators_are_found(cell: Cell, name: str | None, attributes: dict) -> None:
    torch.manual_seed(2)
    layer = Recurrent(cell, 3, 4)
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.5)
    operator = operator_of(stack_of(layer).directions[0])
    assert (operator and operator.name) == name
    if operator is not None:
        assert attributes.items() <= operator.attributes.items()
    Subjects([layer]).in_onnx()


# --- from ONNX -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def operator_cases() -> list[Any]:
    """ONNX's own test cases of its recurrent operators."""
    from importlib import import_module

    nodes = import_module("onnx.backend.test.case.node")
    before = len(nodes._NodeTestCases)
    for name in ("rnn", "gru", "lstm"):
        import_module(f"onnx.backend.test.case.node.{name}")
    return nodes._NodeTestCases[before:]


def test_onnx_own_cases_give_their_outputs(operator_cases: list[Any]) -> None:
    types = set()
    for case in operator_cases:
        (node,) = case.model.graph.node
        types.add(node.op_type)
        for inputs, outputs in case.data_sets:
            waiting = iter(inputs)
            args = [torch.from_numpy(np.array(next(waiting))) if n else None for n in node.input]
            computed = dict(zip(node.output, from_onnx(node)(*args), strict=False))
            for name, value in zip((n for n in node.output if n), outputs, strict=True):
                np.testing.assert_allclose(computed[name], value, rtol=1e-5, atol=1e-6)
    assert types == {"RNN", "GRU", "LSTM"}
    assert len(operator_cases) >= 14


def test_an_operator_becomes_a_layer_and_goes_back(operator_cases: list[Any]) -> None:
    """Peepholes: ONNX's case as a layer of ours, exported, in ONNX Runtime."""
    (case,) = [case for case in operator_cases if case.name == "test_lstm_with_peepholes"]
    (node,) = case.model.graph.node
    x, w, r, b, _, _, _, p = (np.array(array) for array in case.data_sets[0][0])
    layer = from_onnx(node).layer(w, r, b, p)
    stack = stack_of(layer)
    operator = operator_of(stack.directions[0])
    assert operator is not None
    assert operator.P is not None
    np.testing.assert_allclose(operator.P, p)
    assert layer(torch.from_numpy(x))[0].shape == (*x.shape[:2], r.shape[2])


def test_every_activation_of_onnx_is_its_runtime_one() -> None:
    from onnx import TensorProto, helper

    from ensue.export.onnx.operators import DEFAULTS, FUNCTIONS
    from ensue.export.onnx.run import session_of

    random = np.random.default_rng(3)
    x, w, r = (
        random.standard_normal(s).astype(np.float32) for s in ((5, 2, 3), (1, 4, 3), (1, 4, 4))
    )
    for name in FUNCTIONS:
        alpha, beta = DEFAULTS.get(name, (None, None))
        more = {} if alpha is None else {"activation_alpha": [alpha], "activation_beta": [beta]}
        node = helper.make_node(
            "RNN", ["X", "W", "R"], ["Y"], hidden_size=4, activations=[name], clip=1.5, **more
        )
        infos = [
            helper.make_tensor_value_info(n, TensorProto.FLOAT, v.shape)
            for n, v in zip("XWR", (x, w, r), strict=True)
        ]
        out = [helper.make_tensor_value_info("Y", TensorProto.FLOAT, None)]
        model = helper.make_model(
            helper.make_graph([node], "one", infos, out),
            opset_imports=[helper.make_opsetid("", 18)],
            ir_version=10,
        )
        (theirs,) = session_of(model).run(None, dict(zip("XWR", (x, w, r), strict=True)))
        np.testing.assert_allclose(from_onnx(node)(x, w, r)[0], theirs, atol=2e-6, err_msg=name)


def test_other_nodes_are_refused() -> None:
    from onnx import helper

    with pytest.raises(OptionError, match="expected a node RNN, GRU or LSTM, got MatMul"):
        from_onnx(helper.make_node("MatMul", ["a", "b"], ["c"]))
    for strange in (None, "x", 5):
        kind = type(strange).__name__
        with pytest.raises(OptionError, match=rf"RNN, GRU or LSTM .*onnx\.NodeProto.*got {kind};"):
            from_onnx(strange)
    with pytest.raises(OptionError, match="unknown ONNX activation 'ThresholdedRelu'"):
        from_onnx(helper.make_node("RNN", ["X", "W", "R"], ["Y"], activations=["ThresholdedRelu"]))


def test_weights_of_another_size_than_the_node_are_refused() -> None:
    from onnx import helper

    layer = from_onnx(helper.make_node("GRU", ["X", "W", "R"], ["Y"], hidden_size=7))
    weights = [np.zeros(shape, np.float32) for shape in ((2, 1, 3), (1, 12, 3), (1, 12, 4))]
    with pytest.raises(ShapeError, match=r"hidden_size 7 of the node, got weights for 4"):
        layer(*weights)


# --- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.onnx", "a.c", "a.js"])
def test_a_file_is_written_once_it_is_compared(tmp_path: Path, name: str) -> None:
    if (name == "a.c" and not has(c_compiler)) or (name == "a.js" and not has(node_program)):
        pytest.skip("nothing to run it with")
    torch.manual_seed(0)
    layer = Recurrent(LSTM(), 3, 4, batch_first=True)
    written = write(layer, tmp_path / name)
    assert written.combinations == len(CASES) >= 20
    assert written.difference < 1e-5
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert "compared with Python over 24 combinations" in "\n".join(written.lines())


@needs_c
def test_weights_in_a_file_of_their_own(tmp_path: Path) -> None:
    written = write(SimpleRNN(), tmp_path / "rnn.c", separate=True, input_size=3, hidden_size=4)
    assert [file.name for file in written.files] == ["rnn.c", "rnn_weights.h"]
    assert '#include "rnn_weights.h"' in (tmp_path / "rnn.c").read_text()
    assert "flash: 128 bytes of weights" in "\n".join(written.lines())
    compiled = subprocess.run([*c_compiler(), "-std=c99", "-c", "rnn.c"], cwd=tmp_path)
    assert compiled.returncode == 0


def test_strange_things_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="expected a file that ends in"):
        write(LSTM(), tmp_path / "a.txt")
    with pytest.raises(OptionError, match="expected a cell, a layer"):
        write(nn.Linear(2, 3), tmp_path / "a.c")
    with pytest.raises(OptionError, match="unknown kind of weights 'int4'"):
        write(LSTM(), tmp_path / "a.c", weights="int4")
    with pytest.raises(OptionError, match="trees cannot be exported"):
        write(ensue.layers.Recursive(LSTM(), 2, 3), tmp_path / "a.c")
    assert list(tmp_path.iterdir()) == []


def test_nothing_to_compare_with_is_said(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    for name, missing in (("a.c", "no C compiler"), ("a.js", "node was not found")):
        with pytest.raises(NoProgram, match=f"{missing}.*--unchecked"):
            write(SimpleRNN(), tmp_path / name)
        assert not (tmp_path / name).exists()
        assert write(SimpleRNN(), tmp_path / name, unchecked=True).combinations == 0


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtra, match=r'pip install "ensue\[onnx\]"'):
        write(SimpleRNN(), tmp_path / "a.onnx")
    assert list(tmp_path.iterdir()) == []


# --- sabotage ------------------------------------------------------------------------------------


def _other_call(language: type, **changed: str) -> Spelling:
    return Spelling({**language.spelling.calls, **changed})


def _no_zero_length(builder: Any, operator: Any, sequences: Any, *rest: Any) -> Any:
    """Without the `Where` that rows of no length need."""
    wrong = replace_lengths(sequences, "Max")
    return STANDARD(builder, operator, wrong, *rest)


def replace_lengths(sequences: Any, op: str) -> Any:
    import copy

    lengthened = copy.copy(sequences)
    lengthened.lengths = lengthened.builder.add(op, sequences.lengths, lengthened.builder.whole(1))
    return lengthened


STANDARD = onnx_layer.standard
SABOTAGE = {
    "C: another function": (
        "a.c",
        lambda m: m.setattr(C99, "spelling", _other_call(C99, tanh="atanf")),
    ),
    "C: backwards from the last but one": (
        "a.c",
        lambda m: m.setattr(C99, "loop_down", lambda s, i, f: LOOP_DOWN(s, i, f + " - 1")),
    ),
    "JavaScript: another function": (
        "a.js",
        lambda m: m.setattr(JavaScript, "spelling", _other_call(JavaScript, tanh="Math.atan")),
    ),
    "JavaScript: a number is rounded": (
        "a.js",
        lambda m: m.setattr(JavaScript, "number", lambda s, v: repr(round(v, 3))),
    ),
    "ONNX: another function": (
        "a.onnx",
        lambda m: m.setitem(layer.OPERATORS, "tanh", "Atan"),
    ),
    "ONNX: rows of no length take a step": (
        "a.onnx",
        lambda m: m.setattr(onnx_layer, "standard", _no_zero_length),
    ),
    "ONNX: a gate of the other sign": (
        "a.onnx",
        lambda m: m.setattr(
            operators, "patterns", lambda clip: [replace(p, negated="i") for p in PATTERNS(clip)]
        ),
    ),
}
PATTERNS, LOOP_DOWN = operators.patterns, C99.loop_down


@cache
def sabotaged() -> tuple[Recurrent, list[Expected]]:
    torch.manual_seed(3)
    layer = Recurrent([LSTM(), LayerNormLSTM()], 3, 4, bidirectional=True).eval()
    stack = stack_of(layer)
    return layer, expected(with_stored_weights(layer, "float32"), stack, cases_of(stack))


@pytest.mark.parametrize("name", SABOTAGE)
def test_sabotage_is_caught_by_the_grid(tmp_path: Path, monkeypatch: Any, name: str) -> None:
    file, change = SABOTAGE[name]
    if (file == "a.c" and not has(c_compiler)) or (file == "a.js" and not has(node_program)):
        pytest.skip("nothing to run it with")
    layer, outcome_of_python = sabotaged()
    # what Python says stays the same
    monkeypatch.setattr(writing, "expected", lambda *_: outcome_of_python)
    change(monkeypatch)
    with pytest.raises(ExportMismatch, match="not exported"):
        write(layer, tmp_path / file)
    assert list(tmp_path.iterdir()) == []


def test_a_number_that_is_none_is_a_mismatch() -> None:
    layer = with_stored_weights(Recurrent(GRU(), 2, 3), "float32")
    stack = stack_of(layer)
    outcomes = expected(layer, stack, cases_of(stack)[:1])
    got = [replace(outcomes[0].outcome, y=np.full_like(outcomes[0].outcome.y, np.nan))]
    with pytest.raises(ExportMismatch, match="y is nan away"):
        compare(outcomes, got, "C")


def test_the_grid_has_what_it_promises() -> None:
    assert len(CASES) >= 20
    assert len({(steps, rows) for steps, rows, _, _ in CASES}) >= 15
    assert any(lengths is not None and 0 in lengths for _, _, lengths, _ in CASES)
    assert {carried for *_, carried in CASES} == {True, False}
    stack = stack_of(Recurrent(GRU(), 2, 3))
    assert isinstance(stack, Stack)
    assert all(
        isinstance(outcome, Expected)
        for outcome in expected(Recurrent(GRU(), 2, 3).eval(), stack, [])
    )


# --- the command ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*target_table.TARGETS, "cpp", "latex", "mathml", "text"])
def test_cell_show_as(name: str, capsys: Any, monkeypatch: Any) -> None:
    words = ["ensue", "cell", "show", "MGU", "--input", "2", "--hidden", "3", "--as", name]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert not stop.value.code
    assert len(capsys.readouterr().out) > 50


@needs_c
def test_cell_show_as_c_compiles_alone(tmp_path: Path) -> None:
    """Of the usual sizes, and short enough to be read."""
    text = in_language(LSTM(), 32, 64, "c")
    assert len(text.splitlines()) < 150
    (tmp_path / "x.c").write_text(text)
    compile_c([str(tmp_path / "x.c")], str(tmp_path / "x.o"), ("-c",))
