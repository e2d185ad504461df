"""From `step` to its graph: run it once on symbols, and keep the names its author gave."""

from __future__ import annotations

import inspect
import linecache
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from ensue.equations.declare import Gates, Mask, Matrix, Parameter
from ensue.equations.equations import Equations
from ensue.equations.node import Graph, MatrixRef, Node, VectorRef
from ensue.equations.symbol import MatrixSymbol, Symbol
from ensue.errors import EnsueError, EquationError

_NOT_THE_AUTHOR = (
    str(Path(__file__).parent),
    "<frozen",
    str(Path(inspect.__file__).parent / "abc"),
)


class Traceable(Protocol):
    """What tracing needs of a cell."""

    @property
    def parts(self) -> tuple[str, ...]: ...
    @property
    def declarations(self) -> Mapping[str, Parameter | Mask]: ...
    def size_of(self, name: str) -> str: ...
    def widths(self, input_size: int, hidden_size: int) -> dict[str, int]: ...
    def shapes(self, input_size: int, hidden_size: int) -> dict[str, tuple[int, ...]]: ...
    def bind(self, values: Mapping[str, Any]) -> Any: ...


def trace(cell: Traceable, input_size: int, hidden_size: int, training: bool = True) -> Equations:
    """The equations of one step. Outside training every mask is its expectation, a number."""
    graph = Graph(cell.widths(input_size, hidden_size))
    bound = cell.bind(_symbols(graph, cell, training))
    x = graph.leaf("x", None, "input")
    old = {p: graph.leaf("state", p, cell.size_of(p)) for p in cell.parts}
    watch = _Names()
    with watch:
        new = _run(bound, bound.step, Symbol(x), *map(Symbol, old.values()))
        state = _checked(new, old, watch)
        y = _run(bound, bound.output, Symbol(x), *map(Symbol, state))
    if not isinstance(y, Symbol):
        raise _at(
            watch,
            f"output returned {type(y).__name__}, not a value of the step",
            "return one value",
        )
    return Equations(
        graph=graph,
        title=type(cell).__name__,
        x=x,
        old=old,
        output=y.node,
        state=dict(zip(cell.parts, state, strict=True)),
        names=_names(watch, y.node, dict(zip(cell.parts, state, strict=True))),
        declarations=dict(cell.declarations),
        shapes=cell.shapes(input_size, hidden_size),
    )


def _symbols(graph: Graph, cell: Traceable, training: bool) -> dict[str, Any]:
    """Every declared name as `step` is to see it."""
    values: dict[str, Any] = {}
    for name, declared in cell.declarations.items():
        if isinstance(declared, Mask):
            mask = Symbol(graph.leaf("mask", name, declared.size))
            values[name] = mask if training else declared.expectation
            continue
        blocks: dict[str, Any] = {}
        for gate in declared.gates:
            if isinstance(declared, Matrix):
                ref = MatrixRef(name, gate, declared.size, cell.size_of(declared.of))
                blocks[gate] = MatrixSymbol(ref)
            else:
                blocks[gate] = Symbol(graph.leaf("vector", VectorRef(name, gate), declared.size))
        values[name] = blocks[""] if declared.gates == ("",) else Gates(name, blocks)
    return values


