"""The networks of a model: each trained with a seed of its own, and again on all rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from torch import nn

from ensue.errors import OptionError
from ensue.tasks.blocks.standardised import settle_spreads
from ensue.tasks.fitting import Fitting
from ensue.tasks.transfer.pretrained import write_copy
from ensue.tasks.unfinished import KeepsLearned
from ensue.training import Outcome, fit, processes

if TYPE_CHECKING:
    from ensue.tasks.model import Model
    from ensue.tasks.task import AnyPart

P = TypeVar("P", bound="AnyPart")


def refuse_members(model: Model[Any, Any, Any]) -> None:
    if model.task.is_solved(model.model) and model.members > 1:
        raise OptionError(
            f"members: expected 1 with model.family = {model.family_name}, which is "
            f"solved and has no seed, got {model.members}"
        )


def trained(
    model: Model[Any, P, Any], train: P, validation: P, how: Fitting
) -> tuple[list[nn.Module], list[Outcome]]:
    """Each member with a seed of its own; a family that is solved has one."""
    if model.task.is_solved(model.model):
        solved = model.task.solve(train, validation, model)
        return solved.networks, [Outcome(0, 0, solved.reason, solved.scores, None)]
    if how.folder is not None:
        _keep_base(model, how)
    if how.members_first is not None:
        how.members_first(model.members)
    found = [trained_member(model, own, train, validation, how) for own in range(model.members)]
    return [network for network, _ in found], [outcome for _, outcome in found]


def trained_member(
    model: Model[Any, P, Any], member: int, train: P, validation: P, how: Fitting
) -> tuple[nn.Module, Outcome]:
    """member: the first is 0, and its folder that of the run, where it keeps what was learned
    beside the weights."""
    settings = model.train.model_copy(update={"seed": model.train.seed + member})
    network = model.fresh(settings.seed)
    place, watchers = how.folder, [*how.watchers, model.curves.watch(member)]
    if place is not None and not member:
        watchers.append(KeepsLearned(place, lambda: model.as_saved(how.seal)))
    elif place is not None:
        place = place.member(member + 1)
    source = model.task.source(train, model, settings.seed)
    settle_spreads(network, source)
    scored = model.task.validation(network, validation, model)
    config = model.run_settings(network, how)
    outcome = fit(
        network, source, scored, settings, place, watchers, config=config, allow=how.allow
    )
    return network.eval(), outcome


def trained_again(
    model: Model[Any, P, Any],
    train: P,
    validation: P,
    outcomes: Sequence[Outcome],
    how: Fitting,
) -> list[nn.Module] | None:
    """All again on both parts, for as many updates as were best; nothing is left to stop by. What
    was learned and calibrated stays as it is. None where the networks stay, too."""
    whole = model.task.refit(train, validation, model)
    if whole is None:
        return None
    if model.task.is_solved(model.model):
        return model.task.solve(whole, validation, model).networks
    networks = []
    for member, outcome in enumerate(outcomes):
        changed = {"seed": model.train.seed + member, "most_updates": outcome.best_update}
        settings = model.train.model_copy(update={**changed, "patience": None})
        network = model.fresh(settings.seed)
        place = None if how.folder is None else how.folder.refit(member + 1)
        source = model.task.source(whole, model, settings.seed)
        settle_spreads(network, source)
        how.show(f"training again, with the validation part: {outcome.best_update} updates")
        config = model.run_settings(network, how)
        fit(network, source, None, settings, place, how.watchers, config=config)
        networks.append(network.eval())
    return networks


def _keep_base(model: Model[Any, Any, Any], how: Fitting) -> None:
    """A copy of what the training begins from, in its folder: it goes on without the base."""
    own, folder = model.pretrained, how.folder
    if own is None or folder is None or folder.base.is_dir() or not processes.team().first:
        return
    write_copy(folder.base, model.task.transfers.learned(own, model))
