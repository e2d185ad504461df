"""Texts of a language model that go on over line ends where a number of tokens is asked for."""

from __future__ import annotations

import pytest

from ensue import LanguageModel
from ensue.tasks.abilities import Choice

LINES = [f"line {'abc'[k % 3]} ends" for k in range(60)]


@pytest.fixture(scope="module", params=["recurrent", "ngram"])
def model(request: pytest.FixtureRequest) -> LanguageModel:
    settings = {"family": request.param}
    if request.param == "recurrent":
        settings |= {"hidden_size": 16, "embedding_size": 8}
    return LanguageModel(model=settings, train={"epochs": 6, "rate": 0.05}).fit(LINES)


def test_a_text_goes_on_to_as_many_tokens(model: LanguageModel) -> None:
    generates = model.task.generates
    assert generates is not None
    for prompt in ("", "line"):
        writer = generates.writer(model, prompt)
        alone = writer.texts(Choice(seed=3, most_tokens=30))[0]
        assert "\n" not in alone
        going = Choice(seed=3, most_tokens=30, on=True)
        text = writer.texts(going)[0]
        lines = text.split("\n")
        assert len(lines) > 3
        assert lines[0] == alone, "until the first end, nothing is otherwise"
        tokens = sum(len(line.split()) for line in lines) + len(lines) - 1 - len(prompt.split())
        assert tokens in (29, 30)  # an end after which nothing came is not shown
        written = writer.prompt + "".join(writer.pieces(going))
        assert written.rstrip("\n") == text.rstrip("\n")
