"""The folder of a run: what lies where, who holds it, and what has changed since."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import torch

from ensue import __version__
from ensue.errors import RunError, unknown
from ensue.training.disk import advice, disk_errors
from ensue.training.processes import Team
from ensue.training.settings import WITHOUT_EFFECT, TrainSettings
from ensue.training.trainee import Fingerprinted, Source, Trainee, Validation

# A change of these is told and accepted: the results differ in their last bits only.
NOT_BIT_EXACT = ("threads", "processes")
PATIENCE = 1.0  # seconds until the holder of a lock has written its name


class RunFolder:
    """config.toml, history.jsonl, timing.jsonl, checkpoints/, model/, lock."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.config = self.path / "config.toml"
        self.history = self.path / "history.jsonl"
        self.timing = self.path / "timing.jsonl"
        self.checkpoints = self.path / "checkpoints"
        self.model = self.path / "model"
        self.lock = self.path / "lock"

    def create(self) -> None:
        try:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(
                f"{self.path}: cannot be made a run folder: {error.strerror}. Next: "
                f"{advice(error)}, then run the same command again"
            ) from error

    def member(self, number: int) -> RunFolder:
        """The folder of another network of an ensemble, inside of this one."""
        return RunFolder(self.path / "members" / str(number))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Held by one process at a time; the system frees it when that process ends, however."""
        self.create()
        name = json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode()
        with ExitStack() as stack:
            with disk_errors(self.lock, len(name)):
                file = stack.enter_context(open(self.lock, "a+b", buffering=0))
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise RunError(
                        f"{self.path} is in use by {self._holder()}. Wait for it, stop it, or "
                        "name another run folder"
                    ) from None
                file.truncate(0)
                file.write(name)
            try:
                yield
            finally:
                with suppress(OSError):  # a disk that fails now: the lock is free all the same
                    file.truncate(0)

    def _holder(self) -> str:
        """Who holds the lock; it writes its name a moment after it has it."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                name = json.loads(self.lock.read_bytes())
                return f"process {name['pid']} on {name['host']}"
            except ValueError:
                time.sleep(0.01)
        return "another process"


def facts(
    trainee: Trainee,
    source: Source,
    validation: Validation | None,
    settings: TrainSettings,
    team: Team,
    config: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """What must be the same for a run to go on as it began. config: the whole configuration, by
    `table.key`; the training settings alone if there is none."""
    table = {f"train.{name}": value for name, value in settings.table().items()}
    table = {**table, **(config or {})}
    for name in WITHOUT_EFFECT:
        table.pop(f"train.{name}", None)
    shapes = ((n, tuple(t.shape), str(t.dtype)) for n, t in trainee.state_dict().items())
    fingerprinted = isinstance(validation, Fingerprinted)
    found = {
        "config": table,
        "data": source.fingerprint,
        "validation": cast(Fingerprinted, validation).fingerprint if fingerprinted else None,
        "model": "; ".join(f"{name} {shape} {dtype}" for name, shape, dtype in shapes),
        "ensue": __version__,
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "processes": team.world,
    }
    return dict(json.loads(json.dumps(found)))  # as a checkpoint gives it back


def differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, str]:
    """What has changed, each as `was …, now …`; the keys of the configuration one by one."""
    names = _names(was, now)
    flat = [{**table, **table.get("config", {})} for table in (was, now)]
    before, after = ({name: table.get(name) for name in names} for table in flat)
    found = {}
    for name in names:
        if before[name] != after[name]:
            if name == "model":
                found[name] = _first_difference(str(before[name]), str(after[name]))
            else:
                found[name] = f"was {_shown(before[name])}, now {_shown(after[name])}"
    return found


def _names(*facts: Mapping[str, Any]) -> list[str]:
    """Of the facts, and of the keys of the configuration among them."""
    flat = [{**table, **table.get("config", {})} for table in facts]
    return list(dict.fromkeys(name for table in flat for name in table if name != "config"))


def check_allowed(allow: Collection[str], *facts: Mapping[str, Any]) -> None:
    """Each name that is allowed to have changed is one that can change."""
    known = {*_names(*facts), *(f"train.{name}" for name in WITHOUT_EFFECT)}
    for name in allow:
        if name not in known:
            raise unknown("name of what may have changed", name, known)


def _first_difference(was: str, now: str) -> str:
    """Of two lists of weights, the first entry that is not in both at its place."""
    one, other = was.split("; "), now.split("; ")
    at = next((k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    if at is None:
        return f"was {len(one)} weights, now {len(other)}"
    return f"was {one[at]}, now {other[at]}"


def _shown(value: object) -> str:
    return "not there" if value is None else json.dumps(value, ensure_ascii=False)


def check_same(
    path: Path, was: Mapping[str, Any], now: Mapping[str, Any], allow: Collection[str]
) -> list[str]:
    """Lines on the changes that are accepted; RunError on the others, all of them."""
    changed = differences(was, now)
    refused = {n: text for n, text in changed.items() if n not in {*allow, *NOT_BIT_EXACT}}
    if refused:
        lines = [f"  {name}: {text}" for name, text in refused.items()]
        many = "1 change" if len(lines) == 1 else f"{len(lines)} changes"
        raise RunError(
            f"{path}: {many} since this run began\n" + "\n".join(lines) + "\n"
            "Undo them, name another run folder, or allow them by name: "
            + " ".join(f"--allow {name}" for name in refused)
        )
    exact = {True: "not bit-exact", False: "allowed"}
    return [f"{name}: {text}: {exact[name in NOT_BIT_EXACT]}" for name, text in changed.items()]
