"""The loop: batches in, rows out."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from ensue.errors import ConfigError, OptionError, TrainingError
from ensue.training import gradients, processes
from ensue.training.optimiser import ALL_LEARN, LayerRates, plateau, scheduled_rate
from ensue.training.processes import device_of_weights, moved
from ensue.training.progress import Progress, copy_of, in_place
from ensue.training.rows import Began, Finished, Row, Update, Validated
from ensue.training.settings import TrainSettings
from ensue.training.trainee import EVALUATION, Carried, Source, Trainee, Validation, seeded


class Costing(nn.Module):
    """A trainee's cost in the precision of the settings."""

    def __init__(self, trainee: Trainee, settings: TrainSettings, alone: bool = True) -> None:
        super().__init__()
        self.trainee = cast(nn.Module, trainee)
        self.alone = alone
        self.low = settings.precision == "bfloat16"

    def forward(self, batch: Any, carried: Carried) -> tuple[Tensor, Carried]:
        """The cost of a batch. batch None: this process got no batch; its cost is zero."""
        parameters = [p for p in self.trainee.parameters() if p.requires_grad]
        # DDP waits for every parameter's gradient, even if this batch does not use the parameter.
        nothing = torch.stack([p.sum() for p in parameters]).sum() * 0.0 if not self.alone else 0.0
        if batch is None:
            return cast(Tensor, nothing), {}
        with torch.autocast(parameters[0].device.type, torch.bfloat16, enabled=self.low):
            cost, carried = self.trainee(batch, carried)
        return cost.float() + nothing if self.low else cost + nothing, carried


def ended(at: Progress, settings: TrainSettings) -> str:
    """The reason to stop; "" if there is a further update."""
    if settings.patience is not None and at.stale >= settings.patience:
        return "patience"
    if at.epoch >= settings.epochs:
        return "epochs"
    most = settings.most_updates
    return "updates" if most is not None and at.update >= most else ""


def _shared(costing: Costing) -> DistributedDataParallel:
    """Sums gradients in the same order from the first update on. By default torch reorders them
    after one update, by arrival, and a resumed training would differ in its last bits."""
    warnings.filterwarnings("ignore", "find_unused_parameters=True was specified")  # none is
    return DistributedDataParallel(costing, find_unused_parameters=True)


