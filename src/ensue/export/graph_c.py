"""A network as C99. Its graph becomes a sequence of calls of the operators in
`runtime_c/operators.h`; its cells become functions, printed from their equations. All memory is the
caller's."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ensue.export.c import array
from ensue.export.graph_parts import WHOLE, Constant, GraphParts, Node
from ensue.export.languages import C99, indent
from ensue.export.stack import Stack
from ensue.export.stack_code import StackCode
from ensue.export.weights import Stored, store
from ensue.tasks.exported import refuse

if TYPE_CHECKING:
    import onnx

KINDS = {"float32": "f", "bf16": "h", "int8": "q"}
ONE = {
    "Abs": "f_abs", "Ceil": "ceilf", "Cos": "cosf", "Erf": "erff", "Exp": "expf",
    "Floor": "floorf", "Identity": "f_same", "IsInf": "f_infinite", "IsNaN": "f_nan", "Log": "logf",
    "Neg": "f_neg", "Not": "f_not", "Reciprocal": "f_reciprocal", "Relu": "f_relu",
    "Sigmoid": "f_sigmoid", "Sin": "sinf", "Softplus": "f_softplus", "Sqrt": "sqrtf",
    "Tanh": "tanhf",
}  # fmt: skip
TWO = {
    "Add": "f_add", "And": "f_and", "Equal": "f_equal", "Greater": "f_greater",
    "GreaterOrEqual": "f_at_least", "Less": "f_less", "LessOrEqual": "f_at_most", "Mod": "f_mod",
    "Mul": "f_mul", "Or": "f_or", "Pow": "powf", "Sub": "f_sub",
}  # fmt: skip
SUMS = {"ReduceMax": ">", "ReduceMean": "/", "ReduceMin": "<", "ReduceSum": "+"}
MOST = 1 << 30  # larger integers mean: to the end


class GraphC:
    """One graph. name: prefix of its function."""

    def __init__(self, model: onnx.ModelProto, name: str, weights: str) -> None:
        self.parts, self.name, self.weights = GraphParts(model, weights), name, weights
        self.stored = [self._stored(constant) for constant in self.parts.constants]
        layers = tuple((cell,) for cell in self.parts.cells)
        self.code = StackCode(Stack("", layers), C99()) if layers else None
        self.sequences: dict[int, Node] = {}
        self.known = {k: constant.value for k, constant in enumerate(self.parts.constants)}

    def _stored(self, constant: Constant) -> Stored:
        bounded = (
            constant.value
            if constant.kind == "f"
            else np.clip(constant.value.astype(np.int64), -MOST, MOST)
        )
        real = np.ascontiguousarray(bounded, np.float32)
        return store(real, self.weights if constant.learned else "float32")

    @property
    def flash(self) -> int:
        """Bytes of constants and weights."""
        cells = sum(cell.weights.nbytes for cell in self.parts.cells)
        return cells + sum(array_stored.nbytes for array_stored in self.stored)

    @property
    def called(self) -> set[str]:
        """The elementwise functions that the cells call."""
        return set() if self.code is None else self.code.called

    # ---------------------------------------------------------------- constants and cells
    def text(self) -> str:
        lines: list[str] = []
        for k, constant in enumerate(self.stored):
            data = constant if constant.data.size else Stored("float32", np.zeros(1, np.float32))
            lines += array(f"{self.name}_c{k}", data)
        lines += self._cells()
        lines += [f"int {self.name}_run(const ensue_tensor *inputs, ensue_tensor *outputs,"]
        lines += ["    ensue_room *room)", "{", *indent(self._body()), "}", ""]
        return "\n".join(lines)

    def _cells(self) -> list[str]:
        if self.code is None:
            return []
        named = [item for cell in self.code.cells for item in cell.arrays().items()]
        lines = [line for name, constant in named for line in array(name, constant)]
        lines += self.code.functions()
        for number, part in enumerate(self.parts.cells):
            x, y = f"x + t * {part.input_size}", f"y + t * {part.output_size}"
            body = self.code.one(number, part, 0, x, y, "0")
            lines += [
                f"static void cell{number}(const float *x, long steps, float *state, float *y)",
                "{",
                f"    float fresh[{part.state_size}];",
                "    for (long t = 0; t < steps; t++) {",
                *indent(body, " " * 8),
                "    }",
                "}",
                "",
            ]
        text = "\n".join(lines)
        for word in ("w", "cell"):  # names that differ from those of other graphs
            for number in range(len(self.parts.cells)):
                text = _renamed(text, f"{word}{number}", f"{self.name}_{word}{number}")
        return [text]

    def _constant(self, number: int) -> str:
        constant, stored = self.parts.constants[number], self.stored[number]
        dims = ", ".join(map(str, constant.value.shape)) or "0"
        place = f"{self.name}_c{number}"
        scale = f"{place}__scale" if stored.scale is not None else "NULL"
        kind = KINDS[stored.kind]
        return f"(T){{{constant.value.ndim}, {{{dims}}}, {place}, {scale}, '{kind}'}}"

    # ---------------------------------------------------------------- the calls
    def _body(self) -> list[str]:
        parts = self.parts
        lines = [] if parts.inputs else ["(void)inputs;"]
        lines += [f"T v[{max(1, parts.count)}];"]
        lines += [f"v[{k}] = {self._constant(k)};" for k in range(len(parts.constants))]
        lines += [f"v[{number}] = inputs[{k}];" for k, (_, number) in enumerate(parts.inputs)]
        for node in parts.nodes:
            lines += [*self._calls(node), "if (room->failed) return -room->failed;"]
        lines += [f"outputs[{k}] = v[{number}];" for k, (_, number) in enumerate(parts.outputs)]
        return [*lines, "return 0;"]

    def _calls(self, node: Node) -> list[str]:
        if node.operator == "Recurrence":
            return self._recurrence(node)
        if node.operator == "Split":
            return self._split(node)
        if node.operator == "SplitToSequence":  # cut if only a part is read
            self.sequences[node.outputs[0]] = node
            return []
        if node.operator not in CALLS:
            raise refuse("c", node.operator)
        return [f"v[{node.outputs[0]}] = {CALLS[node.operator](self, node)};"]

    def _recurrence(self, node: Node) -> list[str]:
        attributes, cell = node.attributes, self.parts.cells[node.attributes["cell"]]
        x, *rest = node.inputs
        parts, many = rest[: attributes["states"]], attributes["states"]
        lengths = f"&v[{rest[many]}]" if attributes["with_lengths"] else "NULL"
        width, run = cell.output_size, f"{self.name}_cell{attributes['cell']}"
        call = (
            f"recurrence(room, &v[{x}], parts, {many}, {lengths}, {attributes['reverse']}, {run}, "
            f"{width}, &v[{node.outputs[0]}]);"
        )
        back = [
            f"v[{number}] = parts[{k}];"
            for k, number in enumerate(node.outputs[1 : many + 1])
            if number >= 0
        ]
        states = ", ".join(f"v[{k}]" for k in parts)
        return ["{", *indent([f"T parts[{many}] = {{{states}}};", call, *back]), "}"]

    def _split(self, node: Node) -> list[str]:
        """Splits one axis into parts of known sizes or into equal parts."""
        axis, lines, first = node.attributes.get("axis", 0), list[str](), 0
        if len(node.inputs) < 2 or node.inputs[1] < 0:
            many = len(node.outputs)
            return [
                f"v[{output}] = op_equal_part(room, &v[{node.inputs[0]}], {axis}, {many}, {k});"
                for k, output in enumerate(node.outputs)
            ]
        sizes = self.known.get(node.inputs[1])
        if sizes is None:
            raise refuse("c", "Split")
        for number, size in zip(node.outputs, sizes.ravel().tolist(), strict=True):
            lines.append(
                f"v[{number}] = op_part(room, &v[{node.inputs[0]}], {axis}, {first}, {size});"
            )
            first += size
        return lines

    def input_of(self, node: Node, k: int) -> str:
        """An input by its position; NULL if it is missing."""
        exists = k < len(node.inputs) and node.inputs[k] >= 0
        return f"&v[{node.inputs[k]}]" if exists else "NULL"


def _renamed(text: str, word: str, other: str) -> str:
    """Renames whole words, and prefixes of the names of weights (w0_U)."""
    return re.sub(rf"\b{word}(?=\b|_)", other, text)


# --- the table -----------------------------------------------------------------------------------

Call = Callable[[GraphC, Node], str]


def _one(name: str) -> Call:
    return lambda graph, node: f"op_each(room, {graph.input_of(node, 0)}, {name})"


def _two(name: str) -> Call:
    return lambda graph, node: (
        f"op_pair(room, {graph.input_of(node, 0)}, {graph.input_of(node, 1)}, {name})"
    )


def _extreme(name: str) -> Call:
    """An operator of one input or two."""

    def call(c: GraphC, node: Node) -> str:
        if len(node.inputs) > 2:
            raise refuse("c", node.operator)
        return (_two(name) if len(node.inputs) == 2 else _one("f_same"))(c, node)

    return call


def _divided(c: GraphC, node: Node) -> str:
    name = "f_div_whole" if node.inputs[0] in c.parts.whole else "f_div"
    return _two(name)(c, node)


def _cast(c: GraphC, node: Node) -> str:
    to = node.attributes.get("to")
    if to is None:  # CastLike
        to = 7 if node.inputs[1] in c.parts.whole else 1
    name = "f_truth" if to == 9 else "truncf" if to in WHOLE else "f_same"
    return f"op_each(room, {c.input_of(node, 0)}, {name})"


def _reduced(how: str) -> Call:
    def call(c: GraphC, node: Node) -> str:
        if "axes" in node.attributes:
            raise refuse("c", node.operator)
        keep = node.attributes.get("keepdims", 1)
        return f"op_reduce(room, {c.input_of(node, 0)}, {c.input_of(node, 1)}, {keep}, '{how}')"

    return call


def _softmax(logarithm: int) -> Call:
    return lambda graph, node: (
        f"op_softmax(room, {graph.input_of(node, 0)}, {node.attributes.get('axis', -1)}, "
        f"{logarithm})"
    )


def _joined(c: GraphC, node: Node) -> str:
    listed = ", ".join(c.input_of(node, k) for k in range(len(node.inputs)))
    many = len(node.inputs)
    return f"op_concat(room, (const T *[]){{{listed}}}, {many}, {node.attributes['axis']})"


def _turned(c: GraphC, node: Node) -> str:
    listed = ", ".join(map(str, node.attributes["perm"]))
    return f"op_transpose(room, {c.input_of(node, 0)}, (const long[]){{{listed}}})"


def _chunk(c: GraphC, node: Node) -> str:
    """One of the equal parts of an axis."""
    cut = c.sequences[node.inputs[0]]
    sizes = c.input_of(cut, 1)
    if sizes == "NULL":
        raise refuse("c", "SplitToSequence")
    axis, number = cut.attributes.get("axis", 0), c.input_of(node, 1)
    return f"op_chunk(room, {c.input_of(cut, 0)}, {axis}, {sizes}, {number})"


def _shaped(c: GraphC, node: Node) -> str:
    first, last = node.attributes.get("start", 0), node.attributes.get("end", 99)
    return f"op_shape(room, {c.input_of(node, 0)}, {first}, {last})"


def _filled(c: GraphC, node: Node) -> str:
    value = node.attributes.get("value", np.zeros(1))
    number = C99().number(float(np.ravel(value)[0]))
    return f"op_filled(room, {c.input_of(node, 0)}, {number})"


def _several(name: str, count: int, *attributes: tuple[str, Any]) -> Call:
    """An operator with `count` inputs, and attributes with their defaults."""

    def call(c: GraphC, node: Node) -> str:
        arguments = [c.input_of(node, k) for k in range(count)]
        more = [_spelled(node.attributes.get(key, usual)) for key, usual in attributes]
        return f"{name}({', '.join(['room', *arguments, *more])})"

    return call


def _spelled(value: Any) -> str:
    return C99().number(value) if isinstance(value, float) else str(value)


def _windows(c: GraphC, node: Node, kernel: Sequence[int]) -> str:
    """The strides, padding and so on of a convolution or pooling; a sequence counts as a picture
    with one line."""
    attributes, rank = node.attributes, len(kernel)
    if rank > 2 or attributes.get("auto_pad", "NOTSET") not in ("NOTSET", b"NOTSET"):
        raise refuse("c", node.operator)
    pads = attributes.get("pads", [0] * (2 * rank))
    each = [
        (kernel, 1),
        (attributes.get("strides", [1] * rank), 1),
        (attributes.get("dilations", [1] * rank), 1),
        (pads[:rank], 0),
        (pads[rank:], 0),
    ]
    listed = [
        "{" + ", ".join(map(str, [none] * (2 - rank) + list(numbers))) + "}"
        for numbers, none in each
    ]
    return f"(ensue_windows){{{', '.join(listed)}, {attributes.get('ceil_mode', 0)}}}"


def _convolution(c: GraphC, node: Node) -> str:
    weights = c.known.get(node.inputs[1])
    if weights is None:
        raise refuse("c", node.operator)
    arguments = ", ".join(c.input_of(node, k) for k in range(3))
    groups, windows = node.attributes.get("group", 1), _windows(c, node, weights.shape[2:])
    return f"op_conv(room, {arguments}, {groups}, {windows})"


def _pooling(how: str) -> Call:
    def call(c: GraphC, node: Node) -> str:
        windows = _windows(c, node, node.attributes["kernel_shape"])
        whole = node.attributes.get("count_include_pad", 0)
        return f"op_pool(room, {c.input_of(node, 0)}, '{how}', {whole}, {windows})"

    return call


CALLS: Mapping[str, Call] = {
    **{name: _one(value) for name, value in ONE.items()},
    **{name: _two(value) for name, value in TWO.items()},
    **{name: _reduced(how) for name, how in SUMS.items()},
    "AveragePool": _pooling("/"),
    "BatchNormalization": _several("op_batch_normalise", 5, ("epsilon", 1e-5)),
    "Cast": _cast,
    "CastLike": _cast,
    "Clip": _several("op_clip", 3),
    "Concat": _joined,
    "ConstantOfShape": _filled,
    "Conv": _convolution,
    "Div": _divided,
    "Expand": _several("op_expand", 2),
    "Gather": _several("op_gather", 2, ("axis", 0)),
    "GatherElements": _several("op_gather_elements", 2, ("axis", 0)),
    "GatherND": _several("op_gather_nd", 2, ("batch_dims", 0)),
    "Gemm": _several("op_gemm", 3, ("alpha", 1.0), ("beta", 1.0), ("transA", 0), ("transB", 0)),
    "LayerNormalization": _several("op_normalise", 3, ("axis", -1), ("epsilon", 1e-5)),
    "LogSoftmax": _softmax(1),
    "Max": _extreme("f_max"),
    "MaxPool": _pooling(">"),
    "Min": _extreme("f_min"),
    "MatMul": _several("op_matmul", 2),
    "Range": _several("op_range", 3),
    "Reshape": _several("op_reshape", 2, ("allowzero", 0)),
    "ScatterND": _several("op_scatter_nd", 3),
    "SequenceAt": _chunk,
    "Shape": _shaped,
    "Slice": _several("op_slice", 5),
    "Softmax": _softmax(0),
    "Squeeze": _several("op_squeeze", 2),
    "Tile": _several("op_tile", 2),
    "Transpose": _turned,
    "Unsqueeze": _several("op_unsqueeze", 2),
    "Where": _several("op_where", 3),
}
