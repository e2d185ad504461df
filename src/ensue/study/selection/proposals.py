"""Proposals of the next settings, by Optuna's tree-structured Parzen estimator from the scores of
the trials so far.

The trials of a round are proposed together, each as if the ones before it had failed (constant
liar). They depend only on the seed and the scores of earlier rounds, not on the number of workers
or the order of training."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ensue.errors import OptionError
from ensue.files.atomic_folder import canonical, digest
from ensue.metrics.table import METRICS
from ensue.study.selection.entries import Entry
from ensue.study.selection.halving import RUNGS
from ensue.study.selection.space import OpenSpace, Settings
from ensue.tasks.search.ranges import Finite, Values

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution

ROUND = 4  # trials of a round
RANDOM = 8  # trials before proposals depend on scores
TRIES = 20  # maximum proposals until one is new; then known settings are repeated


def needs_optuna() -> None:
    """Raises an error with the command to install, if the extra is missing."""
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise OptionError(
            "select: trials are proposed by Optuna, which is not installed: "
            "pip install 'ensue[tune]'; --models compares models without it"
        ) from None


class Proposer:
    """Proposes settings of a space."""

    def __init__(self, space: OpenSpace, measure: str, seed: int) -> None:
        self.space, self.measure, self.seed = space, measure, seed
        self.first = list(space.first())
        self.distributions = {key: distribution(value) for key, value in space.values.items()}

    def round(self, known: Sequence[Entry], begin: int, count: int) -> list[dict[str, Any]]:
        """The settings of trials begin … begin + count − 1, from the settings of earlier rounds."""
        study, tried = (
            self._study(known, f"round {begin}"),
            [dict(entry.settings) for entry in known],
        )
        for number in range(begin, begin + count):
            tried.append(self._suggest_settings(study, number, tried))
        return tried[len(known) :]

    def next(self, known: Sequence[Entry], running: Sequence[Settings]) -> dict[str, Any]:
        """The settings of one more trial, while others are running."""
        number = len(known) + len(running)
        study = self._study(known, f"trial {number}")
        for settings in running:
            study.enqueue_trial(self._parameters(settings))
            self._suggested(study.ask())
        return self._suggest_settings(
            study, number, [*(dict(entry.settings) for entry in known), *running]
        )

    def _suggest_settings(
        self, study: optuna.Study, number: int, known: Sequence[Settings]
    ) -> dict[str, Any]:
        """The settings of a trial, different from all known ones, because otherwise a family with
        nothing to search would be repeated."""
        if number < len(self.first):
            study.enqueue_trial(self._parameters(self.first[number]))
        for _ in range(TRIES):
            settings = self._suggested(study.ask())
            if settings not in known:
                break
        return settings

    def _study(self, known: Sequence[Entry], what: str) -> optuna.Study:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        seed = int(digest(canonical([self.seed, what]))[:8], 16)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            sampler = optuna.samplers.TPESampler(
                seed=seed,
                n_startup_trials=RANDOM,
                multivariate=True,
                group=True,
                constant_liar=True,
            )
        higher = METRICS[self.measure].higher_is_better
        study = optuna.create_study(direction="maximize" if higher else "minimize", sampler=sampler)
        study.add_trials([self.trial(entry) for entry in known])
        return study

    def trial(self, entry: Entry) -> optuna.trial.FrozenTrial:
        """The trial for Optuna: a failed one has no score, a stopped trial has the score of its
        last rung."""
        import optuna

        state = optuna.trial.TrialState
        parameters = self._parameters(entry.settings)
        rungs = {k: entry.rungs[name] for k, name in enumerate(RUNGS, 1) if name in entry.rungs}
        ended = not entry.stopped and not entry.failure
        failed = entry.failure or (not ended and not rungs)
        return optuna.trial.create_trial(
            state=state.FAIL if failed else state.COMPLETE if ended else state.PRUNED,
            value=entry.score if ended else None,
            params=parameters,
            distributions={key: self.distributions[key] for key in parameters},
            intermediate_values=rungs,
            user_attrs={"trial": entry.name, "seconds": entry.seconds},
        )

    def _parameters(self, settings: Settings) -> dict[str, Any]:
        """Settings in Optuna's form: for a finite set, the index of the value."""
        values = self.space.values
        return {key: place_of(values[key], setting) for key, setting in settings.items()}

    def _suggested(self, trial: optuna.Trial) -> dict[str, Any]:
        """The suggested settings of a trial, without those that have no effect."""
        settings: dict[str, Any] = {}
        for key, row in self.space.ranges.items():
            if self.space.active(settings, row):
                place = trial._suggest(key, self.distributions[key])
                settings[key] = value_at(self.space.values[key], place)
        return settings


def distribution(values: Values) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if not isinstance(values, Finite):
        return FloatDistribution(values.low, values.high, log=values.logarithmic)
    if values.ordered:
        return IntDistribution(0, len(values.values) - 1)
    return CategoricalDistribution(tuple(range(len(values.values))))


def place_of(values: Values, value: Any) -> Any:
    return values.values.index(value) if isinstance(values, Finite) else value


def value_at(values: Values, place: Any) -> Any:
    return values.values[place] if isinstance(values, Finite) else values.rounded(place)