class Updates:
    """Makes one update after another from the batches of a source. layers: the layers with a
    separate learning rate or a later start."""

    def __init__(
        self,
        trainee: Trainee,
        source: Source,
        settings: TrainSettings,
        layers: LayerRates = ALL_LEARN,
    ) -> None:
        self.trainee, self.source, self.settings = trainee, source, settings
        self.layers, self.shares = layers, dict[str, float]()
        self.team = processes.team()
        self.trainable = {n: p for n, p in trainee.named_parameters() if p.requires_grad}
        self.parameters = self.trainable  # parameters that learn in this update
        self.device = device_of_weights(trainee)
        costing = Costing(trainee, settings, alone=self.team.world == 1)
        self.shared = _shared(costing) if self.team.world > 1 else None
        self.cost: nn.Module = self.shared or costing
        self._epoch, self._batches = -1, cast(Sequence[Sequence[int]], ())

    def batches(self, epoch: int) -> Sequence[Sequence[int]]:
        """The batches of an epoch, computed once."""
        if epoch != self._epoch:
            self._epoch, self._batches = epoch, self.source.batches(epoch)
        if not len(self._batches):
            raise TrainingError(f"epoch {epoch} has no batches: the training part is empty")
        return self._batches

    @property
    def at_once(self) -> int:
        """The number of batches of one update, over all processes."""
        return self.settings.accumulate * self.team.world

    def planned(self) -> int:
        """The maximum number of updates, if every epoch has as many as the first."""
        planned = math.ceil(len(self.batches(0)) / self.at_once) * self.settings.epochs
        return min(planned, self.settings.most_updates or planned)

    def freeze(self, update: int) -> None:
        """Freezes the parameters that do not learn in this update. Their gradients are not
        computed, which saves time. (Several processes compute them anyway, because DDP fixes its
        parameters at the start.)"""
        shares = self.layers.shares(update, math.ceil(len(self.batches(0)) / self.at_once))
        if shares == self.shares:
            return
        self.shares, frozen = shares, self.layers.frozen(shares)
        self.parameters = {n: p for n, p in self.trainable.items() if n not in frozen}
        for name, parameter in self.trainable.items():
            parameter.requires_grad_(name not in frozen or self.shared is not None)

    def thaw(self) -> None:
        """Unfreezes the frozen parameters and touches no others: an abandoned training may be
        garbage-collected inside a torch transform, which forbids setting `requires_grad`."""
        for parameter in self.trainable.values():
            if not parameter.requires_grad:
                parameter.requires_grad_(True)

    def make(self, at: Progress, rate: float) -> Update:
        """Makes the next update: gradients, checked and clipped, then new weights. Advances
        `at`."""
        self.freeze(at.update)
        batches = self.batches(at.epoch)
        group = batches[at.position : at.position + self.at_once]
        cost, norm, targets, carried = self.gradients(at, group)
        tokens = float(sum(self.source.tokens(rows) for rows in group))
        rates = {name: rate * share for name, share in self.shares.items()}
        row = Update(at.update + 1, at.epoch + 1, cost, rate, norm, targets, tokens, rates)
        at.optimiser.step(rate, self.shares)
        at.update += 1
        at.position += len(group)
        at.carried = carried
        if at.position >= len(batches):
            at.epoch, at.position, at.carried = at.epoch + 1, 0, {}
        if at.average:
            at.average.include(self.trainee.state_dict(), at.update)
        return row

    def gradients(
        self, at: Progress, group: Sequence[Sequence[int]]
    ) -> tuple[float, float, float, dict[str, Tensor]]:
        """Cost, norm, number of targets and the carried state; afterwards the parameters have
        clipped gradients.

        Batch k of the group belongs to process k mod world. If a number is not finite, every
        process raises an error."""
        targets = float(sum(self.source.targets(rows) for rows in group))
        if targets <= 0:
            names = gradients.rows_by_name(self.source, [row for rows in group for row in rows])
            raise TrainingError(f"update {at.update + 1}: no target to learn from in rows {names}")
        for parameter in self.trainable.values():
            parameter.grad = None
        self.trainee.train()
        carried, mean, wrong = at.carried, 0.0, None
        rounds = math.ceil(len(group) / self.team.world)
        for turn in range(rounds):
            k = turn * self.team.world + self.team.rank
            rows = group[k] if k < len(group) else None
            before = carried
            cost, carried = self._backward(at.update, k, rows, carried, targets, turn == rounds - 1)
            mean += cost
            if not math.isfinite(cost) and wrong is None:
                wrong = (k, cost * targets, before)
        mean, mistakes = self.team.total([mean, float(wrong is not None)])
        if wrong is not None:
            raise self._wrong_cost(at.update, group, *wrong)
        if mistakes:
            raise TrainingError(
                f"update {at.update + 1}: stopped; another process gives the reason"
            )
        return mean, self._clipped(at.update, group), targets, carried

    def _backward(
        self,
        update: int,
        k: int,
        rows: Sequence[int] | None,
        carried: dict[str, Tensor],
        targets: float,
        last: bool,
    ) -> tuple[float, dict[str, Tensor]]:
        """Adds the gradients of one batch's share of the mean cost. Returns that share."""
        quiet = self.shared.no_sync() if self.shared and not last else nullcontext()
        with quiet, seeded(self.settings.seed, update, k):
            batch = None if rows is None else moved(self.source.batch(rows), self.device)
            cost, after = self.cost(batch, carried)
            share = cost / targets
            (share * self.team.world).backward()  # DDP averages over the processes
        if after and self.team.world > 1:
            raise TrainingError(
                "this model carries its state from batch to batch, and several processes share "
                "the batches out: run it in one process"
            )
        return float(share.detach()), {name: t.detach() for name, t in after.items()}

    def _wrong_cost(
        self, update: int, group: Sequence[Sequence[int]], k: int, cost: float, carried: Carried
    ) -> TrainingError:
        with seeded(self.settings.seed, update, k):
            return gradients.not_finite_cost(
                self.trainee, self.source, update + 1, cost, group[k], carried
            )

    def _clipped(self, update: int, group: Sequence[Sequence[int]]) -> float:
        """Clips the gradient including penalties; returns its norm before clipping."""
        parameters = list(self.parameters.values())
        for name in self.trainable.keys() - self.parameters.keys():
            self.trainable[name].grad = None
        gradients.complete(parameters)
        gradients.penalise(parameters, self.settings)
        norm = gradients.clip(parameters, self.settings.clip)
        if not math.isfinite(norm):
            rows = [row for batch in group for row in batch]
            raise gradients.not_finite_gradient(
                self.parameters, self.source, update + 1, norm, rows
            )
        return norm


