"""Subwords: tokens learned from the text itself, through the package `tokenizers`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

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

    A piece that begins a word begins with ▁; the pieces of a text put together are the text,
    but for a space at its start. Letters never seen in training come as "<unk>" or as they are
    (by the model): no vocabulary built from the same texts has a number for them."""

    definition: str

    def __post_init__(self) -> None:
        try:
            json.loads(self.definition)
        except (ValueError, RecursionError) as error:
            raise DataError(f"this is not a subword model: no json ({error})") from None

    @cached_property
    def _model(self) -> Any:
        try:
            found = _package().Tokenizer.from_str(self.definition)
            found.no_padding()  # rows of any length are ours to handle, and a file may ask for
            found.no_truncation()  # more padding than there is memory
            return found
        except MissingExtra:
            raise
        except Exception as error:  # the package raises plain Exception
            raise DataError(f"this is not a subword model: {error}") from None

    def tokens(self, text: str) -> list[str]:
        encoding = self._model.encode(text, add_special_tokens=False)
        return list(encoding.tokens)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where each token stands: text[first:last]."""
        encoding = self._model.encode(text, add_special_tokens=False)
        spans = [(first, last) for first, last in encoding.offsets]
        if encoding.tokens[:1] == [WORD] and not text.startswith((" ", WORD)):
            spans[0] = (0, 0)  # the sign of the first word alone: nothing of the text
        return spans

    def text_of(self, tokens: Sequence[str]) -> str:
        return str(self._model.decoder.decode(list(tokens)))

    def __len__(self) -> int:
        """How many different tokens it can give."""
        return int(self._model.get_vocab_size())


def train_subwords(texts: Iterable[str], size: int, model: str = "bpe") -> Subwords:
    """At most `size` subwords learned from texts (prepared as they will be when used).

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
