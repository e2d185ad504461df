"""Tokenisers: what they cut, that nothing is lost, and where each token stood."""

from __future__ import annotations

import builtins
import gzip
import json
import re
import time
import tracemalloc
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ensue.data.tokenise import (
    TOKENISERS,
    Subwords,
    Tokeniser,
    build_and_encode,
    build_vocabulary,
    encode_texts,
    train_subwords,
)
from ensue.errors import DataError, EnsueError, MissingExtra, OptionError

CORPUS = [
    "the cat sat on the mat",
    "the dog sat on the log, and the cat on the dog",
    "it's a dog's life, isn't it?",
    "a mat on a log on a mat",
] * 5
# letters of many scripts, marks, signs, digits, white space of all kinds
TEXTS = st.text(
    st.sampled_from("abA Zé’'.,-_<br/>019 \t\n\x1c\x85\u2028İßΣ한각्ि́̈=²½º٣") | st.characters(),
    max_size=30,
)
NAMES = [name for name in TOKENISERS if name != "subwords"]


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def subwords(request: pytest.FixtureRequest) -> Subwords:
    return train_subwords(iter(CORPUS), 60, request.param)


# --- what is cut -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "tokens"),
    [
        ("words", "It's 3.50, isn't it?", ["It's", "3.50", ",", "isn't", "it", "?"]),
        ("words", "the 'quoted' O’Neil", ["the", "'", "quoted", "'", "O’Neil"]),
        ("words", "1,000.5 or 10/10...", ["1,000.5", "or", "10", "/", "10", ".", ".", "."]),
        ("words", "U.S. 3rd well-made", ["U", ".", "S", ".", "3rd", "well", "-", "made"]),
        ("words", "हिन्दी में", ["हिन्दी", "में"]),
        ("words", "cafe\u0301 =\u0338", ["café", "≠"]),
        ("words", "a<br />b", ["a", "<", "br", "/", ">", "b"]),
        ("words", " \n", []),
        ("pieces", "3.5.97 3rd a_b", ["3", ".", "5", ".", "97", "3", "rd", "a", "_", "b"]),
        ("pieces", "हिन्दी 1º", ["हिन्दी", "1", "º"]),
        ("spaces", " it's\t3.50,  ", ["it's", "3.50,"]),
        ("characters", "ab\n", ["a", "b", "\n"]),
    ],
)
def test_what_a_token_is(name: str, text: str, tokens: list[str]) -> None:
    assert Tokeniser(name)(text) == tokens


@pytest.mark.parametrize(
    ("options", "tokens"),
    [
        ({}, ["Room", "101", "<", "BR", ">", "3.5", "ok"]),
        ({"lower": True}, ["room", "101", "<", "br", ">", "3.5", "ok"]),
        ({"breaks": "space"}, ["Room", "101", "3.5", "ok"]),
        ({"numbers": "digit"}, ["Room", "000", "<", "BR", ">", "0.0", "ok"]),
        ({"numbers": "tag"}, ["Room", "<number>", "<", "BR", ">", "<number>", "ok"]),
        ({"max_length": 2}, ["Room", "101"]),
        ({"max_length": 2, "cut": "start"}, ["3.5", "ok"]),
        ({"max_length": 99, "cut": "start"}, ["Room", "101", "<", "BR", ">", "3.5", "ok"]),
    ],
)
def test_options(options: dict, tokens: list[str]) -> None:
    assert Tokeniser("words", **options)("Room 101<BR>3.5 ok") == tokens


def test_composed_and_decomposed_letters_are_the_same_unless_told_otherwise() -> None:
    assert Tokeniser("characters")("e\u0301") == ["é"]
    assert Tokeniser("characters", nfc=False)("e\u0301") == ["e", "\u0301"]


# --- laws --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@given(text=TEXTS)
def test_only_white_space_is_lost(name: str, text: str) -> None:
    tokens = Tokeniser(name, nfc=False)(text)
    if name == "characters":
        assert "".join(tokens) == text
    else:
        assert "".join(tokens) == "".join(text.split())
        assert all(tokens)
        assert not any(re.search(r"\s", token) for token in tokens)


@given(TEXTS)
def test_characters_put_together_are_the_text(text: str) -> None:
    tokeniser = Tokeniser("characters", nfc=False)
    assert tokeniser.text_of(tokeniser(text)) == text


