"""`ensue predict`: answers for the rows of files, or for lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

from ensue.data.rows import Tell
from ensue.data.settings import DataSettings
from ensue.errors import OptionError
from ensue.tasks.model import Model
from ensue.tasks.rows.task import AT_ONCE, together
from ensue.tasks.task import NOTHING, Asked, Questions

Answers = Iterator[tuple[Any, Any]]  # what is shown of a row, and the answer
AnyModel = Model[Any, Any, Any]


class Prediction:
    """Answers of a model, and the picture of what was asked, if the task draws any."""

    def __init__(self, model: AnyModel, asked: Asked = NOTHING) -> None:
        self.model, self.asked = model, asked
        self._last: Questions[Any] | None = None

    def lines(self, lines: Iterable[str], one_by_one: bool = False) -> Answers:
        """(line, answer) for each line. one_by_one: answers at once, for interactive input."""
        for some in together(lines, 1 if one_by_one else AT_ONCE):
            part = self.model.task.asked_lines(some, self.model)
            shown = [self.model.task.shown_line(line) for line in some]
            yield from self._answered(Questions(part, shown))

    def files(
        self, paths: Sequence[str], data: DataSettings, on_bad_row: Tell | None = None
    ) -> Answers:
        """(what is shown of a row, answer) for each row of files that look like the training
        files; labels are not needed and not read. on_bad_row: callback for rejected rows."""
        task = self.model.task
        for questions in task.asked_files(paths, data, self.model, self.asked, on_bad_row):
            yield from self._answered(questions)

    def _answered(self, questions: Questions[Any]) -> Answers:
        self._last = questions
        answers = self.model.task.answers(questions.part, self.model, self.asked)
        shown = repeat(None, len(answers)) if questions.shown is None else questions.shown
        yield from zip(shown, answers, strict=True)

    def picture(self) -> str:
        """The last answers as SVG."""
        draws = self.model.task.draws
        if draws is None or self._last is None:
            raise OptionError(f"--picture: a run to {self.model.task.name} has no picture")
        return draws.answers(self.model, self._last.part, self.asked)
