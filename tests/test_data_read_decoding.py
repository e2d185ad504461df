"""Bytes that are not what they should be: encodings, marks, line ends, gzip, long lines."""

from __future__ import annotations

import gzip
import random
import subprocess
import sys
from pathlib import Path

import pytest

from ensue.data.options import ReadOptions
from ensue.data.read import read
from ensue.data.stream import PIECE
from ensue.errors import DataError, OptionError

LINES = ReadOptions(format="text")


def outcome(path: Path, options: ReadOptions = LINES) -> tuple[list[str], list[str]]:
    """The texts, and the problems without the folder of the file."""
    problems: list[str] = []
    rows = list(read(path, options, lambda problem: problems.append(str(problem))))
    return [row.fields["text"] for row in rows], [
        problem.replace(f"{path.parent}/", "") for problem in problems
    ]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "a.txt"


# --- what is read -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [b"one\ntwo\nthree", b"one\r\ntwo\r\nthree\r\n", b"\xef\xbb\xbfone\ntwo\nthree\n"],
    ids=["LF", "CRLF", "BOM"],
)
def test_line_ends_and_the_mark_are_no_part_of_the_text(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    assert outcome(file) == (["one", "two", "three"], [])


def test_a_line_ends_at_lf_alone(file: Path) -> None:
    text = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\x1dh\x1ei"
    file.write_text(f"{text}\n{text}\n", encoding="utf-8", newline="")
    assert outcome(file) == ([text, text], [])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "cp1252", "shift-jis"])
