"""How a model is fitted: what is saved, callbacks, and settings that may have changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from torch import nn

from ensue.errors import DataError, OptionError
from ensue.escape import in_shell
from ensue.files.attempt import add_note, note_failure, restored
from ensue.files.seal import Seal
from ensue.tasks.abilities import Outputs
from ensue.tasks.blocks.pooling import settle_spreads
from ensue.tasks.evaluation.summary import Summary
from ensue.tasks.task import Solved, family_of, is_solved
from ensue.tasks.transfer.pretrained import write_copy
from ensue.tasks.unfinished import KeepsLearned
from ensue.training import (
    Began,
    Notice,
    Outcome,
    Row,
    RunFolder,
    Stopped,
    Validated,
    Watcher,
    fit,
    processes,
)

if TYPE_CHECKING:
    from ensue.tasks.any_model import AnyModel
    from ensue.tasks.reader import AnyPart

MOST_PLACES = 3  # maximum number of omitted rows in a message


@dataclass(frozen=True)
class AnsweredValidation:
    """Validation results at the end of training. scores: the scores of the combined model, empty
    for a single network; outputs: the outputs of each network, if they are kept; summary: the main
    score next to the strongest baseline, if it is wanted and known."""

    scores: Mapping[str, float] = field(default_factory=dict)
    outputs: Outputs = ()
    summary: Summary | None = None


@dataclass(frozen=True)
class Fitting:
    """How a model is fitted. folder: the folder of the run, None keeps the run in memory; watchers:
    callbacks for the rows of the training history; config: settings that must not change when
    training continues, None for the model's settings; allow: keys of settings that may have
    changed; seal: the files of the run that the model follows from, saved with it; members_first:
    trains this number of networks elsewhere, after which they are read from their folders; outputs:
    keep the outputs for the validation part, for averaging with other models; unlabelled: a part
    without labels, learned from at the end, or None; summary: compares the validation score with
    the baselines."""

    folder: RunFolder | None = None
    watchers: Sequence[Watcher] = ()
    config: Mapping[str, Any] | None = None
    allow: Collection[str] = ()
    seal: Seal = field(default_factory=dict)
    members_first: Callable[[int], None] | None = None
    outputs: bool = False
    unlabelled: Any = None
    summary: bool = False

    def answered(self, validation: Any, model: AnyModel) -> AnsweredValidation:
        """Reports the answers to the validation part, before networks may also learn from it."""
        averages = model.task.averages
        if averages is None:
            return AnsweredValidation()
        outputs = averages.out_of_sample(validation, model) if self.outputs else ()
        alone = averages.alone(model)
        scores = {} if alone else averages.model_scores(validation, model)
        summary = averages.summary(validation, model) if self.summary else None
        return AnsweredValidation(scores, outputs, summary)

    def say(self, text: str) -> None:
        for watcher in self.watchers:
            watcher(Notice(text))

    def show(self, text: str) -> None:
        """Shows what is being computed; left out with --quiet."""
        for watcher in self.watchers:
            watcher(Notice(text, progress=True))

    @contextmanager
    def attempt(self) -> Iterator[Fitting]:
        """Context for fitting. If it fails before anything is learned, the folder is restored; if
        it fails later, the error gives the reason, and training can be resumed."""
        if self.folder is None or not processes.team().first:
            yield self
            return
        begun = _Begun(self.folder)
        with restored(self.folder, Stopped):
            try:
                yield replace(self, watchers=[*self.watchers, begun])
            except Stopped:
                raise
            except Exception as error:
                if begun.yet and self.folder.has_weights():
                    note_failure(self.folder, error)
                    add_note(
                        error, f"`ensue train --run {in_shell(self.folder.path)}` resumes the run."
                    )
                raise


@contextmanager
def holding(folder: RunFolder | None) -> Iterator[None]:
    """Locks the folder for this process, if it is the one that writes."""
    if folder is None or not processes.team().first:
        yield
        return
    with folder.locked():
        yield


class _Begun:
    """A watcher that records whether training has begun; earlier failures are then resolved."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder, self.yet = folder, False

    def __call__(self, row: Row) -> None:
        if isinstance(row, Began):
            self.yet = True
            self.folder.failure.unlink(missing_ok=True)


