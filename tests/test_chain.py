"""Lines of a chain: what is changed, taken out or put in is noticed, a torn line is tolerated."""

from __future__ import annotations

from pathlib import Path

import pytest

from ensue.errors import RunError
from ensue.files.chain import Lines, add_line

VALUES = [{"run": name, "score": 0.1 * k} for k, name in enumerate(["a", "ü", "c", "d"])]
PLAIN = b'{"run": "e", "score": 0.5}\n'  # without digests


@pytest.fixture
def path(tmp_path: Path) -> Path:
    for value in VALUES:
        add_line(tmp_path / "lines.jsonl", value)
    return tmp_path / "lines.jsonl"


def noticed(data: bytes) -> bool:
    lines = Lines.of(data)
    return bool(lines.wrong or lines.torn)


def test_lines_are_read_back(path: Path) -> None:
    lines = Lines.of(path.read_bytes())
    assert (lines.values, lines.torn, lines.wrong) == (VALUES, [], [])
    assert len(set(lines.digests)) == len(VALUES)


def test_every_flipped_bit_is_noticed(path: Path) -> None:
    data = path.read_bytes()
    assert not noticed(data)
    for at in range(len(data)):
        for bit in (1, 2, 32):
            changed = data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :]
            assert noticed(changed), (at, bit, changed)


def test_lines_that_are_taken_out_moved_or_put_in_are_noticed(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    for k in range(len(lines) - 1):
        assert noticed(b"".join([*lines[:k], *lines[k + 1 :]]))
        assert noticed(b"".join([*lines[:k], PLAIN, *lines[k:]]))
        assert noticed(b"".join([*lines[: k + 1], *lines[k:]]))
        assert noticed(b"".join([*lines[:k], lines[k + 1], lines[k], *lines[k + 2 :]]))
    assert noticed(b"".join([*lines, PLAIN]))


def test_the_line_that_was_changed_is_named(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    for k in range(len(lines)):
        changed = [*lines[:k], lines[k].replace(b"0.", b"1."), *lines[k + 1 :]]
        assert Lines.of(b"".join(changed)).wrong == [k + 1] * (changed != lines)


@pytest.mark.parametrize("earlier", [b"", PLAIN[:9] + b"\n"])
def test_a_line_that_a_kill_cut_off_is_left_out_and_followed(
    tmp_path: Path, earlier: bytes
) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(earlier)
    add_line(path, VALUES[0])
    whole = path.read_bytes()
    for cut in range(1, 20):
        path.write_bytes(whole + whole[len(earlier) :][:cut])
        first = len(earlier.splitlines())
        torn = [1] * first + [first + 2]
        assert Lines.of(path.read_bytes()).torn == torn
        lines, digest = add_line(path, VALUES[1])
        assert lines.values == VALUES[:2]
        assert (lines.torn, lines.wrong) == (torn, [])
        assert lines.digests[-1] == digest
        assert lines == Lines.of(path.read_bytes())


@pytest.mark.parametrize("changed", [False, True])
def test_a_first_line_of_other_content_stays_noticed(tmp_path: Path, changed: bool) -> None:
    """No kill leaves whole JSON: the line was put there, or changed."""
    path = tmp_path / "lines.jsonl"
    path.write_bytes(PLAIN)
    if changed:
        path.unlink()
        add_line(path, VALUES[0])
        path.write_bytes(path.read_bytes().replace(b'"a"', b'"b"'))
    for count, value in enumerate(VALUES, 1):
        lines, _ = add_line(path, value)
        assert (lines.wrong, lines.torn) == ([1], [])
        assert lines.values == VALUES[:count]


def test_a_changed_last_line_stays_noticed_when_others_follow(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-9] + b"0000" + data[-5:])
    for value in VALUES:
        assert add_line(path, value)[0].wrong == [len(VALUES)]


def test_what_is_no_plain_file_is_not_added_to(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("years of work\n")
    (tmp_path / "lines.jsonl").symlink_to(tmp_path / "precious")
    with pytest.raises(RunError, match="expected a plain file, got a link to"):
        add_line(tmp_path / "lines.jsonl", {"a": 1})
    assert (tmp_path / "precious").read_text() == "years of work\n"


def test_a_value_that_is_not_finite_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        add_line(tmp_path / "lines.jsonl", {"a": float("nan")})
