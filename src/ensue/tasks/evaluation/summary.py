"""The last lines of a training: the score, the strongest baseline, and their difference."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ensue.drawing.layout import width_of
from ensue.tasks.evaluation.bootstrap import Interval, paired_bootstrap
from ensue.tasks.evaluation.report import Evaluation

Scores = Mapping[str, float]
UNKNOWN = Interval(math.nan, math.nan, math.nan)
NETWORK_ALONE = "network alone"  # a baseline that is a part of the model


@dataclass(frozen=True)
class Summary:
    """The main score of the combined model on the validation part. baseline: name of the strongest
    baseline, "" without any; difference: how much better the model is than that; its ends are NaN
    where no interval is known."""

    name: str
    score: Interval
    baseline: str = ""
    baseline_score: float = math.nan
    difference: Interval = UNKNOWN


def summary_of(evaluation: Evaluation) -> Summary:
    """The main score, next to the strongest baseline that is not the model's own network."""
    main, sign = evaluation.main, 1 if evaluation.higher_is_better else -1
    score = evaluation.scores[main]
    baselines = {**evaluation.baselines}
    baselines.pop(NETWORK_ALONE, None)
    if not baselines:
        return Summary(main, score)
    best = max(baselines, key=lambda name: sign * baselines[name])
    difference = Interval(sign * (score.value - baselines[best]), math.nan, math.nan)
    if best in evaluation.baseline_sums and main in evaluation.sums:
        paired = paired_bootstrap(evaluation.baseline_sums[best], evaluation.sums[main])
        difference = Interval(*sorted_ends(paired, sign))
    return Summary(main, score, best, baselines[best], difference)


def sorted_ends(paired: Interval, sign: int) -> tuple[float, float, float]:
    """
    >>> sorted_ends(Interval(1.0, 0.5, 2.0), -1)
    (-1.0, -2.0, -0.5)
    """
    ends = [sign * paired.low, sign * paired.high]
    return sign * paired.value, min(ends), max(ends)


def difference_text(difference: Interval) -> str:
    """
    >>> difference_text(Interval(0.039, 0.021, 0.057))
    'model better by 0.0390 (0.0210 … 0.0570)'
    >>> difference_text(Interval(-0.002, -0.01, 0.006))
    'model worse by 0.0020 (-0.0060 … 0.0100), may be chance'
    >>> difference_text(Interval(0.0, -0.01, 0.01))
    'no difference (-0.0100 … 0.0100)'
    """
    value, low, high = difference
    if not math.isfinite(value):
        return ""
    if value < 0:
        low, high = -high, -low
    known = math.isfinite(low) and math.isfinite(high)
    interval = f" ({_rounded(low)} … {_rounded(high)})" if known else ""
    if f"{abs(value):.4f}" == "0.0000":
        return f"no difference{interval * (low < high)}"
    which = "better" if value > 0 else "worse"
    chance = ", may be chance" * (known and low <= 0)
    return f"model {which} by {abs(value):.4f}{interval}{chance}"


def _rounded(value: float) -> str:
    """The rounded value as text, without a minus sign at 0."""
    return f"{round(value, 4) + 0.0:.4f}"


def summary_lines(
    summary: Summary | None, watch: str, networks: Sequence[Scores], together: Scores
) -> list[str]:
    """Lines on a training. networks: validation scores of each network; together: validation scores
    of the combined model, empty for a single network; watch: the score that decides without a
    summary."""
    scores = together or (networks[0] if len(networks) == 1 else {})
    rows: list[tuple[str, list[float], str]] = []
    main, same = watch, True
    if summary is not None:
        value, low, high = summary.score
        main = summary.name
        same = math.isclose(scores.get(main, math.nan), value, rel_tol=1e-6, abs_tol=1e-9)
        rows.append((main, [value], f"95 % interval {low:.4f} … {high:.4f}"))
        if summary.baseline:
            against = difference_text(summary.difference)
            rows.append((summary.baseline, [summary.baseline_score], against))
    elif main in scores:
        rows.append((main, [scores[main]], ""))
    alone = [network[main] for network in networks if main in network]
    if same and alone and (together or len(networks) > 1):
        many = "networks" if len(networks) > 1 else "network"
        rows.append((f"{many} alone", alone, ""))
    more = ", ".join(
        f"{name} {value:.4f}" for name, value in sorted(scores.items()) if name != main or not same
    )
    heading = "further scores" if same else "scaled scores"
    return [*_aligned(rows), *([f"{heading}: {more}"] if more else [])]


def _aligned(rows: Sequence[tuple[str, list[float], str]]) -> list[str]:
    """Lines of names, numbers and comments, in columns."""
    texts = [[f"{value:.4f}" for value in values] for _, values, _ in rows]
    name = max((width_of(row[0]) for row in rows), default=0)
    number = max((len(text) for several in texts for text in several), default=0)
    lines = []
    for (label, _, rest), several in zip(rows, texts, strict=True):
        numbers = "  ".join(text.rjust(number) for text in several)
        lines.append(f"{label}{' ' * (name - width_of(label))}  {numbers}  {rest}".rstrip())
    return lines
