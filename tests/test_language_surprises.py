"""The tokens that surprised a language model most, as an evaluation tells them."""

from __future__ import annotations

import pytest

from ensue import LanguageModel

TEXTS = ["a b c d e f g h z", "a b c d", "z a b"]


def test_each_surprise_has_its_probability_and_five_tokens_before_it() -> None:
    model = LanguageModel(model={"family": "ngram"}).fit(["a b c d e f g h"] * 9, ["a b c"])
    bits = [surprise for scored in model.score(TEXTS) for surprise in scored.bits]
    worst = model.evaluate(TEXTS).worst
    expected = [2.0**-surprise for surprise in sorted(bits, reverse=True)[: len(worst)]]
    assert [error.probability for error in worst] == pytest.approx(expected)
    for error in worst:
        row = (*TEXTS[int(error.place.rpartition(":")[2]) - 1].split(), "</s>")
        at = row.index(error.gold)
        assert error.text == " ".join(row[max(0, at - 5) : at]) + " …"
