"""Selection by search: trials of proposed settings, in rounds determined by the seed, and the test
of the best.

Each trial is a run in a subfolder. selection.json has every finished trial. A trial that was
training when the process died continues from its checkpoint and is judged by the same bars, so the
table is the same, bit for bit except for times."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ensue.drawing.layout import score_text
from ensue.errors import ConfigError, EnsueError, OptionError, RunError
from ensue.escape import short_line
from ensue.metrics.table import METRICS
from ensue.runs.config import RunConfig
from ensue.runs.messages import Message, MessageCallback, nobody
from ensue.runs.train import adapted
from ensue.study.selection.budget import Clock, spend
from ensue.study.selection.entries import TOGETHER, TRIAL, Entry, Selection
from ensue.study.selection.folder import (
    FILE,
    STORAGE_FILE,
    begun,
    not_ours,
    read,
    refuse_links,
    selecting,
    tested,
    write,
)
from ensue.study.selection.halving import TrialJob, bars_of
from ensue.study.selection.pool import HERE, TrialPool, pool_of
from ensue.study.selection.proposals import ROUND, Proposer, needs_optuna
from ensue.study.selection.space import OpenSpace, Settings
from ensue.tasks.ensembles.model import cannot_be_averaged
from ensue.training import RunFolder

if TYPE_CHECKING:
    import optuna

    from ensue.study.selection.proposals import Proposer

SQLITE_URL = "sqlite:///"
# What Optuna raises when a database holds content that it never writes.
STRANGE: tuple[type[Exception], ...] = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)
DRIVERS = {"postgresql://": "postgresql+psycopg://", "postgres://": "postgresql+psycopg://"}


def storage_url(place: Path, name: str) -> str:
    """The URL of the database for trials; a PostgreSQL URL gets the driver of the extra.

    >>> storage_url(Path("s"), "postgresql://me@host/trials")
    'postgresql+psycopg://me@host/trials'
    """
    if not name:
        return f"{SQLITE_URL}{(place / STORAGE_FILE).resolve()}"
    for begin, driver in DRIVERS.items():
        if name.startswith(begin):
            return driver + name.removeprefix(begin)
    if "://" not in name:
        raise OptionError(
            f"--storage: expected the URL of a database, postgresql://user@host/name, got {name!r}"
        )
    return name


def record(url: str, name: str, proposer: Proposer, entries: Sequence[Entry]) -> None:
    """Writes the trials that the storage does not have yet."""
    from sqlalchemy.exc import SQLAlchemyError

    faults: tuple[type[Exception], ...] = (SQLAlchemyError, *STRANGE)
    try:
        with opened(url) as storage:
            _add(storage, name, proposer, entries)
    except ImportError:
        raise OptionError(
            "--storage: the driver of PostgreSQL is not installed: pip install 'ensue[postgresql]'"
        ) from None
    except EnsueError:
        raise
    except faults as error:
        reason = short_line(next(iter(str(error).splitlines()), type(error).__name__))
        if not url.startswith(SQLITE_URL):
            raise OptionError(f"--storage: the database cannot be used: {reason}") from error
        raise RunError(
            f"{url.removeprefix(SQLITE_URL)}: this database of trials cannot be used: {reason}. "
            f"Move it away: {FILE} has every trial, and a new one is written"
        ) from error


@contextmanager
def opened(url: str) -> Iterator[optuna.storages.RDBStorage]:
    """The storage; its connections are closed afterwards."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        storage = optuna.storages.RDBStorage(url)
    try:
        yield storage
    finally:
        storage.remove_session()
        storage.engine.dispose()


def _add(
    storage: optuna.storages.RDBStorage, name: str, proposer: Proposer, entries: Sequence[Entry]
) -> None:
    import optuna

    higher = METRICS[proposer.measure].higher_is_better
    study = optuna.create_study(
        storage=storage,
        study_name=name,
        direction="maximize" if higher else "minimize",
        load_if_exists=True,
    )
    added = {trial.user_attrs.get("trial") for trial in study.get_trials(deepcopy=False)}
    study.add_trials([proposer.trial(entry) for entry in entries if entry.name not in added])


TRIALS = 24
SAME = ("seed", "space")  # what proposals follow from


@dataclass(frozen=True)
class SearchRequest:
    """A search. trials: number of trials; workers: trials at a time, which does not change results;
    minutes: a time limit instead of a number of trials; storage: the URL of a database for trials,
    instead of SQLite in the folder; together: use an ensemble of trials, if it is better on
    validation; on: where trials run, local or ray; began: when the time of `minutes` began, if not
    with the call."""

    trials: int = TRIALS
    workers: int = 1
    minutes: float | None = None
    storage: str = ""
    together: bool = False
    on: str = HERE
    began: float | None = None

    def __post_init__(self) -> None:
        if self.minutes is not None and not 0 < self.minutes < math.inf:
            raise OptionError(f"--minutes: expected a number > 0, got {self.minutes}")
        for name in ("trials", "workers"):
            if (value := getattr(self, name)) < 1:
                raise OptionError(f"--{name}: expected a whole number ≥ 1, got {value}")


