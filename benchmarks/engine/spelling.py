"""How torch and JAX write what a loop over time needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Spelling(Protocol):
    """One library. Values are (batch, features), those before the loop (time, batch, features)."""

    functions: dict[str, str]
    fuses_norms: bool  # has layer normalisation as one function that is better than its parts

    def before(self, matrix: str, bias: str) -> str:
        """x · matrixᵀ + bias for all steps; bias may be empty."""

    def turned(self, matrix: str) -> str: ...
    def joined(self, parts: Sequence[str]) -> str: ...
    def zeros(self, width: int) -> str: ...
    def split(self, value: str, widths: Sequence[int]) -> str:
        """Pieces along the last axis."""

    def product(self, operand: str, turned: str, base: str) -> str:
        """base + operand · turned; base may be empty."""

    def reduced(self, op: str, value: str) -> str:
        """The sum or mean over the features, (batch, 1)."""

    def limited(self, op: str, value: str, number: str) -> str:
        """maximum or minimum of a value and a number."""

    def norm(self, value: str, width: int, scale: str, shift: str, epsilon: float) -> str: ...
    def loop(self, steps: list[str], parts: list[str], body: list[str], new: list[str]) -> str:
        """The loop: `body` computes `new`, the output first, from the steps and the old parts."""


class Torch:
    """Plain torch operations and `unbind`."""

    functions = {
        name: f"torch.{name}"
        for name in ("sigmoid", "tanh", "relu", "exp", "log", "sqrt", "maximum", "minimum")
    } | {"softplus": "torch.nn.functional.softplus"}
    fuses_norms = True

    def before(self, matrix: str, bias: str) -> str:
        return f"torch.nn.functional.linear(x, {matrix}{', ' + bias if bias else ''})"

    def turned(self, matrix: str) -> str:
        return f"{matrix}.t()"

    def joined(self, parts: Sequence[str]) -> str:
        return f"torch.cat([{', '.join(parts)}])"

    def zeros(self, width: int) -> str:
        return f"x.new_zeros({width})"

    def split(self, value: str, widths: Sequence[int]) -> str:
        return f"{value}.split({tuple(widths)}, -1)"

    def product(self, operand: str, turned: str, base: str) -> str:
        return f"torch.addmm({base}, {operand}, {turned})" if base else f"{operand} @ {turned}"

    def reduced(self, op: str, value: str) -> str:
        return f"{value}.{op}(-1, keepdim=True)"

    def limited(self, op: str, value: str, number: str) -> str:
        return f"{value}.clamp({'min' if op == 'maximum' else 'max'}={number})"

    def norm(self, value: str, width: int, scale: str, shift: str, epsilon: float) -> str:
        arguments = f"{value}, ({width},), {scale or None}, {shift or None}, {epsilon!r}"
        return f"torch.nn.functional.layer_norm({arguments})"

    def loop(self, steps: list[str], parts: list[str], body: list[str], new: list[str]) -> str:
        each = ", ".join(f"{name}.unbind(0)" for name in steps)
        lines = [
            f"{', '.join(parts)}, = state",
            "outputs = []",
            f"for {', '.join(steps)}, in zip({each}):",
            *(f"    {line}" for line in body),
            f"    {', '.join(parts)}, = {', '.join(new[1:])},",
            f"    outputs.append({new[0]})",
            f"return torch.stack(outputs), ({', '.join(parts)},)",
        ]
        return "\n".join(lines)


class Jax:
    """jax.lax.scan; XLA joins elementwise operations and reductions by itself."""

    functions = {
        name: f"jnp.{name}" for name in ("tanh", "exp", "log", "sqrt", "maximum", "minimum")
    } | {name: f"jax.nn.{name}" for name in ("sigmoid", "relu", "softplus")}
    fuses_norms = False

    def before(self, matrix: str, bias: str) -> str:
        return f"x @ {matrix}.T{' + ' + bias if bias else ''}"

    def turned(self, matrix: str) -> str:
        return f"{matrix}.T"

    def joined(self, parts: Sequence[str]) -> str:
        return f"jnp.concatenate([{', '.join(parts)}])"

    def zeros(self, width: int) -> str:
        return f"jnp.zeros({width}, x.dtype)"

    def split(self, value: str, widths: Sequence[int]) -> str:
        ends = [sum(widths[: k + 1]) for k in range(len(widths) - 1)]
        return f"jnp.split({value}, {ends}, -1)"

    def product(self, operand: str, turned: str, base: str) -> str:
        return f"{base + ' + ' if base else ''}{operand} @ {turned}"

    def reduced(self, op: str, value: str) -> str:
        return f"{value}.{op}(-1, keepdims=True)"

    def limited(self, op: str, value: str, number: str) -> str:
        return f"jnp.{op}({value}, {number})"

    def norm(self, value: str, width: int, scale: str, shift: str, epsilon: float) -> str:
        raise AssertionError("XLA is given the parts")

    def loop(self, steps: list[str], parts: list[str], body: list[str], new: list[str]) -> str:
        lines = [
            "def step(state, given):",
            f"    {', '.join(parts)}, = state",
            f"    {', '.join(steps)}, = given",
            *(f"    {line}" for line in body),
            f"    return ({', '.join(new[1:])},), {new[0]}",
            f"state, y = jax.lax.scan(step, tuple(state), ({', '.join(steps)},))",
            "return y, state",
        ]
        return "\n".join(lines)
