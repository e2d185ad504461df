"""Converts text to tokens and their indices."""

from __future__ import annotations

import json
import re
import unicodedata
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cache, cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ensue.data.ragged import Ragged
from ensue.data.vocabulary import SPECIALS, Vocabulary, count_tokens
from ensue.errors import DataError, MissingExtra, OptionError, unknown

MODELS = ("bpe", "unigram")
UNKNOWN_PIECE = "<unk>"
WORD = "▁"


def _package() -> Any:
    try:
        import tokenizers
    except ImportError:
        raise MissingExtra(
            "subwords need the package tokenizers, which is not installed: "
            "pip install 'ensue[subwords]'"
        ) from None
    return tokenizers


@dataclass(frozen=True)
class Subwords:
    """A trained model, held as the json that `tokenizers` writes: equal json, equal tokens.

    A piece that begins a word begins with ▁; the joined pieces of a text are the text, except for a
    space at its start. Letters that training never saw become "<unk>" or stay unchanged, depending
    on the model; a vocabulary of the same texts does not contain them."""

    definition: str

    def __post_init__(self) -> None:
        try:
            json.loads(self.definition)
        except (ValueError, RecursionError) as error:
            raise DataError(f"this is not a subword model: no json ({error})") from None

    @cached_property
    def _model(self) -> Any:
        try:
            model = _package().Tokenizer.from_str(self.definition)
            model.no_padding()  # Ensue handles lengths itself, and a file may ask for
            model.no_truncation()  # more padding than there is memory
            return model
        except MissingExtra:
            raise
        except Exception as error:  # the package raises plain Exception
            raise DataError(f"this is not a subword model: {error}") from None

    def tokens(self, text: str) -> list[str]:
        encoding = self._model.encode(text, add_special_tokens=False)
        return list(encoding.tokens)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """The span of each token: text[first:last]."""
        encoding = self._model.encode(text, add_special_tokens=False)
        spans = [(first, last) for first, last in encoding.offsets]
        if encoding.tokens[:1] == [WORD] and not text.startswith((" ", WORD)):
            spans[0] = (0, 0)  # only the mark of the first word: no text
        return spans

    def text_of(self, tokens: Sequence[str]) -> str:
        return str(self._model.decoder.decode(list(tokens)))

    def __len__(self) -> int:
        """The number of different tokens."""
        return int(self._model.get_vocab_size())


def train_subwords(texts: Iterable[str], size: int, model: str = "bpe") -> Subwords:
    """At most `size` subwords, learned from texts that are prepared as for their later use.

    model: "bpe" (pairs merged by count) or "unigram" (the pieces that make texts likeliest)."""
    if model not in MODELS:
        raise unknown("subword model", model, MODELS)
    if size < 2:
        raise OptionError(f"size: expected a number ≥ 2, got {size}")
    package = _package()
    if model == "bpe":
        untrained = package.models.BPE(unk_token=UNKNOWN_PIECE)
        trainer = package.trainers.BpeTrainer(
            vocab_size=size, special_tokens=[UNKNOWN_PIECE], show_progress=False
        )
    else:
        untrained = package.models.Unigram()
        trainer = package.trainers.UnigramTrainer(
            vocab_size=size,
            special_tokens=[UNKNOWN_PIECE],
            unk_token=UNKNOWN_PIECE,
            show_progress=False,
        )
    tokenizer = package.Tokenizer(untrained)
    tokenizer.pre_tokenizer = package.pre_tokenizers.Metaspace()
    tokenizer.decoder = package.decoders.Metaspace()
    tokenizer.train_from_iterator(iter(texts), trainer)
    return Subwords(tokenizer.to_str())


NUMBERS = ("keep", "digit", "tag")
BREAKS = ("keep", "space")
CUTS = ("end", "start")
NUMBER = "<number>"

Spans = list[tuple[int, int]]
Item = TypeVar("Item")

_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_DIGIT = re.compile(r"\d")
_IS_NUMBER = re.compile(r"\d+(?:[.,]\d+)*").fullmatch


@cache
def _marks() -> str:
    """The combining marks as ranges of a character class: `\\w` has none of them, and without them
    the words of many scripts fall apart."""
    # the planes above have only the variation selectors
    marks = [c for c in map(chr, range(0x300, 0x20000)) if unicodedata.category(c)[0] == "M"]
    ranges: list[list[str]] = []
    for mark in [*marks, *map(chr, range(0xE0100, 0xE01F0))]:
        if ranges and ord(mark) == ord(ranges[-1][1]) + 1:
            ranges[-1][1] = mark
        else:
            ranges.append([mark, mark])
    return "".join(f"{first}-{last}" for first, last in ranges)


class Patterns(NamedTuple):
    """A pattern that cuts text into tokens, and a faster one for ASCII."""

    any: re.Pattern[str]
    ascii: re.Pattern[str]

    def of(self, text: str) -> re.Pattern[str]:
        return self.ascii if text.isascii() else self.any


