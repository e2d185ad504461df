"""What some tasks can do with answers, and others cannot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ensue.data.rows import Tell
from ensue.data.settings import DataSettings

if TYPE_CHECKING:
    from ensue.tasks.task import Questions


class Draws(Protocol):
    """Answers as a picture: an ability of some tasks."""

    def answers(self, model: Any, part: Any, asked: Mapping[str, Any]) -> str:
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
