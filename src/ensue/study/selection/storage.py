"""The trials of a selection in Optuna's own storage: SQLite in the folder, or a database by its
URL, where Optuna's tools show them. selection.json stays what a selection goes on from."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ensue.errors import OptionError
from ensue.metrics.table import METRICS
from ensue.study.selection.entries import Entry

if TYPE_CHECKING:
    import optuna

    from ensue.study.selection.proposals import Proposer

FILE = "optuna.db"
DRIVERS = {"postgresql://": "postgresql+psycopg://", "postgres://": "postgresql+psycopg://"}


def storage_url(place: Path, given: str) -> str:
    """Of the database that is written; a PostgreSQL URL with the driver of the extra.

    >>> storage_url(Path("s"), "postgresql://me@host/trials")
    'postgresql+psycopg://me@host/trials'
    """
    if not given:
        return f"sqlite:///{(place / FILE).resolve()}"
    for begin, driver in DRIVERS.items():
        if given.startswith(begin):
            return driver + given.removeprefix(begin)
    if "://" not in given:
        raise OptionError(
            f"--storage: expected the URL of a database, postgresql://user@host/name, got {given!r}"
        )
    return given


def record(url: str, name: str, proposer: Proposer, entries: Sequence[Entry]) -> None:
    """Writes the trials that the storage does not have yet."""
    from sqlalchemy.exc import SQLAlchemyError

    try:
        with opened(url) as storage:
            _add(storage, name, proposer, entries)
    except ImportError:
        raise OptionError(
            "--storage: the driver of PostgreSQL is not installed: pip install 'ensue[postgresql]'"
        ) from None
    except SQLAlchemyError as error:
        reason = str(error).splitlines()[0]
        raise OptionError(f"--storage: the database cannot be used: {reason}") from None


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
    there = {own.user_attrs.get("trial") for own in study.get_trials(deepcopy=False)}
    study.add_trials([proposer.trial(own) for own in entries if own.name not in there])
