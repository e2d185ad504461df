"""The gradient flow of a trained model: its training cost, on held-out rows."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ensue.cells import SCHEMES, Cell, SimpleRNN
from ensue.data.settings import DataSettings
from ensue.diagnose.flow import Flow, FlowSettings, flow_of
from ensue.diagnose.observe import Track, is_layer
from ensue.engine.bptt import recording
from ensue.engine.eager import eager
from ensue.equations.declare import Matrix
from ensue.errors import DataError, OptionError, unknown
from ensue.layers.dropin import DropIn
from ensue.layers.recurrent import Recurrent, as_cell
from ensue.runs.load import Loading, open_run
from ensue.runs.messages import MessageCallback, nobody
from ensue.tasks.any_model import AnyModel
from ensue.tasks.data_argument import part_to_evaluate
from ensue.training import RunFolder, Source

CLASSES = 10
ACTIVATIONS = ("linear", "relu", "tanh")  # whose states are compared
COSTS = ("all", "last")


@dataclass(frozen=True)
class FreshNetwork:
    """Layers with fresh weights and normally distributed inputs, below a softmax over ten random
    classes. gain: factor of the recurrent matrices; scale: factor of the inputs; bias: a number
    added to each gate, by name; cost: the cost of "all" steps or of the "last" step."""

    input_size: int = 16
    hidden_size: int = 64
    layers: int = 1
    bidirectional: bool = False
    steps: int = 100
    gain: float = 1.0
    scale: float = 1.0
    init: str = "standard"
    bias: Mapping[str, float] | None = None
    cost: str = "all"
    seed: int = 1

    def __post_init__(self) -> None:
        for name in ("input_size", "hidden_size", "layers", "steps"):
            if getattr(self, name) < 1:
                raise OptionError(f"{name}: expected a number ≥ 1, got {getattr(self, name)}")
        if self.cost not in COSTS:
            raise unknown("cost", self.cost, COSTS)
        if self.init not in SCHEMES:
            raise unknown("initialisation", self.init, SCHEMES)


class Probe(nn.Module):
    """A layer with a softmax on top: −log p(y_t) of targets (time, batch), summed."""

    def __init__(self, layer: nn.Module, width: int) -> None:
        super().__init__()
        self.layer, self.output = layer, nn.Linear(width, CLASSES)

    def forward(self, x: Tensor, targets: Tensor, lengths: Tensor | None, last: bool) -> Tensor:
        """The cost for x in the layer's layout, lengths (batch,) or None. last: the cost of only
        the last step of each row."""
        batch_first = bool(getattr(self.layer, "batch_first", False))
        y = self.layer(x, lengths=lengths)[0]
        y = y.transpose(0, 1) if batch_first else y
        scores = self.output(y).flatten(0, 1)
        costs = cross_entropy(scores, targets.flatten(), reduction="none").view(targets.shape)
        ends = torch.full((y.shape[1],), len(y)) if lengths is None else lengths
        time = torch.arange(len(y))[:, None]
        return costs[time == ends - 1 if last else time < ends].sum()


def flow_of_cell(
    cell: Cell | str, network: FreshNetwork | None = None, settings: FlowSettings | None = None
) -> Flow:
    """The flow of a cell or its name, in layers with fresh weights.

    >>> flow_of_cell("GRU", FreshNetwork(hidden_size=8, steps=10)).tracks[0].steps
    10
    """
    fresh = network or FreshNetwork()
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(fresh.seed)
        layer = Recurrent(
            cell,
            fresh.input_size,
            fresh.hidden_size,
            fresh.layers,
            bidirectional=fresh.bidirectional,
            init=fresh.init,
        ).double()
        layer.reset_parameters()  # drawn in float64: orthogonal to full precision
        _changed(layer, fresh)
        rows = (settings or FlowSettings()).rows
        x = fresh.scale * torch.randn(fresh.steps, rows, fresh.input_size, dtype=torch.float64)
    title = f"{fresh.layers} × {type(as_cell(cell)).__name__} of {fresh.hidden_size}"
    title += ", both directions" * fresh.bidirectional
    heading = f"{title}, fresh, {fresh.steps} steps"
    return _flow(layer, x, None, fresh.cost == "last", settings, heading, fresh.seed)


@torch.no_grad()
def _changed(layer: Recurrent, network: FreshNetwork) -> None:
    """Changes the layer in place: multiplies its recurrent matrices by the gain, and shifts the
    biases of gates."""
    for way in layer.ways:
        tensors = way.way().parameters
        known = {g for d in way.cell.parameters.values() for g in d.gates if g}
        for gate in network.bias or {}:
            if gate not in known:
                raise unknown(f"gate of {type(way.cell).__name__}", gate, sorted(known))
        for name, declared in way.cell.parameters.items():
            if isinstance(declared, Matrix):
                if declared.of != "x":
                    tensors[name].mul_(network.gain)
            elif name == "b":
                blocks = zip(declared.gates, tensors[name].chunk(len(declared.gates)), strict=True)
                for gate, block in blocks:
                    block.add_((network.bias or {}).get(gate, 0.0))


def flow_of_layer(
    layer: Recurrent | DropIn,
    x: Tensor,
    lengths: Tensor | None = None,
    settings: FlowSettings | None = None,
    *,
    cost: str = "all",
    seed: int = 1,
) -> Flow:
    """The flow of a layer over sequences x, below a random softmax; its weights do not change.

    >>> layer = Recurrent("LSTM", 4, 8, num_layers=2)
    >>> [track.name for track in flow_of_layer(layer, torch.randn(5, 1, 4)).tracks]
    ['layer 1', 'layer 2']
    """
    if cost not in COSTS:
        raise unknown("cost", cost, COSTS)
    layer_copy = copy.deepcopy(layer).double().eval()
    title = f"{type(layer).__name__} over {x.shape[1 if layer.batch_first else 0]} steps"
    return _flow(layer_copy, x.double(), lengths, cost == "last", settings, title, seed)


def _flow(
    layer: Recurrent | DropIn,
    x: Tensor,
    lengths: Tensor | None,
    last: bool,
    settings: FlowSettings | None,
    title: str,
    seed: int,
) -> Flow:
    steps, rows = x.shape[:2] if not layer.batch_first else (x.shape[1], x.shape[0])
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        probe = Probe(layer.eval(), _width(layer)).double()
        targets = torch.randint(0, CLASSES, (steps, rows))
    many = rows if last else steps * rows
    return flow_of(
        probe,
        lambda: probe(x, targets, lengths, last),
        settings,
        title=title,
        targets=many,
        forward=_activations,
    )


def _width(layer: Recurrent | DropIn) -> int:
    if isinstance(layer, Recurrent):
        return layer.output_size
    return layer.hidden_size * (2 if layer.bidirectional else 1)


def _activations(track: Track) -> dict[str, tuple[float, ...]]:
    """‖h_t‖ of a simple cell with the same weights and inputs, for each activation."""
    if type(track.cell) is not SimpleRNN or track.cell.activation not in ACTIVATIONS:
        return {}
    row = track.rows[0]
    start = tuple(part[:1] for part in row.old)
    units = {}
    for activation in ACTIVATIONS:
        y, _ = eager(SimpleRNN(activation), track.parameters, row.x[:, None], start)
        units[activation] = tuple(track.in_time(y[:, 0].norm(dim=1)).tolist())
    return units


MOST_ROWS = 8  # of a batch


def flow_of_run(
    folder: RunFolder,
    how: Loading,
    settings: FlowSettings | None = None,
    files: Sequence[str] = (),
    say: MessageCallback = nobody,
) -> Flow:
    """The flow of a run on its validation part, or on `files` instead; the test part is not
    read."""
    run = open_run(folder, how, say)
    data: DataSettings = run.config.data
    if files:
        data = data.model_copy(update={"validation": list(files)})
    refuse_without_cells(run.model, str(folder.path))
    part = run.model.reader.files(data).part("validation")
    return flow_of_part(run.model, part, settings, str(folder.path))


def flow_of_model(
    model: AnyModel, data: Any, settings: FlowSettings | None = None, **columns: str
) -> Flow:
    """The flow of a fitted model on labelled rows: in memory, a data frame or a file."""
    model.must_be_fitted()
    refuse_without_cells(model, "flow")
    part = part_to_evaluate(model, data, columns)
    return flow_of_part(model, part, settings, type(model).__name__)


def refuse_without_cells(model: AnyModel, where: str) -> None:
    """Raises an error for a model without a recurrent layer."""
    if not any(is_layer(module) for network in model.networks for module in network.modules()):
        keys = [key for key in ("encoder", "family") if hasattr(model.settings, key)]
        hint = f"; --set model.{keys[0]}=recurrent trains one" if keys else ""
        raise OptionError(
            f"{where}: expected a model with recurrent layers, got {model.describe()}" + hint
        )


def flow_of_part(model: AnyModel, part: Any, settings: FlowSettings | None, title: str) -> Flow:
    """The flow of the first member's training cost, without dropout, on the longest rows of a
    part."""
    how = settings or FlowSettings(clip=None)
    how = replace(how, clip=how.clip or model.train.clip or 1.0)
    network = _in_float64(model.networks[0])
    source = model.task.source(part, model, model.train.seed)
    pieces = _batches(network, source, how.steps)
    targets = sum(source.targets(rows) for rows in pieces)
    batches = [as_float64(source.batch(rows)) for rows in pieces]
    heading = f"{title}: {model.describe()}"
    cost = _cost(network, batches)
    return flow_of(network, cost, how, title=heading, targets=max(targets, 1.0))


def _in_float64(network: nn.Module) -> nn.Module:
    network_copy = copy.deepcopy(network).to("cpu").double().eval()
    for parameter in network_copy.parameters():
        parameter.requires_grad_(True)
    return network_copy


def _cost(network: nn.Module, batches: Sequence[Any]) -> Callable[[], Tensor]:
    """The cost summed over batches; if the network carries its state, from each batch to the
    next."""

    def cost() -> Tensor:
        carried: Mapping[str, Tensor] = {}
        total = torch.zeros((), dtype=torch.float64)
        for batch in batches:
            logits, carried = network(batch, carried)
            total = total + logits
        return total

    return cost


def _batches(network: nn.Module, source: Source, steps: int) -> list[Sequence[int]]:
    """Consecutive pieces of a stream, up to `steps` steps, if the network carries its state from
    one to the next; else the longest rows of an epoch."""
    listed = [batch for batch in source.batches(0) if len(batch)]
    if not listed:
        raise DataError(
            "flow: expected rows to look at, got none: the part is too small; name another file "
            "with --data"
        )
    with recording() as unrolled, torch.no_grad():
        _, carried = network(as_float64(source.batch(listed[0])), {})
    if carried:
        piece = max(len(recurrence_run.steps) for recurrence_run in unrolled)
        return listed[: max(1, -(-steps // max(piece, 1)))]
    longest = max(listed, key=lambda rows: source.tokens(rows) / len(rows))
    return [longest[:MOST_ROWS]]


def as_float64(value: Any) -> Any:
    """A batch with its real numbers in float64."""
    if isinstance(value, Tensor):
        return value.double() if value.is_floating_point() else value
    if is_dataclass(value) and not isinstance(value, type):
        values = {f.name: getattr(value, f.name) for f in fields(value) if f.init}
        return replace(value, **{key: as_float64(part) for key, part in values.items()})
    if isinstance(value, Mapping):
        return {key: as_float64(part) for key, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(as_float64, value))
    if isinstance(value, (tuple, list)):
        return type(value)(map(as_float64, value))
    return value
