"""Checks data before training: faults, leakage, labels, lengths."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from ensue.data.formats import format_named
from ensue.data.options import ReadOptions, require
from ensue.data.parallel import PAIR, read_any
from ensue.data.read import read
from ensue.data.recognise.columns import column_of
from ensue.data.recognise.format import format_of
from ensue.data.roles import SAMPLE, Roles, columns_of, guess_roles, header_hint, header_is_data
from ensue.data.rows import Place, Problem, Row, Tally, watched_rows
from ensue.data.series import number_of
from ensue.data.survey import MOST_EXAMPLES, MOST_LABELS, WORDS, Pairs, Survey
from ensue.data.time.axis import arranged, is_missing, time_column
from ensue.data.time.dates import NUMBER, spellings_of
from ensue.data.values import NO_LABEL
from ensue.drawing.document import (
    Block,
    Document,
    Lines,
    Paragraph,
    Printed,
    Section,
    Table,
)
from ensue.drawing.layout import cut
from ensue.errors import DataError
from ensue.escape import printable

FEWEST = 8  # rows of a series


def dated_column(columns: Mapping[str, Sequence[Any]]) -> str:
    """The first column of dates, if there are enough rows for a series; else ""."""
    for name, values in columns.items():
        present = [
            str(value) for value in values if value is not None and not is_missing(str(value))
        ]
        if len(present) >= FEWEST and not _no_dates(present, name):
            return name
    return ""


def series_lines(columns: Mapping[str, Sequence[Any]]) -> list[str]:
    """Lines on a table with one column of dates and columns of numbers: its times, gaps and empty
    cells, and the column that names the series if rows share times. [] without dates; raises
    `DataError` if the dates are not the steps of a series."""
    name = dated_column(columns)
    if not name:
        return []
    texts = ["" if value is None else str(value) for value in columns[name]]
    others = {other: other_values for other, other_values in columns.items() if other != name}
    empty = _empty_lines(others)
    if by := _series_by(texts, others):
        return [f"{name}: {by}", *empty]
    try:
        column = time_column(texts, name, lambda row: f"row {row + 1}")
        axis = arranged(len(texts), lambda row: f"row {row + 1}", column, name)
    except DataError as problem:
        message = f"{name} holds dates, but {str(problem).splitlines()[0]}"
        raise DataError(message) from None
    if axis.spacing is None:
        return [*axis.notes, *empty]
    first, last = axis.times[0], axis.times[-1]
    lead = f"a series of {len(axis.rows):,} steps, one per {axis.spacing}"
    return [f"{name}: {lead}, from {first} to {last}", *axis.notes, *empty]


def _series_by(times: Sequence[str], columns: Mapping[str, Sequence[Any]]) -> str:
    """A line on the column that distinguishes rows with the same time; "" for none."""
    if len({*times}) == len(times):
        return ""
    for name, keys in columns.items():
        pairs = {*zip(times, map(str, keys), strict=True)}
        longest = max(Counter(map(str, keys)).values())
        different = len({*map(str, keys)})
        if len(pairs) == len(times) and 1 < different <= len(times) // 2:
            return f"{different:,} series by {name}, of up to {longest:,} rows each"
    return ""


def _no_dates(texts: Sequence[str], name: str) -> bool:
    spellings = spellings_of(list(texts[:50]), name)
    return not spellings or spellings[0] is NUMBER


def _empty_lines(columns: Mapping[str, Sequence[Any]]) -> list[str]:
    counts = {name: _empty(values) for name, values in columns.items()}
    return [
        f"{count:,} empty cell{'s' * (count > 1)} in {name}"
        for name, count in counts.items()
        if count
    ]


def _empty(values: Sequence[Any]) -> int:
    """The number of empty cells in a column of numbers; 0 for other columns."""
    present = [value for value in values if value is not None and not is_missing(str(value))]
    numbers = all(number_of(value) is not None for value in present[:50])
    return len(values) - len(present) if present and numbers else 0


MAJORITY = 0.9
MOST_KEPT = 100_000  # problems that are listed; further ones are only counted
MOST_LABELS_SHOWN = 12
LABEL_WIDTH = 24


class Finding(NamedTuple):
    """A warning that does not concern a single line."""

    kind: str
    message: str
    examples: tuple[str, ...] = ()

    def as_lines(self) -> list[str]:
        lines = [f"{self.kind}: {self.message}"]
        return [*lines, f"  {', '.join(self.examples)}"] if self.examples else lines


@dataclass
class Report(Printed):
    """The result of `check`. columns: a description of each, if none is a text; series: the series
    that forecasting would read from a table with dates and numbers."""

    roles: Roles | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    parts: list[Survey] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    problem_count: int = 0
    series: list[str] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """No faulty line, and at least one row in each part. Warnings do not count."""
        return not self.problem_count and all(part.rows for part in self.parts)

    def add(self, problem: Problem) -> None:
        self.problem_count += 1
        if len(self.problems) < MOST_KEPT:
            self.problems.append(problem)

    def as_json(self) -> dict[str, Any]:
        labels = sorted({label for part in self.parts for label in part.labels})
        return {
            "ok": self.ok,
            "text": (self.roles.text or None) if self.roles else None,
            "inputs": [*self.roles.inputs] if self.roles else [],
            "label": self.roles.label if self.roles else None,
            "guessed": bool(self.roles and self.roles.guessed),
            "columns": dict(self.columns),
            "parts": {part.name: _part_facts(part) for part in self.parts},
            "labels": {
                label: {part.name: part.labels[label] for part in self.parts} for label in labels
            },
            "series": self.series,
            "problem_count": self.problem_count,
            "problems": [
                {"file": p.place.file, "line": p.place.line, "reason": p.reason}
                for p in self.problems
            ],
            "warnings": [finding._asdict() for finding in self.warnings],
        }

    def document(self) -> Document:
        """One screen: the parts, the labels, the warnings, the first problems."""
        columns = Table([*self.columns.items()], ["column", "holds"], left=2)
        blocks: list[Block] = [columns if self.columns else Paragraph(_roles_line(self.roles))]
        blocks += [_part_table(self.parts), *_label_table(self.parts)]
        if self.series:
            blocks.append(Section("read as a series", [Lines(self.series)]))
        if self.warnings:
            lines = chain.from_iterable(finding.as_lines() for finding in self.warnings)
            blocks.append(Section(_counted(len(self.warnings), "warning"), [Lines([*lines])]))
        problem_lines = Tally(self.problems).lines(self.problem_count)
        head = _counted(self.problem_count, "problem")
        blocks.append(
            Section(head, [Lines(problem_lines)]) if problem_lines else Paragraph("no faulty rows")
        )
        return Document("Data", "", blocks)


# --- checking ------------------------------------------------------------------------------


def check(
    parts: Mapping[str, Sequence[Path | str]],
    options: ReadOptions,
    *,
    text: str | None = None,
    label: str | None = None,
    inputs: Sequence[str] = (),
    image: str = "",
) -> Report:
    """Reads every part ({"train": files, "test": files}; the first is the training part) and
    reports on them. It stores digests instead of texts. inputs: the columns of several inputs that
    are read together; image: the column that names pictures."""
    report = Report()
    vocabulary: set[str] = set()
    hints: list[Finding] = []
    named = tuple(name for name in (*inputs, text, label) if name)
    look = replace(options, used=named, others=True)
    for name, paths in parts.items():
        rejected = _Rejected(report)
        if report.roles is None and (sample := _first(paths, look)):
            report.roles = _roles(sample, options, text, label)
            if inputs:
                report.roles = Roles("", label, label is None, inputs=tuple(inputs), image=image)
                require(report.roles.columns, columns_of(sample), sample[0].place)
            if not report.roles.text and not inputs:
                names = columns_of(sample)
                report.columns = {name: column_of(sample, name).summary for name in names}
            hints = list(_header_hints(sample, options))
        how = replace(options, used=report.roles.columns) if report.roles else look
        rows = chain.from_iterable(
            watched_rows(read(path, how, rejected.add), str(path)) for path in paths
        )
        part = Survey(name, report.roles or Roles("", None, False), vocabulary, not report.parts)
        for row in rows:
            if missing := _missing_picture(row, part.roles.image):
                rejected.add(Problem(row.place, missing))
            elif _unlabelled(row, part.roles):
                rejected.add(Problem(row.place, f"{part.roles.label}: {NO_LABEL}"))
            else:
                part.add(row, report.parts)
        part.rejected = rejected.count
        report.parts.append(part)
    if text is None and label is None:
        try:
            report.series = _series(next(iter(parts.values()), ()), look)
        except DataError as problem:
            hints.append(Finding("series", str(problem)))
    report.warnings = [*hints, *_warnings(report.parts)]
    return report


def _series(paths: Sequence[Path | str], options: ReadOptions) -> list[str]:
    """Lines on a table with dates and numbers, as forecasting would read it."""
    sample = _first(paths, options)
    if not sample or not dated_column(_columns(sample)):
        return []
    every = chain.from_iterable(read(path, options, lambda problem: None) for path in paths)
    return series_lines(_columns(list(every)))


def _columns(rows: Sequence[Row]) -> dict[str, list[Any]]:
    return {name: [row.fields.get(name) for row in rows] for name in columns_of(rows)}


def _first(paths: Sequence[Path | str], options: ReadOptions) -> list[Row]:
    """The first valid rows; faults are reported when all rows have been read."""
    rows = chain.from_iterable(read(path, options, lambda problem: None) for path in paths)
    return list(islice(rows, SAMPLE))


def _unlabelled(row: Row, roles: Roles) -> bool:
    """Whether the row lacks a label that it should have."""
    if roles.label is None:
        return False
    value = row.fields.get(roles.label)
    return value is None or (isinstance(value, str) and not value.strip())


def _missing_picture(row: Row, column: str) -> str:
    """Why the picture named in a row cannot be read; "" if it can be read, or none is named."""
    name = row.fields.get(column)
    if not column or not isinstance(name, str):
        return ""
    if not name.strip():
        return f"{column}: expected the name of a picture's file, got an empty text"
    place = Path(row.place.file).parent / name
    return "" if place.is_file() else f"{column}: no such file, {place}"


def _header_hints(rows: Sequence[Row], options: ReadOptions) -> Iterator[Finding]:
    file = Path(rows[0].place.file)
    header = format_named(format_of(file, options.format)).header
    if header and options.header is True and header_is_data(rows):
        yield Finding("header", header_hint(list(rows[0].fields)))


class _Rejected:
    """Adds problems to the report and counts the rows that they reject."""

    def __init__(self, report: Report) -> None:
        self._report, self.count = report, 0

    def add(self, problem: Problem) -> None:
        self._report.add(problem)
        self.count += problem.rejects


def _roles(
    sample: Sequence[Row], options: ReadOptions, text: str | None, label: str | None
) -> Roles:
    if options.sequence is None and options.numbers:
        return Roles("", None, False)
    roles = guess_roles(sample, text, label)
    if text is None and not roles.texts:  # a series or a table
        return Roles("", label, False)
    return roles


# --- warnings --------------------------------------------------------------------------------


def _warnings(parts: Sequence[Survey]) -> Iterator[Finding]:
    for part in parts:
        for other, leak in part.leaks.items():
            message = f"{_of(leak.count, part.rows)} rows of {part.name} are in {other} as well"
            yield Finding("leakage", message, leak.named())
    for part in parts:
        yield from _row_warnings(part)
    for part in parts:
        yield from _label_warnings(part)
    yield from _label_spellings(parts)
    if parts:
        yield from _new_labels(parts[0], parts[1:])


def _row_warnings(part: Survey) -> Iterator[Finding]:
    pairs: Mapping[str, tuple[Pairs, str]] = {
        "conflict": (part.conflicts, "have the text of another row and a different label"),
        "duplicates": (part.duplicates, "are the same as another row"),
    }
    for kind, (known, message) in pairs.items():
        if known.count:
            share = _of(known.count, part.rows)
            yield Finding(kind, f"{share} rows of {part.name} {message}", known.named())
    if part.empty:
        yield Finding("empty", f"{_of(part.empty, part.rows)} rows of {part.name} have no text")
    if part.replaced:
        yield Finding(
            "damage",
            f"{_of(part.replaced, part.rows)} rows of {part.name} contain U+FFFD, the mark of "
            "characters lost in an earlier conversion",
        )
    count, longest = part.outliers()
    if count:
        named = [f"{place} ({size:,} {part.unit})" for place, size in longest]
        message = f"{_of(count, part.rows)} rows of {part.name} are far longer than the others"
        yield Finding("length", message, (*named, "…") if count > len(named) else tuple(named))


def _label_warnings(part: Survey) -> Iterator[Finding]:
    total = part.labels.total()
    if len(part.labels) > MOST_LABELS:
        yield Finding(
            "labels",
            f"more than {MOST_LABELS:,} different labels in {part.name}: are they classes?",
        )
        return
    for label, count in part.labels.most_common(1):
        if len(part.labels) == 1:
            yield Finding("labels", f"all rows of {part.name} have the one label {label!r}")
        elif count > MAJORITY * total:
            share = f"{100 * count / total:.1f} %"
            yield Finding("imbalance", f"{share} of the labels of {part.name} are {label!r}")
    single = sorted(label for label, count in part.labels.items() if count < 2)
    if single and len(part.labels) > 1:
        yield Finding("labels", f"only once in {part.name}: {_names(single)}")


def _label_spellings(parts: Sequence[Survey]) -> Iterator[Finding]:
    spellings: dict[str, set[str]] = defaultdict(set)
    for part in parts:
        for label in part.labels:
            spellings[" ".join(label.casefold().split())].add(label)
    for same in spellings.values():
        if len(same) > 1:
            message = "labels that differ in case or spaces only"
            yield Finding("labels", f"{message}: {_names(sorted(same))}")


def _new_labels(train: Survey, others: Sequence[Survey]) -> Iterator[Finding]:
    for part in others:
        new = sorted(label for label in part.labels if label not in train.labels)
        if new and len(train.labels) <= MOST_LABELS:
            yield Finding("labels", f"in {part.name} and never in {train.name}: {_names(new)}")


def _names(labels: Sequence[str]) -> str:
    listed = ", ".join(cut(repr(label), LABEL_WIDTH) for label in labels[:MOST_LABELS_SHOWN])
    more = len(labels) - MOST_LABELS_SHOWN
    return f"{listed} and {more:,} more" if more > 0 else listed


def _of(count: int, total: int) -> str:
    return f"{count:,} of {total:,}"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


# --- the screen ------------------------------------------------------------------------------


def _part_facts(part: Survey) -> dict[str, Any]:
    median, most, longest = part.length_shares()
    return {
        "rows": part.rows,
        "rejected": part.rejected,
        "empty": part.empty,
        "duplicates": part.duplicates.count,
        "conflicts": part.conflicts.count,
        "leaked": {other: leak.count for other, leak in part.leaks.items()},
        "words": part.words,
        "unseen_words": part.unseen,
        "length": {"median": median, "95%": most, "max": longest},
        "outliers": [{"place": str(p), "size": size} for p, size in part.outliers()[1]],
    }


def _roles_line(roles: Roles | None) -> str:
    if roles is None or not (roles.text or roles.inputs):
        return ""
    label = f", label: {roles.label}" if roles.label is not None else ", no label"
    guess = " (guessed; --text and --label choose others)" if roles.guessed else ""
    if roles.inputs:
        return f"inputs: {' + '.join(roles.inputs)}{label}"
    return f"text: {roles.text}{label}{guess}"


def _part_table(parts: Sequence[Survey]) -> Table:
    """Rows and lengths of each part; empty rows, lengths and new words are for texts only."""
    head = ["part", "rows", "rejected", "empty", "duplicate", "median", "95 %", "longest", "unseen"]
    rows = []
    for k, part in enumerate(parts):
        counts = [part.rows, part.rejected, part.empty, part.duplicates.count]
        unseen = f"{100 * part.unseen / part.words:.1f} %" if k and part.words else "–"
        counted = [f"{number:,}" for number in (*counts, *part.length_shares())]
        if not part.roles.read:
            counted = [*counted[:2], "–", counted[3], *["–"] * 3]
        rows.append([part.name, *counted, unseen])
    return Table(rows, head)


def _label_table(parts: Sequence[Survey]) -> list[Table]:
    counts: Counter[str] = Counter()
    for part in parts:
        counts.update(part.labels)
    if not counts or len(counts) > MOST_LABELS:
        return []
    rows = []
    for label, _ in counts.most_common():
        cells = [cut(printable(label), LABEL_WIDTH)]
        for part in parts:
            share = 100 * part.labels[label] / max(part.labels.total(), 1)
            cells += [f"{part.labels[label]:,}", f"{share:.1f} %"]
        rows.append(cells)
    head = ["label", *(cell for part in parts for cell in (part.name, ""))]
    return [Table(rows, head, most=MOST_LABELS_SHOWN)]


# A pair is uneven if one side has more than UNEVEN times the words of the other and a few more.
UNEVEN, A_FEW = 3, 5


def check_parallel(parts: Mapping[str, Sequence[str]], options: ReadOptions) -> Report:
    """The report of `ensue.data.check` for pairs. Problems: empty sides and files of unequal
    length. Warnings: sources that are also in another part, duplicate pairs, sources with two
    targets, and pairs with one side much longer than the other."""
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
        part.labels.clear()  # targets are not classes
        report.parts.append(part)
        report.warnings += [*_pair_warnings(part), *uneven.findings(part)]
    return report


class _Uneven:
    """Pairs with one side that is far longer than the other."""

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
            messages = (
                f"{self.count:,} of {part.rows:,} rows of {part.name} have one side far longer "
                "than the other: are these translations?"
            )
            yield Finding(
                "uneven", messages, (*places, "…") if self.count > len(places) else places
            )


def _pair_warnings(part: Survey) -> Iterator[Finding]:
    messages = {
        **{f"are in {other} as well": ("leakage", leak) for other, leak in part.leaks.items()},
        "have the source of another row and a different target": ("conflict", part.conflicts),
        "are the same as another row": ("duplicates", part.duplicates),
    }
    for words, (kind, count) in messages.items():
        if count.count:
            message = f"{count.count:,} of {part.rows:,} rows of {part.name} {words}"
            yield Finding(kind, message, count.named())
    if part.replaced:
        yield Finding(
            "damage",
            f"{part.replaced:,} of {part.rows:,} rows of {part.name} contain U+FFFD, the mark "
            "of characters lost in an earlier conversion",
        )
