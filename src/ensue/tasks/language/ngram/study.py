"""A study of n-gram counts: number of n-grams, unseen n-grams of a held-out text, memory, and
probabilities with and without smoothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ensue.data.ragged import Ragged
from ensue.data.settings import DataSettings
from ensue.drawing.document import (
    Block,
    Document,
    Lines,
    Paragraph,
    Printed,
    Section,
    Table,
)
from ensue.errors import DataError, OptionError
from ensue.tasks.language.ngram import NgramCounts, NgramModel, NgramSymbols

if TYPE_CHECKING:
    from ensue.tasks.language.task import LanguageModel

PLAIN, SMOOTHED = "maximum-likelihood", "modified-kneser-ney"
MOST_WORDS = 10  # number of continuations listed after a context
NOTES = (
    "possible: V^n; unseen: of the held-out n-grams; bytes: of a model up to n; ML, Kneser–Ney:",
    "perplexity of the held-out text by maximum likelihood, ∞ where an n-gram has probability 0,",
    "and by modified Kneser–Ney smoothing",
)


@dataclass(frozen=True)
class OrderFacts:
    """Facts on n-grams of n tokens: the possible number V^n; the actual number; the number that
    occur once; the unseen share of the held-out text's n-grams; the bytes of a model up to n; the
    perplexity of the held-out text without and with smoothing."""

    n: int
    possible: int
    different: int
    once: int
    unseen: float
    bytes: int
    plain: float
    smoothed: float


@dataclass(frozen=True)
class Continuation:
    """A word after a context: its count, and its probability without and with smoothing."""

    word: str
    count: int
    plain: float
    smoothed: float


@dataclass(frozen=True)
class After:
    """The continuations of a context. used: the tokens that n-grams of this order see; count: how
    often these tokens occur in the text with a token after them."""

    context: tuple[str, ...]
    used: tuple[str, ...]
    count: int
    words: tuple[Continuation, ...]


@dataclass(frozen=True)
class NgramStudy(Printed):
    tokens: int
    vocabulary: int
    held_out_tokens: int
    orders: tuple[OrderFacts, ...]
    after: After | None = None

    def document(self) -> Document:
        head = ("n", "possible", "different", "once", "unseen", "bytes", "ML", "Kneser–Ney")
        rows = [
            (
                str(order.n),
                f"{order.possible:.2g}" if order.possible > 10**9 else f"{order.possible:,}",
                f"{order.different:,}",
                f"{order.once:,}",
                f"{order.unseen:.1%}",
                f"{order.bytes:,}",
                _perplexity_text(order.plain),
                _perplexity_text(order.smoothed),
            )
            for order in self.orders
        ]
        sizes = f"{self.tokens:,} tokens, {self.vocabulary:,} different"
        about = f"{sizes}; held out {self.held_out_tokens:,}"
        blocks: list[Block] = [Table(rows, head, left=0), Lines(NOTES), *self._after()]
        return Document("N-grams", about, blocks)

    def _after(self) -> list[Section]:
        if self.after is None:
            return []
        row, used = self.after, " ".join(self.after.used) or "nothing"
        note = f"of which {len(self.orders)}-grams see “{used}”"
        never = "" if row.count else ", never seen: no estimate by maximum likelihood"
        rows = [
            (
                word.word,
                str(word.count),
                "–" if math.isnan(word.plain) else f"{word.plain:.4f}",
                f"{word.smoothed:.4f}",
            )
            for word in row.words
        ]
        table = Table(rows, ("word", "count", "ML", "Kneser–Ney"))
        title = f"after “{' '.join(row.context)}”, {note}"
        return [Section(title, [Paragraph(f"count {row.count:,}{never}"), table])]


def study_ngrams(
    files: Sequence[str], held_out: Sequence[str], *, order: int, level: str, after: str | None
) -> NgramStudy:
    """The study of files. held_out: separate files; if there are none, a tenth of the text is split
    off."""
    from ensue.tasks.language.task import LanguageModel

    model = LanguageModel({"level": level, "min_count": 1})
    parts = {"train": list(files), "validation": list(held_out), "text": "text"}
    data = DataSettings.of(parts, "data")
    reading = model.reader.files(data)
    train = reading.part("train")
    part = reading.part("validation", train)
    if not len(train.inputs.values) or not len(part.inputs.values):
        raise DataError(
            f"{files[0]}: expected text to count and text to hold out, got "
            f"{len(train.inputs.values)} and {len(part.inputs.values)} tokens; give --held-out FILE"
        )
    learned = model.task.learn(train, part, _unigrams(model))
    rows, held_rows = learned.rows(train), learned.rows(part)
    symbols = NgramSymbols.of(learned.words.tokens)
    counts = NgramCounts.of(rows, symbols, order)
    vocabulary = counts.sizes[0]  # including the end of a row
    models = {
        name: [NgramModel.smoothed(counts.upto(n), name) for n in range(1, order + 1)]
        for name in (PLAIN, SMOOTHED)
    }
    unseen = models[PLAIN][-1].unseen(held_rows)
    orders = tuple(
        OrderFacts(
            n,
            vocabulary**n,
            counts.sizes[n - 1],
            int((counts.counts[n - 1] == 1).sum()),
            unseen[n - 1],
            models[SMOOTHED][n - 1].bytes,
            models[PLAIN][n - 1].perplexity(held_rows),
            models[SMOOTHED][n - 1].perplexity(held_rows),
        )
        for n in range(1, order + 1)
    )
    none = None
    if after is not None:
        context = learned.tokeniser(after)
        if not context:
            raise OptionError("--after: expected words, got none")
        ids = learned.words.ids(context)
        none = _after(context, ids, rows, models, learned.words.tokens, order)
    return NgramStudy(len(rows.values), vocabulary, len(held_rows.values), orders, none)


class Counting:
    """The ability to study the n-gram counts of files."""

    def study(
        self,
        files: Sequence[str],
        held_out: Sequence[str],
        *,
        order: int,
        level: str,
        after: str | None,
    ) -> NgramStudy:
        return study_ngrams(files, held_out, order=order, level=level, after=after)


def _unigrams(model: LanguageModel) -> LanguageModel:
    """Reads the files with only the counts that the vocabulary needs."""
    return type(model)(model.text, {"family": "ngram", "order": 1})


def _after(
    context: list[str],
    ids: list[int],
    rows: Ragged,
    models: dict[str, list[NgramModel]],
    tokens: Sequence[str],
    order: int,
) -> After:
    last = ids[len(ids) - (order - 1) :] if order > 1 else []
    followers = _followers(rows, last, models[PLAIN][0].symbols)
    count = int(followers.sum())
    prefix = Ragged(np.array(ids, np.int32), np.array([0, len(ids)]))
    smoothed = np.exp(models[SMOOTHED][-1].log_probabilities(prefix)[0])
    best = np.lexsort((-smoothed, -followers[: len(smoothed)]))[:MOST_WORDS]
    words = tuple(
        Continuation(
            tokens[k],
            int(followers[k]),
            float(followers[k] / count) if count else math.nan,
            float(smoothed[k]),
        )
        for k in best
    )
    return After(tuple(context), tuple(context[len(context) - len(last) :]), count, words)


def _followers(rows: Ragged, context: list[int], symbols: NgramSymbols) -> Any:
    """The count of each token directly after the context, including ends of rows; shape
    (width,)."""
    followers = np.zeros(symbols.width, np.int64)
    n = len(context)
    for row in range(len(rows)):
        tokens = [*rows.row(row).tolist(), symbols.end]
        for at in range(len(tokens) - n):
            if tokens[at : at + n] == context:
                followers[tokens[at + n]] += 1
    return followers


def _perplexity_text(perplexity: float) -> str:
    return "∞" if math.isinf(perplexity) else f"{perplexity:,.1f}"
