"""A builder for ONNX graphs: nodes and constants, with a name for each value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ensue.errors import MissingExtra
from ensue.export.weights import Stored

if TYPE_CHECKING:
    import onnx

OPSET = 18
FORMAT = 10  # of the file


def load_onnx() -> Any:
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as error:
        raise MissingExtra(
            'onnx: ONNX files need it and it is not installed; pip install "ensue[onnx]"'
        ) from error
    return onnx


class Builder:
    """A graph under construction. A body of `Scan` has its own builder, whose constants are in the
    outer graph."""

    def __init__(self, around: Builder | None = None, prefix: str = "v") -> None:
        self.around, self.prefix = around, prefix
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._known: dict[Any, str] = {}
        self._referenced: list[
            Stored
        ] = []  # weights are recognised by identity, so they must outlive the builder
        self._count = 0

    @property
    def _outermost(self) -> Builder:
        return self if self.around is None else self.around._outermost

    def name(self) -> str:
        """A name that no other value has."""
        top = self._outermost
        top._count += 1
        return f"{top.prefix}{top._count}"

    def add(self, op: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """Adds a node with one output, and returns the output's name."""
        return self.several(op, inputs, [name or self.name()], **attributes)[0]

    def several(
        self, op: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any
    ) -> list[str]:
        domain = attributes.pop("domain", "")
        node = load_onnx().helper.make_node(
            op, list(inputs), list(outputs), domain=domain, **attributes
        )
        self.nodes.append(node)
        return list(outputs)

    def constant(self, value: Any, dtype: Any = np.float32) -> str:
        """The name of a constant; equal constants are stored once."""
        top = self._outermost
        array = np.asarray(value, dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in top._known:
            name = top.name()
            top.constants.append(load_onnx().numpy_helper.from_array(array, name))
            top._known[key] = name
        return top._known[key]

    def whole(self, *values: int) -> str:
        """A vector of integers, such as a shape or axes."""
        return self.constant(values, np.int64)

    def weight(self, stored: Stored) -> str:
        """The values of a stored weight."""
        top = self._outermost
        key = ("weight", id(stored.data))
        if key not in top._known:
            top._referenced.append(stored)
            top._known[key] = top._stored(stored)
        return top._known[key]

    def turned(self, stored: Stored) -> str:
        """The values of a stored weight, transposed."""
        top = self._outermost
        key = ("turned", id(stored.data))
        if key not in top._known:
            top._known[key] = top.add("Transpose", top.weight(stored), perm=[1, 0])
        return top._known[key]

    def _stored(self, stored: Stored) -> str:
        top, onnx = self._outermost, load_onnx()
        if stored.kind == "float32":
            return self.constant(stored.data)
        if stored.kind == "int8":
            assert stored.scale is not None
            data = self.constant(stored.data, np.int8)
            return top.add("DequantizeLinear", data, self.constant(stored.scale), axis=0)
        name = top.name()
        raw = onnx.helper.make_tensor(
            name, onnx.TensorProto.BFLOAT16, stored.data.shape, stored.data.tobytes(), raw=True
        )
        top.constants.append(raw)
        return top.add("Cast", name, to=onnx.TensorProto.FLOAT)

    # ---------------------------------------------------------------- often used
    def axis_size(self, value: str, axis: int) -> str:
        """The size of one axis, as a vector of one number."""
        return self.add("Shape", value, start=axis, end=axis + 1)

    def graph(self, title: str, inputs: Iterable[Any], outputs: Iterable[Any]) -> onnx.GraphProto:
        """A graph of ONNX. inputs, outputs: (name, element type, shape) each, a str for a free
        axis."""
        helper = load_onnx().helper
        in_values, out_values = (
            [helper.make_tensor_value_info(*value) for value in each] for each in (inputs, outputs)
        )
        made: onnx.GraphProto = helper.make_graph(
            self.nodes, title, in_values, out_values, self.constants
        )
        return made


def model_of(graph: onnx.GraphProto, about: dict[str, str] | None = None) -> onnx.ModelProto:
    """The model file; about: its metadata."""
    loaded = load_onnx()
    model: onnx.ModelProto = loaded.helper.make_model(
        graph,
        opset_imports=[loaded.helper.make_opsetid("", OPSET)],
        ir_version=FORMAT,
        producer_name="ensue",
    )
    loaded.helper.set_model_props(model, about or {})
    loaded.checker.check_model(model, full_check=True)
    return model


Array = NDArray[Any]
