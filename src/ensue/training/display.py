"""Progress on the standard error: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TextIO

from ensue.drawing.layout import clock
from ensue.escape import printable_lines
from ensue.training.rows import (
    Began,
    CheckpointSaved,
    Finished,
    Notice,
    Row,
    Update,
    Validated,
    Watcher,
)

LINE_SECONDS, BAR_SECONDS = 10.0, 0.1  # between two lines, two drawings of the bar
WIDTH = 20
SMOOTH = 0.95  # smoothing of the displayed cost


def where_somebody_looks() -> list[Watcher]:
    """A display in a terminal or a notebook; none elsewhere, such as in a script with redirected
    output."""
    return [Display()] if sys.stderr.isatty() or in_notebook(sys.stderr) else []


def in_notebook(stream: object) -> bool:
    """Whether a stream writes into a cell of Jupyter, which can overwrite a line like a
    terminal."""
    return type(stream).__module__.partition(".")[0] == "ipykernel"


class Display:
    """A watcher that shows the progress of a training. quiet: warnings only. The watched score is
    named in `Began`, because a task may choose it when it knows the data."""

    def __init__(self, stream: TextIO | None = None, quiet: bool = False) -> None:
        self.quiet = quiet
        self._watch = ""
        self.stream = stream or sys.stderr
        self.bar = self.stream.isatty() or in_notebook(self.stream)
        self._drawn = False  # the last line shows a bar
        self._shown_at = self._began = time.monotonic()
        self._first = self._update = self._updates = 0
        self._tokens, self._cost = 0.0, float("nan")
        self._last: float | None = None
        self._best: float | None = None

    def __call__(self, row: Row) -> None:
        if self.quiet and (not isinstance(row, Notice) or row.progress):
            return
        match row:
            case Began(update, updates, watch):
                self._first = self._update = update
                self._updates, self._watch = updates, watch
                self._began = self._shown_at = time.monotonic()
                self._tokens, self._cost, self._last, self._best = 0.0, float("nan"), None, None
            case Update():
                self._note(row)
            case Validated(update, epoch, scores, best):
                self._last = scores[self._watch]
                self._best = self._last if best else self._best
                mark = ", the best so far" if best else ""
                listed = ", ".join(f"{name} {score:.4g}" for name, score in scores.items())
                self._line(f"epoch {epoch}, update {update}: validation {listed}{mark}")
            case Notice(text):
                self._line(text)
            case CheckpointSaved():
                pass
            case Finished(update, reason):
                stale = f"{self._watch} did not improve for as long as train.patience allows"
                why = {"patience": stale}
                self._line(
                    f"finished after update {update}: {why.get(reason, f'all {reason} done')}"
                )

    def _note(self, row: Update) -> None:
        self._update, now = row.update, time.monotonic()
        self._tokens += row.tokens
        known = self._cost == self._cost
        self._cost = SMOOTH * self._cost + (1 - SMOOTH) * row.cost if known else row.cost
        if now - self._shown_at >= (BAR_SECONDS if self.bar else LINE_SECONDS):
            self._shown_at = now
            if self.bar:
                self._draw()
            else:
                self._line(self._text())

    def _text(self) -> str:
        seconds = max(time.monotonic() - self._began, 1e-9)
        done = self._update - self._first
        left = (self._updates - self._update) * seconds / max(done, 1)
        parts = [f"update {self._update}/{self._updates}", f"cost {self._cost:.4g}"]
        if self._last is not None and self._best is not None:
            parts.append(f"validation {self._watch} {self._last:.4g} (best {self._best:.4g})")
        parts += [f"{self._tokens / seconds:,.0f} tokens/s", f"{clock(left)} left"]
        return ", ".join(parts)

    def _draw(self) -> None:
        share = min(self._update / max(self._updates, 1), 1.0)
        full = round(WIDTH * share)
        line = f"{'█' * full}{'·' * (WIDTH - full)} {share:4.0%} {self._text()}"
        columns = shutil.get_terminal_size().columns - 1
        self.stream.write("\r" + line[:columns].ljust(columns))
        self.stream.flush()
        self._drawn = True

    def _line(self, text: str) -> None:
        if self._drawn:
            self.stream.write("\r" + " " * (shutil.get_terminal_size().columns - 1) + "\r")
            self._drawn = False
        self.stream.write(printable_lines(text) + "\n")
        self.stream.flush()
