"""All rows of a table that may be series, by column."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ensue.data.read import Gathered
from ensue.data.series import number_of
from ensue.data.time.axis import is_missing
from ensue.tasks.forecast.tables.reading import time_texts
from ensue.tasks.sample import Sample


def listed_names(listed: str) -> list[str]:
    """a,b → the names a and b."""
    return [name.strip() for name in listed.split(",") if name.strip()]


@dataclass(frozen=True)
class Table:
    """All sound rows, by column."""

    columns: dict[str, list[Any]]
    sample: Sample

    @classmethod
    def of(cls, sample: Sample) -> Table:
        data = sample.data.model_copy(
            update={
                "label": "",
                "group": "",
                "text": "",
                "second": "",
                "sequence": "",
                "features": [],
            }
        )
        how = replace(data.read_options(others=True), used=tuple(sample.columns))
        if not sample.origin.files:  # an index of times is read where it is named
            times = listed_names(sample.settings.get("model", {}).get("time", ""))
            how = replace(how, columns=tuple(name for name in times if name not in sample.columns))
        sources = {path: partial(sample.origin.read, path, how) for path in sample.data.train}
        rows = list(Gathered(sources, skip_bad=True))
        names = dict.fromkeys(name for row in rows for name in row.fields)
        return cls({name: [row.fields.get(name) for row in rows] for name in names}, sample)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def texts(self, name: str) -> list[str]:
        return time_texts(self.columns, [name])

    def numbers(self, name: str) -> list[float] | None:
        """Those that are there, if all that is there are numbers."""
        found = []
        for value in self.columns[name]:
            if value is None or (isinstance(value, str) and is_missing(value)):
                continue
            number = float(value) if isinstance(value, bool) else number_of(value)
            if number is None:
                return None
            found.append(number)
        return found or None

    def where(self, row: int) -> str:
        return f"row {row + 1}"

    @property
    def contents(self) -> list[tuple[str, ...]]:
        """All of each row."""
        return list(zip(*(map(str, own) for own in self.columns.values()), strict=True))
