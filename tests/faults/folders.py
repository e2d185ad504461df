"""Foreign folders: valid digests around content that Ensue never writes; links, FIFOs, sockets,
folders and endless files instead of files. One error of ours, and nothing outside is touched."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

import hostile

from ensue.files.atomic_folder import MANIFEST, sealed
from ensue.files.chain import Lines, chained
from faults import material
from faults.campaign import FINE, HANG, OUTSIDE, TRACEBACK, Campaign, Case, Outcome
from faults.inside import answers, command, without_syncing
from faults.limits import Hangs, limit_memory, processor_seconds
from faults.material import Material, make_ready
from faults.scenes import PROGRAM, PYTHON, SLOW, SLOW_SHARE, Scene, further, of_subject, ready
from faults.watch import Watch

SECONDS = 20.0  # of processor time for one command
TRAINED = 5.0  # seconds after which a training is asked to stop: settings may be for years
MEMORY = 3 << 30
LONGEST = 4000  # characters of a message
TRUSTING = ("train", "evaluate", "predict", "export")
FURTHER_SHARE = 0.3  # selections, bases, several networks, exports
SPARSE = 1 << 40  # bytes of a file that takes no room


# --- changes -------------------------------------------------------------------------------


def changed_content(run: Path, draw: random.Random) -> str:
    """A folder of the run with a manifest: one value inside is another, and digests are right."""
    places = sorted(path.parent for path in run.rglob(MANIFEST))
    place = draw.choice(places)
    files, what = hostile.hostile_files(place, draw)
    for name, data in files.items():
        (place / name).write_bytes(data)
    return f"{place.relative_to(run.parent)}/{what}"


def changed_facts(run: Path, draw: random.Random) -> str:
    """An accompanying file: JSON, JSON Lines or TOML with one value changed, and the copy that
    seals it."""
    kinds = (".json", ".jsonl", ".toml")
    path = draw.choice(sorted(p for p in run.iterdir() if p.suffix in kinds and p.stat().st_size))
    data = path.read_bytes()
    if path.suffix == ".jsonl":
        path.write_bytes(b"".join(_chained(data, draw)))
        return path.name
    changed, what = hostile.CHANGES[path.suffix](data, draw)
    path.write_bytes(_with_digest(changed))
    for copied in run.glob(f"*/{path.name}"):
        _put_copy(copied, path.read_bytes())
    return f"{path.name}: {what}"


def _chained(data: bytes, draw: random.Random) -> Iterator[bytes]:
    """The lines with one of them changed, each with the digests that then belong to it."""
    values = Lines.of(data).values
    which, before = draw.randrange(len(values)), ""
    for k, value in enumerate(values):
        if k == which:
            value = json.loads(hostile.changed_json(json.dumps(value).encode(), draw)[0])
        line, before = chained(value, before)
        yield line


def _with_digest(data: bytes) -> bytes:
    """JSON with the digest that belongs to it, where it had one."""
    try:
        value = json.loads(data)
        if isinstance(value, dict) and "sha256" in value:
            return sealed(
                {key: entry for key, entry in value.items() if key != "sha256"}, sort=False
            )
    except ValueError:
        pass
    return data


def _put_copy(copied: Path, data: bytes) -> None:
    files = {path.name: path.read_bytes() for path in copied.parent.iterdir()}
    files[copied.name] = data
    for name, content in hostile.resealed(files).items():
        (copied.parent / name).write_bytes(content)


def put_strange(run: Path, draw: random.Random) -> str:
    """Something else in the place of a file or folder of the run."""
    path = draw.choice(sorted(run.rglob("*")))
    kind, make = draw.choice(STRANGE)
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    make(path, run.parent.parent / "precious")
    return f"{path.relative_to(run.parent)} is {kind}"


def _socket(place: Path, precious: Path) -> None:
    with chdir(place.parent), socket.socket(socket.AF_UNIX) as listener:  # its name is short
        listener.bind(place.name)


def _endless(place: Path, precious: Path) -> None:
    with open(place, "wb") as file:
        file.truncate(SPARSE)


STRANGE: list[tuple[str, Callable[[Path, Path], object]]] = [
    ("a link to a file", lambda place, precious: place.symlink_to(precious / "file")),
    ("a link to a folder", lambda place, precious: place.symlink_to(precious)),
    ("a link to itself", lambda place, precious: place.symlink_to(place.name)),
    ("a link to nowhere", lambda place, precious: place.symlink_to(precious / "new")),
    ("a FIFO", lambda place, precious: os.mkfifo(place)),
    ("a socket", _socket),
    ("a folder", lambda place, precious: place.mkdir()),
    ("a file without end", _endless),
    ("a device", lambda place, precious: place.symlink_to("/dev/zero")),
    ("an empty file", lambda place, precious: place.touch()),
]
KINDS = ("run", "run", "stopped", "model")
CHANGES = {changed_content: 5, changed_facts: 3, put_strange: 3}


# --- what is done with them ----------------------------------------------------------------


def commands(scene: Scene, folder: Path, run: str, draw: random.Random) -> list[list[str]]:
    """What is done with a folder; of what takes long, a part."""
    if run == "model":
        return [[PYTHON, "model"]]
    trust = ["--trust-cell"] * (scene.subject is not None and scene.subject.cell)
    words = []
    for line in scene.every_command(folder, "folders"):
        if any(word in SLOW for word in line) and draw.random() > SLOW_SHARE:
            continue
        named = ["stopped" if word == "run" and run == "stopped" else word for word in line]
        trusting = trust if named[0] in TRUSTING and scene.subject is not None else []
        words.append([*named, *trusting])
    return words


@contextmanager
def asked_to_stop(seconds: float) -> Iterator[None]:
    """A training inside ends in order after a number of seconds."""
    ended = threading.Event()

    def stop() -> None:
        if not ended.wait(seconds):
            os.kill(os.getpid(), signal.SIGTERM)

    watcher = threading.Thread(target=stop, daemon=True)
    before = signal.signal(signal.SIGTERM, lambda number, frame: None)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
        signal.signal(signal.SIGTERM, before)


def used(folder: Path, words: list[str], scene: Scene) -> Outcome:
    """What becomes of one command, or of the saved model in Python."""
    try:
        with processor_seconds(SECONDS), asked_to_stop(TRAINED):
            if words[0] == PROGRAM:
                return Outcome(FINE, "")  # a process of its own, which reads the export alone
            if words[0] == PYTHON:
                subject = scene.subject
                questions = subject.row.questions() if subject else ["a text"]
                trust = subject is not None and subject.cell
                answered = answers(folder / words[1], questions, trust)
            else:
                answered = command(folder, words)
    except Hangs:
        return Outcome(HANG, f"{words[0]}: over {SECONDS:.0f} s of processor time")
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        message = f"{words[0]}: {type(error).__name__} at {where}: {str(error)[:200]}"
        return Outcome(TRACEBACK, message)
    if answered.code == 1 or "Traceback" in answered.err:
        return Outcome(TRACEBACK, f"{words[0]}: {answered.err[-300:]}")
    longest = max(map(len, answered.err.splitlines()), default=0)
    if answered.code == 2 and longest > LONGEST:
        return Outcome(TRACEBACK, f"{words[0]}: a line of {longest:,} characters")
    return Outcome(FINE, "")


def begin(work: Path, place: Path) -> Case:
    make_ready()
    without_syncing()
    limit_memory(MEMORY)
    watch = Watch()

    def case(draw: random.Random) -> Outcome:
        other = draw.random() < FURTHER_SHARE
        scene = draw.choice(further()) if other else of_subject(material.chosen(draw))
        run = draw.choice(scene.planted if other else KINDS)
        canaries = place / "precious"
        shutil.rmtree(canaries, ignore_errors=True)
        canaries.mkdir()
        (canaries / "file").write_text("years of work")
        if scene.subject is None:
            folder = place / "case"
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(ready(work, scene), folder)
        else:
            folder = Material(work, scene.subject).copy(place / "case", run)
        (change,) = draw.choices([*CHANGES], [*CHANGES.values()])
        if run == "model" and change is changed_facts:
            change = changed_content
        what = f"{scene} {change(folder / run, draw)}"
        with watch.over([folder, work / "cache"], canaries) as touched:
            for words in commands(scene, folder, run, draw):
                outcome = used(folder, words, scene)
                if outcome.kind != FINE:
                    return outcome._replace(what=f"{what}: {outcome.what}")
        if touched:
            return Outcome(OUTSIDE, f"{what}: {touched[:3]}")
        return Outcome(FINE, what)

    return case


FOLDERS = Campaign("folders", 500, 240.0, begin)
