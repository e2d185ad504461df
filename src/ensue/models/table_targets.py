"""What a model of tables predicts: a number with its interval. Classes are in `table_classes`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ensue.data.series import number_of
from ensue.errors import DataError
from ensue.models import metrics
from ensue.models.bootstrap import bootstrap
from ensue.models.calibration import held, held_lines
from ensue.models.collect import Collected, Numbers
from ensue.models.distributions import DISTRIBUTIONS, Distribution, Gaussian, Mixture
from ensue.models.evaluation import Evaluation, preview
from ensue.models.table_cells import written
from ensue.models.table_settings import TableSettings

SHARES = (0.5, 0.8, 0.9, 0.95)  # whose intervals are checked
Outputs = Sequence[Tensor]  # z of each member, (rows, width)


class Asked(NamedTuple):
    """What answers are judged by: z of each member and of the linear model; gold labels."""

    outputs: Outputs
    linear: Tensor
    part: Collected
    numbers: Numbers
    seed: int

    def shown(self, row: int) -> tuple[str, str]:
        """Where a row comes from, and a look at it."""
        texts = list(self.numbers.tokens)
        cells = [texts[k] for k in self.part.inputs.row(row)]
        return self.part.names[row], preview(written(cells))


class Target(Protocol):
    """One kind of target."""

    kind: ClassVar[str]
    regression: ClassVar[str]  # the kind of the linear model beside

    @property
    def width(self) -> int:
        """Of the network's z."""
        ...

    @property
    def answers_wide(self) -> int:
        """Of the linear model's z."""
        ...

    def encode(self, part: Collected, numbers: Numbers) -> NDArray[Any]: ...

    def cost(self, z: Tensor, y: Tensor) -> Tensor: ...

    def score(self, z: Tensor, y: Tensor) -> dict[str, float]: ...

    def answers(self, outputs: Outputs) -> list[Any]: ...

    def judge(self, asked: Asked) -> Evaluation: ...

    def facts(self) -> dict[str, Any]: ...

    def described(self) -> str: ...


@dataclass(frozen=True)
class Estimated:
    """A number: what is to be expected, and the interval that holds it with probability share."""

    value: float
    low: float
    high: float
    share: float

    def as_line(self, value: object) -> str:
        """value, low, high and the row, with tabs between."""
        text = " ".join(written(value) if isinstance(value, list) else ())
        return f"{self.value:.6g}\t{self.low:.6g}\t{self.high:.6g}\t{text}".rstrip("\t")


