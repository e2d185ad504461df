"""What a translator of dates gets right, by format and by length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ensue.data.tasks.dates import Date
    from ensue.tasks.model import Model

LENGTHS = (0, 10, 15, 20, 25, 30, 100)  # edges of the groups, in characters


@dataclass(frozen=True)
class Share:
    """The share of dates that are exactly right."""

    name: str
    count: int
    share: float


@dataclass(frozen=True)
class DemoTrial:
    """Dates, and what was said of each."""

    name: str
    dates: Sequence[Date]
    said: Sequence[str]

    @classmethod
    def of(cls, name: str, model: Model[Any, Any, Any], dates: Sequence[Date]) -> DemoTrial:
        answers = model.predict([one.text for one in dates])
        return cls(name, dates, [own.text for own in answers])

    @property
    def right(self) -> list[bool]:
        return [one.iso == said for one, said in zip(self.dates, self.said, strict=True)]

    @property
    def exact(self) -> float:
        return sum(self.right) / len(self.dates)

    @property
    def guess(self) -> float:
        """The share of the most frequent day."""
        return Counter(one.iso for one in self.dates).most_common(1)[0][1] / len(self.dates)

    def by_format(self) -> list[Share]:
        groups: dict[str, list[bool]] = {}
        for one, right in zip(self.dates, self.right, strict=True):
            groups.setdefault(one.format, []).append(right)
        return [Share(name, len(own), sum(own) / len(own)) for name, own in groups.items()]

    def by_length(self) -> list[Share]:
        found = []
        for low, high in pairwise(LENGTHS):
            pairs = zip(self.dates, self.right, strict=True)
            own = [right for one, right in pairs if low < len(one.text) <= high]
            if own:
                name = f"{low + 1}–{high}" if high < LENGTHS[-1] else f"over {low}"
                found.append(Share(name, len(own), sum(own) / len(own)))
        return found

    def mistakes(self) -> list[tuple[Date, str]]:
        """The wrong ones: a date, and what was said."""
        pairs = zip(self.dates, self.said, strict=True)
        return [(one, said) for one, said in pairs if one.iso != said]


def lengths_beside(ours: DemoTrial, theirs: DemoTrial) -> Iterator[tuple[str, int, float, float]]:
    """(length, dates, share of ours, share of theirs) for the same dates."""
    for own, other in zip(ours.by_length(), theirs.by_length(), strict=True):
        yield own.name, own.count, own.share, other.share
