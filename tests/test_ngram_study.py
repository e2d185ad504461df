"""What `ensue data ngrams` says equals counting in plain Python."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import pytest
from commands import commands_in

from ensue.errors import ConfigError, DataError
from ensue.tasks.language.ngram.study import NgramStudy, study_ngrams

SEEN = [
    *["the students opened their books"] * 2,
    "the students opened their laptops",
    "the students opened their exams",
    "as the proctor started the clock the students opened their books",
    "the minds opened",
]
HELD = ["the students opened their minds", "the students started"]


@pytest.fixture(name="study")
def _study(tmp_path: Path) -> NgramStudy:
    for name, lines in (("seen", SEEN), ("held", HELD)):
        (tmp_path / f"{name}.txt").write_text("\n".join(lines) + "\n")
    files = [str(tmp_path / "seen.txt")], [str(tmp_path / "held.txt")]
    return study_ngrams(*files, order=3, level="spaces", after="the students opened their")


def grams(lines: list[str], n: int) -> list[tuple[str, ...]]:
    """With n − 1 starts before a line counted as one: an n-gram has at most one start."""
    ngrams = []
    for line in lines:
        words = ["<s>", *line.split(), "</s>"]
        ngrams += [tuple(words[k : k + n]) for k in range(len(words) - n + 1)]
    return [ngram for ngram in ngrams if ngram != ("<s>",)]


def test_counts_are_those_of_a_loop(study: NgramStudy) -> None:
    assert study.tokens == sum(len(line.split()) for line in SEEN)
    for order in study.orders:
        counts = Counter(grams(SEEN, order.n))
        assert order.different == len(counts)
        assert order.once == sum(count == 1 for count in counts.values())
        assert order.possible == study.vocabulary**order.n
        ngrams = list(grams(HELD, order.n))
        assert order.unseen == pytest.approx(sum(g not in counts for g in ngrams) / len(ngrams))
    assert [order.bytes for order in study.orders] == sorted(order.bytes for order in study.orders)


def by_hand(n: int) -> float:
    """The perplexity by maximum likelihood; ∞ where a count is 0."""
    counts, contexts = Counter(grams(SEEN, n)), Counter[tuple[str, ...]]()
    for gram, count in counts.items():
        contexts[gram[:-1]] += count
    shorter = {k: Counter(grams(SEEN, k)) for k in range(1, n + 1)}
    total, cost = 0, 0.0
    for line in HELD:
        words = ["<s>", *line.split(), "</s>"]
        for at in range(1, len(words)):
            gram = tuple(words[max(0, at - n + 1) : at + 1])
            grams_of_length = shorter[len(gram)]
            below = sum(c for g, c in grams_of_length.items() if g[:-1] == gram[:-1])
            total += 1
            cost += -math.log(grams_of_length[gram] / below) if grams_of_length[gram] else math.inf
    return math.exp(cost / total)


def test_maximum_likelihood_says_infinity_where_it_is_so(study: NgramStudy) -> None:
    for order in study.orders:
        assert order.plain == pytest.approx(by_hand(order.n))
        assert math.isfinite(order.smoothed)
    assert math.isfinite(study.orders[0].plain)
    assert math.isinf(study.orders[1].plain)
    assert "∞" in study.as_text()


def test_what_follows_is_counted(study: NgramStudy) -> None:
    continuations = study.after
    assert continuations is not None
    assert continuations.used == ("opened", "their")
    assert continuations.count == 5
    assert [(word.word, word.count, word.plain) for word in continuations.words[:3]] == [
        ("books", 3, 0.6),
        ("exams", 1, 0.2),
        ("laptops", 1, 0.2),
    ]
    assert all(word.plain == 0 < word.smoothed for word in continuations.words[3:])


def test_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ensue = commands_in(tmp_path, capsys, monkeypatch)
    (tmp_path / "seen.txt").write_text("\n".join(SEEN * 5))
    (tmp_path / "held.txt").write_text("\n".join(HELD))
    words = ["data", "ngrams", "seen.txt", "--held-out", "held.txt", "--order", "2"]
    code, out, err = ensue(*words, "--after", "their eyes")
    assert code == 0, err
    assert "never seen: no estimate by maximum likelihood" in out
    code, out, _ = ensue(*words, "--json")
    facts = json.loads(out)
    assert facts["orders"][1]["plain"] is None, "JSON has no infinity"
    assert ensue("data", "ngrams", "seen.txt")[0] == 0
    code, _, err = ensue(*words, "--after", "  ")
    assert code == 2
    assert "--after: expected words, got none" in err


def test_a_text_without_words_is_refused(tmp_path: Path) -> None:
    (tmp_path / "few.txt").write_text("one\n")
    with pytest.raises(DataError, match="give --held-out FILE"):
        study_ngrams([str(tmp_path / "few.txt")], [], order=2, level="spaces", after=None)
    with pytest.raises(ConfigError, match="level: expected one of auto, words"):
        study_ngrams([str(tmp_path / "few.txt")], [], order=2, level="letters", after=None)
