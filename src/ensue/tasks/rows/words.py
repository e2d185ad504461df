"""The words of a part's texts, however they were cut: what linear models count."""

from __future__ import annotations

from array import array

import numpy as np

from ensue.data.ragged import Ragged
from ensue.data.tokenise import Tokeniser
from ensue.tasks.baselines.text_features import Texts
from ensue.tasks.rows.part import Part, as_numpy, counting

WHOLE_WORDS = ("words", "pieces", "spaces")  # levels whose tokens are words


def texts_of(part: Part) -> Texts:
    """The words by number, and those of each row; characters and subwords are put together."""
    tokeniser, names = part.tokenisers.input, list(part.numbers.tokens)
    if tokeniser.name in WHOLE_WORDS:
        return Texts(names, part.inputs)
    cut, numbers = Tokeniser("words"), counting()
    values, starts = array("i"), array("q", [0])
    for row in range(len(part)):
        text = tokeniser.text_of([names[k] for k in part.inputs.row(row)])
        values.extend(map(numbers.__getitem__, cut(text)))
        starts.append(len(values))
    return Texts(list(numbers), Ragged(as_numpy(values, np.int32), as_numpy(starts, np.int64)))


def shared_texts(*parts: Part) -> list[Texts]:
    """Those of several parts, with the same numbers for the same words."""
    found = [texts_of(part) for part in parts]
    if all(own.words == found[0].words for own in found):
        return found
    numbers: dict[str, int] = {}
    tables = [[numbers.setdefault(word, len(numbers)) for word in own.words] for own in found]
    words = list(numbers)
    return [
        Texts(words, Ragged(np.array(table, np.int32)[own.rows.values], own.rows.starts))
        for own, table in zip(found, tables, strict=True)
    ]
