"""One bit of one file of a run, or of a saved model, flipped: what commands then say is refused,
named, or as it was."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from faults import material
from faults.campaign import FINE, SILENT, Campaign, Case, Outcome
from faults.inside import Notice, answers, command, without_syncing
from faults.material import Material, Subject, make_ready
from faults.scenes import SLOW_SHARE, Command, Scene, further, ready, result
from faults.snapshot import Snapshot

KINDS = {"run": 6, "model": 2, "stopped": 2, "further": 3}
MADE = re.compile(r"step-\d{6,}(?:-final)?|[a-z]+-?[a-z]+")  # folders whose name says which file
# What a listing says of the disk and the clock, and of a file that no result follows from.
PASSING = re.compile(r'"(?:bytes|size|when|seconds|trained|time)": [^,}]+')


class Trial:
    """A copy of a subject's folder, what its commands say while it is whole, and every file."""

    def __init__(self, work: Path, place: Path, subject: Subject, kind: str) -> None:
        training = Material(work, subject)
        self.kind, self.trust = kind, training.trust
        self.subject: Subject | Scene = subject
        self.folder = training.copy(place / f"{subject}-{kind}", kind)
        openings = self.folder / "test-openings.jsonl"
        files = Snapshot(self.folder).below(kind)
        self._look([*files, openings] if openings.exists() and kind == "run" else files)

    def _look(self, files: Sequence[Path]) -> None:
        """What is said of the whole folder, twice."""
        self.whole, self.files = Snapshot(self.folder), files
        self.expected = self.say()
        self.whole.restore()
        if any(answer.code for answer in self.expected) or self.say() != self.expected:
            raise AssertionError(f"{self.subject}: {self.expected}")
        self.whole.restore()

    def commands(self) -> Sequence[Sequence[str]]:
        """Whatever a result can be had from."""
        assert isinstance(self.subject, Subject)
        question, trust = self.subject.questions, self.trust
        if self.kind == "stopped":
            return [
                ["train", "--run", "stopped", *trust],
                ["predict", "stopped", question, "--json", *trust],
            ]
        return [
            ["evaluate", "run", "--json", *trust],
            ["predict", "run", question, "--json", *trust],
            ["runs", ".", "--json"],
        ]

    def say(self) -> list[Notice]:
        if self.kind == "model":
            assert isinstance(self.subject, Subject)
            questions = self.subject.row.questions()
            return [answers(self.folder / "model", questions, self.subject.cell)]
        replies = []
        for words in self.commands():
            answer = command(self.folder, words)
            replies.append(answer._replace(out=PASSING.sub("", answer.out)))
            if answer.code:
                break
        return replies

    def flipped(self, draw: random.Random) -> Outcome:
        path = draw.choice(self.files)
        bit = draw.randrange(8 * len(self.whole.files[path]))
        changed = bytearray(self.whole.files[path])
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        try:
            replies = self.say()
        finally:
            self.whole.restore()
        name = str(path.relative_to(self.folder))
        what = f"{self.subject} {name} bit {bit}"
        for answer, expected in zip(replies, self.expected, strict=False):
            if answer.code == 2 or answer.out == expected.out:
                continue
            if not named(path.relative_to(self.folder), answer, expected):
                return Outcome(SILENT, f"{what}: {_difference(expected.out, answer.out)}")
        return Outcome(FINE, what)


def named(path: Path, answer: Notice, expected: Notice) -> bool:
    """Whether a line more on standard error names the file, or a folder of it that is read as a
    whole: not that of the run, which many lines name."""
    parts = [part for part in path.parts[1:-1] if MADE.fullmatch(part)]
    names = re.compile(
        "|".join(rf"(?<![\w.-]){re.escape(name)}(?![\w-])" for name in [path.name, *parts])
    )
    lines = {*answer.err.splitlines()} - {*expected.err.splitlines()}
    return any(names.search(line) for line in lines)


class Further(Trial):
    """The same of a scene: a selection, a base, several networks, an export."""

    def __init__(self, work: Path, place: Path, scene: Scene, row: Command) -> None:
        self.kind, self.subject, self._row = row.name, scene, row
        self.folder = place / f"{scene}-{'-'.join(row.words)}".replace("/", "-")[:100]
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(ready(work, scene), self.folder)
        self._look([path for part in scene.planted for path in self._below(part)])

    def _below(self, part: str) -> list[Path]:
        return Snapshot(self.folder).below(part)

    def say(self) -> list[Notice]:
        answer = command(self.folder, self._row.words)
        made = self._made() if self._row.writes else ""
        return [answer._replace(out=PASSING.sub("", answer.out) + made)]

    def _made(self) -> str:
        """What the command has written; not the files that may be flipped, which stay so where it
        does not read them."""
        place = self.folder / self._row.writes
        digests = result(self.folder, self._row.writes)
        return str(
            {
                name: digest
                for name, digest in digests.items()
                if name == "selection.json" or place / name not in self.files
            }
        )


def _difference(one: str, other: str) -> str:
    at = next((k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
    begin = max(0, at - 40)
    return f"{one[begin : at + 40]!r} became {other[begin : at + 40]!r}"


def begin(work: Path, place: Path) -> Case:
    make_ready()
    without_syncing()
    trials: dict[tuple[str, str], Trial] = {}

    def case(draw: random.Random) -> Outcome:
        (kind,) = draw.choices([*KINDS], [*KINDS.values()])
        if kind == "further":
            scene = draw.choice(further())
            rows = scene.commands("flips")
            row = draw.choices(rows, [SLOW_SHARE if row.is_slow else 1.0 for row in rows])[0]
            key = str(scene), " ".join(row.words)
            if key not in trials:
                trials[key] = Further(work, place, scene, row)
            return trials[key].flipped(draw)
        subject = material.chosen(draw)
        key = str(subject), kind
        if key not in trials:
            trials[key] = Trial(work, place, subject, kind)
        return trials[key].flipped(draw)

    return case


FLIPS = Campaign("flips", 10_000, 180.0, begin)
