"""One point of a label curve: a run on some rows, trained by the process of a worker."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ensue.errors import EnsueError
from ensue.files.atomic_folder import finite
from ensue.files.run_folder import RunFolder
from ensue.jobs import Tell, work


@work
def train_point(tell: Tell, folder: str, config: Mapping[str, Any], measure: str) -> dict[str, Any]:
    """Trains, or goes on where the folder's newest checkpoint stands: its score on validation, of
    what answers, or of the network where that answers alone."""
    from ensue.runs.config import RunConfig
    from ensue.runs.run import seconds_trained
    from ensue.runs.train import attempted, train_run

    place, began = RunFolder(folder), time.monotonic()
    earlier = seconds_trained(place.path)
    try:
        with attempted(place):
            trained = train_run(RunConfig.of(config), place)
    except EnsueError as error:
        return {"failure": str(error)}
    networks = [(own.scores or {}).get(measure) for own in trained.outcomes]
    known = [own for own in networks if own is not None]
    alone = sum(known) / len(known) if known else None
    score = finite({"score": trained.answer.get(measure, alone)})["score"]
    failure = "" if score is not None else f"{measure} on validation is not a finite number"
    return {"score": score, "seconds": earlier + time.monotonic() - began, "failure": failure}