@pytest.mark.parametrize("name", NAMES)
@given(
    text=TEXTS, lower=st.booleans(), nfc=st.booleans(), breaks=st.sampled_from(["keep", "space"])
)
@example(text="각\u1100\u1161\u11a8 b", lower=False, nfc=True, breaks="keep")
@example(text="İa é e\u0301x 각각=\u0338", lower=True, nfc=True, breaks="keep")
def test_spans_say_where_each_token_stood(name, text: str, lower: bool, nfc: bool, breaks) -> None:
    tokeniser = Tokeniser(name, lower=lower, nfc=nfc, breaks=breaks)
    tokens, spans = tokeniser(text), tokeniser.spans(text)
    assert len(tokens) == len(spans)
    plain = Tokeniser(name, lower=lower, nfc=nfc).prepared
    for token, (first, last) in zip(tokens, spans, strict=True):
        assert 0 <= first < last <= len(text)
        # what stood there, prepared by itself, holds the token; a final sigma looks around
        part = plain(text[first:last]).replace("ς", "σ")
        assert token.replace("ς", "σ") in part or (breaks == "space" and token.isspace())
        if name != "characters":
            assert token.replace("ς", "σ") == part
    assert spans == sorted(spans)


def test_spans_see_through_breaks() -> None:
    assert Tokeniser("words", breaks="space").spans("a<br />b") == [(0, 1), (7, 8)]


def test_spans_are_cut_with_the_tokens() -> None:
    tokeniser = Tokeniser("words", max_length=2, cut="start")
    assert tokeniser.spans("one two three") == [(4, 7), (8, 13)]


@pytest.mark.parametrize("name", ["words", "pieces"])
@given(text=st.text(st.characters(max_codepoint=127)))
def test_the_quick_twin_for_ascii_cuts_the_same(name: str, text: str) -> None:
    kind = TOKENISERS[name]
    assert kind is not None
    patterns = kind.patterns()
    assert patterns.of(text) is patterns.ascii
    assert patterns.ascii.findall(text) == patterns.any.findall(text)
    assert patterns.of(text + "é") is patterns.any


@given(st.lists(TEXTS, min_size=1, max_size=6), st.integers(1, 2))
def test_encoding_is_tokens_and_then_numbers(texts: list[str], min_count: int) -> None:
    tokeniser = Tokeniser("words", lower=True)
    try:
        vocabulary = build_vocabulary(iter(texts), tokeniser, min_count=min_count)
    except DataError:
        return
    encoded = encode_texts(iter(texts), tokeniser, vocabulary)
    assert encoded.values.dtype == np.int32
    assert len(encoded) == len(texts)
    for k, text in enumerate(texts):
        assert encoded.row(k).tolist() == vocabulary.ids(tokeniser(text))
    at_once, same = build_and_encode(iter(texts), tokeniser, min_count=min_count)
    assert at_once == vocabulary
    assert np.array_equal(same.values, encoded.values)
    assert np.array_equal(same.starts, encoded.starts)


def test_no_more_is_held_than_the_numbers() -> None:
    tokeniser = Tokeniser("words")
    vocabulary = build_vocabulary(CORPUS, tokeniser)
    tracemalloc.start()
    encoded = encode_texts((" ".join(CORPUS) for _ in range(300)), tokeniser, vocabulary)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert encoded.values.nbytes > 150_000
    assert peak < 2.5 * encoded.values.nbytes + 100_000


# --- subwords ----------------------------------------------------------------------------


def test_subwords_put_together_are_the_text(subwords: Subwords) -> None:
    tokeniser = Tokeniser("subwords", subwords=subwords)
    assert len(subwords) <= 60
    for text in [*CORPUS[:4], "the log sat on a dog's mat"]:
        tokens = tokeniser(text)
        assert tokeniser.text_of(tokens) == text
        pieces = [text[first:last] for first, last in tokeniser.spans(text)]
        assert "".join(pieces) == text
        decomposed = unicodedata.normalize("NFD", f"{text} é")
        first, last = tokeniser.spans(decomposed)[-1]
        assert decomposed[first:last].strip() == "e\u0301"
        assert tokeniser.spans(decomposed)[: len(pieces)] == tokeniser.spans(text)
        assert [token.replace("▁", " ").strip() for token in tokens] == [s.strip() for s in pieces]
    assert any(len(token.strip("▁")) > 1 for token in tokeniser(CORPUS[1]))
    vocabulary = build_vocabulary(CORPUS, tokeniser)
    assert vocabulary.ids(tokeniser("the Ω"))[-1] == 1


def test_subwords_survive_json_and_are_encoded_like_words(subwords: Subwords) -> None:
    tokeniser = Tokeniser("subwords", lower=True, subwords=subwords)
    again = Tokeniser.from_dict(json.loads(json.dumps(tokeniser.to_dict())))
    assert again == tokeniser
    vocabulary, encoded = build_and_encode(CORPUS, again)
    assert vocabulary.tokens_of(encoded.row(1).tolist()) == tokeniser(CORPUS[1])


def test_training_bpe_twice_gives_the_same() -> None:
    assert train_subwords(CORPUS, 60) == train_subwords(iter(CORPUS), 60)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def refuse(name: str, *rest, **more):
        if name == "tokenizers":
            raise ImportError(name)
        return original(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtra) as caught:
        train_subwords(CORPUS, 60)
    assert str(caught.value) == (
        "subwords need the package tokenizers, which is not installed: "
        "pip install 'ensue[subwords]'"
    )


# --- json and messages -------------------------------------------------------------------


