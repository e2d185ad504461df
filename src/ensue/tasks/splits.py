"""How a task splits files into training, validation and test parts."""

from __future__ import annotations

from typing import Any, Protocol

from ensue.data.settings import DataSettings


class Split(Protocol):
    def line(self, data: DataSettings, settings: Any) -> str:
        """A message on how the files are split. settings: the [model] table."""
        ...

    def moves_with_files(self, data: DataSettings) -> bool:
        """Whether a row's part depends on its place in the file, not on its content."""
        ...


class HashSplit:
    """A split by the hash of each row's content. unit: the thing that is hashed."""

    def __init__(self, unit: str = "each row") -> None:
        self.unit = unit

    def line(self, data: DataSettings, settings: Any) -> str:
        return data.split_line(self.unit)

    def moves_with_files(self, data: DataSettings) -> bool:
        return False
