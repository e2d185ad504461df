"""Every operator of the JavaScript and the C that networks are made of gives what ONNX Runtime
gives."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from test_export_models import SANITIZERS, needs_c, needs_node

from ensue.export.c_folder import RUNTIME as RUNTIME_C
from ensue.export.c_folder import model_files, run_folder
from ensue.export.graph_c import CALLS
from ensue.export.javascript import DECODERS
from ensue.export.module import ALWAYS, RUNTIME, graph_text, operator_names, run_in_node
from ensue.export.programs import compile_c
from ensue.tasks.exported import Graph, Input

pytest.importorskip("onnxruntime")
ONNX_ONLY = {"Recurrence"}  # has no twin there; the grid has it
X, PICTURE = (3, 4, 5), (2, 4, 7, 6)
UNARY = ("Abs", "Ceil", "Cos", "Erf", "Exp", "Floor", "Neg", "Reciprocal", "Relu", "Sigmoid")
UNARY += ("Sign", "Sin", "Softplus", "Tanh", "Identity", "IsNaN", "IsInf", "Elu", "LeakyRelu")
UNARY += ("Gelu", "Size")
SUMS = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2")
SUMS += ("ReduceSumSquare", "ReduceLogSumExp")


def weights(*shape: int) -> Any:
    """Constants, as the weights of a convolution are."""
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


# operator, inputs: a shape of real numbers or a list of whole ones, and attributes
CASES: list[tuple[str, list[Any], dict[str, Any]]] = [
    *(
        (name, [X], {}) for name in UNARY
    ),
    ("Sqrt", [np.array([0.0, 2.0, 3.5], np.float32)], {}),
    ("Log", [np.array([0.5, 2.0, 3.5], np.float32)], {}),
    ("Gelu", [X], {"approximate": "tanh"}),
    *((name, [X, (4, 1)], {}) for name in ("Add", "Sub", "Mul", "Div", "Min", "Max", "Sum")),
    *((name, [X, (5,)], {}) for name in ("Less", "Greater", "LessOrEqual", "GreaterOrEqual")),
    ("Equal", [[1, 2, 3], [1, 5, 3]], {}),
    ("Div", [[7, -7, 9], [2, 2, -4]], {}),
    ("Mod", [[7, -7, 9], [3, 3, -4]], {}),
    ("Pow", [np.array([1.5, 2.0], np.float32), np.array([2.0, 0.5], np.float32)], {}),
    *((name, [[True, False], [True, True]], {}) for name in ("And", "Or", "Xor")),
    ("Not", [[True, False]], {}),
    ("Where", [[[True], [False]], (3, 1, 4), (2, 1)], {}),
    ("Clip", [X, np.float32(-0.5), np.float32(0.5)], {}),
    ("Cast", [np.array([1.7, -1.7, 0.0], np.float32)], {"to": 7}),
    ("Cast", [np.array([1.7, -1.7, 0.0], np.float32)], {"to": 9}),
    ("CastLike", [[1, 0], (2,)], {}),
    ("Shape", [X], {"start": 1}),
    ("Reshape", [X, [0, -1, 2]], {}),
    ("Expand", [(4, 1), [3, 1, 5]], {}),
    ("Flatten", [PICTURE], {"axis": 2}),
    ("Squeeze", [(1, 4, 1), [-1]], {}),
    ("Unsqueeze", [X, [0, -1]], {}),
    ("Transpose", [X], {"perm": [2, 0, 1]}),
    ("Slice", [X, [-1, 0], [-99, 3], [2, 1], [-2, 2]], {}),
    ("Concat", [X, (3, 2, 5)], {"axis": 1}),
    ("Split", [X, [1, 3]], {"axis": 1}),
    ("Pad", [X, [1, 0, 2, 0, 3, 1], np.float32(7.0)], {}),
    ("Tile", [(2, 3), [2, 3]], {}),
    ("Gather", [X, [[0, -1], [2, 1]]], {"axis": 1}),
    ("GatherElements", [X, [[[0, -1, 1, 0, 2]]]], {"axis": 1}),
    ("GatherND", [X, [[0, 1], [-1, 3]]], {}),
    ("GatherND", [X, [[1], [0], [3]]], {"batch_dims": 1}),
    ("ScatterND", [X, [[0, 1], [2, -1]], (2, 5)], {}),
    ("Range", [np.int64(2), np.int64(11), np.int64(3)], {}),
    ("ConstantOfShape", [[2, 3]], {}),
    ("Einsum", [(3, 2, 4), (5, 2, 4)], {"equation": "tbw,sbw->tbs"}),
    ("MatMul", [(2, 1, 3, 4), (5, 4, 2)], {}),
    ("MatMul", [(4,), (4, 2)], {}),
    ("Gemm", [(4, 3), (5, 4), (5,)], {"alpha": 0.5, "beta": 2.0, "transA": 1, "transB": 1}),
    ("Conv", [PICTURE, weights(6, 2, 3, 2), (6,)], {"group": 2, "pads": [1, 0, 2, 1]}
     | {"strides": [2, 1]}),
    ("Conv", [(2, 3, 9), weights(4, 3, 3)], {"strides": [2], "auto_pad": "SAME_UPPER"}),
    ("Conv", [(2, 3, 9), weights(4, 3, 3)], {"dilations": [2], "pads": [1, 2]}),
    ("MaxPool", [PICTURE], {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 0]}),
    ("AveragePool", [PICTURE], {"kernel_shape": [2, 2], "pads": [1, 1, 0, 0]}),
    ("AveragePool", [PICTURE], {"kernel_shape": [2, 2], "pads": [1, 1, 0, 0]}
     | {"count_include_pad": 1}),
    *(
        (name, [X, [0, -1]], {"keepdims": 0}) for name in SUMS
    ),
    ("ReduceSum", [X], {}),
    ("Softmax", [X], {"axis": 1}),
    ("LogSoftmax", [X], {"axis": 0}),
    ("LayerNormalization", [X, (4, 5), (4, 5)], {"axis": 1}),
    ("BatchNormalization", [PICTURE, (4,), (4,), (4,), np.array([1, 2, 3, 4], np.float32)], {}),
    ("ArgMax", [X], {"axis": 1, "keepdims": 0}),
    ("TopK", [X, [2]], {"axis": 1}),
    ("CumSum", [X, np.int64(1)], {}),
    ("Trilu", [X, np.int64(1)], {"upper": 0}),
]  # fmt: skip
OUTPUTS = {"Split": 2, "TopK": 2}


def one_node(operator: str, inputs: list[Any], attributes: dict[str, Any]) -> Any:
    """A model of one node, whose real inputs are given and whose others are constants."""
    from onnx import TensorProto, helper, numpy_helper

    arguments, constants, values = [], [], {}
    random = np.random.default_rng(len(operator))
    for k, spec in enumerate(inputs):
        name = f"in{k}"
        if isinstance(spec, tuple):
            values[name] = torch.from_numpy(random.standard_normal(spec).astype(np.float32))
            arguments.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, spec))
        else:
            constants.append(numpy_helper.from_array(np.asarray(spec), name))
    outputs = [f"out{k}" for k in range(OUTPUTS.get(operator, 1))]
    node = helper.make_node(operator, [f"in{k}" for k in range(len(inputs))], outputs, **attributes)
    ends = [helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = helper.make_graph([node], "one", arguments, ends, constants)
    opset = 20 if operator == "Gelu" else 18
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), values


@needs_node
def test_every_operator_gives_what_onnx_runtime_gives() -> None:
    from ensue.export.onnx.run import session_of

    made = [one_node(*case) for case in CASES]
    graphs = ",\n".join(
        f"g{k}: {graph_text(graph, 'float32')}" for k, (graph, _) in enumerate(made)
    )
    runtime = [(RUNTIME / f"{name}.js").read_text() for name in ALWAYS]
    source = "\n".join(
        ["const MODEL = {};", *DECODERS.values(), *runtime, f"export const GRAPHS = {{{graphs}}};"]
    )
    outputs = run_in_node(source, [(f"g{k}", values) for k, (_, values) in enumerate(made)])
    for (operator, *_), (model, values), got in zip(CASES, made, outputs, strict=True):
        expected = session_of(model).run(None, {k: v.numpy() for k, v in values.items()})
        for one, other in zip(got, expected, strict=True):
            np.testing.assert_allclose(
                one, np.asarray(other, np.float32), rtol=1e-5, atol=2e-6, err_msg=operator
            )


# What C refuses by name: operators that no network of ours has, and forms of others.
NOT_IN_C = {
    "ArgMax", "CumSum", "Einsum", "Elu", "Flatten", "Gelu", "LeakyRelu", "Pad", "ReduceL2",
    "ReduceLogSumExp", "ReduceProd", "ReduceSumSquare", "Sign", "Size", "Sum", "TopK", "Trilu",
    "Xor",
}  # fmt: skip
IN_C = [
    case for case in CASES if case[0] not in NOT_IN_C and case[2].get("auto_pad") != "SAME_UPPER"
]  # fmt: skip


def graph_of(number: int, model: Any, values: dict[str, Any]) -> Graph:
    inputs = tuple(Input(name, tuple(tensor.shape)) for name, tensor in values.items())
    outputs = tuple(output.name for output in model.graph.output)
    return Graph(f"g{number}", torch.nn.Identity(), inputs, outputs)


@needs_c
def test_every_operator_of_c_gives_what_onnx_runtime_gives() -> None:
    """In one program, under the sanitizers."""
    from ensue.export.onnx.run import session_of

    assert {name for name, *_ in CASES} - NOT_IN_C <= {*CALLS, "Split"}
    assert not NOT_IN_C & {*CALLS}
    made = [one_node(*case) for case in IN_C]
    graphs = [graph_of(k, *model_and_values) for k, model_and_values in enumerate(made)]
    files = model_files(graphs, {f"g{k}": values for k, (values, _) in enumerate(made)}, "float32")
    cases = [(f"g{k}", values) for k, (_, values) in enumerate(made)]
    outputs = run_folder(graphs, files, cases, (*SANITIZERS, "-O0"))
    for (operator, *_), (model, values), got in zip(IN_C, made, outputs, strict=True):
        reference = session_of(model).run(None, {k: v.numpy() for k, v in values.items()})
        for one, other in zip(got, reference, strict=True):
            expected = np.asarray(other, np.float32)
            np.testing.assert_allclose(one, expected, rtol=1e-5, atol=2e-6, err_msg=operator)


# Each call reads `value` as a place, or as a size, in a tensor of 3 by 4; 2 is one of both.
READS_PLACES = {
    "Gather": "op_gather(&room, &a, &value, 0)",
    "GatherElements": "op_gather_elements(&room, &a, &value, 0)",
    "GatherND": "op_gather_nd(&room, &a, &value, 0)",
    "ScatterND": "op_scatter_nd(&room, &a, &value, &a)",
    "SequenceAt": "op_chunk(&room, &a, 0, &one, &value)",
}
READS_SIZES = {
    "ConstantOfShape": "op_filled(&room, &value, 1.0f)",
    "Expand": "op_expand(&room, &one, &value)",
    "Range": "op_range(&room, &one, &value, &one)",
    "Reduce": "op_reduce(&room, &cube, &value, 1, '+')",
    "Reshape": "op_reshape(&room, &two, &value, 0)",
    "Slice, steps": "op_slice(&room, &a, &one, &one, NULL, &value)",
    "Slice, places": "op_slice(&room, &a, &value, &value, NULL, NULL)",
    "Slice, axes": "op_slice(&room, &cube, &one, &one, &value, NULL)",
    "Squeeze": "op_squeeze(&room, &cube, &value)",
    "Tile": "op_tile(&room, &two, &value)",
    "Unsqueeze": "op_unsqueeze(&room, &a, &value)",
}
PLACES_MAIN = """
#include <stdio.h>
#include "operators.h"

