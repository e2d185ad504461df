"""A whole network as ONNX, by torch's exporter and Ensue's graphs of cells.

`torch.export` sees one operator for a cell over a sequence, `ensue::recurrence`. This operator
becomes a node of Ensue's domain, which is then replaced by the graph of the cell from `layer.py`.
"""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ensue.engine.native.operator import _cells
from ensue.engine.recurrence import hidden_size
from ensue.errors import MissingExtra, OptionError
from ensue.export.onnx.builder import FORMAT, OPSET, Builder, load_onnx
from ensue.export.onnx.layer import Sequences, add_direction
from ensue.export.stack import Direction, direction_of
from ensue.export.weights import store

if TYPE_CHECKING:
    import onnx

DOMAIN = "ensue"


def network_model(traced: onnx.ModelProto, weights: str = "float32") -> onnx.ModelProto:
    """The result of `traced` with standard operators of ONNX; matrices in the chosen kind."""
    model_with_recurrences = _with_recurrences(traced, weights)
    load_onnx().checker.check_model(model_with_recurrences, full_check=True)
    return model_with_recurrences


def traced(
    network: nn.Module,
    inputs: Mapping[str, Tensor],
    axes: Mapping[str, Sequence[str | None]],
    outputs: Sequence[str],
) -> onnx.ModelProto:
    """The network as a graph, with a node of Ensue's domain for each recurrence. network: maps the
    inputs in order to the outputs. axes: for each input the names of its free axes, None for fixed
    ones."""
    called = _Called(network).eval()
    shapes = tuple(
        {k: torch.export.Dim.AUTO for k, name in enumerate(axes[name_of_input]) if name}
        for name_of_input in inputs
    )
    translation: dict[Any, Any] = {torch.ops.ensue.recurrence.default: _translation()}
    with torch.no_grad(), _quietly():
        try:
            program = torch.onnx.export(
                called,
                (tuple(inputs.values()),),
                dynamo=True,
                dynamic_shapes=(shapes,),
                custom_translation_table=translation,
                input_names=list(inputs),
                output_names=list(outputs),
                opset_version=OPSET,
                optimize=False,
                verbose=False,
            )
        except torch.onnx.OnnxExporterError as error:
            raise OptionError(
                "export: torch's exporter cannot write this network as ONNX: "
                f"{str(error.__cause__ or error).splitlines()[0][:300]}"
            ) from error
    assert program is not None
    model: onnx.ModelProto = program.model_proto
    for node in model.graph.node:  # torch's stack traces
        del node.metadata_props[:]
    _name_axes(model, axes)
    learned = called.named_parameters(remove_duplicate=False)  # tied weights have two names
    model.graph.doc_string = "\n".join(name for name, _ in learned)
    return model


class _Called(nn.Module):
    """The network with all inputs in one tuple, so that their number is free."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, inputs: tuple[Tensor, ...]) -> Any:
        return self.network(*inputs)


def parameter_names(model: onnx.ModelProto) -> set[str]:
    """The learned constants of a traced network; others are never rounded."""
    return set(model.graph.doc_string.splitlines())


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Suppresses messages of torch's exporter about optional packages."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)


def _translation() -> Any:
    """The translation of the operator to a node of Ensue's domain."""
    try:
        from onnxscript import values
    except ImportError as error:
        raise MissingExtra(
            'onnxscript: whole models as ONNX need it; pip install "ensue[onnx]"'
        ) from error
    schema = load_onnx().defs.OpSchema
    opset = values.Opset(DOMAIN, 1)

    def translate(
        x: Any,
        state: Any,
        parameters: Any,
        masks: Any,
        lengths: Any,
        cell: int,
        hidden: int,
        reverse: bool,
    ) -> list[Any]:
        name, parameter = f"Recurrence{len(state)}", schema.FormalParameter
        many = schema.FormalParameterOption.Variadic
        operator = schema(
            name,
            DOMAIN,
            1,
            inputs=[parameter("all", "any", param_option=many, is_homogeneous=False)],
            outputs=[parameter(f"y{k}", "T") for k in range(1 + len(state))],
            type_constraints=[
                ("T", ["tensor(float)"], ""),
                ("any", ["tensor(float)", "tensor(int64)"], ""),
            ],
            attributes=[
                schema.Attribute(key, schema.AttrType.INT)
                for key in ("cell", "reverse", "states", "with_lengths")
            ],
        )
        more = [*state, *parameters] if lengths is None else [*state, *parameters, lengths]
        call = values.Op(opset, name, operator)
        made = call(
            x,
            *more,
            cell=cell,
            reverse=int(reverse),
            states=len(state),
            with_lengths=int(lengths is not None),
        )
        return list(made) if isinstance(made, (list, tuple)) else [made]

    return translate


