"""What a cell declares: its parameters and masks, and how they appear inside `step`.

`Matrix("x", "ifgo")` is one stacked tensor (4·hidden, input) in torch.nn's layout;
inside `step`, `W.i` is its first block and `W.i @ x` the product. Without gates the
matrix itself is used: `W @ x`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from torch import Tensor
from torch.nn.functional import linear

from ensue.equations.author import UntraceableAttribute, blame
from ensue.errors import EnsueError, OptionError, unknown


def split_gates(gates: str | tuple[str, ...]) -> tuple[str, ...]:
    """ "ifgo" → i, f, g, o; "reset update" → reset, update; "" → one block without a name."""
    if not isinstance(gates, str):
        return tuple(gates) or ("",)
    return tuple(gates.split() if " " in gates.strip() else gates.strip()) or ("",)


@dataclass(frozen=True)
class Parameter:
    """A stacked parameter: one block of `size` rows for each gate."""

    gates: tuple[str, ...]
    size: str
    init: float | Mapping[str, float] | None

    def __post_init__(self) -> None:
        twice = [gate for k, gate in enumerate(self.gates) if gate in self.gates[:k]]
        if twice:
            raise blame(
                f"the gate {twice[0]} occurs twice in {' '.join(self.gates)}",
                "give each gate a different name",
                OptionError,
            )

    # after binding, `step` reads W.i, W @ x, b.i and b here
    def __getattr__(self, gate: str) -> Any:
        if gate.startswith("__"):
            raise AttributeError(gate)
        raise AttributeError(f"{type(self).__name__}.{gate}: parameters exist inside `step` only")

    def __matmul__(self, other: Any) -> Any:
        raise TypeError("a declared matrix can only multiply inside `step`, as in self.W @ x")


@dataclass(frozen=True, init=False)
class Matrix(Parameter):
    """A matrix that multiplies x ("x"), a state part (its name) or a vector of a size, with `size`
    rows per gate.

    >>> Matrix("x", "ifgo").gates
    ('i', 'f', 'g', 'o')
    """

    of: str

    def __init__(
        self,
        of: str,
        gates: str | tuple[str, ...] = "",
        size: str = "hidden",
    ) -> None:
        super().__init__(split_gates(gates), size, None)
        object.__setattr__(self, "of", of)


class Vector(Parameter):
    """A vector of `size` features for each gate, added or multiplied elementwise.

    `init`: its initial value, a number; or numbers for some gates ({"f": 1.0}), 0 for the rest.

    >>> Vector("reset update", init={"update": 1.0})
    Vector(gates=('reset', 'update'), size='hidden', init={'update': 1.0})
    """

    def __init__(
        self,
        gates: str | tuple[str, ...] = "",
        size: str = "hidden",
        init: float | Mapping[str, float] = 0.0,
    ) -> None:
        super().__init__(split_gates(gates), size, init)


@dataclass(frozen=True)
class Mask:
    """Random numbers drawn in training: 1 with probability 1 − rate, else 0.

    `over`: "sequence" draws one mask for each row, the same at all steps; "step" draws a new mask
    at each step. `scaled` divides by 1 − rate, so that the expectation is 1 (dropout). Outside
    training the mask is its expectation, a plain number.

    >>> Mask(0.25).expectation, Mask(0.25, scaled=False).expectation
    (1.0, 0.75)
    """

    rate: float
    over: str = "sequence"
    scaled: bool = True
    size: str = "hidden"

    def __post_init__(self) -> None:
        if not isinstance(self.rate, int | float) or not 0 <= self.rate < 1:
            raise OptionError(
                f"rate: expected a number from 0 up to, not including, 1, got {self.rate!r}"
            )
        if self.over not in ("sequence", "step"):
            raise OptionError(f'over: expected "sequence" or "step", got {self.over!r}')

    @property
    def expectation(self) -> float:
        return 1.0 if self.scaled else 1.0 - self.rate


class Linear:
    """A matrix as `step` sees it when it runs on tensors."""

    __slots__ = ("weight",)

    def __init__(self, weight: Tensor) -> None:
        self.weight = weight

    def __matmul__(self, v: Tensor) -> Tensor:
        return linear(v, self.weight)


class Gates:
    """The blocks of a stacked parameter by name: `W.i`; they unpack in the declared order."""

    def __init__(self, name: str, blocks: Mapping[str, Any]) -> None:
        self._name, self._blocks = name, dict(blocks)

    def __getattr__(self, gate: str) -> Any:
        if gate.startswith("_"):
            raise AttributeError(gate)
        try:
            return self._blocks[gate]
        except KeyError:
            raise blame(
                str(unknown(f"gate of {self._name}", gate, self._blocks)),
                f"write one of these, or declare {gate} in {self._name}",
                UntraceableAttribute,
            ) from None

    def __iter__(self) -> Iterator[Any]:
        return iter(self._blocks.values())

    def whole(self) -> EnsueError:
        """The error for a stacked parameter that is used without naming a gate."""
        return blame(
            f"{self._name} is used whole, but has the gates {', '.join(self._blocks)}",
            f"write one gate, such as {self._name}.{next(iter(self._blocks))}",
        )

    def _refuse(self, *_: Any) -> NoReturn:
        raise self.whole()

    __matmul__ = __rmatmul__ = __add__ = __radd__ = __mul__ = __rmul__ = __sub__ = _refuse
    __rsub__ = __truediv__ = __rtruediv__ = __neg__ = __pow__ = __abs__ = __getitem__ = _refuse
