"""Sentences with a token on each line: CoNLL in columns, and CoNLL-U."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ensue.data.decode import Line, lines
from ensue.data.formats.text import INNER_CR
from ensue.data.options import ReadOptions, needed_columns, require
from ensue.data.rows import Broken, Place, Problem, ProblemCallback, Row

ENDINGS = (".conll",)
CONLLU = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
CONLLU_COMMENTS = ("text", "sent_id")
COMMENT = re.compile(r"# *(text|sent_id) *= ?(.*)")
WORD = re.compile(r"[1-9][0-9]*")
RANGE = re.compile(r"([1-9][0-9]*)-([1-9][0-9]*)")
EMPTY_NODE = re.compile(r"([0-9]+)\.([1-9][0-9]*)")


COUNTED = tuple(map(str, range(1, 1001)))  # longer sentences get a more careful check
MOST_LINES = 100_000  # of a sentence

Columns = Sequence[Sequence[str]]  # column by column, over the tokens


def _sentences(path: Path, options: ReadOptions) -> Iterator[list[Line]]:
    """The groups of lines between empty lines; a line of spaces counts as empty."""
    pending: list[Line] = []
    for line in lines(path, options):
        if line[1].strip(" \t") or line[2]:
            pending.append(line)
            if len(pending) > MOST_LINES:
                raise Broken(
                    Place(str(path), pending[0][0]),
                    f"a sentence of more than {MOST_LINES:,} lines: are the empty lines between "
                    "the sentences missing?",
                )
        elif pending:
            yield pending
            pending = []
    if pending:
        yield pending


class Faults:
    """Reports the faults of one sentence; the first of them rejects the row."""

    def __init__(self, file: str, on_bad_row: ProblemCallback) -> None:
        self._file, self._on_bad_row, self.count = file, on_bad_row, 0

    def add(self, line: int, reason: str) -> None:
        self._on_bad_row(Problem(Place(self._file, line), reason, rejects=int(not self.count)))
        self.count += 1


def _transposed(tokens: list[list[str]], width: int) -> Columns | None:
    """The columns of a sentence; None if a token has too few, too many or empty columns."""
    if set(map(len, tokens)) != {width}:
        return None
    columns = list(zip(*tokens, strict=True))
    for column in columns:
        if "" in column:
            return None
    return columns


def _row(file: str, lines: list[Line], names: Sequence[str], columns: Columns) -> Row:
    fields = {name: list(column) for name, column in zip(names, columns, strict=True)}
    return Row(Place(file, lines[0][0]), fields)


def _line_fault(line: Line) -> str:
    return line[2] or (INNER_CR if "\r" in line[1] else "")


# --- columns ---------------------------------------------------------------------------

FEWEST = 20  # lines that tell
REPEATS = 3  # lines of each label, on average


def recognised(first: Sequence[str]) -> bool:
    """Whether lines are in groups separated by empty lines, have the same number of words, and end
    with words that repeat."""
    groups: list[list[list[str]]] = [[]]
    for line in first:
        if line.strip():
            groups[-1].append(line.split("\t") if "\t" in line else line.split())
        elif groups[-1]:
            groups.append([])
    rows = [line for group in groups for line in group]
    if len(groups) < 2 or len(rows) < FEWEST or len(rows) < 2 * len(groups):
        return False
    lasts = {row[-1] for row in rows}
    alike = len({len(row) for row in rows}) == 1 and len(rows[0]) > 1
    return alike and 1 < len(lasts) <= len(rows) // REPEATS


def read(path: Path, options: ReadOptions, on_bad_row: ProblemCallback) -> Iterator[Row]:
    """{"form": […], …, "tag": […]} for each sentence.

    Tabs separate columns, or spaces if the first token's line has no tab. A line that begins with #
    before the first token of a sentence is a comment, unless it has all columns and no ` = `."""
    file, names = str(path), options.conll
    tabs: bool | None = None  # between columns; not known before the first token
    for sentence in _sentences(path, options):
        faults = Faults(file, on_bad_row)
        tokens: list[list[str]] = []
        for line in sentence:
            number, text, _ = line
            columns = text.split("\t") if tabs else _apart(text)
            fault = _line_fault(line)
            if text[:1] in "#-" and _is_remark(text, columns, names, begins=not tokens):
                if fault:
                    faults.add(number, fault)
                continue
            if tabs is None and not fault:
                tabs = "\t" in text
                columns = text.split("\t") if tabs else columns
                names = names or _names(len(columns))
                require(needed_columns(options), names, Place(file, number))
            fault = fault or _column_fault(columns, names, "tab" if tabs else "space")
            if fault:
                faults.add(number, fault)
            tokens.append(columns)
        if tokens and not faults.count:
            yield _row(file, sentence, names, list(zip(*tokens, strict=True)))


def _is_remark(text: str, columns: Sequence[str], names: Sequence[str], begins: bool) -> bool:
    """Whether a line is a comment, or marks the start of a document."""
    if text.startswith("-"):
        return text.startswith("-DOCSTART-")
    return begins and text.startswith("#") and (" = " in text or len(columns) != len(names))


def _apart(text: str) -> list[str]:
    """Splits columns at spaces and tabs; other white space belongs to the tokens."""
    columns = text.replace("\t", " ").split(" ")
    return [column for column in columns if column] if "" in columns else columns


def _names(width: int) -> tuple[str, ...]:
    if width == 1:
        return ("form",)
    return ("form", *(f"column{k}" for k in range(2, width)), "tag")


def _column_fault(columns: Sequence[str], names: Sequence[str], apart: str) -> str:
    if len(columns) != len(names):
        guess = f" (missing {apart}?)" if len(columns) < len(names) else f" (a {apart} too many?)"
        return f"expected {len(names)} columns, found {len(columns)}{guess}"
    if "" in columns:
        return f"column {names[columns.index('')]!r} is empty"
    return ""


# --- CoNLL-U -----------------------------------------------------------------------------


def read_conllu(path: Path, options: ReadOptions, on_bad_row: ProblemCallback) -> Iterator[Row]:
    """{"form": […], "lemma": […], "upos": […], …} and the comments `text` and `sent_id` for each
    sentence. Ranges of multiword tokens and empty nodes are checked and left out."""
    file = str(path)
    require(needed_columns(options), (*CONLLU[1:], *CONLLU_COMMENTS), Place(file, 1))
    for sentence in _sentences(path, options):
        comments = {}
        start = 0
        while start < len(sentence) and sentence[start][1].startswith("#"):
            if comment := COMMENT.fullmatch(sentence[start][1]):
                comments[comment[1]] = comment[2]
            start += 1
        tokens = [text.split("\t") for _, text, _ in sentence[start:]]
        columns = _transposed(tokens, len(CONLLU))
        if columns is None or columns[0] != COUNTED[: len(tokens)] or _any_fault(sentence):
            columns = _with_care(sentence[:start], sentence[start:], Faults(file, on_bad_row))
        if columns:
            row = _row(file, sentence, CONLLU[1:], columns[1:])
            row.fields.update(comments)
            yield row


def _any_fault(lines: list[Line]) -> bool:
    _, texts, faults = zip(*lines, strict=True)
    return any(faults) or "\r" in "".join(texts)


def _with_care(comments: list[Line], lines: list[Line], faults: Faults) -> Columns | None:
    """The columns of a sentence with ranges or empty nodes; None if it is faulty, or empty."""
    for line in comments:
        if fault := _line_fault(line):
            faults.add(line[0], fault)
    last = 0, 0
    tokens: list[list[str]] = []
    for line in lines:
        number, text, _ = line
        if fault := _line_fault(line):
            faults.add(number, fault)
            last = _next_of(text.partition("\t")[0], last)
        else:
            last = _token(tokens, number, text.split("\t"), last, faults)
    return list(zip(*tokens, strict=True)) if tokens and not faults.count else None


def _token(
    tokens: list[list[str]], number: int, columns: list[str], last: tuple[int, int], faults: Faults
) -> tuple[int, int]:
    """Reads the line of a token; returns the token's number, and the number of the last empty node
    after it."""
    identity, (word, node) = columns[0], last
    if len(columns) != len(CONLLU):
        guess = " (spaces instead of tabs?)" if len(columns) == 1 and " " in identity else ""
        faults.add(number, f"expected 10 columns between tabs, found {len(columns)}{guess}")
        return _next_of(identity, last)
    if "" in columns:
        faults.add(number, f"column {CONLLU[columns.index('')].upper()} is empty")
    if WORD.fullmatch(identity):
        if int(identity) != word + 1:
            faults.add(number, f"expected ID {word + 1}, got {identity}")
        tokens.append(columns)
        return int(identity), 0
    if match := RANGE.fullmatch(identity):
        if int(match[1]) != word + 1 or int(match[2]) < int(match[1]):
            faults.add(number, f"expected a range that begins with {word + 1}, got {identity}")
        return last
    if match := EMPTY_NODE.fullmatch(identity):
        if (int(match[1]), int(match[2])) != (word, node + 1):
            faults.add(number, f"expected ID {word}.{node + 1}, got {identity}")
        return word, int(match[2])
    faults.add(number, f"expected an ID such as 1, 1-2 or 1.1, got {identity!r}")
    return _next_of(identity, last)


def _next_of(identity: str, last: tuple[int, int]) -> tuple[int, int]:
    """The number at which counting continues after a faulty line, so that a fault is reported
    once."""
    if WORD.fullmatch(identity):
        return int(identity), 0
    return last if RANGE.fullmatch(identity) or EMPTY_NODE.fullmatch(identity) else (last[0] + 1, 0)