class Search:
    """A selection in progress."""

    def __init__(self, config: RunConfig, place: Path, say: MessageCallback) -> None:
        self.place, self.say = place, say
        self.config, model, train = adapted(config, say)
        self.space = OpenSpace.of(self.config, model.task.search_space(train, model))
        facts = {"seed": self.config.train.seed, "space": self.space.digest()}
        self.selection = replace(begun(self.config), search=facts)
        self.before = self._earlier()
        self.entries = {} if self.before is None else _by_number(self.before.rows)
        self.proposer = Proposer(self.space, self.selection.measure, self.config.train.seed)

    def _earlier(self) -> Selection | None:
        """The trials of an earlier call with the same proposals."""
        before = read(self.place, self.selection)
        if before is None:
            return None
        for name in SAME:
            was, now = before.search.get(name), self.selection.search[name]
            if was != now:
                message = "models that were named" if was is None else self._changed(name, was)
                raise RunError(
                    f"{self.place / FILE}: this selection was begun with {message}; all "
                    "trials must share the same settings: undo the change, or name another "
                    "--run"
                )
        if not all(map(self._fits, before.rows)):
            raise not_ours(self.place / FILE)
        return before

    def _fits(self, row: Entry) -> bool:
        """Whether a row of the file can be a trial of this search, or the ensemble."""
        if row.folder != row.name:
            return False
        if row.name == TOGETHER:
            return True
        number = row.name.removeprefix(TRIAL)
        named = number.isdecimal() and row.name == trial_name(int(number))
        known = self.space.values.keys() >= row.settings.keys()
        return named and known and self.space.allows(row.settings)

    def _changed(self, name: str, was: object) -> str:
        """The difference from an earlier call: the seed, or settings of the default, its trial
        0."""
        if name == "seed":
            return f"seed {was}, now {self.config.train.seed}"
        now = self.space.configured(self.space.usual()).flat()
        try:
            before = RunConfig.read(RunFolder(self.place / trial_name(0)).config).flat()
        except EnsueError:
            before = now
        messages = [
            f"{key} {before.get(key)!r}, now {now.get(key)!r}"
            for key in dict.fromkeys([*before, *now])
            if before.get(key) != now.get(key)
        ]
        return "; ".join(messages) or "other settings to search, or by another version"

    def done(self, numbers: Sequence[int]) -> list[Entry]:
        return [self.entries[number] for number in numbers if number in self.entries]

    def job(self, number: int, settings: Settings, bars: Mapping[str, float]) -> TrialJob | None:
        """The job of a trial; None if its settings conflict with the user's settings."""
        name = trial_name(number)
        refuse_links(self.place, [name])
        try:
            tables = self.space.configured(settings).tables()
        except ConfigError as error:
            self.entries[number] = Entry(name, name, settings=settings, failure=str(error))
            return None
        folder, measure = str(self.place / name), self.selection.measure
        cells = asdict(self.config.permission)
        return TrialJob(
            name, folder, tables, measure, settings, bars if number else {}, cells=cells
        )

    def trials(self) -> list[Entry]:
        """All finished trials, in order."""
        return [self.entries[number] for number in sorted(self.entries)]

    def free_number(self, running: Iterable[int]) -> int:
        """The number of a trial that has no folder yet."""
        numbers = [int(file.name.removeprefix(TRIAL)) for file in self.place.glob(f"{TRIAL}*")]
        return max([-1, *self.entries, *running, *numbers]) + 1

    def leader(self) -> Entry | None:
        """The best so far."""
        return self.selection.ranked(self.trials()).winner

    def best_network(self) -> float | None:
        """The best score of the networks of completed trials."""
        ended = [entry for entry in self.trials() if not entry.stopped]
        scores = [entry.network for entry in ended if entry.network is not None]
        if not scores:
            return None
        return max(scores) if METRICS[self.selection.measure].higher_is_better else min(scores)

    def may_win(self, entry: Entry) -> bool:
        """Whether no completed trial has a better network."""
        best, metric = self.best_network(), METRICS[self.selection.measure]
        return best is None or (entry.score is not None and metric.better(entry.score, best))

    def take(self, number: int, entry: Entry, of: str = "", used: float = 0.0) -> None:
        """Records the result of a trial. used: seconds of the available time."""
        self.entries[number] = entry
        if used:
            self.selection = replace(
                self.selection, search={**self.selection.search, "seconds": used}
            )
        scored = f"{self.selection.measure} {score_text(entry.score)} on validation"
        message = entry.failure or (f"stopped: {entry.stopped}" if entry.stopped else scored)
        changed = _listed(self.space.differs(entry.settings)) or "the default"
        self.say(Message(f"trial {number}{of}, {changed}: {message}", warning=bool(entry.failure)))
        self.write()

    def write(self) -> None:
        rows = self.trials()
        test = None if self.before is None else self.before.test
        write(self.place, replace(self.selection.ranked(rows), test=test))

    def ended(self, together: bool = False) -> Selection:
        """All trials ranked, and the test of the best one or of the ensemble."""
        selection = self.selection.ranked(self.trials())
        winner = selection.winner
        if winner is None:
            reasons = [f"  {row.name}: {row.failure or row.stopped}" for row in selection.rows]
            raise RunError("\n".join(["no model could be trained", *reasons]))
        if together:
            winner = self._together(selection, winner)
            others = [row for row in selection.rows if row is not winner]
            selection = replace(selection, rows=(winner, *others))
        test = tested(self.place, winner, self.config, self.before, self.say)
        selection = replace(selection, test=test, place=self.place)
        write(self.place, selection)
        return selection

    def _together(self, selection: Selection, winner: Entry) -> Entry:
        """The ensemble, if it is better than each alone."""
        from ensue.study.selection.ensemble import ensemble_of

        ended = [row for row in selection.rows if row.score is not None and not row.stopped]
        together = ensemble_of(self.place, ended, self.selection.measure)
        if together is None:
            self.say(Message(f"no ensemble is better on validation than {winner.name} alone"))
            return winner
        message = f"{self.selection.measure} {score_text(together.score)} on validation"
        self.say(Message(f"{together.name}, {together.what}: {message}"))
        return together


