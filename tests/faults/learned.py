"""Models whose learned facts were changed and whose digests are right: every value of their JSON,
every array and weight, missing, of another type, shape, size or sign. One error of ours, or an
answer; never a traceback, a hang, or memory for what is not there."""

from __future__ import annotations

import random
import shutil
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from learned_changes import MODELS, Change, changes
from made_once import made_once
from task_laws import Row

import ensue
from ensue.errors import EnsueError
from faults.campaign import FINE, HANG, TRACEBACK, Campaign, Case, Outcome
from faults.inside import without_syncing
from faults.limits import Hangs, limit_memory, processor_seconds
from faults.material import make_ready as register
from faults.material import material_code

SECONDS = 20.0  # of processor time for one model
MEMORY = 2 << 30
LONGEST = 4000  # characters of a message


def model_files(work: Path, row: Row) -> dict[str, bytes]:
    """Of the model of a row, which is trained when it is first asked for."""
    place = work / "learned" / material_code() / str(row).replace(" ", "-").replace(",", "")
    with made_once(place) as half:
        if half is not None:
            row.fitted().save(half / "model")
    return {path.name: path.read_bytes() for path in (place / "model").iterdir()}


def uses(row: Row) -> Iterator[tuple[str, Callable[[Any], object]]]:
    """What is done with a model, by name."""
    test, questions = row.parts()[2], row.questions()
    yield "str", str
    yield "predict", lambda model: str(model.predict(questions))
    yield "evaluate", lambda model: str(model.evaluate(test, **row.data.columns))
    yield "explain", lambda model: explained(model, questions[0])
    yield "export", lambda model: model.task.exported(model)


def explained(model: Any, question: Any) -> str:
    """Where an answer comes from, of tasks that can say so."""
    ability = model.task.explains
    return "" if ability is None else ability.explain(model, question).as_text(80, False)


def tried(place: Path, files: Mapping[str, bytes], row: Row) -> Outcome:
    """A folder with these files, loaded and used."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for name, data in files.items():
        (place / name).write_bytes(data)
    doing = "load"
    try:
        with processor_seconds(SECONDS), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = ensue.load(place)
            for name, use in uses(row):
                doing = name
                use(model)
    except EnsueError as error:
        if len(message := str(error)) > LONGEST:
            return Outcome(TRACEBACK, f"{doing}: a message of {len(message):,} characters")
    except Hangs:
        return Outcome(HANG, f"{doing}: over {SECONDS:.0f} s of processor time")
    except Exception as error:
        frames = [at for at in traceback.extract_tb(error.__traceback__) if "ensue" in at.filename]
        where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
        message = f"{doing}: {type(error).__name__} at {where}: {str(error)[:150]}"
        return Outcome(TRACEBACK, message)
    return Outcome(FINE, "")


@cache
def _changes(work: Path, row: Row) -> tuple[dict[str, bytes], list[Change]]:
    files = model_files(work, row)
    return files, changes(files)


def chosen(every: list[Change], draw: random.Random) -> Change:
    """Each place as often as every other: most values of JSON are those of vocabularies."""
    where = draw.choice(sorted({(change.file, change.where) for change in every}))
    return draw.choice([change for change in every if (change.file, change.where) == where])


def begin(work: Path, place: Path) -> Case:
    register()
    without_syncing()
    limit_memory(MEMORY)

    def case(draw: random.Random) -> Outcome:
        row = draw.choice(MODELS)
        files, every = _changes(work, row)
        change = chosen(every, draw)
        outcome = tried(place / "model", change.files(files), row)
        return outcome._replace(what=f"{row}: {change}: {outcome.what}"[:400])

    return case


LEARNED = Campaign("learned", 10_000, 120.0, begin)