@cache
def _words() -> Patterns:
    """Words with apostrophes inside, numbers with points and commas inside, other characters one by
    one."""

    def pattern(letter: str, mark: str) -> re.Pattern[str]:
        word = f"[{letter}{mark}]"
        sign = rf"[^{letter}\s{mark}]" + (f"[{mark}]*" if mark else "")
        # most words end at once: testing this first is a third faster than only the loop
        rest = rf"(?!['’.,])|(?:['’]{word}+|(?<=\d)[.,](?=\d){word}+)*"
        return re.compile(rf"{word}++(?:{rest})|{sign}")

    return Patterns(pattern(r"\w", _marks()), pattern("a-zA-Z0-9_", ""))


@cache
def _pieces() -> Patterns:
    """Runs of letters, runs of digits, and every other character alone."""

    mark = f"[{_marks()}]"
    sign = rf"_|[^\w\s{_marks()}]"
    return Patterns(
        re.compile(rf"\d+|(?:[^\W\d_]|{mark})+|(?:{sign}){mark}*"),
        re.compile(r"\d+|[a-zA-Z]+|\S"),
    )


@cache
def _spaces() -> Patterns:
    stretch = re.compile(r"\S+")
    return Patterns(stretch, stretch)


@cache
def _characters() -> Patterns:
    character = re.compile(r"(?s).")
    return Patterns(character, character)


class TokenKind(NamedTuple):
    """A row of TOKENISERS: how to cut text, and the separator to join tokens."""

    patterns: Callable[[], Patterns]
    between: str


# "subwords" is cut by a trained model, not by a pattern
TOKENISERS: dict[str, TokenKind | None] = {
    "words": TokenKind(_words, " "),
    "pieces": TokenKind(_pieces, " "),
    "spaces": TokenKind(_spaces, " "),
    "characters": TokenKind(_characters, ""),
    "subwords": None,
}


@cache
def _clusters() -> re.Pattern[str]:
    """A character with all characters that can be composed with it: marks, and letters of
    Hangul."""
    return re.compile(rf"(?s)\s|.[{_marks()}ᅡ-ᅵᆨ-ᇂ]*")


def _origins(text: str, nfc: bool, lower: bool) -> Spans:
    """The original position of each character of the text, composed and in lower case."""
    origins: Spans = []
    for match in _clusters().finditer(text):
        cluster, (first, last) = match[0], match.span()
        composed = unicodedata.normalize("NFC", cluster) if nfc else cluster
        for k, character in enumerate(composed):
            at = (first + k, first + k + 1) if composed == cluster else (first, last)
            origins += [at] * (len(character.lower()) if lower else 1)
    return origins