class _Names:
    """While active, remembers the local variables that hold symbols when a function returns."""

    def __init__(self) -> None:
        self.found: dict[Node, str] = {}
        self.step_locals: dict[str, Node] = {}
        self.line = ""

    def __enter__(self) -> _Names:
        self._before = sys.getprofile()
        sys.setprofile(self._hook)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(self._before)

    def _hook(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "return" or frame.f_code.co_filename.startswith(_NOT_THE_AUTHOR):
            return
        symbols = {k: v.node for k, v in frame.f_locals.items() if isinstance(v, Symbol)}
        for name, node in symbols.items():
            if not node.is_leaf:
                self.found.setdefault(node, name)
        if frame.f_code.co_name == "step":
            self.step_locals = symbols
            self.line = _place(frame.f_code.co_filename, frame.f_lineno)


def _place(path: str, number: int) -> str:
    text = linecache.getline(path, number).strip()
    place = f"{Path(path).name}:{number}, in step"
    return f"{place}\n    {text}" if text else place


def _at(watch: _Names, problem: str, instead: str) -> EquationError:
    return EquationError(f"{watch.line}\n  {problem}\n  {instead}".lstrip())


def _run(bound: Any, function: Callable[..., Any], *args: Symbol) -> Any:
    """Calls it; an error of Python's own gets the line of the author's code too."""
    try:
        return function(*args)
    except EnsueError:
        raise
    except Exception as error:
        here = str(Path(__file__).parent)
        frames = [
            f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(here)
        ]
        last = frames[-1] if frames else None
        place = (
            f"{Path(last.filename).name}:{last.lineno}, in {last.name}\n    {last.line}\n  "
            if last
            else ""
        )
        raise EquationError(
            f"{place}{type(bound).__name__} cannot be traced: {type(error).__name__}: {error}\n"
            "  use the functions of ensue.equations on x, the state and the declared parameters"
        ) from error


def _checked(new: Any, old: Mapping[str, Node], watch: _Names) -> list[Node]:
    """The returned state parts: all there, of the right size, in the order of the arguments."""
    values = list(new) if isinstance(new, (tuple, list)) else [new]
    wanted = ", ".join(old)
    for value in values:
        if not isinstance(value, Symbol):
            raise _at(
                watch,
                f"step returned {type(value).__name__}, not a value of the step",
                f"return {wanted}",
            )
    if len(values) != len(old):
        raise _at(
            watch,
            f"step returned {len(values)} of {len(old)} state parts: expected {wanted}",
            f"return the new {wanted}, in this order",
        )
    nodes = [v.node for v in values]
    for (part, leaf), node in zip(old.items(), nodes, strict=True):
        if node.width != leaf.width or node.size == "one" != leaf.size:
            raise _at(
                watch,
                f"the new {part} has {node.width} features, the old has {leaf.width}",
                f"return the new {wanted}, in this order and these sizes",
            )
    _check_order(list(old), nodes, watch, wanted)
    return [n.graph.spread_to(n, leaf.size) for n, leaf in zip(nodes, old.values(), strict=True)]


def _check_order(parts: list[str], nodes: list[Node], watch: _Names, wanted: str) -> None:
    """A new value that its author calls c belongs in the place of c (and may stand elsewhere)."""
    for place, node in zip(parts, nodes, strict=True):
        for part in parts:
            called_part = watch.step_locals.get(part) is node and not node.is_leaf
            if part != place and called_part and nodes[parts.index(part)] is not node:
                raise _at(
                    watch,
                    f"step returned {part} in the place of {place}: expected the order {wanted}",
                    f"return the new {wanted}, in this order",
                )


def _names(watch: _Names, output: Node, state: Mapping[str, Node]) -> dict[Node, str]:
    """One name a node: h' for new state parts, y for another output, the author's for the rest.

    A name given to several nodes (in a function called twice) gets numbers."""
    final: dict[Node, str] = {}
    for part, node in state.items():
        final.setdefault(node, f"{part}'")
    final.setdefault(output, "y")
    taken = {"x", *state}
    rest = sorted((n for n in watch.found if n not in final), key=lambda n: n.number)
    by_name: dict[str, list[Node]] = {}
    for node in rest:
        by_name.setdefault(watch.found[node], []).append(node)
    for name, nodes in by_name.items():
        if len(nodes) == 1 and name not in taken:
            final[nodes[0]] = name
        else:
            final.update({node: f"{name}_{k}" for k, node in enumerate(nodes, 1)})
    return final


def state_parts(step: Callable[..., Any]) -> tuple[str, ...]:
    """The names of `step`'s arguments after self and x: the parts of the state."""
    parameters = list(inspect.signature(step).parameters.values())[1:]
    plain = inspect.Parameter.POSITIONAL_OR_KEYWORD
    if len(parameters) < 2 or any(p.kind is not plain for p in parameters):
        names = ", ".join(str(p) for p in parameters) or "nothing"
        raise EquationError(
            f"step takes x and the state parts by name, got {names}\n"
            "  write step(self, x, h) or step(self, x, h, c)"
        )
    return tuple(p.name for p in parameters[1:])