def _name_axes(model: onnx.ModelProto, axes: Mapping[str, Sequence[str | None]]) -> None:
    """Replaces the exporter's names of axes, such as s46 and s2, by Ensue's."""
    known: dict[str, str] = {}
    for graph_input in model.graph.input:
        for axis, name in zip(
            graph_input.type.tensor_type.shape.dim, axes[graph_input.name], strict=True
        ):
            if name and axis.dim_param:
                known.setdefault(axis.dim_param, name)
    for value in (*model.graph.input, *model.graph.output):
        for axis in value.type.tensor_type.shape.dim:
            axis.dim_param = known.get(axis.dim_param, axis.dim_param) if axis.dim_param else ""
            if not axis.dim_param and not axis.HasField("dim_value"):
                axis.ClearField("dim_param")
    for name, ax in axes.items():
        for k, axis_name in enumerate(ax):
            graph_input = next(value for value in model.graph.input if value.name == name)
            if axis_name and graph_input.type.tensor_type.shape.dim[k].HasField("dim_value"):
                raise OptionError(
                    f"export: the axis {axis_name!r} of {name} cannot be left free for this network"
                )


def _with_recurrences(model: onnx.ModelProto, weights: str) -> onnx.ModelProto:
    """Replaces every node of Ensue's domain; matrices are stored in the chosen kind."""
    loaded = load_onnx()
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    builder, learned = Builder(prefix="ensue_"), parameter_names(model)
    read: set[str] = set()
    for node in model.graph.node:
        if node.domain == DOMAIN:
            _recurrence(builder, node, tensors, weights)
        else:
            builder.nodes.append(node)
            read.update(node.input)
    read |= {name for node in builder.nodes for name in node.input}
    read |= {value.name for value in model.graph.output}
    nodes = []
    for name, tensor in tensors.items():
        if name not in read:
            continue
        array = loaded.numpy_helper.to_array(tensor)
        if weights != "float32" and name in learned and array.ndim > 1:
            stored = builder.weight(store(array, weights))
            made = builder.nodes.pop()  # first the node that converts it to numbers
            builder.nodes.insert(0, made)
            builder.nodes.insert(1, loaded.helper.make_node("Identity", [stored], [name]))
        else:
            nodes.append(tensor)
    graph = loaded.helper.make_graph(
        builder.nodes,
        "model",
        list(model.graph.input),
        list(model.graph.output),
        [*nodes, *builder.constants],
    )
    made_model: onnx.ModelProto = loaded.helper.make_model(
        graph,
        opset_imports=[loaded.helper.make_opsetid("", OPSET)],
        ir_version=FORMAT,
        producer_name="ensue",
    )
    return made_model


class RecurrenceNode(NamedTuple):
    """The parts of a node of Ensue's domain: the names of its inputs, and the cell with its
    weights."""

    x: str
    state: list[str]
    lengths: str
    reverse: bool
    direction: Direction


def recurrence_of(node: Any, tensors: Mapping[str, Any], weights: str) -> RecurrenceNode:
    """tensors: the constants of the graph."""
    to_array = load_onnx().numpy_helper.to_array
    facts = {attribute.name: attribute.i for attribute in node.attribute}
    cell, states = _cells[facts["cell"]], facts["states"]
    x, *more = node.input
    lengths = more.pop() if facts["with_lengths"] else ""
    names = more[states:]
    missing = [name for name in names if name not in tensors]
    if missing:
        raise OptionError(
            f"export: the weights of {type(cell).__name__} are computed, not stored ({missing[0]})"
        )
    parameters = {
        parameter: torch.from_numpy(np.array(to_array(tensors[name])))
        for parameter, name in zip(cell.parameters, names, strict=True)
    }
    hidden = hidden_size(cell, parameters)
    width = _input_size(cell, parameters, hidden)
    start = [torch.zeros(size) for size in cell.state_sizes(width, hidden)]
    direction = direction_of(cell, parameters, width, hidden, start, weights)
    return RecurrenceNode(x, list(more[:states]), lengths, bool(facts["reverse"]), direction)


def _recurrence(builder: Builder, node: Any, tensors: Mapping[str, Any], weights: str) -> None:
    """One cell over x in one direction, with the outputs of the node."""
    recurrence = recurrence_of(node, tensors, weights)
    full = recurrence.lengths or builder.constant([np.iinfo(np.int64).max], np.int64)
    sequences = Sequences(builder, recurrence.x, full)
    y, final = add_direction(
        builder, recurrence.direction, sequences, recurrence.x, recurrence.state, recurrence.reverse
    )
    for value, name in zip([y, *final], node.output, strict=False):
        builder.add("Identity", value, name=name)


def _input_size(cell: Any, parameters: Mapping[str, Tensor], hidden: int) -> int:
    """The input size, from a matrix of x. A cell without such a matrix adds x to its state."""
    for name, declared in cell.parameters.items():
        if getattr(declared, "of", None) == "x":
            return int(parameters[name].shape[1])
    return hidden
