"""From ONNX: the standard RNN, GRU and LSTM operators as Ensue's cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ensue.cells import Cell
from ensue.engine.run import run
from ensue.errors import OptionError, ShapeError
from ensue.export.onnx.builder import load_onnx
from ensue.export.onnx.operators import Activation, OperatorGRU, OperatorLSTM, OperatorRNN
from ensue.layers.recurrent import Recurrent

GATES = {"RNN": "i", "GRU": "zrh", "LSTM": "iofc"}
USUAL = {"RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}
WITH_ALPHA = ("Affine", "LeakyRelu", "ScaledTanh", "HardSigmoid", "Elu", "ThresholdedRelu")
WITH_BETA = ("Affine", "ScaledTanh", "HardSigmoid")
INPUTS = ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P")
DIRECTIONS = ("forward", "reverse", "bidirectional")


def from_onnx(node: Any) -> OperatorLayer:
    """A node RNN, GRU or LSTM of an ONNX graph as a layer of Ensue's cells.

    Called with the node's inputs (X, W, R, B, sequence_lens, initial_h, initial_c, P; None for
    missing ones) it returns the node's outputs Y, Y_h and, for an LSTM, Y_c. `.layer(W, R, B, P)`
    returns it as a `Recurrent`, for further use."""
    if not isinstance(node, load_onnx().NodeProto):
        raise OptionError(
            "from_onnx: expected a node RNN, GRU or LSTM of an ONNX graph (onnx.NodeProto), got "
            f"{type(node).__name__}; the nodes of a model are onnx.load(path).graph.node"
        )
    if node.op_type not in GATES:
        raise OptionError(
            f"from_onnx: expected a node RNN, GRU or LSTM, got {node.op_type or 'a node'}"
        )
    attributes = {attribute.name: _plain(attribute) for attribute in node.attribute}
    peepholes = len(node.input) > 7 and bool(node.input[7])
    return OperatorLayer(node.op_type, attributes, peepholes)


def _plain(attribute: Any) -> Any:
    from onnx.helper import get_attribute_value

    value = get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, (list, tuple)) or hasattr(value, "__iter__"):
        return [item.decode() if isinstance(item, bytes) else item for item in value]
    return value


class OperatorLayer:
    """A node RNN, GRU or LSTM: a cell for each direction."""

    def __init__(self, operator: str, attributes: dict[str, Any], peepholes: bool) -> None:
        self.operator, self.peepholes = operator, peepholes
        self.direction = attributes.get("direction", "forward")
        if self.direction not in DIRECTIONS:
            raise OptionError(
                f"direction: expected one of {', '.join(DIRECTIONS)}, got {self.direction!r}"
            )
        self.hidden_size = attributes.get("hidden_size")
        self.layout = int(attributes.get("layout", 0))
        self.after = bool(attributes.get("linear_before_reset", 0))
        self.input_forget = bool(attributes.get("input_forget", 0))
        self.cells = [
            self._cell(activation) for activation in _activations(operator, attributes, self.count)
        ]

    @property
    def count(self) -> int:
        return 1 + int(self.direction == "bidirectional")

    def _cell(self, activations: list[Activation]) -> Cell:
        if self.operator == "RNN":
            return OperatorRNN(activations[0])
        if self.operator == "GRU":
            return OperatorGRU(activations[0], activations[1], self.after)
        f, g, h = activations
        return OperatorLSTM(f, g, h, self.peepholes, self.input_forget)

    # ---------------------------------------------------------------- tensors
    def parameters(self, number: int, W: Any, R: Any, B: Any, P: Any) -> dict[str, Tensor]:
        """The parameters of one direction, from tensors with all directions on their first axis."""
        cell, gates = self.cells[number], GATES[self.operator]
        W, R = torch.as_tensor(W)[number], torch.as_tensor(R)[number]
        hidden = R.shape[1]
        if W.shape[0] != len(gates) * hidden or R.shape[0] != len(gates) * hidden:
            raise ShapeError(
                f"W, R: expected {len(gates)} gates of {hidden} rows, got {tuple(W.shape)} and "
                f"{tuple(R.shape)}"
            )
        if self.hidden_size not in (None, hidden):
            raise ShapeError(
                f"W, R: expected weights for the hidden_size {self.hidden_size} of the node, got "
                f"weights for {hidden}"
            )
        zeros = W.new_zeros(2 * len(gates) * hidden)
        both = zeros if B is None else torch.as_tensor(B)[number]
        one, other = both.chunk(2)
        weights = {"W": W, "R": R, "b": one + other}
        if "d" in cell.parameters:  # the bias inside the reset stays separate
            weights["d"] = other[-hidden:]
            weights["b"] = torch.cat([weights["b"][:-hidden], one[-hidden:]])
        if self.operator == "LSTM" and self.input_forget:
            remaining = [k for k, gate in enumerate(gates) if gate != "f"]
            weights = {
                name: _gates(value, remaining, len(gates)) for name, value in weights.items()
            }
        if "p" in cell.parameters:
            p = W.new_zeros(3 * hidden) if P is None else torch.as_tensor(P)[number]
            weights["p"] = _gates(p, [0, 1], 3) if self.input_forget else p
        return weights

    def layer(self, W: Any, R: Any, B: Any = None, P: Any = None) -> Recurrent:
        """The operator as a `Recurrent` layer with these weights. All directions have the same
        cell."""
        if self.direction == "reverse":
            raise OptionError("layer: a layer that only goes backwards is not offered")
        recurrent = Recurrent(
            self.cells[0],
            torch.as_tensor(W).shape[2],
            torch.as_tensor(R).shape[2],
            bidirectional=self.count == 2,
            batch_first=self.layout == 1,
        )
        for number, way in enumerate(recurrent.ways):
            for name, value in self.parameters(number, W, R, B, P).items():
                getattr(way, name).data = value.clone()
        return recurrent

    # ---------------------------------------------------------------- running
    @torch.no_grad()
    def __call__(self, X: Any, W: Any, R: Any, *more: Any) -> tuple[Tensor, ...]:
        arguments: list[Any] = [*more, *[None] * (5 - len(more))]
        B, lengths, h, c, P = arguments
        x = torch.as_tensor(X)
        x = x.transpose(0, 1) if self.layout else x
        begin = [None if value is None else torch.as_tensor(value) for value in (h, c)]
        begin = [
            value.transpose(0, 1) if value is not None and self.layout else value for value in begin
        ]
        runs = [
            self._run(number, x, self.parameters(number, W, R, B, P), begin, lengths)
            for number in range(self.count)
        ]
        y = torch.stack([output for output, _ in runs], 1)  # (time, directions, batch, hidden)
        ends = [torch.stack(part) for part in zip(*(end for _, end in runs), strict=True)]
        if self.layout:
            return (y.permute(2, 0, 1, 3), *(end.transpose(0, 1) for end in ends))
        return (y, *ends)

    def _run(
        self,
        number: int,
        x: Tensor,
        parameters: dict[str, Tensor],
        begin: Sequence[Tensor | None],
        lengths: Any,
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        cell = self.cells[number]
        zeros = x.new_zeros(x.shape[1], parameters["R"].shape[1])
        state = tuple(
            zeros if part is None else part[number]
            for part in [*begin, None, None][: len(cell.parts)]
        )
        rows = None if lengths is None else torch.as_tensor(lengths).long()
        reverse = self.direction == "reverse" or number == 1
        return run(cell, parameters, x, state, rows, engine="eager", reverse=reverse)


def _gates(value: Tensor, gates: list[int], count: int) -> Tensor:
    blocks = value.chunk(count)
    return torch.cat([blocks[k] for k in gates])


def _activations(operator: str, attributes: dict[str, Any], count: int) -> list[list[Activation]]:
    """The functions of each direction; alpha and beta are listed for functions that have one."""
    names = list(attributes.get("activations") or USUAL[operator] * count)
    expected = len(USUAL[operator]) * count
    if len(names) != expected:
        raise OptionError(f"activations: expected {expected} names, got {', '.join(names)}")
    alphas, betas = (iter(attributes.get(f"activation_{k}") or ()) for k in ("alpha", "beta"))
    clip = float(attributes.get("clip") or 0.0)
    activations = [
        Activation(
            name,
            next(alphas, None) if name in WITH_ALPHA else None,
            next(betas, None) if name in WITH_BETA else None,
            0.0 if operator == "LSTM" and k % 3 == 2 else clip,
        )
        for k, name in enumerate(names)
    ]
    each = len(USUAL[operator])
    return [activations[k : k + each] for k in range(0, len(activations), each)]
