"""How columns are read, whichever task they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class ColumnSettings(Protocol):
    """How columns are read. numeric, categorical: those whose values do not tell; leave_out: not
    read; missing: of empty cells, "error" or "indicator"; min_count: categories that are rarer
    are unknown; features: made by hand from columns."""

    @property
    def numeric(self) -> Sequence[str]: ...
    @property
    def categorical(self) -> Sequence[str]: ...
    @property
    def leave_out(self) -> Sequence[str]: ...
    @property
    def missing(self) -> str: ...
    @property
    def min_count(self) -> int: ...
    @property
    def features(self) -> Sequence[str]: ...