def test_other_encodings_read_when_named(file: Path, encoding: str) -> None:
    text = "日本 \u0a0a" if "utf" in encoding else "日本" if encoding == "shift-jis" else "œuvre"
    lines = [text] * (PIECE // 8)
    file.write_bytes(("\r\n".join(lines)).encode(encoding))
    assert outcome(file, ReadOptions(encoding=encoding)) == (lines, [])


def test_a_mark_of_utf_16_is_no_part_of_the_text(file: Path) -> None:
    file.write_bytes("\ufeffone\n".encode("utf-16-le"))
    for encoding in ("utf-16", "utf-16-le"):
        assert outcome(file, ReadOptions(encoding=encoding)) == (["one"], [])


def test_pieces_do_not_show(file: Path) -> None:
    rng = random.Random(1)
    lines = ["é" * rng.choice([0, 1, 100, PIECE // 2, PIECE]) for _ in range(60)]
    for end in ("\n", "\r\n"):
        file.write_bytes(end.join([*lines, ""]).encode())
        assert outcome(file) == (lines, [])
        packed = file.with_name("b.txt.gz")
        packed.write_bytes(gzip.compress(file.read_bytes(), 1))
        assert outcome(packed) == (lines, [])


# --- what is refused ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "texts", "problems"),
    [
        (
            "one\ncafé\nthree\n".encode("latin-1"),
            ["one", "three"],
            [
                "a.txt:2: 0xE9 at byte 7 is not utf-8; cp1252 reads 'é': use --encoding cp1252 "
                "if that is right"
            ],
        ),
        (
            b"\xef\xbb\xbf\x81\xe9\n",
            [],
            [
                "a.txt:1: 0x81 at byte 3 is not utf-8; latin-1 reads '\\x81': use --encoding "
                "latin-1 if that is right"
            ],
        ),
        (
            "œuvre\n".encode() + "naïve".encode()[:-2] + b"\xff" + "é\nend".encode(),
            ["œuvre", "end"],
            [
                "a.txt:2: 0xFF at byte 11 is not utf-8, other letters of the line are: the bytes "
                "are damaged"
            ],
        ),
        (
            b"one\na\0b\nthree\n",
            ["one", "three"],
            ["a.txt:2: a NUL byte at byte 5: the line is not text"],
        ),
        (
            "one\ntwo\n".encode("utf-16"),
            [],
            [
                "a.txt:1: the file begins with the byte order mark FF FE of utf-16, not of "
                "utf-8: use --encoding utf-16"
            ],
        ),
        (
            "one\ntwo\n".encode("utf-32"),
            [],
            [
                "a.txt:1: the file begins with the byte order mark FF FE 00 00 of utf-32, not "
                "of utf-8: use --encoding utf-32"
            ],
        ),
        (
            "one\ntwo\n".encode("utf-16-be"),
            [],
            [
                "a.txt:1: every other byte is NUL: the file is utf-16-be, not utf-8: use "
                "--encoding utf-16-be"
            ],
        ),
        (
            b"one\rtwo\rthree\r",
            [],
            [
                "a.txt:1: the lines end with CR alone, as on old Macs: convert them to LF "
                "(tr '\\r' '\\n')"
            ],
        ),
        (
            b"one\ntwo\rthree\nfour\n",
            ["one", "four"],
            ["a.txt:2: a carriage return inside the line (mixed line ends?)"],
        ),
        (b"", [], ["a.txt:1: the file is empty"]),
    ],
    ids=["latin-1", "C1", "damaged", "NUL", "utf-16", "utf-32", "no mark", "Mac", "CR", "empty"],
)
def test_never_silent(file: Path, content: bytes, texts: list[str], problems: list[str]) -> None:
    file.write_bytes(content)
    assert outcome(file) == (texts, problems)


@pytest.mark.parametrize("encoding", ["utf-8", "gb18030"])
def test_a_mark_inside_a_line_is_named(file: Path, encoding: str) -> None:
    """Files were joined, the first of which did not end in a line break; whatever comes before."""
    before = "eins\nübel"
    file.write_bytes(f"{before}\ufeffzwei\ndrei\ufeff\nvier\n".encode(encoding))
    first = len(before.encode(encoding))
    last = len(f"{before}\ufeffzwei\ndrei".encode(encoding))
    advice = "were files joined? Remove it"
    assert outcome(file, ReadOptions(encoding=encoding)) == (
        ["eins", "vier"],
        [
            f"a.txt:2: a byte order mark at byte {first}: {advice}",
            f"a.txt:3: a byte order mark at byte {last}: {advice}",
        ],
    )


def test_a_mark_against_the_named_encoding(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbfone\n")
    assert outcome(file, ReadOptions(encoding="cp1252"))[1] == [
        "a.txt:1: the file begins with the byte order mark EF BB BF of utf-8, not of cp1252: "
        "use --encoding utf-8"
    ]


def test_a_broken_utf_16_file(file: Path) -> None:
    file.write_bytes("one\ntwo".encode("utf-16-le") + b"\x00\xdc\x0a\x00")
    assert outcome(file, ReadOptions(encoding="utf-16-le"))[1] == [
        "a.txt:2: the bytes 00 DC at byte 14 are not utf-16-le; nothing after them is read"
    ]


def test_an_encoding_nobody_knows() -> None:
    with pytest.raises(OptionError) as error:
        ReadOptions(encoding="utf-9")
    assert str(error.value) == (
        "encoding: 'utf-9' is not known; expected utf-8, cp1252, utf-16 or another name that "
        "Python knows"
    )


@pytest.mark.parametrize("seed", range(50))
def test_any_bytes_give_rows_or_problems(file: Path, seed: int) -> None:
    rng = random.Random(seed)
    content = bytearray(b"some text, \xc3\xa9 and more\nof it\n" * 20)
    for _ in range(rng.randint(1, 5)):
        content[rng.randrange(len(content))] = rng.randrange(256)
    file.write_bytes(content)
    texts, problems = outcome(file)
    count = content.count(b"\n") + (not content.endswith(b"\n"))
    assert len(texts) + len(problems) == count
    for text in texts:
        assert text.encode() in content


# --- gzip ------------------------------------------------------------------------------------


def packed_lines(count: int) -> tuple[list[str], bytes]:
    rng = random.Random(3)
    lines = [f"{rng.random()}" for _ in range(count)]
    return lines, gzip.compress("\n".join([*lines, ""]).encode(), 6, mtime=0)


def test_gzip_in_members_with_padding_under_any_name(tmp_path: Path) -> None:
    lines, packed = packed_lines(1000)
    for name in ("a.txt.gz", "a.txt"):
        file = tmp_path / name
        file.write_bytes(packed + packed + bytes(512))
        assert outcome(file) == (lines + lines, [])


def test_a_gzip_file_cut_anywhere_is_told(tmp_path: Path) -> None:
    lines, packed = packed_lines(30_000)
    file = tmp_path / "a.txt.gz"
    for end in (5, 100, len(packed) // 2, len(packed) - 1):
        file.write_bytes(packed[:end])
        texts, problems = outcome(file)
        assert texts == lines[: len(texts)]
        line = len(texts) + 1
        assert problems == [
            f"a.txt.gz:{line}: the gzip data is cut off at byte {end}: the file is "
            "incomplete, copy it again"
        ]


def test_damaged_gzip_is_told(tmp_path: Path) -> None:
    _, packed = packed_lines(1000)
    file = tmp_path / "a.txt.gz"
    wrong = bytearray(packed)
    wrong[-6] ^= 1  # the checksum
    file.write_bytes(wrong)
    assert outcome(file)[1] == [
        "a.txt.gz:1: the gzip data is damaged at or after byte 0 (incorrect data check): copy "
        "the file again"
    ]
    file.write_bytes(packed + b"text")
    texts, problems = outcome(file)
    assert len(texts) == 1000
    assert problems == [
        f"a.txt.gz:1001: the gzip data is followed by other bytes at byte {len(packed)}"
    ]
    file.write_bytes(b"plain text\n")
    assert outcome(file)[1] == [
        "a.txt.gz:1: the name ends in .gz, but the bytes 70 6C are no gzip: take .gz off the "
        "name, or pack the file"
    ]


@pytest.mark.parametrize("seed", range(100))
def test_a_flipped_bit_in_gzip_never_passes(tmp_path: Path, seed: int) -> None:
    _, packed = packed_lines(200)
    rng = random.Random(seed)
    wrong = bytearray(packed)
    wrong[rng.randrange(10, len(wrong))] ^= 1 << rng.randrange(8)  # after the header's remarks
    file = tmp_path / "a.txt.gz"
    file.write_bytes(wrong)
    assert outcome(file)[1]


# --- files that are not there, lines that are too long ------------------------------------------


def test_a_missing_file_names_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "reviews.csv").write_text("a\n1\n")
    with pytest.raises(DataError) as error:
        read(tmp_path / "review.csv", ReadOptions(), print)
    expected = f"{tmp_path}/review.csv: no such file: did you mean {tmp_path}/reviews.csv?"
    assert str(error.value) == expected
    with pytest.raises(DataError) as error:
        read(tmp_path / "no" / "x.csv", ReadOptions(), print)
    assert str(error.value) == f"{tmp_path}/no/x.csv: no such file: check the name."


def test_a_long_line_is_read_and_a_longer_one_told(file: Path) -> None:
    size = 10 << 20
    for end in (b"\n", b""):
        file.write_bytes(b"one\n" + b"x" * size + b"\nthree\n" + b"y" * size + end)
        texts, problems = outcome(file)
        assert [len(text) for text in texts] == [3, size, 5, size]
        assert problems == []
        texts, problems = outcome(file, ReadOptions(longest_line=8 << 20))
        assert texts == ["one", "three"]
        message = "the line is longer than 8 MB and was not read: split it, or raise longest_line"
        assert problems == [f"a.txt:2: {message}", f"a.txt:4: {message}"]


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_the_limit_of_a_line_is_exact(file: Path, extra: int) -> None:
    for before in (0, 1, PIECE - 1):
        file.write_bytes(b"a" * before + b"\n" + b"b" * (PIECE + extra) + b"\nend")
        texts, problems = outcome(file, ReadOptions(longest_line=PIECE))
        assert len(problems) == (extra > 0)
        assert len(texts) == 3 - (extra > 0)


MEMORY = """
import resource, sys
from ensue.data.options import ReadOptions
from ensue.data.read import read

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

list(read(sys.argv[1], ReadOptions(), print))
before = peak()
for path in sys.argv[2:]:
    assert sum(1 for _ in read(path, ReadOptions(), print)) > 20_000
print((peak() - before) // 1024)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    small, text = tmp_path / "small.csv", "word " * 200
    small.write_text('text,label\n"a b",1\n')
    rows = {
        "csv": f'"{text}\n{text}",1\n',
        "tsv": f"{text}\t1\n",
        "txt": f"{text}\n",
        "jsonl": f'{{"text": "{text}"}}\n',
        "conll": "word tag\n" * 100 + "\n",
    }
    files = []
    for form, row in rows.items():
        files.append(tmp_path / f"big.{form}")
        head = {"csv": "text,label\n", "tsv": "text\tlabel\n"}.get(form, "")
        files[-1].write_text(head + row * (50_000_000 // len(row)))
    run = [sys.executable, "-c", MEMORY, str(small), *map(str, files)]
    grown = subprocess.run(run, capture_output=True, text=True, check=True, timeout=300).stdout
    assert int(grown) < 30
