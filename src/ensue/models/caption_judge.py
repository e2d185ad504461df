"""What is to be said of captions beside those that were expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from ensue.models.pair_evaluation import PairEvaluation
from ensue.models.pair_judge import Counting, Judged, judge_pairs


@dataclass(frozen=True)
class CaptionEvaluation(PairEvaluation):
    """buckets: rows by the tokens of the caption that was expected."""

    def _worst(self) -> str:
        if not self.worst:
            return ""
        lines = ["furthest from what was expected"]
        for own in self.worst:
            lines += [f"  {own.place}  ({own.probability:.2f})"]
            lines += [f"    expected  {own.gold}", f"    got       {own.predicted}"]
        return "\n".join(lines)


def judge_captions(
    rows: Judged, frequent: str, how: Counting, attributes: Mapping[str, Sequence[str]]
) -> CaptionEvaluation:
    """frequent: the caption that is most frequent in training; attributes: words that answer one
    question, of which a caption is right where it has the same ones in the same order."""
    found = judge_pairs(rows, frequent, how)
    own = {part.name: getattr(found, part.name) for part in fields(found)}
    right = {f"{name} right": _right(rows, words) for name, words in attributes.items()}
    own["others"] = {**found.others, **{k: v for k, v in right.items() if v is not None}}
    own["baselines"] = {"frequent caption": found.baselines["frequent target"]}
    return CaptionEvaluation(**own)


def _right(rows: Judged, words: Sequence[str]) -> float | None:
    """The share of captions in which these words are as expected; None where none is expected."""
    known = frozenset(words)

    def of(text: str) -> list[str]:
        return [word for word in text.split() if word in known]

    pairs = [(of(f), of(w)) for f, w in zip(rows.found, rows.wanted, strict=True)]
    if not any(wanted for _, wanted in pairs):
        return None
    return sum(found == wanted for found, wanted in pairs) / len(pairs)
