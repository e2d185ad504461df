"""Abilities that some tasks have: saying where an answer comes from, and drawing answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ensue.tasks.options import Option

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
