"""What a classifier of trees learns from its training part, beside the weights of its networks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ensue.data.tokenise import Tokeniser
from ensue.data.vocabulary import Vocabulary
from ensue.errors import DataError
from ensue.tasks import checks
from ensue.tasks.rows.inputs import vocabulary_of
from ensue.tasks.rows.labels import label_numbers, learned_labels
from ensue.tasks.rows.part import Part, Tokenisers, counts_of
from ensue.tasks.saved import Saved
from ensue.tasks.settings import TextSettings
from ensue.tasks.task import Packed
from ensue.tasks.tree.content import END, INPUT, LEARNED, PLAIN
from ensue.tasks.tree.forest import NO_TARGET, Forest

CLOSES, OPENS, OPENS_LEARNED = -1, -2, -3  # kinds of tokens; of a word 0


@dataclass(frozen=True)
class LearnedTrees:
    """inner: the labels of nodes that are inputs, where the label of a whole tree is learned."""

    tokenisers: Tokenisers
    words: Vocabulary
    labels: Vocabulary
    inner: Vocabulary | None
    lower: bool

    @classmethod
    def learn(cls, train: Part, text: TextSettings) -> LearnedTrees:
        counts = counts_of(train.inputs, train.numbers.tokens)
        words, inner = dict[str, int](), dict[str, int]()
        for token, count in counts.items():
            if token.startswith(INPUT):
                inner[token.removeprefix(INPUT)] = count
            elif not token.startswith((PLAIN, END)):
                word = token.lower() if text.lower else token
                words[word] = words.get(word, 0) + count
        whole = LEARNED not in counts
        return cls(
            train.tokenisers,
            vocabulary_of(words, text),
            learned_labels(train),
            Vocabulary.build(inner) if whole else None,
            text.lower,
        )

    @property
    def whole(self) -> bool:
        """Whether one label of the whole tree is learned, not those of its nodes."""
        return self.inner is not None

    def forest(self, part: Part, labels: tuple[str, ...] | None = None) -> Forest:
        """A part as the networks see it. labels: what targets are numbers of, if not the own
        labels."""
        kinds, words, inner = self._tables(part)
        kind = kinds[part.inputs.values] if len(kinds) else part.inputs.values
        opens = kind < CLOSES
        starts = np.concatenate([[0], np.cumsum(opens)])[part.inputs.starts]
        nodes = np.cumsum(opens) - 1  # the node that a token opens or belongs to
        parents = _parents(kind, part.inputs.starts)
        word = np.zeros(int(starts[-1]), np.int64)
        # a word stands right after the bracket that it belongs to
        is_word = kind == 0
        word[nodes[is_word]] = words[part.inputs.values[is_word]]
        label = inner[part.inputs.values[opens]] if len(inner) else np.zeros(0, np.int64)
        targets = np.full(int(starts[-1]), NO_TARGET, np.int64)
        if part.labels is not None:
            numbers = label_numbers(part, labels or self.labels.tokens)
            places = starts[:-1] if self.whole else (kind[opens] == OPENS_LEARNED).nonzero()[0]
            if len(places) != len(numbers):
                inside, beside = "labels at the nodes of the trees", "one label beside each tree"
                wanted, got = (beside, inside) if self.whole else (inside, beside)
                raise DataError(f"{part.names[0]}: expected {wanted}, as in training, got {got}")
            targets[places] = numbers
        return Forest(starts, word, label, parents, targets)

    def _tables(self, part: Part) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Of each token: its kind, the number of its word, that of its inner label."""
        names = part.numbers.token_names
        fold = str.lower if self.lower else str
        kinds, words, inner = (np.zeros(len(names), np.int64) for _ in range(3))
        for k, name in enumerate(names):
            if name == END:
                kinds[k] = CLOSES
            elif name.startswith(PLAIN):
                kinds[k] = OPENS_LEARNED if name == LEARNED else OPENS
                if name.startswith(INPUT) and self.inner is not None:
                    inner[k] = self.inner.numbers[name.removeprefix(INPUT)]
            else:
                words[k] = self.words.numbers[fold(name)]
        return kinds, words, inner

    # ------------------------------------------------------------- as files
    def pack(self) -> Packed:
        known = {"words": self.words.to_dict(), "labels": self.labels.to_dict()}
        if self.inner is not None:
            known["inner"] = self.inner.to_dict()
        facts = {"tokeniser": self.tokenisers.input.to_dict(), "lower": self.lower}
        return Packed(facts, known)

    @classmethod
    def unpack(cls, saved: Saved) -> LearnedTrees:
        known: Mapping[str, Any] = saved.vocabularies
        return cls(
            Tokenisers(Tokeniser.from_dict(saved.facts["tokeniser"])),
            checks.words(known.get("words"), "words"),
            checks.labels(known.get("labels"), "labels"),
            checks.maybe(checks.words)(known.get("inner"), "inner"),
            checks.flag(saved.facts["lower"], "lower"),
        )


def _parents(kind: NDArray[Any], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The parent of each node, by its number in its own tree; −1 for roots."""
    found: list[int] = []
    kinds = kind.tolist()
    for row in range(len(starts) - 1):
        above, count = [-1], 0
        for own in kinds[starts[row] : starts[row + 1]]:
            if own == CLOSES:
                above.pop()
            elif own < CLOSES:
                found.append(above[-1])
                above.append(count)
                count += 1
    return np.array(found, np.int64)
