"""Hand-made features φ(x): what a linear model cannot see by itself, made visible.

Each transform takes columns of x (…, n) and gives columns (…, width). `Features` concatenates
several transforms, and is a transform itself.

    constant     1: a weight for it is a bias
    column       x_k unchanged
    polynomial   x_k, x_k², …, x_k^degree
    month        min(d, 12 − d), d = |x_k − α| mod 12: December is near January. α, the month
                 that all others are measured from, may be learned
    weekday      seven columns of 0 and 1, one for each day 0 … 6
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import combinations_with_replacement
from operator import mul

import torch
from torch import Tensor, nn

from ensue.errors import DataError, OptionError

MONTHS, DAYS = 12.0, 7


class Transform(nn.Module):
    """(…, n) → (…, width)."""

    width: int


class Constant(Transform):
    """1."""

    width = 1

    def forward(self, x: Tensor) -> Tensor:
        return x.new_ones(*x.shape[:-1], 1)


class FeatureColumn(Transform):
    """x_k."""

    width = 1

    def __init__(self, column: int) -> None:
        super().__init__()
        self.column = column

    def forward(self, x: Tensor) -> Tensor:
        return x[..., self.column : self.column + 1]


class Polynomial(Transform):
    """x_k, x_k², …, x_k^degree."""

    def __init__(self, column: int, degree: int) -> None:
        super().__init__()
        if degree < 1:
            raise OptionError(f"degree: expected a whole number ≥ 1, got {degree}")
        self.column, self.width = column, degree

    def forward(self, x: Tensor) -> Tensor:
        powers = torch.arange(1, self.width + 1, device=x.device)
        return x[..., self.column, None] ** powers


class CrossPolynomial(Transform):
    """All products of columns x_k up to a degree, cross terms included: of two columns and degree
    2, x_0, x_1, x_0², x_0·x_1, x_1².

    >>> CrossPolynomial([0, 1], 2)(torch.tensor([[2.0, 3.0]]))
    tensor([[2., 3., 4., 6., 9.]])
    """

    def __init__(self, columns: Sequence[int], degree: int) -> None:
        super().__init__()
        if degree < 1 or not columns:
            raise OptionError(
                f"degree, columns: expected a degree ≥ 1 and one column or more, got {degree} and "
                f"{list(columns)}"
            )
        self.terms = [
            term
            for power in range(1, degree + 1)
            for term in combinations_with_replacement(columns, power)
        ]
        self.width = len(self.terms)

    def forward(self, x: Tensor) -> Tensor:
        columns = x.unbind(-1)
        return torch.stack([reduce(mul, (columns[k] for k in term)) for term in self.terms], -1)


class MonthDistance(Transform):
    """How far month x_k (1 … 12) is from month α, around the year: 0 … 6.

    learned: α is trained, α = start + step·moved. The updates of α are `step` times as large as the
    updates of other weights, because Adam moves all weights by about the same amount and α has a
    range of 12."""

    width = 1
    moved: Tensor
    start: Tensor

    def __init__(
        self, column: int, alpha: float = 6.5, *, learned: bool = False, step: float = 1.0
    ) -> None:
        super().__init__()
        self.column, self.learned, self.step = column, learned, step
        self.register_buffer("start", torch.tensor(float(alpha)))
        if learned:
            self.moved = nn.Parameter(torch.tensor(0.0))
        else:
            self.register_buffer("moved", torch.tensor(0.0))

    @property
    def alpha(self) -> Tensor:
        return self.start + self.step * self.moved

    def forward(self, x: Tensor) -> Tensor:
        distance = (x[..., self.column, None] - self.alpha.to(x.dtype)).abs() % MONTHS
        return torch.minimum(distance, MONTHS - distance)


class Weekday(Transform):
    """Day x_k (0 … 6) as seven columns."""

    width = DAYS

    def __init__(self, column: int) -> None:
        super().__init__()
        self.column = column

    def forward(self, x: Tensor) -> Tensor:
        day = x[..., self.column]
        wrong = (day != day.round()) | (day < 0) | (day > DAYS - 1)
        if not torch.compiler.is_compiling() and bool(wrong.any()):
            got = float(day[wrong].flatten()[0])
            raise DataError(f"weekday: expected a whole number 0 … 6, got {got:g}")
        return (day[..., None] == torch.arange(DAYS, device=x.device)).to(x.dtype)


class Features(Transform):
    """Several transforms, concatenated."""

    def __init__(self, parts: Sequence[Transform]) -> None:
        super().__init__()
        if not parts:
            raise OptionError("features: expected one transform or more, got none")
        self.parts = nn.ModuleList(parts)
        self.width = sum(part.width for part in parts)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([part(x) for part in self.parts], -1)
