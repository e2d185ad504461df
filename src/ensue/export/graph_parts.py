"""A traced network taken apart, for the languages that are not ONNX: its constants, its nodes in
order, and its cells. Every value has a number; constants come first."""

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
WHOLE = {2, 3, 5, 6, 7}  # kinds of numbers of ONNX that are whole


class Constant(NamedTuple):
    """learned: a matrix of them is stored as the export was asked for."""

    value: Array
    learned: bool

    @property
    def kind(self) -> str:
        """Real numbers, whole ones, or truths."""
        return {"f": "f", "b": "b"}.get(self.value.dtype.kind, "i")


class Node(NamedTuple):
    """An operator of ONNX, or "Recurrence"; −1 is an input that is not given."""

    operator: str
    inputs: list[int]
    outputs: list[int]
    attributes: dict[str, Any]


class GraphParts:
    """model: as `traced` gives it. whole: the values that are whole numbers, where it is known."""

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
        tensors = {own.name: own for own in graph.initializer}
        read = _read(graph)
        for name, tensor in tensors.items():
            if name in read:
                self._numbers[name] = self._constant(to_array(tensor), name in learned)
        for node in graph.node:
            if node.op_type == "Constant":
                self._numbers[node.output[0]] = self._constant(_value(node))
        self.count = len(self.constants)
        self.inputs = [(own.name, self._number(own.name)) for own in graph.input]
        for node in graph.node:
            if node.domain == DOMAIN:
                self._recurrence(node, tensors)
            elif node.op_type != "Constant":
                self._add(node)
        self.outputs = [(own.name, self._number(own.name)) for own in graph.output]
        self.whole = {
            self._numbers[own.name]
            for own in (*graph.value_info, *graph.input)
            if own.name in self._numbers and own.type.tensor_type.elem_type in WHOLE
        }
        self.whole |= {k for k, own in enumerate(self.constants) if own.kind == "i"}

    def _number(self, name: str) -> int:
        if name not in self._numbers:
            self._numbers[name] = self.count
            self.count += 1
        return self._numbers[name]

    def _constant(self, array: Array, learned: bool = False) -> int:
        """Equal ones are one."""
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._known:
            self._known[key] = len(self.constants)
            self.constants.append(Constant(array, learned))
        return self._known[key]

    def _add(self, node: Any) -> None:
        own = {given.name: _attribute(given) for given in node.attribute}
        given = [self._number(name) for name in node.input]
        found = [self._number(name) for name in node.output]
        self.nodes.append(Node(node.op_type, given, found, own))

    def _recurrence(self, node: Any, tensors: Mapping[str, Any]) -> None:
        own = recurrence_of(node, tensors, self.weights)
        names = tuple(name for name in node.input if name in tensors)
        if names not in self._cell_numbers:
            self._cell_numbers[names] = len(self.cells)
            self.cells.append(own.direction)
        facts = {
            "cell": self._cell_numbers[names],
            "states": len(own.state),
            "reverse": int(own.reverse),
            "with_lengths": int(bool(own.lengths)),
        }
        given = [own.x, *own.state, *([own.lengths] if own.lengths else [])]
        found = [self._number(name) for name in node.output]
        self.nodes.append(Node("Recurrence", [self._number(n) for n in given], found, facts))


def _attribute(given: Any) -> Any:
    """A plain value; a tensor as an array."""
    onnx = load_onnx()
    value = onnx.helper.get_attribute_value(given)
    if isinstance(value, bytes):
        return value.decode()
    if given.type == onnx.AttributeProto.TENSOR:
        return np.asarray(onnx.numpy_helper.to_array(value))
    return list(value) if given.type in (given.INTS, given.FLOATS, given.STRINGS) else value


def _read(graph: Any) -> set[str]:
    """The values that something reads."""
    found = {name for node in graph.node for name in node.input}
    return found | {own.name for own in graph.output}


def _value(node: Any) -> Array:
    """Of a node Constant."""
    (given,) = node.attribute
    value = _attribute(given)
    if given.name == "value":
        return np.asarray(value)
    return np.asarray(value, np.int64 if given.name.startswith("value_int") else np.float32)
