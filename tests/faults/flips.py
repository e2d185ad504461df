"""One bit of one file of a run, or of a saved model, flipped: what commands then say is refused,
named, or as it was."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path

from faults import material
from faults.campaign import FINE, SILENT, Campaign, Case, Outcome
from faults.inside import Notice, answers, command, without_syncing
from faults.material import Material, Subject, make_ready
from faults.snapshot import Snapshot

KINDS = {"run": 6, "model": 2, "stopped": 2}
# What a listing says of the disk and the clock, and of a file that no result follows from.
PASSING = re.compile(r'"(?:bytes|size|when|seconds|trained|time)": [^,}]+')


class Trial:
    """A copy of a subject's folder, what its commands say while it is whole, and every file."""

    def __init__(self, work: Path, place: Path, subject: Subject, kind: str) -> None:
        training = Material(work, subject)
        self.kind, self.subject, self.trust = kind, subject, training.trust
        self.folder = training.copy(place / f"{subject}-{kind}", kind)
        self.whole = Snapshot(self.folder)
        self.files = [*self.whole.below(kind)]
        if (openings := self.folder / "test-openings.jsonl") in self.whole.files and kind == "run":
            self.files.append(openings)
        self.expected = self.say()
        self.whole.restore()
        if any(answer.code for answer in self.expected) or self.say() != self.expected:
            raise AssertionError(f"{subject}: {self.expected}")
        self.whole.restore()

    def commands(self) -> Sequence[Sequence[str]]:
        """Whatever a result can be had from."""
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
            if not self._named(answer, expected, path):
                return Outcome(SILENT, f"{what}: {_difference(expected.out, answer.out)}")
        return Outcome(FINE, what)

    def _named(self, answer: Notice, expected: Notice, path: Path) -> bool:
        """Whether a line more on standard error names the file or a folder that it is in."""
        names = {path.name, *(above.name for above in path.relative_to(self.folder).parents)}
        lines = {*answer.err.splitlines()} - {*expected.err.splitlines()}
        return any(name and name in line for name in names for line in lines)


def _difference(one: str, other: str) -> str:
    at = next((k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
    begin = max(0, at - 40)
    return f"{one[begin : at + 40]!r} became {other[begin : at + 40]!r}"


def begin(work: Path, place: Path) -> Case:
    make_ready()
    without_syncing()
    trials: dict[tuple[str, str], Trial] = {}

    def case(draw: random.Random) -> Outcome:
        subject = material.chosen(draw)
        (kind,) = draw.choices([*KINDS], [*KINDS.values()])
        key = str(subject), kind
        if key not in trials:
            trials[key] = Trial(work, place, subject, kind)
        return trials[key].flipped(draw)

    return case


FLIPS = Campaign("flips", 10_000, 180.0, begin)
