"""The parts of a traced network, for C and JavaScript: its constants, its nodes in order, and its
cells. Every value has an index; constants come first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.export.onnx.builder import load_onnx
from ensue.export.onnx.network import DOMAIN, parameter_names, recurrence_of
from ensue.export.stack import Direction

if TYPE_CHECKING:
    import onnx

Array = NDArray[Any]
WHOLE = {2, 3, 5, 6, 7}  # integer types of ONNX


class Constant(NamedTuple):
    """A constant. learned: whether it is a weight; matrices of weights are stored in the chosen
    kind."""

    value: Array
    learned: bool

    @property
    def kind(self) -> str:
        """The kind of its numbers: real, integer or boolean."""
        return {"f": "f", "b": "b"}.get(self.value.dtype.kind, "i")


class Node(NamedTuple):
    """An operator of ONNX, or "Recurrence"; the input −1 means missing."""

    operator: str
    inputs: list[int]
    outputs: list[int]
    attributes: dict[str, Any]


class GraphParts:
    """The parts of a graph. model: the result of `traced`. whole: values that are known to be
    integers."""

    def __init__(self, model: onnx.ModelProto, weights: str) -> None:
        self.weights = weights
        self.constants: list[Constant] = []
        self.nodes: list[Node] = []
        self.cells: list[Direction] = []
        self._known: dict[Any, int] = {}
        self._cell_numbers: dict[Any, int] = {}
        self._numbers: dict[str, int] = {"": -1}
        to_array = load_onnx().numpy_helper.to_array
        graph, learned = model.graph, parameter_names(model)
        tensors = {tensor.name: tensor for tensor in graph.initializer}
        read = _read(graph)
        for name, tensor in tensors.items():
            if name in read:
                self._numbers[name] = self._constant(to_array(tensor), name in learned)
        for node in graph.node:
            if node.op_type == "Constant":
                self._numbers[node.output[0]] = self._constant(_value(node))
        self.count = len(self.constants)
        self.inputs = [(value.name, self._number(value.name)) for value in graph.input]
        for node in graph.node:
            if node.domain == DOMAIN:
                self._recurrence(node, tensors)
            elif node.op_type != "Constant":
                self._add(node)
        self.outputs = [(value.name, self._number(value.name)) for value in graph.output]
        self.whole = {
            self._numbers[value.name]
            for value in (*graph.value_info, *graph.input)
            if value.name in self._numbers and value.type.tensor_type.elem_type in WHOLE
        }
        self.whole |= {k for k, constant in enumerate(self.constants) if constant.kind == "i"}

    def _number(self, name: str) -> int:
        if name not in self._numbers:
            self._numbers[name] = self.count
            self.count += 1
        return self._numbers[name]

    def _constant(self, array: Array, learned: bool = False) -> int:
        """The index of a constant; equal constants are stored once."""
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._known:
            self._known[key] = len(self.constants)
            self.constants.append(Constant(array, learned))
        return self._known[key]

    def _add(self, node: Any) -> None:
        attributes = {attribute.name: _attribute(attribute) for attribute in node.attribute}
        inputs = [self._number(name) for name in node.input]
        outputs = [self._number(name) for name in node.output]
        self.nodes.append(Node(node.op_type, inputs, outputs, attributes))

    def _recurrence(self, node: Any, tensors: Mapping[str, Any]) -> None:
        recurrence = recurrence_of(node, tensors, self.weights)
        names = tuple(name for name in node.input if name in tensors)
        if names not in self._cell_numbers:
            self._cell_numbers[names] = len(self.cells)
            self.cells.append(recurrence.direction)
        facts = {
            "cell": self._cell_numbers[names],
            "states": len(recurrence.state),
            "reverse": int(recurrence.reverse),
            "with_lengths": int(bool(recurrence.lengths)),
        }
        inputs = [
            recurrence.x,
            *recurrence.state,
            *([recurrence.lengths] if recurrence.lengths else []),
        ]
        outputs = [self._number(name) for name in node.output]
        self.nodes.append(Node("Recurrence", [self._number(n) for n in inputs], outputs, facts))


def _attribute(attribute: Any) -> Any:
    """A plain value; a tensor as an array."""
    onnx = load_onnx()
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode()
    if attribute.type == onnx.AttributeProto.TENSOR:
        return np.asarray(onnx.numpy_helper.to_array(value))
    return (
        list(value)
        if attribute.type in (attribute.INTS, attribute.FLOATS, attribute.STRINGS)
        else value
    )


def _read(graph: Any) -> set[str]:
    """The values that at least one node reads."""
    names = {name for node in graph.node for name in node.input}
    return names | {value.name for value in graph.output}


def _value(node: Any) -> Array:
    """The value of a node Constant."""
    (attribute,) = node.attribute
    value = _attribute(attribute)
    if attribute.name == "value":
        return np.asarray(value)
    return np.asarray(value, np.int64 if attribute.name.startswith("value_int") else np.float32)
