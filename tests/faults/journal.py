"""What became of each case, kept in a file line by line, so that a campaign can go on."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from faults.campaign import FINE, KINDS, Outcome

PROJECT = Path(__file__).parents[2]


def code_digest(*folders: str) -> str:
    """Of all Python files in folders of the project."""
    digest = sha256()
    for path in sorted(path for folder in folders for path in (PROJECT / folder).rglob("*.py")):
        digest.update(str(path.relative_to(PROJECT)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


class Journal:
    """The outcomes of one campaign, of the code with this digest: those of other code do not count.
    A line that was cut off by a kill is dropped, and its case tried again."""

    def __init__(self, path: Path, code: str, seed: int) -> None:
        self.path, head = path, {"code": code, "seed": seed}
        self.outcomes: dict[int, Outcome] = {}
        lines = self._lines()
        self.anew = bool(lines) and lines[0] != head
        if lines[:1] == [head]:
            for line in lines[1:]:
                self.outcomes[line["case"]] = Outcome(line["kind"], line["what"], line["faults"])
        path.parent.mkdir(parents=True, exist_ok=True)
        journal_lines = [
            head,
            *(_line(number, outcome) for number, outcome in self.outcomes.items()),
        ]
        path.write_text("".join(f"{json.dumps(line)}\n" for line in journal_lines), "utf-8")

    def _lines(self) -> list[dict[str, object]]:
        try:
            whole, _, _ = self.path.read_text("utf-8").rpartition("\n")
            return [json.loads(line) for line in whole.splitlines()]
        except (OSError, ValueError):
            return []

    def add(self, number: int, outcome: Outcome) -> None:
        self.outcomes[number] = outcome
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(_line(number, outcome)) + "\n")

    def missing(self, numbers: Iterable[int]) -> list[int]:
        return [number for number in numbers if number not in self.outcomes]


def _line(number: int, outcome: Outcome) -> dict[str, object]:
    return {"case": number, **outcome._asdict()}


def summary(journals: dict[str, Journal]) -> tuple[str, bool]:
    """The table of all campaigns, and whether every promise was held."""
    head = ["campaign", "cases", "faults", *list(KINDS.values())[1:]]
    rows, passed = [head], True
    for name, journal in journals.items():
        kinds = Counter(outcome.kind for outcome in journal.outcomes.values())
        faults = sum(outcome.faults for outcome in journal.outcomes.values())
        broken = [kinds[kind] for kind in KINDS if kind != FINE]
        passed = passed and not any(broken)
        rows.append([name, *(f"{n:,}" for n in (len(journal.outcomes), faults, *broken))])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    ]
    return "\n".join(lines), passed
