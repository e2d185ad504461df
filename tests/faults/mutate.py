"""Bytes changed at random: what a cut, a damaged disk, another program or malice does."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

NUMBER = re.compile(rb"\d+")
TOKENS = (
    *(b"\0", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"\r", b"\r\n", b"\n\n", b"\t", b" ", b""),
    *(b'"', b'""', b"'", b",", b";", b"\\", b"{", b"}", b"[", b"]", b":", b"#", b"__label__"),
    *(b"nan", b"inf", b"-inf", b"1e400", b"-1e308", b"1,5", b"1_0", b"9" * 5000, b"0x10", b"-0"),
    *(b"null", b"true", b'"\\ud83d"', b"[" * 3000, b'{"a":' * 3000, b"\x1b[31m\x07", b"\xc2\x85"),
    *(
        "\u2028\u202e\ufeff".encode(),
        "日本".encode(),
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\x1a",
    ),
    *(b"a" * 70_000, b"x," * 20_000, b"2024-02-30", b"P5", b"\x1f\x8b", b"PAR1", b"PK\x03\x04"),
)
NUMBERS = (0, 1, -1, 2, 127, 255, 256, 65_535, 65_536, 2**31 - 1, 2**31, 2**32, 2**63, 10**30)

Change = Callable[[bytearray, random.Random, Sequence[bytes]], None]


def _span(data: bytearray, draw: random.Random) -> tuple[int, int]:
    begin = draw.randrange(len(data) + 1)
    return begin, min(len(data), begin + int(draw.paretovariate(0.7)))


def flip_bit(data: bytearray, draw: random.Random, others: Sequence[bytes]) -> None:
    if data:
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)


def set_byte(data: bytearray, draw: random.Random, others: Sequence[bytes]) -> None:
    if data:
        data[draw.randrange(len(data))] = draw.randrange(256)


def cut_off(data: bytearray, draw: random.Random, others: Sequence[bytes]) -> None:
    del data[draw.randrange(len(data) + 1) :]


def cut_out(data: bytearray, draw: random.Random, others: Sequence[bytes]) -> None:
    begin, end = _span(data, draw)
    del data[begin:end]


def double(data: bytearray, draw: random.Random, others: Sequence[bytes]) -> None:
    begin, end = _span(data, draw)
    data[end:end] = data[begin:end] * draw.choice((1, 1, 1, 2, 50))


def put_token(data: bytearray, draw: random.Random, others: Sequence[bytes]) -> None:
    begin, end = _span(data, draw)
    data[begin : draw.choice((begin, end))] = draw.choice(TOKENS)


def put_bytes(data: bytearray, draw: random.Random, others: Sequence[bytes]) -> None:
    begin, end = _span(data, draw)
    data[begin:end] = draw.randbytes(draw.randint(1, 9))


def splice(data: bytearray, draw: random.Random, others: Sequence[bytes]) -> None:
    other = draw.choice(others)
    begin, _ = _span(data, draw)
    data[begin:] = other[draw.randrange(len(other) + 1) :]


def put_number(data: bytearray, draw: random.Random, others: Sequence[bytes]) -> None:
    """In the place of a number written in digits."""
    matches = list(NUMBER.finditer(data))
    if matches:
        match = draw.choice(matches)
        data[match.start() : match.end()] = str(draw.choice(NUMBERS)).encode()


def put_integer(data: bytearray, draw: random.Random, others: Sequence[bytes]) -> None:
    """In the place of a number in bytes, as the headers of binary formats have them."""
    size = draw.choice((1, 2, 4, 8))
    begin = draw.randrange(min(len(data), 64) + 1)
    value = draw.choice(NUMBERS) % 256**size
    data[begin : begin + size] = value.to_bytes(size, draw.choice(("little", "big")))


def shuffle_lines(data: bytearray, draw: random.Random, others: Sequence[bytes]) -> None:
    lines = bytes(data).split(b"\n")
    draw.shuffle(lines)
    data[:] = b"\n".join(lines)


CHANGES: tuple[Change, ...] = (
    flip_bit, set_byte, cut_off, cut_out, double, put_token, put_bytes, splice, put_number,
    put_integer, shuffle_lines,
)  # fmt: skip
LARGEST = 1 << 20


def mutated(data: bytes, draw: random.Random, others: Sequence[bytes]) -> tuple[bytes, str]:
    """One to four changes, and their names."""
    content, names = bytearray(data), []
    for _ in range(draw.choice((1, 1, 1, 2, 2, 3, 4))):
        change = draw.choice(CHANGES)
        change(content, draw, others)
        names.append(change.__name__)
    return bytes(content[:LARGEST]), ", ".join(names)
