"""Word vectors: the right row for each word, and every fault named with its line."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from ensue.data.vectors import read_vectors
from ensue.data.vocabulary import Vocabulary
from ensue.errors import DataError

WORDS = Vocabulary.build({"the": 6, "Paris": 2, "nato": 1, "xyzzy": 1})
LINES = ["the 1 2 3", "paris 4 5 6", "NATO 7 8 9", "other 0 0 0", ". . . 1 1 1"]


def file_of(folder: Path, lines: list[str], header: bool = False, packed: bool = False) -> Path:
    if header:
        lines = [f"{len(lines)} 3", *lines]
    path = folder / "vectors.txt"
    content = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(content, mtime=0) if packed else content)
    return path


@pytest.mark.parametrize("header", [False, True])
@pytest.mark.parametrize("packed", [False, True])
def test_every_word_gets_its_vector(tmp_path: Path, header: bool, packed: bool) -> None:
    vectors = read_vectors(file_of(tmp_path, LINES, header, packed), WORDS)
    assert WORDS.tokens == ("<pad>", "<unk>", "the", "Paris", "nato", "xyzzy")
    assert vectors.matrix.dtype == np.float32
    assert vectors.matrix[[0, 2, 3, 4]].tolist() == [[0, 0, 0], [1, 2, 3], [4, 5, 6], [7, 8, 9]]
    assert (vectors.exact, vectors.other_case, vectors.missing) == (1, 2, ("xyzzy",))
    assert vectors.token_share == 0.9
    assert (
        str(vectors) == "vectors of width 3 for 3 of 4 words (2 in another case), 90.0% of the text"
    )


def test_the_exact_spelling_wins_wherever_it_stands(tmp_path: Path) -> None:
    for lines in (["Paris 1 1 1", "paris 2 2 2"], ["paris 2 2 2", "Paris 1 1 1"]):
        assert read_vectors(file_of(tmp_path, lines), WORDS).matrix[3].tolist() == [1, 1, 1]


@pytest.mark.parametrize("number", ["1e38", "-1e300", "nan", "inf"])
def test_numbers_whose_squares_overflow_are_refused(tmp_path: Path, number: str) -> None:
    lines = ["the 1 2 3", f"Paris {number} 0 0"]
    with pytest.raises(DataError, match=r"txt:2: expected finite numbers, at most 1e\+15, found"):
        read_vectors(file_of(tmp_path, lines), WORDS)
    large = read_vectors(file_of(tmp_path, ["the 1e15 -1e15 3"]), WORDS).matrix
    assert np.isfinite(large).all()


def test_what_is_missing_is_drawn_with_the_spread_of_the_file(tmp_path: Path) -> None:
    many = Vocabulary.build({f"w{k}": 1 for k in range(2000)})
    chance = np.random.default_rng(0)
    known = [f"w{k} " + " ".join(map(str, chance.normal(0, 0.3, 8))) for k in range(1000)]
    path = tmp_path / "vectors.txt"
    path.write_text("\n".join(known))
    vectors = read_vectors(path, many, seed=3)
    drawn = vectors.matrix[[many.numbers[word] for word in vectors.missing]]
    assert drawn.shape == (1000, 8)
    assert 0.28 < drawn.std() < 0.32
    assert abs(drawn.mean()) < 0.02
    assert np.array_equal(read_vectors(path, many, seed=3).matrix, vectors.matrix)
    assert not np.array_equal(read_vectors(path, many, seed=4).matrix, vectors.matrix)
    assert vectors.matrix[1].any()  # the unknown word has a vector, padding has none
    assert not vectors.matrix[0].any()


def test_every_fault_is_named_with_its_line(tmp_path: Path) -> None:
    lines = ["the 1 2 3", "of 1 2", "nato 1 2 3 4", "Paris 1 x 3", "the 1 2 3", "xyzzy 1 nan 2"]
    path = file_of(tmp_path, lines)
    with pytest.raises(DataError) as caught:
        read_vectors(path, WORDS)
    assert str(caught.value) == (
        f"5 problems in {path}\n"
        f"  {path}:2: expected 3 numbers, found 2\n"
        f"  {path}:3: expected 3 numbers, found 4\n"
        f"  {path}:4: expected a number, found 'x'\n"
        f"  {path}:5: 'the' is already in line 1\n"
        f"  {path}:6: expected finite numbers, at most 1e+15, found one that is not"
    )


def test_the_problems_are_many_but_the_message_is_not(tmp_path: Path) -> None:
    path = file_of(tmp_path, ["the 1 2 3", *["of 1"] * 30])
    with pytest.raises(DataError) as caught:
        read_vectors(path, WORDS)
    lines = str(caught.value).splitlines()
    assert len(lines) == 22
    assert lines[0] == f"30 problems in {path}"
    assert lines[-1] == "  and 10 more"


def test_a_header_that_promises_more_is_a_file_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text("9 3\nthe 1 2 3\n")
    with pytest.raises(DataError) as caught:
        read_vectors(path, WORDS)
    assert str(caught.value) == (
        f"1 problem in {path}\n"
        f"  {path}:1: 9 vectors announced in the first line, 1 follow (cut off?)"
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"le 1 2\n",
            "none of its 1 words is in the vocabulary: are they of the same language, and is it a "
            "file of word vectors as text?",
        ),
        (gzip.compress(b"the 1 2 3\n" * 99, mtime=0)[:-9], "damaged gzip file"),
        (None, "no such file: check the name."),
        (
            gzip.compress(b"the" + bytes(1 << 24), mtime=0),
            "1: expected a word and its numbers, got",
        ),
        (b"9 70000\nthe 1\n", "1: expected vectors of at most 65,536 numbers, got 70,000"),
    ],
)
def test_files_that_cannot_serve(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "vectors.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_vectors(path, WORDS)
    begin = f"{path}:" if message[:1].isdigit() else f"{path}: "
    assert str(caught.value).startswith(begin + message)


@pytest.mark.parametrize("number", ["1_0", "x", "0x1"])
def test_numbers_as_files_spell_them(tmp_path: Path, number: str) -> None:
    path = file_of(tmp_path, [f"the 1 {number}"])
    with pytest.raises(DataError, match=f"expected a number, found '{number}'"):
        read_vectors(path, WORDS)


def test_a_line_without_numbers(tmp_path: Path) -> None:
    path = file_of(tmp_path, ["the\t1\t2"])
    with pytest.raises(DataError) as caught:
        read_vectors(path, WORDS)
    assert str(caught.value) == (
        f"1 problem in {path}\n  {path}:1: expected a word and its numbers, found 0"
    )
