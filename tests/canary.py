"""A Python file whose import leaves a mark, and references to it inside the files of a folder.

A reference takes the place of one string of one JSON or TOML file; every digest that covers the
file is computed again, so that the folder is one that another person could have written."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import tomli_w
from hostile import resealed

from ensue.files.atomic_folder import MANIFEST, sealed

SOURCE = """
from pathlib import Path
from ensue.cells import Cell
from ensue.equations import Matrix, Vector, tanh

Path({mark!r}).touch()

class Canary(Cell):
    W, U, b = Matrix("x"), Matrix("h"), Vector()

    def step(self, x, h):
        return tanh(self.W @ x + self.U @ h + self.b)
"""
KINDS = (".json", ".toml")


class Canary:
    """mark: the file that exists once the canary was imported."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.file, self.mark = folder / "canary.py", folder / "mark"
        self.file.write_text(SOURCE.format(mark=str(self.mark)), "utf-8")

    @property
    def references(self) -> tuple[str, ...]:
        """The same file, in every way in which a cell can be named."""
        name, folder = self.file.name, self.file.parent
        return (
            *(f"{self.file}:Canary", str(self.file), f"../{folder.name}/{name}:Canary"),
            *(
                f"{name}:Canary",
                name,
                f"./{name}",
                f"run/{name}:Canary",
                f"{folder}/../{folder.name}/{name}",
            ),
            *(
                "canary:Canary",
                "canary.Canary",
                "canary",
                "canary@" + "0" * 64,
                f"file://{self.file}",
            ),
        )

    @property
    def sang(self) -> bool:
        return self.mark.exists()


class Place(NamedTuple):
    """A string inside a file: the file below the folder, and the keys that lead to it."""

    file: str
    way: tuple[Any, ...]

    def __str__(self) -> str:
        return f"{self.file}: {'/'.join(map(str, self.way))}"


def strings_in(folder: Path) -> list[Place]:
    """Every string of every JSON and TOML file below a folder; of a list of strings the first."""
    strings = []
    for path in sorted(folder.rglob("*")):
        if path.suffix in KINDS and path.is_file() and path.name != MANIFEST:
            name = str(path.relative_to(folder))
            strings += [Place(name, way) for way in _strings(_read(path))]
    return strings


def _strings(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, str):
        yield at
    elif isinstance(value, dict):
        for key, inside in value.items():
            yield from _strings(inside, (*at, key))
    elif isinstance(value, list):
        for k, inside in enumerate(value[:1]):
            yield from _strings(inside, (*at, k))


def plant(folder: Path, place: Place, reference: str) -> None:
    """Puts a reference at a place, under valid digests; sealed copies of the file follow it."""
    path = folder / place.file
    value = _read(path)
    inside = value
    for key in place.way[:-1]:
        inside = inside[key]
    if place.way[-1] == "sha256":
        return  # a digest of the file itself: any other value is refused unread
    inside[place.way[-1]] = reference
    data = _written(value, path.suffix)
    copies = [
        path,
        *(match for match in folder.glob(f"**/{path.name}") if match.parent != path.parent),
    ]
    for copy in copies if path.parent == folder else [path]:
        _put(copy, data)


def _read(path: Path) -> Any:
    data = path.read_bytes()
    return tomllib.loads(data.decode()) if path.suffix == ".toml" else json.loads(data)


def _written(value: Any, suffix: str) -> bytes:
    if suffix == ".toml":
        return tomli_w.dumps(value).encode()
    if isinstance(value, dict) and "sha256" in value:
        return sealed({key: entry for key, entry in value.items() if key != "sha256"}, sort=False)
    return json.dumps(value).encode()


def _put(path: Path, data: bytes) -> None:
    """The file, and the manifest of its folder where there is one."""
    path.write_bytes(data)
    if (path.parent / MANIFEST).exists():
        files = {file.name: file.read_bytes() for file in path.parent.iterdir() if file.is_file()}
        for name, content in resealed(files).items():
            (path.parent / name).write_bytes(content)