int main(void)
{
    static float memory[200], numbers[12], given[1], ones[1] = {1.0f};
    static const float tried[] = {%(tried)s};
    const T a = {2, {3, 4}, numbers, NULL, 'f'}, cube = {3, {2, 2, 1}, numbers, NULL, 'f'};
    const T one = {1, {1}, ones, NULL, 'f'}, two = {1, {2}, numbers, NULL, 'f'};
    const T value = {1, {1}, given, NULL, 'f'};
    (void)a, (void)cube, (void)two;
    for (unsigned long k = 0; k < sizeof tried / sizeof *tried; k++) {
        given[0] = tried[k];
%(calls)s
    }
    return 0;
}
"""


@needs_c
def test_c_refuses_what_is_no_place(tmp_path: Path) -> None:
    """An index outside −n … n − 1, or a float that is no whole number, would read other memory."""
    tried = ["NAN", "INFINITY", "-INFINITY", "1e30f", "-1e30f", "0.5f", "1e9f", "-4.0f", "3.0f"]
    tried += ["-3.0f", "2.0f"]
    calls = {**READS_PLACES, **READS_SIZES}
    text = "\n".join(
        f'        {{ R room = {{memory, 200, 0, 0}}; (void){call}; printf("%d ", room.failed); }}'
        for call in calls.values()
    )
    main = PLACES_MAIN % {"tried": ", ".join(tried), "calls": text}
    (tmp_path / "main.c").write_text(main)
    program = str(tmp_path / "main")
    flags = (*SANITIZERS, "-O0", f"-I{RUNTIME_C}")
    compile_c([str(tmp_path / "main.c")], program, flags)
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    statuses = np.array(done.stdout.split(), int).reshape(len(tried), len(calls))
    table = {(value, name): status for value, row in zip(tried, statuses, strict=True)
             for name, status in zip(calls, row, strict=True)}  # fmt: skip
    for name in calls:
        assert all(table[value, name] for value in tried[:5]), name
        assert table["0.5f", name] or name == "Range", name  # whose numbers may be real
        assert table["2.0f", name] == 0, name
    for name in READS_PLACES:
        assert all(table[value, name] for value in ("1e9f", "-4.0f", "3.0f")), name
        assert table["-3.0f", name] == 0, name


def test_the_table_of_operators_is_covered() -> None:
    elsewhere = ONNX_ONLY | {"SplitToSequence", "SequenceAt"}  # sequences are no outputs
    assert {name for name, *_ in CASES} == operator_names() - elsewhere
