"""References to code inside saved files: a canary file that leaves a mark when it is imported is
named at a string of a run, a base, an export or a selection, under valid digests. Whatever is done
with the folder, the canary is never imported."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import traceback
from pathlib import Path

from canary import Canary, plant, strings_in

import ensue
from ensue.errors import EnsueError
from faults.campaign import FINE, HANG, RAN, TRACEBACK, Campaign, Case, Outcome
from faults.folders import asked_to_stop
from faults.inside import command, without_syncing
from faults.limits import Hangs, processor_seconds
from faults.material import make_ready
from faults.scenes import PROGRAM, PYTHON, SLOW, SLOW_SHARE, ready, scenes

SECONDS = 30.0  # of processor time for one command
CELLS = 0.5  # of the references take the place of a cell
TRAINED = 3.0  # seconds after which a training is asked to stop


# --- what is done with them ----------------------------------------------------------------


def _done(folder: Path, words: list[str]) -> None:
    verb, *rest = words
    if verb == PYTHON:
        try:
            ensue.load(folder / rest[0]).predict(["a text"])
        except (EnsueError, TypeError, ValueError, IndexError, AttributeError):
            return  # questions of another task: the model was loaded before
    elif verb == PROGRAM:
        subprocess.run(
            [sys.executable, rest[0]],
            cwd=folder,
            input=b"a text\n",
            capture_output=True,
            timeout=60,
            check=False,
        )
    else:
        command(folder, words)


def used(folder: Path, words: list[str]) -> Outcome:
    try:
        with processor_seconds(SECONDS), asked_to_stop(TRAINED):
            _done(folder, words)
    except Hangs:
        return Outcome(HANG, f"{words[0]}: over {SECONDS:.0f} s of processor time")
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        return Outcome(TRACEBACK, f"{words[0]}: {type(error).__name__} at {where}: {error}"[:300])
    return Outcome(FINE, "")


def begin(work: Path, place: Path) -> Case:
    make_ready()
    without_syncing()

    def case(draw: random.Random) -> Outcome:
        scene = draw.choice(scenes())
        whole, folder, canary = ready(work, scene), place / "case", Canary(place / "canary")
        canary.mark.unlink(missing_ok=True)
        bases = [f"{name}/base" for name in scene.planted if (whole / name / "base").is_dir()]
        planted = draw.choice([*scene.planted, *bases])
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(whole, folder)
        for beside in (folder, folder / planted):  # that names of modules and relative paths mean
            shutil.copy(canary.file, beside)
        every = strings_in(folder / planted)
        cells = [one for one in every if any("cell" in str(key) for key in one.way)]
        at = draw.choice(cells if cells and draw.random() < CELLS else every)
        reference = draw.choice(canary.references)
        plant(folder / planted, at, reference)
        what = f"{scene} {planted}/{at}"
        for words in scene.every_command(folder, "canaries"):
            if any(word in SLOW for word in words) and draw.random() > SLOW_SHARE:
                continue  # they load the model as the others do
            outcome = used(folder, words)
            if canary.sang:
                return Outcome(RAN, f"{what}: {' '.join(words)}")
            if outcome.kind != FINE:
                return outcome._replace(what=f"{what}: {outcome.what}")
        return Outcome(FINE, what)

    return case


CANARIES = Campaign("canaries", 1200, 240.0, begin)
