"""The flow of a trained model: its own cost, on rows that it was not trained on."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from ensue.data.settings import DataSettings
from ensue.diagnose.flow import Flow, FlowSettings, flow_of
from ensue.diagnose.observe import is_layer
from ensue.engine.recording import recording
from ensue.errors import DataError, OptionError
from ensue.runs.load import Loading, open_run
from ensue.runs.messages import Say, nobody
from ensue.tasks.given import part_to_evaluate
from ensue.tasks.model import Model
from ensue.training import RunFolder, Source

AnyModel = Model[Any, Any, Any]
MOST_ROWS = 8  # of a batch


def flow_of_run(
    folder: RunFolder,
    how: Loading,
    settings: FlowSettings | None = None,
    files: Sequence[str] = (),
    say: Say = nobody,
) -> Flow:
    """A run on its validation part, or on files in its place; the test part stays closed."""
    run = open_run(folder, how, say)
    data: DataSettings = run.config.data
    if files:
        data = data.model_copy(update={"validation": list(files)})
    refuse_without_cells(run.model, str(folder.path))
    part = run.model.task.files(data, run.model).part("validation")
    return flow_of_part(run.model, part, settings, str(folder.path))


def flow_of_model(
    model: AnyModel, data: Any, settings: FlowSettings | None = None, **columns: str
) -> Flow:
    """A fitted model on rows with what is to be answered: in memory, a data frame or a file."""
    model.must_be_fitted()
    refuse_without_cells(model, "flow")
    part = part_to_evaluate(model, data, columns)
    return flow_of_part(model, part, settings, type(model).__name__)


def refuse_without_cells(model: AnyModel, where: str) -> None:
    """An error where there is no recurrent layer to look into."""
    if not any(is_layer(own) for network in model.networks for own in network.modules()):
        keys = [key for key in ("encoder", "family") if hasattr(model.model, key)]
        hint = f"; --set model.{keys[0]}=recurrent trains one" if keys else ""
        raise OptionError(
            f"{where}: expected a model with recurrent layers, got {model.task.describe(model)}"
            + hint
        )


def flow_of_part(model: AnyModel, part: Any, settings: FlowSettings | None, title: str) -> Flow:
    """The first member's training cost, without dropout, on the longest rows of a part."""
    how = settings or FlowSettings(clip=None)
    how = replace(how, clip=how.clip or model.train.clip or 1.0)
    network = _in_float64(model.networks[0])
    source = model.task.source(part, model, model.train.seed)
    pieces = _batches(network, source, how.steps)
    targets = sum(source.targets(rows) for rows in pieces)
    batches = [as_float64(source.batch(rows)) for rows in pieces]
    shown = f"{title}: {model.task.describe(model)}"
    cost = _cost(network, batches)
    return flow_of(network, cost, how, title=shown, targets=max(targets, 1.0))


def _in_float64(network: nn.Module) -> nn.Module:
    own = copy.deepcopy(network).to("cpu").double().eval()
    for parameter in own.parameters():
        parameter.requires_grad_(True)
    return own


def _cost(network: nn.Module, batches: Sequence[Any]) -> Callable[[], Tensor]:
    """Summed over batches, the state carried from each to the next if the network carries one."""

    def cost() -> Tensor:
        carried: Mapping[str, Tensor] = {}
        total = torch.zeros((), dtype=torch.float64)
        for batch in batches:
            own, carried = network(batch, carried)
            total = total + own
        return total

    return cost


def _batches(network: nn.Module, source: Source, steps: int) -> list[Sequence[int]]:
    """Pieces of a stream in turn, up to so many steps, if the network carries its state from one
    to the next; else the longest rows of an epoch."""
    listed = [own for own in source.batches(0) if len(own)]
    if not listed:
        raise DataError(
            "flow: expected rows to look at, got none: the part is too small; name another file "
            "with --data"
        )
    with recording() as unrolled, torch.no_grad():
        _, carried = network(as_float64(source.batch(listed[0])), {})
    if carried:
        piece = max(len(own.steps) for own in unrolled)
        return listed[: max(1, -(-steps // max(piece, 1)))]
    longest = max(listed, key=lambda rows: source.tokens(rows) / len(rows))
    return [longest[:MOST_ROWS]]


def as_float64(value: Any) -> Any:
    """A batch with its real numbers in float64."""
    if isinstance(value, Tensor):
        return value.double() if value.is_floating_point() else value
    if is_dataclass(value) and not isinstance(value, type):
        own = {f.name: getattr(value, f.name) for f in fields(value) if f.init}
        return replace(value, **{key: as_float64(part) for key, part in own.items()})
    if isinstance(value, Mapping):
        return {key: as_float64(part) for key, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(as_float64, value))
    if isinstance(value, (tuple, list)):
        return type(value)(map(as_float64, value))
    return value
