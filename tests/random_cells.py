"""Random cells: a step drawn from all the allowed operations, written as its author would.

    @given(random_cells())
    def test_a_law(cell): ...

A drawn cell is a real `Cell` made from source text, which is also its repr, so that a falsifying
example can be pasted. Arguments stay in safe domains (log(softplus(v) + 0.5), v / (w * w + 0.5))
and values that may grow are squashed; kinks lie where the data does not, except for exact ties.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from hypothesis import strategies as st
from torch import Tensor

import ensue.equations
from ensue.cells import Cell

LARGEST = 20.0  # what may be larger in absolute value is squashed
NUMBERS = (-2.0, -1.0, -0.5, 0.0, 0.25, 1.0, 1.5, 3.0)
UNARY = (
    "sigmoid({0})",
    "tanh({0})",
    "relu({0})",
    "softplus({0})",
    "exp(tanh({0}))",
    "log(softplus({0}) + 0.5)",
    "sqrt({0} * {0} + 0.1)",
    "({0} * {0} + 0.1) ** 0.5",
    "-{0}",
    "{0} ** 1",
    "{0} ** 2",
    "tanh({0}) ** 3",
    "tanh({0}) ** 4",
    "1 / ({0} * {0} + 0.5)",
    "prelu({0}, 0.25)",
)
BINARY = (
    "{0} + {1}",
    "{0} - {1}",
    "{0} * {1}",
    "{0} / ({1} * {1} + 0.5)",
    "maximum({0}, {1})",
    "minimum({0}, {1})",
    "prelu({0}, {1})",
)
WITH_NUMBER = (
    "{0} + {1}",
    "{1} + {0}",
    "{0} - {1}",
    "{1} - {0}",
    "{0} * {1}",
    "{1} * {0}",
    "{0} / ({1} - 4)",
    "maximum({0}, {1})",
    "maximum({1}, {0})",
    "minimum({0}, {1})",
    "minimum({1}, {0})",
)


@dataclass(frozen=True)
class Value:
    """An expression of the step: its text, the name of its size, a bound of its values."""

    text: str
    size: str
    bound: float


class Sizes(NamedTuple):
    input: int
    hidden: int
    memory: int
    one: int = 1


class _Writer:
    """Writes the step line by line; `values` are the expressions that may be used next."""

    def __init__(
        self, draw: Callable[[Any], Any], sizes: Sizes, parts: dict[str, str], masks: bool
    ) -> None:
        self.draw, self.sizes, self.parts = draw, sizes, parts
        self.leaves = ("Vector", "Vector", "Mask") if masks else ("Vector",)
        self.declared: dict[str, str] = {}
        self.groups: dict[tuple[str, ...], tuple[str, str]] = {}  # kind and sizes → name, gates
        self.lines: list[str] = []
        self.values = [Value("x", "input", 3.0)]
        self.values += [Value(part, size, 1.5) for part, size in parts.items()]
        self.unused = list(self.values)

    def choose(self, options: Any) -> Any:
        return self.draw(st.sampled_from(list(options)))

    def take(self, fitting: Value | None = None) -> Value:
        """A value, more often one that is not used yet: most of what is written should count."""
        values, unused = (
            [v for v in pool if fitting is None or self.fits(fitting, v)]
            for pool in (self.values, self.unused)
        )
        v: Value = self.choose(self.choose((unused or values, unused or values, values)))
        if v in self.unused:
            self.unused.remove(v)
        return v

    def fits(self, a: Value, b: Value) -> bool:
        widths = {getattr(self.sizes, v.size) for v in (a, b) if v.size != "one"}
        return len(widths) < 2

    # --- parameters ---------------------------------------------------------------------
    def parameter(self, kind: str, *arguments: str) -> str:
        """The text of a matrix, vector or mask: a gate of one that exists, or a new one."""
        key = (kind, *arguments)
        if key not in self.groups:
            gates = "" if kind == "Mask" else self.choose(("", "ab", "abc"))
            name = f"{kind[0]}{len(self.groups)}"
            self.groups[key] = name, gates
            self.declared[name] = self.declaration(kind, arguments, gates)
        name, gates = self.groups[key]
        return f"self.{name}.{self.choose(gates)}" if gates else f"self.{name}"

    def declaration(self, kind: str, arguments: tuple[str, ...], gates: str) -> str:
        if kind == "Matrix":
            return f'Matrix("{arguments[0]}", "{gates}", size="{arguments[1]}")'
        if kind == "Vector":
            return f'Vector("{gates}", size="{arguments[0]}")'
        over, scaled = self.choose(("sequence", "step")), self.choose((True, False))
        return f'Mask(0.5, over="{over}", scaled={scaled}, size="{arguments[0]}")'

    def product(self, v: Value, size: str) -> Value:
        same = [part for part, s in self.parts.items() if s == v.size]
        of = "x" if v.size == "input" else self.choose([v.size, *same])
        return Value(f"({self.parameter('Matrix', of, size)} @ {v.text})", size, 2 * v.bound + 1)

    # --- expressions --------------------------------------------------------------------
    def expression(self) -> Value:
        v = self.take()
        kind = self.choose(("unary", "binary", "binary", "number", "product", "leaf", "reduce"))
        if kind == "product":
            return self.product(v, self.choose(("hidden", "hidden", "memory", "one", "input")))
        if kind == "leaf":
            return self.leaf(v)
        if kind == "reduce":
            function, factor = self.choose((("mean", 1), ("total", 4)))
            return Value(f"{function}({v.text})", "one", factor * v.bound)
        if kind == "unary":
            return Value(self.choose(UNARY).format(v.text), v.size, (1 + v.bound) ** 2)
        if kind == "number":
            text = self.choose(WITH_NUMBER).format(v.text, self.choose(NUMBERS))
            return Value(text, v.size, 3 * v.bound + 3)
        return self.both(v, self.take(fitting=v))

    def both(self, v: Value, w: Value) -> Value:
        text = self.choose(BINARY).format(v.text, w.text)
        size = v.size if v.size != "one" else w.size
        return Value(text, size, (1 + v.bound) * (1 + w.bound))

    def leaf(self, v: Value) -> Value:
        """A value met by a parameter vector of its size or of one number, or by a mask."""
        kind = self.choose(self.leaves)
        size = self.choose((v.size, "one")) if kind == "Vector" else v.size
        return self.both(v, Value(self.parameter(kind, size), size, 2.0))

    def write(self) -> None:
        """One more expression: with a name of its own, or to be written out where it is used."""
        v = self.expression()
        text = f"tanh({v.text})" if v.bound > LARGEST else f"({v.text})"
        v = Value(text, v.size, 1.0 if v.bound > LARGEST else v.bound)
        if self.choose((True, True, False)) or len(text) > 60:
            name = f"v{len(self.lines)}"
            self.lines.append(f"{name} = {text}")
            v = Value(name, v.size, v.bound)
        self.values.append(v)
        self.unused.append(v)

    def sized(self, v: Value, size: str) -> str:
        return v.text if v.size == size else self.product(v, size).text

    def finish(self, part: str) -> str:
        """What a state part becomes: for h all that is not used yet, else any value."""
        size = self.parts[part]
        if part == "h" and self.unused:
            terms = [self.sized(v, size) for v in self.unused]
            return f"tanh({self.choose((' + ', ' - ')).join(terms)})"
        v = self.take()
        text = self.sized(v, size)
        return text if v.bound <= 1.5 and v.size == size else f"tanh({text})"


@st.composite
def random_cells(
    draw: Callable[[Any], Any],
    masks: bool = True,
    most_lines: int = 16,
    hidden: tuple[int, ...] = (4,),
) -> Cell:
    """Cells of one to three state parts; `cell.input_size` and `cell.hidden_size` fit them."""
    n = draw(st.sampled_from(hidden))
    others = [max(1, m) for m in (n // 2, n - 1, n)]
    sizes = Sizes(draw(st.sampled_from(others[1:])), n, draw(st.sampled_from(others)))
    kinds = draw(st.lists(st.sampled_from(("hidden", "memory", "one")), max_size=2))
    parts = dict(zip("hcm", ["hidden", *kinds], strict=False))
    writer = _Writer(draw, sizes, parts, masks)
    writer.unused = [writer.product(v, "hidden") for v in writer.values[:2]]
    writer.values += writer.unused
    for _ in range(draw(st.integers(6, most_lines))):
        writer.write()
    new = {part: writer.finish(part) for part in parts}
    output = draw(st.sampled_from(["h", *(p for p in parts), *(["x + h"] * (sizes.input == n))]))
    return _built(_source(writer, new, output), sizes)


def _source(writer: _Writer, new: dict[str, str], output: str) -> str:
    parts = ", ".join(new)
    sizes = {part: size for part, size in writer.parts.items() if size != "hidden"}
    lines = ["class Random(Cell):", f"    memory, part_sizes = {writer.sizes.memory}, {sizes}"]
    lines += [f"    {name} = {declared}" for name, declared in writer.declared.items()]
    lines += ["", f"    def step(self, x, {parts}):"]
    lines += [f"        {line}" for line in writer.lines]
    lines += [f"        return {', '.join(new.values())}"]
    if output != "h":
        lines += ["", f"    def output(self, x, {parts}):", f"        return {output}"]
    return "\n".join(lines) + "\n"


def _built(source: str, sizes: Sizes) -> Cell:
    names: dict[str, Any] = {"Cell": Cell}
    names |= {name: getattr(ensue.equations, name) for name in ensue.equations.__all__}
    exec(compile(source, "<random cell>", "exec"), names)
    cell: Cell = names["Random"]()
    cell.input_size, cell.hidden_size = sizes.input, sizes.hidden
    type(cell).__repr__ = lambda self: f"\n{source}"
    return cell


class Data(NamedTuple):
    """What a cell runs on; tensors of float64 that ask for gradients."""

    parameters: dict[str, Tensor]
    x: Tensor
    state: tuple[Tensor, ...]
    masks: dict[str, Tensor]

    def leaves(self) -> list[Tensor]:
        """x, the state, the parameters."""
        return [self.x, *self.state, *self.parameters.values()]


def random_data(
    cell: Cell, input_size: int, hidden_size: int, time: int = 3, batch: int = 3, seed: int = 1
) -> Data:
    """Numbers for a cell; x is (time, batch, input). Wide matrices have smaller ones."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int, scale: float) -> Tensor:
        v = torch.randn(shape, generator=generator, dtype=torch.float64) * scale
        return v.requires_grad_()

    widths = cell.widths(input_size, hidden_size)
    masks = {}
    for name, mask in cell.masks.items():
        shape = (batch, widths[mask.size])
        shape = shape if mask.over == "sequence" else (time, *shape)
        alive = torch.rand(shape, generator=generator, dtype=torch.float64) > mask.rate
        masks[name] = alive.double() / (1 - mask.rate if mask.scaled else 1)
    shapes = cell.shapes(input_size, hidden_size)
    sizes = [widths[cell.size_of(part)] for part in cell.parts]
    return Data(
        {
            name: normal(*shape, scale=min(0.5, shape[1:][0] ** -0.5) if shape[1:] else 0.5)
            for name, shape in shapes.items()
        },
        normal(time, batch, input_size, scale=1.0),
        tuple(normal(batch, n, scale=0.5) for n in sizes),
        masks,
    )
