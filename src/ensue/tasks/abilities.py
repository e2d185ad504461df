"""Abilities that some tasks have: saying where an answer comes from, drawing answers, and having
them given by several processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ensue.data.rows import Tell
from ensue.data.settings import DataSettings
from ensue.tasks.options import Option

if TYPE_CHECKING:
    from ensue.tasks.task import Questions

Asked = Mapping[str, Any]  # what a question says beside its inputs: beam, n_best, future, …
NOTHING: Asked = {}


class Explains(Protocol):
    """Where an answer comes from: an ability of some tasks."""

    option: Option  # how the command line is given what is to be explained

    def explain(self, model: Any, given: Any, asked: Asked = NOTHING) -> Explanation:
        """asked: the task's further words of `explain`."""
        ...


class Explanation(Protocol):
    """found: a dataclass, the answer with its reasons."""

    @property
    def found(self) -> Any: ...

    def as_text(self, width: int, colour: bool) -> str: ...

    def as_svg(self) -> str: ...


class Draws(Protocol):
    """Answers as a picture: an ability of some tasks."""

    def answers(self, model: Any, part: Any, asked: Asked) -> str:
        """What was asked for, as SVG."""
        ...

    def evaluated(self, model: Any, part: Any) -> str:
        """The end of a part beside what came, as SVG."""
        ...


class Deals(Protocol):
    """Rows of files that can be answered apart from each other, in other processes: an ability of
    some tasks. A share is some rows, as JSON."""

    def shares(
        self, model: Any, paths: Sequence[str], data: DataSettings, on_bad_row: Tell | None = None
    ) -> Iterator[list[Any]]: ...

    def questions(self, model: Any, share: Sequence[Any]) -> Questions[Any]: ...

    def names(self, share: Sequence[Any]) -> list[str]:
        """The file and line of each."""
        ...