@dataclass(frozen=True)
class Tokeniser:
    """Cuts a text into tokens.

    name: "words" (apostrophes inside, numbers whole, punctuation one by one), "pieces" (runs
    of letters, runs of digits), "spaces", "characters", or "subwords" (a trained model).
    nfc: composed characters first, so that é is one and the same however it was typed.
    numbers: "keep", "digit" (each digit becomes 0) or "tag" (a number becomes "<number>").
    breaks: "keep", or "space" to read an HTML <br /> as white space.
    max_length: longer texts lose tokens at the "end" or at the "start".

    >>> Tokeniser("words", lower=True)("It's 3.50, isn't it?")
    ["it's", '3.50', ',', "isn't", 'it', '?']
    """

    name: str = "words"
    lower: bool = False
    nfc: bool = True
    numbers: str = "keep"
    breaks: str = "keep"
    max_length: int | None = None
    cut: str = "end"
    subwords: Subwords | None = None

    def __post_init__(self) -> None:
        for what, got, known in (
            ("tokeniser", self.name, TOKENISERS),
            ("way with numbers", self.numbers, NUMBERS),
            ("way with breaks", self.breaks, BREAKS),
            ("cut", self.cut, CUTS),
        ):
            if got not in known:
                raise unknown(what, str(got), known)
        if self.max_length is not None and self.max_length < 1:
            raise OptionError(f"max_length: expected a number ≥ 1, got {self.max_length}")
        if (self.name == "subwords") != (self.subwords is not None):
            raise OptionError(
                "subwords: the tokeniser 'subwords' needs a trained subword model, and the other "
                "tokenisers take none; train one with ensue.data.tokenise.train_subwords"
            )
        if self.numbers == "tag" and self.name in ("characters", "subwords"):
            raise OptionError(
                f"numbers='tag': the tokeniser {self.name!r} does not keep numbers whole; "
                "use numbers='digit', or the tokeniser 'words'"
            )

    def prepared(self, text: str) -> str:
        """The text before cutting: composed, without breaks, in lower case, digits as zeros."""
        if self.nfc and not unicodedata.is_normalized("NFC", text):
            text = unicodedata.normalize("NFC", text)
        if self.breaks == "space" and "<" in text:
            text = _BREAK.sub(lambda match: " " * len(match[0]), text)
        if self.lower:
            text = text.lower()
        return _DIGIT.sub("0", text) if self.numbers == "digit" else text

    def __call__(self, text: str) -> list[str]:
        """The tokens of a text."""
        text = self.prepared(text)
        tokens = self._find(text)
        if self.numbers == "tag":
            tokens = [NUMBER if _IS_NUMBER(token) else token for token in tokens]
        return self._shortened(tokens)

    def spans(self, text: str) -> Spans:
        """The span of each token, text[first:last], in the original text."""
        prepared = self.prepared(text)
        if self.subwords is not None:
            pieces = self.subwords.spans(prepared)
        else:
            pieces = [match.span() for match in self._pattern(prepared).finditer(prepared)]
        pieces = self._shortened(pieces)
        if len(prepared) == len(text) and (not self.nfc or unicodedata.is_normalized("NFC", text)):
            return pieces
        origins = _origins(text, self.nfc, self.lower)
        assert len(origins) == len(prepared)
        return [
            (origins[first][0], origins[last - 1][1] if last > first else origins[first][0])
            for first, last in pieces
        ]

    def text_of(self, tokens: Sequence[str]) -> str:
        """Joins tokens to a text; for characters, the result is exactly the prepared text."""
        if self.subwords is not None:
            return self.subwords.text_of(tokens)
        kind = TOKENISERS[self.name]
        assert kind is not None
        return kind.between.join(tokens)

    def _pattern(self, text: str) -> re.Pattern[str]:
        kind = TOKENISERS[self.name]
        assert kind is not None
        return kind.patterns().of(text)

    def _find(self, text: str) -> list[str]:
        if self.subwords is not None:
            return self.subwords.tokens(text)
        if self.name == "characters":
            return list(text)
        if self.name == "spaces":
            return text.split()
        return self._pattern(text).findall(text)

    def _shortened(self, items: list[Item]) -> list[Item]:
        if self.max_length is None or len(items) <= self.max_length:
            return items
        return items[: self.max_length] if self.cut == "end" else items[-self.max_length :]

    def to_dict(self) -> dict[str, Any]:
        """The tokeniser as JSON values; `from_dict` reads them."""
        options = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.subwords is not None:
            options["subwords"] = self.subwords.definition
        return options

    @classmethod
    def from_dict(cls, data: Any) -> Tokeniser:
        """The inverse of `to_dict`; raises DataError or OptionError for invalid values."""
        types = {field.name: str(field.type) for field in fields(cls)}
        if not isinstance(data, dict) or set(data) != set(types):
            got = ", ".join(map(str, data)) if isinstance(data, dict) else type(data).__name__
            raise DataError(
                f"this is not a tokeniser: expected the keys {', '.join(types)}, got {got}"
            )
        for key, expected in types.items():
            expected = expected.replace("Subwords", "str")
            got = "None" if data[key] is None else type(data[key]).__name__
            if got not in expected.split(" | "):
                raise DataError(f"this is not a tokeniser: {key}: expected {expected}, got {got}")
        options = dict(data)
        if options["subwords"] is not None:
            options["subwords"] = Subwords(options["subwords"])
        return cls(**options)


def build_vocabulary(
    texts: Iterable[str],
    tokeniser: Tokeniser,
    *,
    min_count: int = 1,
    max_size: int | None = None,
    specials: Sequence[str] = SPECIALS,
) -> Vocabulary:
    """The vocabulary of texts, read one at a time."""
    counts = count_tokens(map(tokeniser, texts))
    return Vocabulary.build(counts, min_count=min_count, max_size=max_size, specials=specials)


def encode_texts(texts: Iterable[str], tokeniser: Tokeniser, vocabulary: Vocabulary) -> Ragged:
    """The indices of the tokens of each text, int32; texts are read one at a time."""
    return _encoded(texts, tokeniser, vocabulary.numbers)


def build_and_encode(
    texts: Iterable[str],
    tokeniser: Tokeniser,
    *,
    min_count: int = 1,
    max_size: int | None = None,
    specials: Sequence[str] = SPECIALS,
) -> tuple[Vocabulary, Ragged]:
    """`build_vocabulary` and `encode_texts` in one pass, which tokenises each text once.

    Tokens first get provisional indices, which are replaced by the vocabulary's at the end."""
    first: defaultdict[str, int] = defaultdict()
    first.default_factory = first.__len__
    encoded = _encoded(texts, tokeniser, first)
    counts = np.bincount(encoded.values, minlength=len(first)).tolist()
    vocabulary = Vocabulary.build(
        dict(zip(first, counts, strict=True)),
        min_count=min_count,
        max_size=max_size,
        specials=specials,
    )
    table = np.fromiter(map(vocabulary.numbers.__getitem__, first), np.int32, len(first))
    np.take(table, encoded.values, out=encoded.values)
    return vocabulary, encoded


def _encoded(texts: Iterable[str], tokeniser: Tokeniser, numbers: dict[str, int]) -> Ragged:
    values, starts = array("i"), array("q", [0])
    for text in texts:
        values.extend(map(numbers.__getitem__, tokeniser(text)))
        starts.append(len(values))
    return Ragged(np.frombuffer(values, np.int32), np.frombuffer(starts, np.int64))
