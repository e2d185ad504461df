"""ARPA files: the same bits back, the standard reading of them, every fault with its line."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from ensue.data.ragged import Ragged
from ensue.errors import DataError, OptionError
from ensue.tasks.language.ngram import (
    SMOOTHINGS,
    NgramModel,
    NgramSymbols,
    arrays_of,
    model_of,
    read_arpa,
    write_arpa,
)

TOKENS = ("<pad>", "<unk>", "a", "b", "c", "</s>")
UNKNOWN, A, B, C, END = range(1, 6)
SYMBOLS = NgramSymbols.of(TOKENS)
Sentences = list[list[int]]
WRITTEN = [name for name in SMOOTHINGS if name != "add-k"]
texts = st.lists(st.lists(st.sampled_from([UNKNOWN, A, B, C]), max_size=5), max_size=7)


def ragged(rows: Sentences) -> Ragged:
    return Ragged.of(rows, np.int32)


def fitted(rows: Sentences, order: int, smoothing: str) -> NgramModel:
    held_out = ragged([[A, B], [C], [UNKNOWN, A, A]])
    return NgramModel.fit(
        ragged(rows), SYMBOLS, order=order, smoothing=smoothing, held_out=held_out
    )


def standard_reading(path: Path, words: list[str]) -> list[float]:
    """log₁₀ P of each word of a sentence and of its end, as the format is defined: that of the
    longest n-gram listed, with the back-off weights of the longer contexts."""
    table: dict[tuple[str, ...], tuple[float, float]] = {}
    order = 0
    for line in path.read_text().splitlines():
        fields = line.split()
        if line.endswith("-grams:"):
            order = int(line[1:].split("-")[0])
        elif order and len(fields) > order:
            weight = float(fields[order + 1]) if len(fields) > order + 1 else 0.0
            table[tuple(fields[1 : order + 1])] = float(fields[0]), weight

    def log_p(word: str, h: tuple[str, ...]) -> float:
        if (*h, word) in table:
            return table[*h, word][0]
        return table.get(h, (0.0, 0.0))[1] + log_p(word, h[1:])

    whole = ("<s>", *words, "</s>")
    return [
        log_p(whole[at], whole[max(0, at - max(1, order) + 1) : at]) for at in range(1, len(whole))
    ]


# --- round trips -----------------------------------------------------------------------------


@examples(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts, st.integers(1, 8), st.sampled_from(WRITTEN))
def test_the_same_bits_come_back(
    tmp_path: Path, rows: Sentences, order: int, smoothing: str
) -> None:
    model, path = fitted(rows, order, smoothing), tmp_path / "model.arpa"
    write_arpa(path, model, TOKENS)
    again = read_arpa(path, TOKENS).model
    arrays, other = arrays_of(model), arrays_of(again)
    for name in set(arrays) - {"symbols", "seen"}:  # a file tells neither smoothing nor counts
        assert np.array_equal(arrays[name], other[name]), name
        assert arrays[name].dtype == other[name].dtype
    assert again.symbols == model.symbols
    rows_asked = ragged([[], [A], [B, C, A], [UNKNOWN, UNKNOWN], *rows])
    assert np.array_equal(model.score(rows_asked).values, again.score(rows_asked).values)
    assert np.array_equal(model.log_probabilities(rows_asked), again.log_probabilities(rows_asked))
    assert model_of(other).smoothing == "arpa"


@examples(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts, texts, st.integers(1, 5), st.sampled_from(WRITTEN))
def test_the_standard_reading_gives_the_same(
    tmp_path: Path, rows: Sentences, others: Sentences, order: int, smoothing: str
) -> None:
    model, path = fitted(rows, order, smoothing), tmp_path / "model.arpa"
    write_arpa(path, model, TOKENS)
    for row in others:
        expected = np.array(standard_reading(path, [TOKENS[k] for k in row]))
        scores = model.score(ragged([row])).values / np.log(10)
        likely = expected > -50  # −99 stands for log 0
        np.testing.assert_allclose(scores[likely], expected[likely], rtol=1e-12)
        assert np.isneginf(scores[~likely]).all()


def test_the_file_numbers_its_own_words(tmp_path: Path) -> None:
    model, path = fitted([[A, B], [A, C]], 3, "modified-kneser-ney"), tmp_path / "model.arpa"
    write_arpa(path, model, TOKENS)
    again, tokens = read_arpa(path)
    assert tokens == ("<unk>", "a", "b", "c", "</s>", "<s>")
    assert again.symbols == NgramSymbols(6, start=5, end=4)
    numbers = [tokens.index(t) for t in TOKENS if t in tokens]
    probabilities = again.log_probabilities(ragged([[1, 2]]))[0, numbers]
    assert np.array_equal(probabilities, model.log_probabilities(ragged([[A, B]]))[0, 1:])


def test_white_space_has_a_name(tmp_path: Path) -> None:
    text = "to be\tor\nnot\rto be"
    letters = ("</s>", *sorted(set(text)))
    row = [letters.index(letter) for letter in text]
    for sentence in (True, False):
        model = NgramModel.fit(ragged([row]), NgramSymbols.of(letters, sentences=sentence), order=4)
        path = tmp_path / "letters.arpa"
        write_arpa(path, model, letters)
        assert "t o <space> b" in path.read_text()
        again, tokens = read_arpa(path, letters, sentences=sentence)
        assert tokens == letters
        assert again.symbols == model.symbols
        assert np.array_equal(again.score(ragged([row])).values, model.score(ragged([row])).values)


# --- a file written by hand ------------------------------------------------------------------

BY_HAND = """\
made by hand: whatever stands before the data is no part of it

