"""`ensue train --members 5 --workers 2`: trains the networks of an ensemble in separate processes.

A worker trains one network in its folder, exactly as the run itself would. The run then finds all
networks finished, and continues as usual.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from ensue.cells.permission import CellPermission
from ensue.errors import OptionError
from ensue.files.opening import read_plain
from ensue.files.seal import CONFIG, DATA
from ensue.jobs import Job, Machines, ProgressCallback, in_order, stoppable, work
from ensue.runs.config import RunConfig
from ensue.runs.data_files import data_facts
from ensue.runs.messages import Message, MessageCallback, nobody
from ensue.runs.train import read_parts
from ensue.tasks.fitting import Fitting
from ensue.training import Display, RunFolder


def members_elsewhere(
    folder: RunFolder, config: RunConfig, on: Machines, say: MessageCallback, allow: list[str]
) -> Callable[[int], None]:
    """A function that trains a number of networks of the run, after the configuration is
    written."""
    refuse_one_network(config)

    def train(members: int) -> None:
        cells = asdict(config.permission)
        arguments = {"folder": str(folder.path.resolve()), "allow": allow, "cells": cells}
        jobs = [
            Job(f"network {index + 1}", train_member, {"member": index, **arguments})
            for index in range(members)
        ]
        with stoppable():
            for result in in_order(jobs, on, lambda job, line: say(Message(f"{job.name}: {line}"))):
                result.get()

    return train


def refuse_one_network(config: RunConfig) -> None:
    if config.members == 1:
        raise OptionError(
            "--workers: expected several networks to share out, got one; add --members 5. One "
            "network is trained by several processes with "
            "`torchrun --nproc-per-node 2 --no-python -- ensue train …`"
        )


class LinesTo:
    """A text stream that passes each line to a callback."""

    def __init__(self, tell: ProgressCallback) -> None:
        self._tell = tell

    def write(self, text: str) -> int:
        self._tell(text.rstrip("\n"))
        return len(text)

    def flush(self) -> None:
        """Does nothing: lines are passed on at once."""

    def isatty(self) -> bool:
        return False


@work
def train_member(
    tell: ProgressCallback, folder: str, member: int, allow: list[str], cells: Mapping[str, Any]
) -> dict[str, Any]:
    """Trains or resumes one network of the run in this folder; 0 is the first. cells: the files of
    `CellPermission`."""
    place = RunFolder.lent(folder)
    config = replace(RunConfig.read(place.config), permission=CellPermission(**cells))
    model = config.new_model()
    model.read_base(place)
    train, validation = read_parts(config, model, nobody)
    seal = {CONFIG: read_plain(place.config), DATA: data_facts(place, config)}
    display = Display(LinesTo(tell))  # type: ignore[arg-type]
    how = Fitting(place, [display], config.flat(), allow, seal)
    outcome = model.fit_member(member, train, validation, how)
    return {"updates": outcome.updates}