def checked_scores(
    scores: Mapping[str, float], settings: TrainSettings, update: int
) -> dict[str, float]:
    """The scores as plain numbers; raises an error if the watched one is missing or one is not
    finite."""
    plain = {name: float(score) for name, score in scores.items()}
    if settings.watch not in plain:
        known = ", ".join(sorted(plain)) or "none"
        raise ConfigError(
            f"train.watch: expected one of this model's scores, {known}, got {settings.watch!r}"
        )
    wrong = [f"{name} is {score}" for name, score in plain.items() if not math.isfinite(score)]
    if wrong:
        raise TrainingError(
            f"the evaluation after update {update}: {', '.join(wrong)}. Next: lower the rate, or "
            "look at the rows of the validation part"
        )
    return plain


def evaluate(
    trainee: Trainee, validation: Validation, settings: TrainSettings, at: Progress
) -> Validated:
    """Scores the weights in the first process, and stores them if they are the best so far."""
    team, text = processes.team(), ""
    with in_place(trainee, at.judged()):
        if team.first:
            trainee.train(False)
            with torch.no_grad(), seeded(settings.seed, at.update, EVALUATION):
                text = json.dumps(checked_scores(validation(), settings, at.update))
        scores: dict[str, float] = json.loads(team.broadcast(text))
        improved = settings.better(scores, at.best_scores)
        is_best = settings.keeps(scores, at.best_scores)
        if is_best:
            at.best, at.best_scores = copy_of(trainee.state_dict()), scores
            at.best_update = at.update
    at.stale = 0 if improved else at.stale + 1
    at.factor, at.waited = plateau(settings, at.factor, at.waited, improved)
    at.due = False
    return Validated(at.update, at.epoch + (at.position > 0), scores, is_best)


def train(
    trainee: Trainee,
    source: Source,
    validation: Validation | None,
    settings: TrainSettings,
    progress: Progress | None = None,
) -> Iterator[Row]:
    """Trains, and yields a row after each update and evaluation.

    Between two rows, `progress` and the model's weights are the whole state: a training that starts
    from copies of them continues like this one, bit for bit. When `progress.due` is set, an
    evaluation of these weights comes next."""
    at = progress or Progress.begin(trainee, settings)
    updates = Updates(trainee, source, settings, at.layers)
    planned = updates.planned()
    yield Began(at.update, planned, settings.watch)
    try:
        while True:
            if at.due and validation is not None:
                yield evaluate(trainee, validation, settings, at)
            elif reason := ended(at, settings):
                break
            else:
                row = updates.make(at, scheduled_rate(settings, at.update, planned, at.factor))
                every = settings.check_every
                checked = at.update % every == 0 if every else at.position == 0
                at.due = validation is not None and (checked or bool(ended(at, settings)))
                yield row
    finally:
        updates.thaw()
    yield Finished(at.update, reason)


SMOOTH = 0.9
TOO_HIGH = 2.0  # the search ends at this multiple of the lowest cost
SHARE = 10.0  # the suggestion is the rate with the lowest cost, divided by this


@dataclass(frozen=True)
class RateCurve:
    """The rates tried, the cost of each update, the smoothed costs, and the suggested rate."""

    rates: list[float]
    costs: list[float]
    smoothed: list[float]
    suggestion: float


def find_rate(
    trainee: Trainee,
    source: Source,
    settings: TrainSettings,
    low: float = 1e-6,
    high: float = 1.0,
    updates: int = 100,
) -> RateCurve:
    """Tries rates low·(high/low)^(k/(updates−1)), one for each update, until the smoothed cost is
    twice its minimum. Suggests a tenth of the rate with the lowest cost, because cost rises beyond
    that rate."""
    if not 0 < low < high or updates < 2:
        raise OptionError(
            f"rates: expected 0 < low < high and updates ≥ 2, got low {low:g}, high {high:g}, "
            f"updates {updates}"
        )
    rates: list[float] = []
    costs: list[float] = []
    smoothed: list[float] = []
    with in_place(trainee, dict(trainee.state_dict())):
        at = Progress.begin(trainee, settings)
        steps, mean = Updates(trainee, source, settings), 0.0
        for k in range(updates):
            rate = low * (high / low) ** (k / (updates - 1))
            try:
                cost = steps.make(at, rate).cost
            except TrainingError:
                if not rates:
                    raise
                break
            mean = SMOOTH * mean + (1 - SMOOTH) * cost
            rates.append(rate)
            costs.append(cost)
            smoothed.append(mean / (1 - SMOOTH ** (k + 1)))
            if smoothed[-1] > TOO_HIGH * min(smoothed):
                break
    best = smoothed.index(min(smoothed))
    for _, parameter in trainee.named_parameters():
        parameter.grad = None
    return RateCurve(rates, costs, smoothed, rates[best] / SHARE)
