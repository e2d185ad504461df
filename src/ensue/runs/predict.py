"""`ensue predict`: answers for the rows of files, or for lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from ensue.data.rows import ProblemCallback
from ensue.data.settings import DataSettings
from ensue.errors import OptionError
from ensue.tasks.abilities import NOTHING, RequestOptions
from ensue.tasks.answers import as_row
from ensue.tasks.any_model import AnyModel
from ensue.tasks.finite_answers import answers_of
from ensue.tasks.reader import QuestionFiles, Questions
from ensue.tasks.rows.reader import AT_ONCE, together
from ensue.tasks.targets.decision import ABSTAIN
from ensue.tasks.targets.target import Abstained


class Answered(NamedTuple):
    """An answer. shown_input: the input, as shown next to the answer; row: its file and line, "" if
    it has none."""

    shown_input: Any
    answer: Any
    row: str


class Reply(NamedTuple):
    """An answer in one of the `FORMS`. row: the row, as in `Answered`."""

    value: Any
    row: str


def plain(value: Any) -> Any:
    """The value for JSON; arrays become lists."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.tolist() if hasattr(value, "tolist") else value


def _as_object(answered: Answered) -> dict[str, Any]:
    shown_input = answered.shown_input
    value = shown_input if isinstance(shown_input, str | list | tuple | dict) else None
    line: dict[str, Any] = plain({"input": value, **asdict(answered.answer)})
    return line


# The forms of answers: a line in a terminal, a JSON object, a row of a table by column.
FORMS: dict[str, Callable[[Answered], Any]] = {
    "line": lambda answered: answered.answer.as_line(answered.shown_input),
    "object": _as_object,
    "columns": lambda answered: plain(as_row(answered.answer)),
}


def replies(answers: Iterable[Answered], form: str) -> Iterator[Reply]:
    write = FORMS[form]
    return (Reply(write(answer), answer.row) for answer in answers)


class Prediction:
    """Answers of a model, and a picture of the questions, if the task draws one."""

    def __init__(self, model: AnyModel, options: RequestOptions = NOTHING) -> None:
        self.model, self.options = model, options
        self._last: Questions[Any] | None = None
        self.answered = self.abstained = 0  # number of rows so far, and of empty answers

    def lines(self, lines: Iterable[str], one_by_one: bool = False) -> Iterator[Answered]:
        """An answer for each line. one_by_one: answers at once, for interactive input."""
        for some in together(lines, 1 if one_by_one else AT_ONCE):
            reader = self.model.reader
            part = reader.question_lines(some)
            inputs = [reader.shown_line(line) for line in some]
            yield from self.about(Questions(part, inputs))

    def files(
        self, paths: Sequence[str], data: DataSettings, on_bad_row: ProblemCallback | None = None
    ) -> Iterator[Answered]:
        """An answer for each row of files like the training files. Labels are not needed and not
        read. on_bad_row: callback for rejected rows."""
        files = QuestionFiles(paths, data, on_bad_row)
        for questions in self.model.reader.question_files(files, self.options):
            yield from self.about(questions)

    def about(self, questions: Questions[Any]) -> Iterator[Answered]:
        """An answer for each question."""
        self._last = questions
        answers = answers_of(self.model, questions.part, self.options)
        self.answered += len(answers)
        self.abstained += sum(isinstance(answer, Abstained) for answer in answers)
        if questions.shown_inputs is None:
            yield from (Answered(None, answer, "") for answer in answers)
            return
        names = questions.part.names
        for row, (shown_input, answer) in enumerate(
            zip(questions.shown_inputs, answers, strict=True)
        ):
            yield Answered(shown_input, answer, names[row])

    def lines_before(self) -> list[str]:
        """Lines on the decision rule, if one was set."""
        return self.model.answer_shape().decision(self.options)

    def lines_after(self) -> list[str]:
        """Lines on the number of empty answers, if answers may be empty."""
        if ABSTAIN not in self.options:
            return []
        return [f"abstained: {self.abstained:,} of {self.answered:,} rows"]

    def picture(self) -> str:
        """The last answers as SVG."""
        draws = self.model.abilities.draws
        if draws is None or self._last is None:
            raise OptionError(f"--picture: a run of task {self.model.task.name} has no picture")
        return draws.answers(self.model, self._last.part, self.options)
