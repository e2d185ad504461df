"""One network of an ensemble: the weights of its seed, trained in its folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import nn

from ensue.tasks.fitting import Fitting
from ensue.tasks.unfinished import KeepsLearned
from ensue.training import Outcome, fit
from ensue.training.facts import RunSettings

if TYPE_CHECKING:
    from ensue.tasks.model import Model


def fitted_member(
    model: Model[Any, Any, Any],
    member: int,
    train: Any,
    validation: Any,
    how: Fitting,
    config: RunSettings,
) -> tuple[nn.Module, Outcome]:
    """member: the first is 0, and its folder that of the run, where it keeps what was learned
    beside the weights; config: what must be the same when it goes on."""
    settings = model.train.model_copy(update={"seed": model.train.seed + member})
    network = model.fresh(settings.seed)
    place, watchers = how.folder, [*how.watchers, model.curves.watch(member)]
    if place is not None and not member:
        watchers.append(KeepsLearned(place, lambda: model.as_saved(how.seal)))
    elif place is not None:
        place = place.member(member + 1)
    source = model.task.source(train, model, settings.seed)
    scored = model.task.validation(network, validation, model)
    outcome = fit(
        network, source, scored, settings, place, watchers, config=config, allow=how.allow
    )
    return network.eval(), outcome