def search(
    config: RunConfig,
    folder: Path | str,
    request: SearchRequest,
    say: MessageCallback = nobody,
    pool: Callable[[int, str], Any] = pool_of,
) -> Selection:
    """Tries settings of the task's search space, the default first, each in a run folder below the
    folder, and evaluates the best on validation on the test part. The same call resumes an
    interrupted selection; with more trials, it continues a finished one."""
    place = Path(folder)
    with selecting(place):
        return searched(config, place, request, say, pool)


def searched(
    config: RunConfig,
    place: Path,
    request: SearchRequest,
    say: MessageCallback = nobody,
    pool: Callable[[int, str], Any] = pool_of,
) -> Selection:
    """`search` in a folder that this process holds."""
    needs_optuna()
    if request.together and config.description.averages is None:
        raise cannot_be_averaged(config.task)
    began = time.time() if request.began is None else request.began
    url = storage_url(place, request.storage)
    reads = time.time()
    trials = Search(config, place, say)
    study = f"{place.resolve().name} {trials.selection.data[:8]}"
    if request.minutes is not None or request.storage:  # fail early if the storage is wrong
        record(url, study, trials.proposer, trials.trials())
    ends = time.time() - reads
    with pool(request.workers, request.on) as workers:
        if request.minutes is not None:
            used = 0.0 if trials.before is None else float(trials.before.search.get("seconds", 0.0))
            clock = Clock(began - used, 60 * request.minutes, ends)
            if trials.before is None:
                clock.refuse_too_little()
            spend(trials, workers, clock)
        for begin in range(0, 0 if request.minutes else request.trials, ROUND):
            _round(trials, workers, begin, min(ROUND, request.trials - begin), request.trials)
    selection = trials.ended(request.together)
    record(url, study, trials.proposer, trials.trials())
    return selection


def _round(search: Search, pool: TrialPool, begin: int, count: int, trials: int) -> None:
    """Trials begin … begin + count − 1, some of which may come from an earlier call."""
    known = search.done(range(begin))
    bars = bars_of(known, search.selection.measure)
    proposed = search.proposer.round(known, begin, count)
    running = 0
    for number, settings in enumerate(proposed, begin):
        if number in search.entries:
            _refuse_others(search, number, settings)
        elif (job := search.job(number, settings, bars)) is not None:
            pool.begin(number, job)
            running += 1
    while running:
        for number, entry in pool.wait():
            search.take(number, entry, f" of {trials}")
            running -= 1


def _refuse_others(search: Search, number: int, settings: Settings) -> None:
    """Raises an error if a trial of an earlier call differs from the one that is proposed now."""
    if dict(search.entries[number].settings) != dict(settings):
        raise RunError(
            f"{search.place / FILE}: trial {number} has other settings than the search "
            "proposes now, perhaps by another version of Ensue or Optuna; name another "
            "--run, or continue with that version"
        )


def trial_name(number: int) -> str:
    """
    >>> trial_name(7)
    'trial-007'
    """
    return f"{TRIAL}{number:03}"


def _by_number(rows: Sequence[Entry]) -> dict[int, Entry]:
    """The trials by number, without the ensemble."""
    return {int(row.name.rpartition("-")[2]): row for row in rows if row.name != TOGETHER}


def _listed(settings: Settings) -> str:
    """
    >>> _listed({"model.cell": "GRU", "train.rate": 0.002})
    'model.cell=GRU train.rate=0.002'
    """
    return " ".join(f"{key}={value}" for key, value in settings.items())
