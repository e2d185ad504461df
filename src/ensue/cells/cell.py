"""Cell: parameters declared in the class body, mathematics in `step`, nothing else.

A cell is a description: it holds declarations and options, no tensors. Binding replaces each
declared name by the value that `step` reads: a tensor, or a symbol for tracing.
"""

from __future__ import annotations

import copy
import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

from torch import Tensor

from ensue.equations import Equations, Mask, Matrix, trace
from ensue.equations.declare import Gates, Linear, Parameter
from ensue.equations.node import ONE
from ensue.equations.trace import state_parts
from ensue.errors import EquationError, OptionError

DERIVED = (
    "_traced",
    "_kernels",
    "_tape_layouts",
)  # caches, filled when the cell is used


class Cell(ABC):
    """One step of a recurrent network: x (batch, input) and state in, new state out.

    Subclasses declare parameters with `Matrix`, `Vector` and `Mask` (in the class body, or in
    `__init__` if they depend on options) and write `step(self, x, h, …)`, which returns the new
    state parts in the order of its arguments. All parts have `hidden` features unless `part_sizes`
    names another size, an attribute of the cell.

    >>> from ensue.equations import Matrix, Vector, tanh
    >>> class Plain(Cell):
    ...     W, U, b = Matrix("x"), Matrix("h"), Vector()
    ...
    ...     def step(self, x, h):
    ...         return tanh(self.W @ x + self.U @ h + self.b)
    >>> print(Plain().equations())
    h' = tanh(W·x + U·h + b)
    """

    part_sizes: ClassVar[Mapping[str, str]] = {}

    def __init__(self, *sizes: object, **named: object) -> None:
        """Cells with options override `__init__`."""
        if sizes or named:
            name = type(self).__name__
            raise OptionError(
                f"{name}: a cell is its equations and has no sizes; a layer has: "
                f"Recurrent({name}(), input_size, hidden_size). The drop-ins for torch.nn's "
                "layers are ensue.layers.RNN, GRU and LSTM"
            )

    @abstractmethod
    def step(self, x: Any, *state: Any) -> Any:
        """The new state parts: the cell's equations."""

    def output(self, x: Any, *state: Any) -> Any:
        """The output to the layer above, from x and the new state: the first state part, unless a
        cell overrides this."""
        return state[0]

    # ---------------------------------------------------------------- changes
    def __init_subclass__(cls) -> None:
        for name, value in vars(cls).items():
            _check_name(cls, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        """Sets an attribute. A changed option makes another cell, so cached declarations and traces
        are dropped."""
        if "_bound" in vars(self):
            raise EquationError(
                f"{type(self).__name__}: step sets self.{name}; a step must not change its "
                "cell. Fix: return the value as a state part"
            )
        _check_name(type(self), name, value)
        for read_off in ("declarations", "parameters", "masks", "parts", *DERIVED):
            vars(self).pop(read_off, None)
        vars(self)["_changes"] = vars(self).get("_changes", 0) + 1
        object.__setattr__(self, name, value)

    @property
    def changes(self) -> int:
        """How often an option of this cell has been set; a trace is valid for one such count."""
        return int(vars(self).get("_changes", 0))

    # ---------------------------------------------------------------- what is declared
    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The names of the state parts: step's arguments after x."""
        return state_parts(type(self).step)

    @cached_property
    def declarations(self) -> dict[str, Parameter | Mask]:
        """Every declared name, inherited ones first."""
        return self._declared()

    def _declared(self) -> dict[str, Parameter | Mask]:
        declared: dict[str, Any] = {}
        for cls in reversed(type(self).__mro__):
            declared |= vars(cls)
        declared |= vars(self)
        return {name: d for name, d in declared.items() if isinstance(d, (Parameter, Mask))}

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        return {n: d for n, d in self.declarations.items() if isinstance(d, Parameter)}

    @cached_property
    def masks(self) -> dict[str, Mask]:
        return {n: d for n, d in self.declarations.items() if isinstance(d, Mask)}

    def read(self) -> None:
        """Reads the declarations now: torch.compile cannot trace a first use that reads them."""
        _ = self.parts, self.declarations, self.parameters, self.masks

    def size_of(self, name: str) -> str:
        """The name of the size of `name`: x, a state part, or itself a size."""
        if name == "x":
            return "input"
        return self.part_sizes.get(name, "hidden") if name in self.parts else name

    def widths(self, input_size: int, hidden_size: int) -> dict[str, int]:
        """How many features each named size has."""
        sizes = {"input": input_size, "hidden": hidden_size}
        used = {d.size for d in self.declarations.values()} | {self.size_of(p) for p in self.parts}
        used |= {self.size_of(d.of) for d in self.parameters.values() if isinstance(d, Matrix)}
        for name in sorted(used - sizes.keys()):
            width = 1 if name == ONE else self._named_width(name)
            if not isinstance(width, int) or isinstance(width, bool) or width < 1:
                raise OptionError(
                    f'{type(self).__name__}: the size {name!r} is not known; use "x", a state part '
                    f"({', '.join(self.parts)}), or set self.{name} to a number of features"
                )
            sizes[name] = width
        return sizes

    def _named_width(self, name: str) -> Any:
        return getattr(self, str(name), None)

    def shapes(self, input_size: int, hidden_size: int) -> dict[str, tuple[int, ...]]:
        """The shape of each parameter, gates stacked along the first axis (torch.nn's layout)."""
        widths = self.widths(input_size, hidden_size)
        shapes: dict[str, tuple[int, ...]] = {}
        for name, d in self.parameters.items():
            columns = (widths[self.size_of(d.of)],) if isinstance(d, Matrix) else ()
            shapes[name] = (len(d.gates) * widths[d.size], *columns)
        return shapes

    def state_sizes(self, input_size: int, hidden_size: int) -> tuple[int, ...]:
        """The number of features of each state part."""
        widths = self.widths(input_size, hidden_size)
        return tuple(widths[self.size_of(part)] for part in self.parts)

    def __getstate__(self) -> dict[str, Any]:
        """The content of copies and pickles: everything except the cached traces and kernels."""
        return {name: value for name, value in vars(self).items() if name not in DERIVED}

    # ---------------------------------------------------------------- binding
    def bind(self, values: Mapping[str, Any]) -> Self:
        """A copy with declared names replaced by values, which `step` receives as self."""
        bound = copy.copy(self)
        vars(bound).update({name: values[name] for name in self.declarations}, _bound=True)
        return bound

    def on_tensors(
        self, parameters: Mapping[str, Tensor], masks: Mapping[str, Tensor] | None = None
    ) -> Self:
        """This cell ready to `step` on tensors. Without `masks`, each mask is its expectation."""
        values: dict[str, Any] = {}
        for name, d in self.declarations.items():
            if isinstance(d, Mask):
                values[name] = d.expectation if masks is None else masks[name]
                continue
            blocks: Sequence[Any] = parameters[name].chunk(len(d.gates))
            if isinstance(d, Matrix):
                blocks = [Linear(b) for b in blocks]
            by_gate = dict(zip(d.gates, blocks, strict=True))
            values[name] = by_gate[""] if d.gates == ("",) else Gates(name, by_gate)
        return self.bind(values)

    # ---------------------------------------------------------------- the equations
    def equations(
        self, input_size: int = 32, hidden_size: int = 64, training: bool = True
    ) -> Equations:
        """The traced step: print it, draw it, differentiate it."""
        key = (self.changes, input_size, hidden_size, training)
        traced: dict[Any, Equations] = self.__dict__.setdefault("_traced", {})
        if key not in traced:
            traced[key] = trace(self, input_size, hidden_size, training)
        return traced[key]

    def count(self, input_size: int, hidden_size: int) -> int:
        """The number of parameters."""
        return sum(math.prod(s) for s in self.shapes(input_size, hidden_size).values())

    def _displayed_equations(self) -> Equations:
        """The equations that a notebook shows. There are fewer inputs than units, unless x and the
        state are added and must have the same size."""
        try:
            return self.equations()
        except EquationError:
            return self.equations(64, 64)

    def _repr_html_(self) -> str:
        from ensue.drawing.document import as_block
        from ensue.equations.picture import equations_document

        text = inspect.cleandoc(type(self).__dict__.get("__doc__") or "")
        about = " ".join(text.partition("\n\n")[0].split())
        return as_block(equations_document(self._displayed_equations(), about))

    def _repr_latex_(self) -> str:
        return self._displayed_equations()._repr_latex_()


def _check_name(cls: type, name: str, value: Any) -> None:
    """A declared name must not hide what every cell has."""
    if isinstance(value, (Parameter, Mask)) and (hasattr(Cell, name) or name.startswith("_")):
        raise OptionError(
            f"{cls.__name__}.{name}: every cell has a {name} of its own; give the "
            f"{type(value).__name__} another name"
        )


def as_tuple(new: Any) -> tuple[Any, ...]:
    """The result of `step` as a tuple of state parts.

    >>> as_tuple("h"), as_tuple(["h", "c"])
    (('h',), ('h', 'c'))
    """
    return tuple(new) if isinstance(new, (tuple, list)) else (new,)