@given(
    st.sampled_from(NAMES),
    st.booleans(),
    st.sampled_from(["keep", "digit"]),
    st.none() | st.integers(1, 9),
)
def test_a_tokeniser_survives_json(name: str, lower: bool, numbers: str, most: int | None) -> None:
    tokeniser = Tokeniser(name, lower=lower, numbers=numbers, max_length=most, cut="start")
    assert Tokeniser.from_dict(json.loads(json.dumps(tokeniser.to_dict()))) == tokeniser


NO_MODEL = (
    "subwords: the tokeniser 'subwords' needs a trained subword model, and the other tokenisers "
    "take none; train one with ensue.data.tokenise.train_subwords"
)
KEYS = "name, lower, nfc, numbers, breaks, max_length, cut, subwords"
MESSAGES = [
    (
        lambda: Tokeniser("word"),
        OptionError,
        "unknown tokeniser 'word': did you mean 'words'? "
        "Known: characters, pieces, spaces, subwords, words",
    ),
    (
        lambda: Tokeniser(numbers="tags"),
        OptionError,
        "unknown way with numbers 'tags': did you mean 'tag'? Known: digit, keep, tag",
    ),
    (
        lambda: Tokeniser(breaks="drop"),
        OptionError,
        "unknown way with breaks 'drop'. Known: keep, space",
    ),
    (
        lambda: Tokeniser(cut="ends"),
        OptionError,
        "unknown cut 'ends': did you mean 'end'? Known: end, start",
    ),
    (
        lambda: Tokeniser(max_length=0),
        OptionError,
        "max_length: expected a number ≥ 1, got 0",
    ),
    (lambda: Tokeniser("subwords"), OptionError, NO_MODEL),
    (lambda: Tokeniser("words", subwords=Subwords("{}")), OptionError, NO_MODEL),
    (
        lambda: Tokeniser("characters", numbers="tag"),
        OptionError,
        "numbers='tag': the tokeniser 'characters' does not keep numbers whole; "
        "use numbers='digit', or the tokeniser 'words'",
    ),
    (
        lambda: Tokeniser.from_dict({"name": "words"}),
        DataError,
        f"this is not a tokeniser: expected the keys {KEYS}, got name",
    ),
    (
        lambda: Tokeniser.from_dict([]),
        DataError,
        f"this is not a tokeniser: expected the keys {KEYS}, got list",
    ),
    (
        lambda: Tokeniser.from_dict({**Tokeniser().to_dict(), "max_length": True}),
        DataError,
        "this is not a tokeniser: max_length: expected int | None, got bool",
    ),
    (
        lambda: Tokeniser.from_dict({**Tokeniser().to_dict(), "name": None}),
        DataError,
        "this is not a tokeniser: name: expected str, got None",
    ),
    (
        lambda: Subwords("{"),
        DataError,
        "this is not a subword model: no json (Expecting property name enclosed in double "
        "quotes: line 1 column 2 (char 1))",
    ),
    (
        lambda: train_subwords(CORPUS, 60, "wordpiece"),
        OptionError,
        "unknown subword model 'wordpiece'. Known: bpe, unigram",
    ),
    (lambda: train_subwords(CORPUS, 1), OptionError, "size: expected a number ≥ 2, got 1"),
]


@pytest.mark.parametrize(("call", "kind", "message"), MESSAGES)
def test_messages(call, kind: type[EnsueError], message: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == message


def test_padding_that_a_model_asks_for_is_not_made(subwords: Subwords) -> None:
    """A file may ask for more than there is memory; the package would end the process."""
    definition = json.loads(subwords.definition)
    for length in (1 << 20, 1 << 60):
        definition["padding"] = {
            "strategy": {"Fixed": length}, "direction": "Right", "pad_to_multiple_of": None,
            "pad_id": 0, "pad_type_id": 0, "pad_token": "<pad>",
        }  # fmt: skip
        definition["truncation"] = {
            "direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0,
        }  # fmt: skip
        assert Subwords(json.dumps(definition)).tokens("the cat") == subwords.tokens("the cat")


def test_json_that_is_no_model_is_refused() -> None:
    with pytest.raises(DataError, match=r"^this is not a subword model: "):
        Subwords('{"version": "1.0"}').tokens("a")


# --- speed -------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_million_tokens_a_second(data_folder: Path) -> None:
    with gzip.open(
        data_folder / "imdb" / "imdb.train.tsv.gz", "rt", encoding="utf-8", newline="\n"
    ) as file:
        texts = [line.split("\t")[3] for line, _ in zip(file, range(5000), strict=False)]
    tokeniser = Tokeniser("words", lower=True)
    vocabulary = build_vocabulary(texts, tokeniser)
    times = []
    for _ in range(5):
        start = time.process_time()
        encoded = encode_texts(texts, tokeniser, vocabulary)
        times.append(time.process_time() - start)
    assert len(encoded.values) / min(times) > 1e6
