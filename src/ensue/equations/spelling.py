"""How a language of curly braces writes the operations of a graph: the part that its printers
share. Sums, products and quotients are the same in all of them; functions go by other names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Spelling:
    """calls: the name of each function of `functions.py` that is called.

    >>> Spelling({"tanh": "tanhf"}).expression("tanh", ["v1"])
    'tanhf(v1)'
    """

    calls: Mapping[str, str]

    def expression(self, op: str, args: Sequence[str]) -> str:
        """An operation on arguments that are names, numbers or elements of arrays."""
        match op:
            case "add":
                return " + ".join(args)
            case "multiply":
                return f"{args[0]} * {args[1]}"
            case "divide":
                return f"{args[0]} / {args[1]}"
            case "negative":
                return f"-{args[0]}"
            case "copy" | "spread":
                return args[0]
        return f"{self.calls[op]}({', '.join(args)})"
