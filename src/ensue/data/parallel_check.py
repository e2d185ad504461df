"""Are two parallel files fit to learn from?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ensue.data.check import Finding, Report
from ensue.data.options import ReadOptions
from ensue.data.parallel import PAIR, read_any
from ensue.data.roles import Roles
from ensue.data.rows import Place, Problem, Row, watched_rows
from ensue.data.survey import MOST_EXAMPLES, WORDS, Survey

# A pair is uneven if one side has more than UNEVEN times the words of the other and a few more.
UNEVEN, A_FEW = 3, 5


def check_parallel(parts: Mapping[str, Sequence[str]], options: ReadOptions) -> Report:
    """What `ensue.data.check` tells of a table, of pairs: empty sides and files of unequal length
    are problems; sources seen in another part, pairs that stand there twice, sources with two
    targets, and pairs of which one side is far longer are warnings."""
    report = Report(roles=Roles(*PAIR, guessed=False))
    vocabulary: set[str] = set()
    for name, paths in parts.items():
        part = Survey(name, Roles(*PAIR, guessed=False), vocabulary, not report.parts)
        uneven = _Uneven()

        def add(problem: Problem, part: Survey = part) -> None:
            report.add(problem)
            part.rejected += problem.rejects

        for path in paths:
            for row in watched_rows(read_any(path, options, add), path):
                part.add(row, report.parts)
                uneven.add(row)
        part.labels.clear()  # targets are no classes
        report.parts.append(part)
        report.warnings += [*_warnings(part), *uneven.findings(part)]
    return report


class _Uneven:
    """Pairs of which one side is far longer."""

    def __init__(self) -> None:
        self.count = 0
        self.places: list[Place] = []

    def add(self, row: Row) -> None:
        shorter, longer = sorted(len(WORDS.findall(row.fields[side])) for side in PAIR)
        if longer > UNEVEN * shorter + A_FEW:
            self.count += 1
            if len(self.places) < MOST_EXAMPLES:
                self.places.append(row.place)

    def findings(self, part: Survey) -> Iterator[Finding]:
        if self.count:
            places = tuple(map(str, self.places))
            told = (
                f"{self.count:,} of {part.rows:,} rows of {part.name} have one side far longer "
                "than the other: are these translations?"
            )
            yield Finding("uneven", told, (*places, "…") if self.count > len(places) else places)


def _warnings(part: Survey) -> Iterator[Finding]:
    told = {
        **{f"are in {other} as well": ("leakage", leak) for other, leak in part.leaks.items()},
        "have the source of another row and a different target": ("conflict", part.conflicts),
        "are the same as another row": ("duplicates", part.duplicates),
    }
    for words, (kind, found) in told.items():
        if found.count:
            message = f"{found.count:,} of {part.rows:,} rows of {part.name} {words}"
            yield Finding(kind, message, found.named())
    if part.replaced:
        yield Finding(
            "damage",
            f"{part.replaced:,} of {part.rows:,} rows of {part.name} hold U+FFFD, the sign of "
            "letters lost in an earlier conversion",
        )