IN_MEMORY = Fitting()


def answerable(model: AnyModel, train: Any, validation: Any, say: Callable[[str], None]) -> Any:
    """The validation rows that can be answered with the training part."""
    rows = model.reader.answerable(train, validation)
    if rows is None or len(rows) == len(validation):
        return validation
    wrong = np.setdiff1d(np.arange(len(validation)), rows)
    many = "1 row" if len(wrong) == 1 else f"{len(wrong):,} rows"
    places = [validation.names[int(row)] for row in wrong[:MOST_PLACES]]
    more = ", …" * (len(wrong) > MOST_PLACES)
    message = (
        f"{many} of the validation part left out, with labels that the training part does "
        f"not have: {', '.join(places)}{more}"
    )
    if not len(rows):
        raise DataError(f"{message}; no row is left: is this the right column?")
    say(message)
    return validation.take(rows)


class Curves:
    """The validation scores of every member during training."""

    def __init__(self) -> None:
        self.members: dict[int, list[Validated]] = {}

    def watch(self, member: int) -> Watcher:
        """A callback that records the scores of a member, from its start."""
        curve = self.members[member] = []

        def watcher(row: Row) -> None:
            if isinstance(row, Validated):
                curve.append(row)

        return watcher


P = TypeVar("P", bound="AnyPart")


def refuse_members(model: AnyModel) -> None:
    if is_solved(model.task, model.settings) and model.members > 1:
        raise OptionError(
            f"members: expected 1 with model.family = {model.family_name}, which is fitted in "
            f"closed form and has no seed, got {model.members}"
        )


def trained(
    model: AnyModel, train: P, validation: P, how: Fitting
) -> tuple[list[nn.Module], list[Outcome]]:
    """Trains each member with its own seed; a solved family has one member."""
    if is_solved(model.task, model.settings):
        solved = _solved(model, train, validation)
        return solved.networks, [Outcome(0, 0, solved.reason, solved.scores, None)]
    if how.folder is not None:
        _keep_base(model, how)
    if how.members_first is not None:
        how.members_first(model.members)
    outcomes = [
        trained_member(model, member, train, validation, how) for member in range(model.members)
    ]
    return [network for network, _ in outcomes], [outcome for _, outcome in outcomes]


def _solved(model: AnyModel, train: P, validation: P) -> Solved:
    family: Any = family_of(model.task, model.settings)
    solved: Solved = family.solve(train, validation, model)
    return solved


def trained_member(
    model: AnyModel, member: int, train: P, validation: P, how: Fitting
) -> tuple[nn.Module, Outcome]:
    """Trains one member. member: its number, from 0; member 0 uses the folder of the run, and also
    saves everything learned except the weights there."""
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
    model: AnyModel,
    train: P,
    validation: P,
    outcomes: Sequence[Outcome],
    how: Fitting,
) -> list[nn.Module] | None:
    """Trains again on both parts, for the best number of updates, without early stopping. Other
    learned values and the calibration do not change. None if the networks do not change either."""
    refits = model.task.refits
    whole = None if refits is None else refits.part(train, validation, model)
    if whole is None:
        return None
    if is_solved(model.task, model.settings):
        return _solved(model, whole, validation).networks
    networks = []
    for member, outcome in enumerate(outcomes):
        changed = {"seed": model.train.seed + member, "most_updates": outcome.best_update}
        settings = model.train.model_copy(update={**changed, "patience": None})
        network = model.fresh(settings.seed)
        place = None if how.folder is None else how.folder.refit(member + 1)
        source = model.task.source(whole, model, settings.seed)
        settle_spreads(network, source)
        how.show(f"retraining with the validation part: {outcome.best_update} updates")
        config = model.run_settings(network, how)
        fit(network, source, None, settings, place, how.watchers, config=config)
        networks.append(network.eval())
    return networks


def _keep_base(model: AnyModel, how: Fitting) -> None:
    """A copy of the base in the folder of the run, so that training can continue without it."""
    base, folder = model.pretrained, how.folder
    if base is None or folder is None or folder.base.is_dir() or not processes.team().first:
        return
    write_copy(folder.base, model.task.transfers.learned(base, model))