@dataclass(frozen=True)
class NumberTarget:
    """A number, scaled by the mean and spread of the training part."""

    mean: float
    spread: float
    distribution: Distribution
    share: float

    kind: ClassVar[str] = "number"
    regression: ClassVar[str] = "linear"
    answers_wide: ClassVar[int] = 1

    @classmethod
    def learn(cls, train: Collected, numbers: Numbers, own: TableSettings) -> NumberTarget:
        values = label_values(train, numbers)
        if len(values) < 2 or not values.std():
            raise DataError(
                "the training part: expected a target with different numbers, got "
                f"{'one only, ' + format(values[0], 'g') if len(values) else 'none'}"
            )
        mixed = own.distribution == "mixture"
        found: Distribution = Mixture(own.components) if mixed else Gaussian()
        return cls(float(values.mean()), float(values.std()), found, own.interval)

    @property
    def width(self) -> int:
        return self.distribution.width(1)

    def encode(self, part: Collected, numbers: Numbers) -> NDArray[np.float32]:
        scaled = (label_values(part, numbers) - self.mean) / self.spread
        return scaled.astype(np.float32)[:, None]

    def cost(self, z: Tensor, y: Tensor) -> Tensor:
        return self.distribution.cost(z, y)

    def score(self, z: Tensor, y: Tensor) -> dict[str, float]:
        """cost in units of the spread, the errors in those of the target."""
        wrong = (self.distribution.mean(z) - y).double() * self.spread
        return {
            "cost": float(self.cost(z, y).mean()),
            "mae": float(wrong.abs().mean()),
            "rmse": float((wrong**2).mean().sqrt()),
        }

    def _restored(self, scaled: Tensor) -> NDArray[np.float64]:
        return scaled[:, 0].double().numpy() * self.spread + self.mean

    def means(self, outputs: Outputs) -> NDArray[np.float64]:
        found = [self._restored(self.distribution.mean(z)) for z in outputs]
        return np.asarray(np.mean(found, 0))

    def intervals(self, outputs: Outputs, share: float) -> tuple[NDArray[Any], NDArray[Any]]:
        """Of several members the mean of their ends."""
        pairs = [self.distribution.interval(z.double(), share) for z in outputs]
        low, high = ([self._restored(pair[k]) for pair in pairs] for k in (0, 1))
        return np.asarray(np.mean(low, 0)), np.asarray(np.mean(high, 0))

    def answers(self, outputs: Outputs) -> list[Estimated]:
        low, high = self.intervals(outputs, self.share)
        rows = zip(self.means(outputs), low, high, strict=True)
        return [Estimated(float(m), float(a), float(b), self.share) for m, a, b in rows]

    def judge(self, asked: Asked) -> Evaluation:
        gold, guess = label_values(asked.part, asked.numbers), self.means(asked.outputs)
        wrong = guess - gold
        ones = np.ones(len(gold))
        squares = np.stack([wrong**2, ones], 1)
        scores = {
            "RMSE": bootstrap(squares, lambda sums: metrics.ratio(sums) ** 0.5, seed=asked.seed),
            "MAE": bootstrap(np.stack([abs(wrong), ones], 1), metrics.ratio, seed=asked.seed),
        }
        y = torch.from_numpy((gold - self.mean) / self.spread)[:, None]
        cost = [self.cost(z.double(), y).mean() for z in asked.outputs]
        around = float(((gold - gold.mean()) ** 2).mean())
        others = {"log loss": float(np.mean(cost)) + float(np.log(self.spread))}
        if around:
            others["R²"] = 1 - float((wrong**2).mean()) / around
        shares = dict.fromkeys([*SHARES, self.share])
        kept = [held(gold, *self.intervals(asked.outputs, own), own) for own in sorted(shares)]
        linear = self._restored(asked.linear)
        return Evaluation(
            rows=len(gold),
            steps=len(gold),
            scores=scores,
            others=others,
            baselines={
                "mean": float(((self.mean - gold) ** 2).mean() ** 0.5),
                "linear model": float(((linear - gold) ** 2).mean() ** 0.5),
            },
            classes=(),
            confusion=(),
            worst=(),
            higher_is_better=False,
            notes=held_lines(kept),
        )

    def facts(self) -> dict[str, Any]:
        return {"mean": self.mean, "spread": self.spread, "share": self.share}

    @classmethod
    def of_facts(cls, facts: Mapping[str, Any], own: TableSettings) -> NumberTarget:
        mixed = own.distribution == "mixture"
        found = Mixture(own.components) if mixed else DISTRIBUTIONS[own.distribution]()
        return cls(facts["mean"], facts["spread"], found, facts["share"])

    def described(self) -> str:
        return f"a number, {self.distribution.name}"


def label_values(part: Collected, numbers: Numbers) -> NDArray[np.float64]:
    """(rows,): each row's label as a number."""
    assert part.labels is not None
    if len(wrong := np.flatnonzero(part.labels.lengths != 1)):
        row = int(wrong[0])
        raise DataError(f"{part.names[row]}: expected one number, got {part.labels.lengths[row]}")
    texts = list(numbers.labels)
    table = np.array([np.nan if (n := number_of(text)) is None else n for text in texts])
    found = table[part.labels.values]
    if len(wrong := np.flatnonzero(np.isnan(found))):
        row = int(wrong[0])
        text = texts[part.labels.values[row]]
        raise DataError(
            f"{part.names[row]}: what is to be predicted: expected a finite number, got {text!r}"
        )
    return np.asarray(found, np.float64)
