"""Models with valid digests whose content is not what Ensue writes: seeded changes of JSON values,
of arrays and of weights."""

from __future__ import annotations

import copy
import json
import random
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
import tomli_w

from ensue.files.atomic_folder import MANIFEST, with_manifest

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 7, 10**6, 10**18, 10**30, 0.5, -1e308, 1e-320),
    *("", "x", "GRU", "../../etc", "\x1b[31m", "a" * 5000, [], {}, [[]], {"a": {}}),
    *(
        "mine.py:Cell",
        "os:system",
        "torch.hub",
        "/etc/passwd",
        "../../../precious/file",
        "a\0b",
        ".",
    ),
)


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value inside, by keys and numbers."""
    if isinstance(value, dict):
        for key, entry in value.items():
            yield (*at, key)
            yield from places(entry, (*at, key))
    elif isinstance(value, list):
        for k in {0, len(value) // 2, len(value) - 1} if value else ():
            yield (*at, k)
            yield from places(value[k], (*at, k))


def changed_json(data: bytes, draw: random.Random) -> tuple[bytes, str]:
    """One value removed or replaced."""
    value = json.loads(data)
    chosen = list(places(value))
    if not chosen:
        return json.dumps(draw.choice(VALUES)).encode(), "all of it"
    *way, last = draw.choice(chosen)
    inside = value
    for key in way:
        inside = inside[key]
    if draw.random() < 0.3:
        del inside[last]
        what = "removed"
    else:
        inside[last] = copy.deepcopy(draw.choice(VALUES))
        what = f"= {str(inside[last])[:20]!r}"
    return json.dumps(value).encode(), f"{'/'.join(map(str, (*way, last)))} {what}"


def changed_arrays(data: bytes, draw: random.Random) -> tuple[bytes, str]:
    """One array removed, of another shape or type, or not finite."""
    arrays = dict(safetensors.numpy.load(data))
    if not arrays:
        return safetensors.numpy.save({"x": np.zeros(3)}), "an array more"
    name = draw.choice(sorted(arrays))
    array = arrays.pop(name)
    how = draw.choice(("removed", "empty", "longer", "integers", "not finite", "flat", "large"))
    if how != "removed":
        arrays[name] = {
            "empty": array[:0] if array.ndim else np.zeros(0, array.dtype),
            "longer": np.concatenate(
                [array.reshape(-1), array.reshape(-1)[:1], np.ones(3, array.dtype)]
            ),
            "integers": np.zeros(array.shape, np.int64),
            "not finite": np.full(array.shape, np.nan, np.float32),
            "flat": array.reshape(-1),
            "large": np.full(array.shape, 10**6 if array.dtype.itemsize > 2 else 120, array.dtype),
        }[how]
    return safetensors.numpy.save(arrays), f"{name} {how}"


def changed_tables(data: bytes, draw: random.Random) -> tuple[bytes, str]:
    """A setting removed, or of another value."""
    changed, what = changed_json(json.dumps(tomllib.loads(data.decode())).encode(), draw)
    tables = _without_null(json.loads(changed))
    return tomli_w.dumps(tables if isinstance(tables, dict) else {"a": tables}).encode(), what


def _without_null(value: Any) -> Any:
    """As TOML can hold it."""
    if isinstance(value, dict):
        return {key: _without_null(entry) for key, entry in value.items() if entry is not None}
    if isinstance(value, list):
        return [_without_null(entry) for entry in value if entry is not None]
    return value


CHANGES = {".json": changed_json, ".safetensors": changed_arrays, ".toml": changed_tables}


def resealed(files: dict[str, bytes]) -> dict[str, bytes]:
    """The files of a folder, whose manifest is made to fit them."""
    content = dict(files)
    manifest = json.loads(content.pop(MANIFEST))
    facts = {key: value for key, value in manifest.items() if key not in ("files", "sha256")}
    return with_manifest(content, facts)


def hostile_files(model: Path, draw: random.Random) -> tuple[dict[str, bytes], str]:
    """The files of a model with one change inside, sealed again; and what was changed."""
    files = {path.name: path.read_bytes() for path in model.iterdir()}
    known = [name for name in files if Path(name).suffix in CHANGES and name != MANIFEST]
    name = draw.choice(sorted(known))
    files[name], what = CHANGES[Path(name).suffix](files[name], draw)
    return resealed(files), f"{name}: {what}"