\\data\\
ngram 1=5
ngram 2=4
ngram 3=1

\\1-grams:
-99\t<s>\t-0.5
-1.0\t</s>
-0.7 <unk>
-0.25\tone\t-0.125
-0.5\ttwo\t0.0625

\\2-grams:
-0.375\t<s> one\t-0.75
-0.5\tone two -0.25
-0.875\tone </s>
-1.5\ttwo one

\\3-grams:
-0.125\t<s> one two

\\end\\
"""


def written(folder: Path, text: str, name: str = "hand.arpa") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_file_by_hand(tmp_path: Path, ends: str, packed: bool) -> None:
    path = tmp_path / "hand.arpa"
    content = BY_HAND.replace("\n", ends).encode()
    path.write_bytes(gzip.compress(content) if packed else content)
    model, tokens = read_arpa(path)
    assert tokens == ("<s>", "</s>", "<unk>", "one", "two")
    assert model.order == 3
    assert model.sizes == (4, 4, 1)
    scores = model.score(ragged([[3, 4], [2, 3, 3], []])).values / np.log(10)
    expected = [
        -0.375,  # one | <s>
        -0.125,  # two | <s> one
        -0.25 + 0.0625 - 1.0,  # </s> | one two: not listed, nor after "two"
        -0.5 - 0.7,  # <unk> | <s>
        -0.25,  # one | <s> <unk>: neither context is listed with a weight
        -0.125 - 0.25,  # one | <unk> one
        -0.875,  # </s> | one one: the context is not listed, "one </s>" is
        -0.5 - 1.0,  # </s> | <s>
    ]
    np.testing.assert_allclose(scores, expected, rtol=1e-14)


def test_the_own_probability_of_the_start_is_left_aside(tmp_path: Path) -> None:
    """Some tools write 0 for it."""
    path = written(tmp_path, BY_HAND.replace("-99\t<s>", "0\t<s>"))
    log_p = read_arpa(path).model.log_probabilities(ragged([[]]))
    assert np.isneginf(log_p[0, 0])


# --- faults ----------------------------------------------------------------------------------

FAULTS = [
    ("ngram 2=4", "ngram 2=5", "15: 5 2-grams are announced, 4 follow"),
    ("ngram 2=4", "ngram 3=4", "5: expected ngram 2=…, found 'ngram 3=4'"),
    ("ngram 2=4", "gram 2=4", "5: expected ngram 2=…, found 'gram 2=4'"),
    ("\\2-grams:", "\\3-grams:", "15: expected \\2-grams:, found '\\\\3-grams:'"),
    (
        "\\data\\\nngram 1=5\nngram 2=4\nngram 3=1",
        "\\data\\",
        "5: expected ngram 1=…, found '\\\\1-grams:'",
    ),
    ("\\end\\\n", "", "22: the file ends here, expected \\end\\ (cut off?)"),
    ("\\end\\", "\\End\\", "24: expected \\end\\ after the 3-grams, found '\\\\End\\\\'"),
    ("\\end\\", "\\end\\\n\nmore", "26: expected nothing after \\end\\, found 'more'"),
    ("\\data\\", "data", "24: the file ends here, expected \\data\\ (cut off?)"),
    ("-0.25\tone\t", "x\tone\t", "12: expected a finite number, found 'x'"),
    ("-0.25\tone\t", "nan\tone\t", "12: expected a finite number, found 'nan'"),
    ("-0.25\tone\t-0.125", "-0.25\tone\tinf", "12: expected a finite number, found 'inf'"),
    (
        "-0.25\tone\t",
        "0.25\tone\t",
        "12: expected log₁₀ of a probability, at most 0, found 0.25",
    ),
    (
        "-1.0\t</s>",
        "-1.0\t</s> two 0 1",
        "10: expected a number, 1 words and at most a back-off weight, found 5 fields",
    ),
    (
        "-0.125\t<s> one two",
        "-0.125\t<s> one two 0",
        "22: expected a number, 3 words, found 5 fields",
    ),
    ("two one\n", "two three\n", "19: 'three' is not among the 1-grams"),
    ("two one\n", "two <s>\n", "19: '<s>' stands after another word"),
    ("two one\n", "</s> two\n", "19: '</s>' stands before another word"),
    ("two one\n", "one two\n", "19: the 2-gram of line 17 again"),
    ("-0.5\ttwo\t", "-0.5\tone\t", "13: the 1-gram of line 12 again"),
    ("<s> one two", "two two one", "22: its first 2 words are no 2-gram of the file"),
]


@pytest.mark.parametrize(("old", "new", "message"), FAULTS, ids=[f[1][:20] for f in FAULTS])
def test_a_fault_is_named_with_its_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert BY_HAND.count(old) == 1
    path = written(tmp_path, BY_HAND.replace(old, new))
    with pytest.raises(DataError) as caught:
        read_arpa(path)
    assert str(caught.value) == f"1 problem in {path}\n  {path}:{message}"


def test_faults_are_gathered(tmp_path: Path) -> None:
    text = BY_HAND.replace("-1.0\t</s>", "high\t</s>").replace("-0.7 <unk>", "-0.7")
    path = written(tmp_path, text)
    with pytest.raises(DataError) as caught:
        read_arpa(path)
    assert str(caught.value) == (
        f"2 problems in {path}\n"
        f"  {path}:10: expected a finite number, found 'high'\n"
        f"  {path}:11: expected a number, 1 words and at most a back-off weight, found 1 fields"
    )
    many = BY_HAND.replace("-1.0\t</s>", "\n".join(["x y"] * 30))
    with pytest.raises(DataError, match=r"^30 problems in .*\n(  .*\n){20}  and 10 more$"):
        read_arpa(written(tmp_path, many))


def test_damaged_bytes_are_named_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "model.arpa"
    path.write_bytes(BY_HAND.encode().replace(b"two one", b"two \xffone"))
    with pytest.raises(DataError, match=f"^1 problem in {path}\n  {path}:19: 0xFF at byte"):
        read_arpa(path)
    path.write_bytes(gzip.compress(BY_HAND.encode())[:60])
    with pytest.raises(DataError, match="the gzip data is cut off at byte 60"):
        read_arpa(path)
    with pytest.raises(DataError, match="no such file"):
        read_arpa(tmp_path / "other.arpa")


@pytest.mark.parametrize(
    ("tokens", "problems"),
    [
        (
            ("one", "</s>", "<unk>", "three"),
            [
                "'three' is a word of the vocabulary, not of the file",
                "'two' is a word of the file, not of the vocabulary",
            ],
        ),
        (
            ("one", "two", "two", "<unk>", "</s>"),
            ["a word of the vocabulary stands there twice"],
        ),
    ],
)
def test_another_vocabulary_is_refused(
    tmp_path: Path, tokens: tuple[str, ...], problems: list[str]
) -> None:
    path = written(tmp_path, BY_HAND)
    with pytest.raises(DataError) as caught:
        read_arpa(path, tokens)
    headline = f"{path}: its words differ from the expected ones"
    assert str(caught.value) == "\n  ".join([headline, *problems])


def test_a_file_without_ends_is_a_stream(tmp_path: Path) -> None:
    text = "\\data\\\nngram 1=2\n\\1-grams:\n-0.30103 a\n-0.30103 b\n\\end\\\n"
    path = written(tmp_path, text)
    with pytest.raises(DataError) as caught:
        read_arpa(path)
    assert str(caught.value) == (
        f"{path}: its words differ from the expected ones\n"
        "  no '</s>', which ends every sentence: use sentences=False for a stream"
    )
    model, _ = read_arpa(path, sentences=False)
    assert model.perplexity(ragged([[0, 1, 1]])) == pytest.approx(2, rel=1e-5)


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.arpa"
    with pytest.raises(OptionError) as refused:
        write_arpa(path, fitted([[A]], 2, "add-k"), TOKENS)
    assert str(refused.value) == (
        f"{path}: not written: 'add-k' gives the left-over probability to all words equally, and "
        "an ARPA file can only give it to the shorter context: choose another smoothing"
    )
    model = fitted([[A]], 2, "kneser-ney")
    with pytest.raises(OptionError) as refused:
        write_arpa(path, model, TOKENS[1:])
    assert str(refused.value) == f"{path}: expected 6 tokens, got 5"
    with pytest.raises(DataError) as caught:
        write_arpa(path, model, ("<pad>", "a", "a", "b c", "", "end"))
    assert str(caught.value) == (
        f"{path}: not written: an ARPA file cannot hold these words\n"
        "  'b c': a word of an ARPA file cannot be empty or hold white space\n"
        "  '': a word of an ARPA file cannot be empty or hold white space\n"
        "  'a': two tokens are called that\n"
        "  'end': the end of a row is called '</s>'"
    )
    assert list(tmp_path.iterdir()) == []
    write_arpa(path, fitted([[A]], 1, "add-k"), TOKENS)  # no shorter context: it can


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, "old", "model.arpa")

    def full(_: int) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(DataError) as caught:
        write_arpa(path, fitted([[A]], 2, "kneser-ney"), TOKENS)
    assert str(caught.value) == f"{path}: not written: No space left on device"
    assert [file.read_text() for file in tmp_path.iterdir()] == ["old"]
