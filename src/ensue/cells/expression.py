"""A cell as a text with its options: `SimpleRNN(activation='relu')`, `Zoneout(LSTM, 0.1)`.

    cell    = NAME | NAME "(" [option ("," option)*] ")"
    option  = [WORD "="] (literal | cell)
    literal = a number, a quoted text, True, False, None, or {"part": number, …}

NAME is one of Ensue's cells or wrappers. Nothing else is allowed: the text is parsed, never run.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Any

from ensue.cells import CELLS, WRAPPERS
from ensue.cells.cell import Cell
from ensue.errors import OptionError, unknown

LONGEST = 500  # maximum length of the text
EXAMPLE = "such as GRU, SimpleRNN(activation='relu') or Zoneout(LSTM, 0.1)"


def has_options(text: str) -> bool:
    """Whether a text names a cell with options, rather than a name alone."""
    return "(" in text and text.rstrip().endswith(")")


def cell_of_text(text: str) -> Cell:
    """The cell that a text names.

    >>> print(cell_of_text("SimpleRNN(activation='relu')").equations())
    s  = W·x + U·h + b
    h' = relu(s)
    """
    return _Reader(text).cell(_parsed(text))


def canonical(text: str) -> str:
    """The text of the same cell in normal form.

    >>> canonical('zoneout( lstm,rate = 0.10)')
    'Zoneout(LSTM, rate=0.1)'
    """
    return _Reader(text).spelt(_parsed(text))


def _parsed(text: str) -> ast.expr:
    if len(text) > LONGEST:
        raise OptionError(
            f"cell: expected a cell in at most {LONGEST} characters, {EXAMPLE}, got {len(text):,}"
        )
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise OptionError(f"cell: expected a cell, {EXAMPLE}, got {text!r}") from None


class _Reader:
    """A parser of one text, which it quotes in messages."""

    def __init__(self, text: str) -> None:
        self.text = text

    def cell(self, node: ast.expr) -> Cell:
        name, options = self.named(node)
        if isinstance(node, ast.Call):
            arguments, words = self.arguments(node)
        else:
            arguments, words = [], {}
        self.check(name, options, arguments, words)
        return options(*map(self.value, arguments), **{w: self.value(n) for w, n in words.items()})

    def named(self, node: ast.expr) -> tuple[str, Callable[..., Cell]]:
        head = node.func if isinstance(node, ast.Call) else node
        if not isinstance(head, ast.Name):
            raise self.problem("expected the name of a cell", head)
        known: dict[str, Callable[..., Cell]] = {**CELLS, **WRAPPERS}
        same = [name for name in known if name.lower() == head.id.lower()]
        if not same:
            message = unknown("cell", head.id, known)
            raise OptionError(f"{message}; in {self.text!r}")
        return same[0], known[same[0]]

    def arguments(self, node: ast.Call) -> tuple[list[ast.expr], dict[str, ast.expr]]:
        if starred := [n for n in node.args if isinstance(n, ast.Starred)]:
            raise self.problem("expected plain options", starred[0])
        words = {}
        for word in node.keywords:
            if word.arg is None:
                raise self.problem("expected plain options", word.value)
            words[word.arg] = word.value
        return node.args, words

    def check(
        self,
        name: str,
        make: Callable[..., Cell],
        arguments: list[ast.expr],
        words: dict[str, ast.expr],
    ) -> None:
        """Checks that the cell takes these options."""
        parameters = inspect.signature(make).parameters
        options = {n: p for n, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD}
        if not options and (arguments or words):
            raise OptionError(f"cell: {name} takes no options; expected {name}, got {self.text!r}")
        for word in words:
            if word not in options:
                raise OptionError(
                    f"{unknown(f'option of {name}', word, options)}; in {self.text!r}"
                )
        if len(arguments) > len(options):
            raise OptionError(
                f"cell: {name} takes at most {len(options)} options ({', '.join(options)}), got "
                f"{len(arguments)} in {self.text!r}"
            )
        names = [*list(options)[: len(arguments)], *words]
        if twice := {n for n in names if names.count(n) > 1}:
            raise OptionError(f"cell: {name}: {twice.pop()} is given twice in {self.text!r}")
        missing = [n for n, p in options.items() if p.default is p.empty and n not in names]
        if missing:
            raise OptionError(
                f"cell: {name} needs {', '.join(missing)}, {name}(LSTM) for example; got "
                f"{self.text!r}"
            )

    def value(self, node: ast.expr) -> Any:
        """The value of an option: a literal or a cell."""
        if isinstance(node, (ast.Name, ast.Call)):
            return self.cell(node)
        return self.literal(node)

    def literal(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str, type(None))):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            number = self.literal(node.operand)
            if isinstance(number, (int, float)) and not isinstance(number, bool):
                return -number
        if isinstance(node, ast.Dict) and None not in node.keys:
            keys = [key for key in node.keys if key is not None]
            return dict(map(self.pair, keys, node.values))
        raise self.problem("expected a number, a text in quotes, True, False or a cell", node)

    def pair(self, key: ast.expr, value: ast.expr) -> tuple[str, float]:
        """A number for a part of the state."""
        name, number = self.literal(key), self.literal(value)
        if not isinstance(name, str) or type(number) not in (int, float):
            raise self.problem('expected a number for each part, such as {"h": 0.1}', key)
        return name, number

    def spelt(self, node: ast.expr) -> str:
        if not isinstance(node, (ast.Name, ast.Call)):
            return repr(self.literal(node))
        name = self.named(node)[0]
        if not isinstance(node, ast.Call):
            return name
        arguments, words = self.arguments(node)
        options = [self.spelt(n) for n in arguments]
        options += [f"{word}={self.spelt(n)}" for word, n in words.items()]
        return f"{name}({', '.join(options)})" if options else name

    def problem(self, what: str, node: ast.AST) -> OptionError:
        written = ast.get_source_segment(self.text.strip(), node) or "nothing"
        return OptionError(f"cell: {what}, got {written} in {self.text!r}; {EXAMPLE}")
