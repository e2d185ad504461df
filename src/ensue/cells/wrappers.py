"""Wrappers of a cell: recurrent dropout, zoneout, residual, an output layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeGuard

from ensue.cells.cell import Cell, as_tuple
from ensue.equations import Mask, Matrix, Vector
from ensue.equations.declare import Gates, Parameter
from ensue.errors import OptionError


class Wrapper(Cell):
    """A cell around another: the same state and parameters under the same names.

    >>> Wrapper(LSTM()).parts
    ('h', 'c')
    """

    def __init__(self, cell: Cell) -> None:
        if not isinstance(cell, Cell):
            raise OptionError(
                f"{type(self).__name__}: expected a cell to wrap, such as LSTM(), got {cell!r}"
            )
        self.cell = cell

    @property
    def parts(self) -> tuple[str, ...]:
        return self.cell.parts

    def _declared(self) -> dict[str, Parameter | Mask]:
        inner, declared = self.cell.declarations, super()._declared()
        if twice := inner.keys() & declared.keys():
            raise OptionError(
                f"{type(self).__name__}: {', '.join(sorted(twice))} is declared by "
                f"{type(self.cell).__name__} too; give it another name"
            )
        return {**inner, **declared}

    @property
    def changes(self) -> int:
        count = int(vars(self).get("_changes", 0))  # torch.compile knows no super() of a property
        return count + self.cell.changes

    def read(self) -> None:
        self.cell.read()
        super().read()

    def size_of(self, name: str) -> str:
        return self.cell.size_of(name)

    def _named_width(self, name: str) -> Any:
        return getattr(self, name, None) or self.cell._named_width(name)

    def bind(self, values: Mapping[str, Any]) -> Self:
        bound = super().bind(values)
        vars(bound)["cell"] = self.cell.bind(values)
        return bound

    def add_mask(self, name: str, mask: Mask) -> str:
        """Declares a mask under a name that the inner cell does not use, and returns the name."""
        return self._add(name, mask)

    def _add(self, name: str, declared: Parameter | Mask) -> str:
        while name in (*self.cell.declarations, *self.cell.parts):
            name += "2"
        setattr(self, name, declared)
        return name

    def step(self, x: Any, *state: Any) -> Any:
        return self.cell.step(x, *state)

    def output(self, x: Any, *state: Any) -> Any:
        return self.cell.output(x, *state)


class _Masked:
    """A matrix whose operand is masked first: U @ v becomes U @ (m*v)."""

    def __init__(self, matrix: Any, mask: Any) -> None:
        self.matrix, self.mask = matrix, mask

    def __matmul__(self, v: Any) -> Any:
        return self.matrix @ (self.mask * v)


def _is_recurrent(declared: Parameter) -> TypeGuard[Matrix]:
    """Whether a matrix multiplies something other than x. Its size does not tell: a state part may
    have the size of x."""
    return isinstance(declared, Matrix) and declared.of != "x"


class RecurrentDropout(Wrapper):
    """Recurrent (variational) dropout: what enters a recurrent product is masked, U·(m*v).

    One mask a row, the same at every step; what is carried elementwise (z*h, f*c) is not
    masked. Gal & Ghahramani 2016.

    >>> print(RecurrentDropout(SimpleRNN()).equations())
    s  = W·x + U·(m*h) + b
    h' = tanh(s)
    """

    def __init__(self, cell: Cell, rate: float = 0.25) -> None:
        super().__init__(cell)
        sizes = {cell.size_of(d.of) for d in cell.parameters.values() if _is_recurrent(d)}
        self.mask_names = {
            size: self.add_mask(f"m_{size}" if size != "hidden" else "m", Mask(rate, size=size))
            for size in sorted(sizes)
        }

    def bind(self, values: Mapping[str, Any]) -> Self:
        masked = dict(values)
        for name, d in self.cell.parameters.items():
            if not _is_recurrent(d):
                continue
            mask = values[self.mask_names[self.size_of(d.of)]]
            if d.gates == ("",):
                masked[name] = _Masked(values[name], mask)
            else:
                blocks = zip(d.gates, values[name], strict=True)
                masked[name] = Gates(name, {gate: _Masked(block, mask) for gate, block in blocks})
        return super().bind(masked)


class Zoneout(Wrapper):
    """Zoneout: at each step each unit keeps its old value with probability `rate`.

    s' = m*new + (1 − m)*old, m drawn at every step; outside training m is 1 − rate. A rate
    for each part by name: Zoneout(LSTM(), {"h": 0.05, "c": 0.5}). Krueger et al. 2017.

    >>> print(Zoneout(SimpleRNN(), rate=0.25).equations())
    s  = W·x + U·h + b
    h' = m_h*tanh(s) + (1 - m_h)*h
    """

    def __init__(self, cell: Cell, rate: float | Mapping[str, float] = 0.1) -> None:
        super().__init__(cell)
        rates = dict(rate) if isinstance(rate, Mapping) else dict.fromkeys(cell.parts, rate)
        if strange := rates.keys() - set(cell.parts):
            raise OptionError(
                f"rate: expected state parts of {type(cell).__name__}, {', '.join(cell.parts)}, "
                f"got {', '.join(sorted(strange))}"
            )
        self.mask_names = {
            part: self.add_mask(
                f"m_{part}", Mask(r, over="step", scaled=False, size=cell.size_of(part))
            )
            for part, r in rates.items()
            if r != 0
        }

    def step(self, x: Any, *state: Any) -> Any:
        new = as_tuple(self.cell.step(x, *state))
        if len(new) != len(state):
            return new  # tracing names what is missing
        mixed = []
        for part, after, before in zip(self.parts, new, state, strict=True):
            if part in self.mask_names:
                m = getattr(self, self.mask_names[part])
                after = m * after + (1 - m) * before
            mixed.append(after)
        return tuple(mixed)


class Residual(Wrapper):
    """Residual connection: the output is x + the cell's output; the state is unchanged.

    x and the output must have the same number of features. Wu et al. 2016.

    >>> print(Residual(SimpleRNN()).equations(input_size=16, hidden_size=16))
    s  = W·x + U·h + b
    h' = tanh(s)
    y  = x + h'
    """

    def output(self, x: Any, *state: Any) -> Any:
        return x + self.cell.output(x, *state)


class OutputLayer(Wrapper):
    """An output layer: the layer above sees V·h' + d; the state is unchanged.

    V is square. Between recurrent layers it is an option of `Recurrent`.

    >>> print(OutputLayer(SimpleRNN()).equations())
    s  = W·x + U·h + b
    h' = tanh(s)
    y  = V·h' + d
    """

    def __init__(self, cell: Cell) -> None:
        super().__init__(cell)
        part = cell.parts[0]
        size = cell.size_of(part)
        self.matrix = self._add("V", Matrix(part, "", size))
        self.shift = self._add("d", Vector("", size))

    def output(self, x: Any, *state: Any) -> Any:
        return getattr(self, self.matrix) @ self.cell.output(x, *state) + getattr(self, self.shift)
