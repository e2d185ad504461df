"""From `step` to its graph: run it once on symbols, and keep the names its author gave."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from types import FrameType
from typing import Any, Protocol

from ensue.equations.author import STEP, Watch, place_of, places_of, show_places
from ensue.equations.declare import Gates, Mask, Matrix, Parameter
from ensue.equations.equations import Equations
from ensue.equations.node import Graph, MatrixRef, Node, VectorRef, features
from ensue.equations.symbol import MatrixSymbol, Symbol
from ensue.errors import EnsueError, EquationError


class Traceable(Protocol):
    """The interface of a cell for tracing."""

    @property
    def parts(self) -> tuple[str, ...]: ...
    @property
    def declarations(self) -> Mapping[str, Parameter | Mask]: ...
    def size_of(self, name: str) -> str: ...
    def widths(self, input_size: int, hidden_size: int) -> dict[str, int]: ...
    def shapes(self, input_size: int, hidden_size: int) -> dict[str, tuple[int, ...]]: ...
    def bind(self, values: Mapping[str, Any]) -> Any: ...


def trace(cell: Traceable, input_size: int, hidden_size: int, training: bool = True) -> Equations:
    """The equations of one step. Outside training every mask is its expectation, a number.

    >>> print(trace(ensue.cells.SimpleRNN("linear"), input_size=8, hidden_size=16))
    h' = W·x + U·h + b
    """
    graph = Graph(cell.widths(input_size, hidden_size))
    bound = cell.bind(_symbols(graph, cell, training))
    x = graph.leaf("x", None, "input")
    old = {p: graph.leaf("state", p, cell.size_of(p)) for p in cell.parts}
    watch = Watch()
    with watch:
        new = _run(bound, bound.step, Symbol(x), *map(Symbol, old.values()))
        state = _checked(new, old, _Returned(bound.step, watch.called))
        y = _run(bound, bound.output, Symbol(x), *map(Symbol, state))
    if not isinstance(y, Symbol):
        returned = _Returned(bound.output, None)
        raise returned.error(f"output returned {_described(y)}", "return one value of the step")
    parts = dict(zip(cell.parts, state, strict=True))
    names = {"x", *cell.parts, *_declared_names(cell.declarations)}
    output_name = next(name for name in ("y", "out", "output", "result") if name not in names)
    return Equations(
        graph=graph,
        title=type(cell).__name__,
        x=x,
        old=old,
        output=y.node,
        output_name=output_name,
        state=parts,
        names=_names(watch, {y.node: output_name}, parts, names),
        declarations=dict(cell.declarations),
        shapes=cell.shapes(input_size, hidden_size),
    )


def _symbols(graph: Graph, cell: Traceable, training: bool) -> dict[str, Any]:
    """A symbol for every declared name, as `step` reads it."""
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


def _run(bound: Any, function: Callable[..., Any], *args: Symbol) -> Any:
    """Calls the function; Python's errors get the line of the author's code added."""
    try:
        return function(*args)
    except EnsueError:
        raise
    except Exception as error:
        raise EquationError(
            f"{show_places(places_of(error.__traceback__))}{type(bound).__name__} cannot be "
            f"traced: {type(error).__name__}: {error}\n"
            "  use the functions of ensue.equations on x, the state and the declared parameters"
        ) from error


class _Returned:
    """The place where a function of the cell returned: its last line if it made a symbol."""

    def __init__(self, function: Callable[..., Any], frame: FrameType | None) -> None:
        self.places = [(frame.f_code, frame.f_lineno)] if frame else place_of(function)
        self.variables = _variables(frame) if frame else {}

    def error(self, problem: str, instead: str) -> EquationError:
        return EquationError(f"{show_places(self.places)}{problem}\n  {instead}")


def _variables(frame: FrameType) -> dict[str, Node]:
    return {k: v.node for k, v in frame.f_locals.items() if isinstance(v, Symbol)}


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _described(value: Any) -> str:
    """Describes an object that should have been a value of the step."""
    if value is None:
        return "nothing (None)"
    if isinstance(value, numbers.Real):
        return f"the plain number {value}"
    if isinstance(value, MatrixSymbol):
        return f"the matrix {value.label}"
    return f"a {type(value).__name__}"


def _checked(new: Any, old: Mapping[str, Node], returned: _Returned) -> list[Node]:
    """Checks the returned state parts: complete, of the right size, in the order of the
    arguments."""
    names = ", ".join(old)
    instead = f"write return {names}" + (", the new parts in this order" if len(old) > 1 else "")
    values = list(new) if isinstance(new, (tuple, list)) else [new]
    if new is None or len(values) != len(old):
        got = _described(new) if new is None else _number(len(values), "value")
        problem = f"step returned {got} for {_number(len(old), 'state part')}, {names}"
        raise returned.error(problem, instead)
    nodes = []
    for (part, leaf), value in zip(old.items(), values, strict=True):
        if not isinstance(value, Symbol):
            raise returned.error(
                f"the new {part} is {_described(value)}, expected {features(leaf)}",
                f"{instead}, made from x, the state and the parameters",
            )
        node = value.node
        if node.width != leaf.width or node.size == "one" != leaf.size:
            raise returned.error(
                f"the new {part} has {features(node)}, the old {part} has {features(leaf)}",
                f"bring it to size with a product; or name another size in part_sizes, "
                f'such as part_sizes = {{{part!r}: "one"}}',
            )
        nodes.append(node)
    _check_order(list(old), nodes, returned, instead)
    return nodes


def _check_order(parts: list[str], nodes: list[Node], returned: _Returned, instead: str) -> None:
    """Checks that a new value named c by its author is returned at the position of c (it may also
    be at others)."""
    for place, node in zip(parts, nodes, strict=True):
        for part in parts:
            called_part = returned.variables.get(part) is node and not node.is_leaf
            if part != place and called_part and nodes[parts.index(part)] is not node:
                raise returned.error(f"step returned {part} in the place of {place}", instead)


def _declared_names(declarations: Mapping[str, Parameter | Mask]) -> Iterable[str]:
    for name, declared in declarations.items():
        gates = ("",) if isinstance(declared, Mask) else declared.gates
        yield from (f"{name}_{gate}" if gate else name for gate in gates)


def _names(
    watch: Watch, output: Mapping[Node, str], state: Mapping[str, Node], names: Iterable[str]
) -> dict[Node, str]:
    """A name for each node: h' for new state parts, the author's for the rest; names in the step
    take precedence over names in functions that it calls.

    A name given to several nodes (in a function called twice) gets numbers."""
    final: dict[Node, str] = {}
    for part, node in state.items():
        final.setdefault(node, f"{part}'")
    final = dict(output) | final
    named: dict[Node, str] = {}
    for frame in sorted(watch.frames, key=lambda frame: frame.f_code.co_name not in STEP):
        for name, node in _variables(frame).items():
            named.setdefault(node, name)
    by_name: dict[str, list[Node]] = {}
    for node in sorted(named.keys() - final.keys(), key=lambda n: n.number):
        if not node.is_leaf:
            by_name.setdefault(named[node], []).append(node)
    used = {*names, *by_name}
    for name, nodes in by_name.items():
        if len(nodes) == 1 and name not in names:
            final[nodes[0]] = name
            continue
        free = (f"{name}_{k}" for k in count(1))
        for node in nodes:
            final[node] = next(numbered for numbered in free if numbered not in used)
            used.add(final[node])
    return {node: name for node, name in final.items() if not node.is_leaf}


def state_parts(step: Callable[..., Any]) -> tuple[str, ...]:
    """The names of `step`'s arguments after self and x: the parts of the state."""
    signature = inspect.signature(step)
    parameters = list(signature.parameters.values())[1:]
    plain = inspect.Parameter.POSITIONAL_OR_KEYWORD
    if len(parameters) < 2 or any(p.kind is not plain for p in parameters):
        bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
        got = signature.replace(parameters=bare, return_annotation=signature.empty)
        raise EquationError(
            f"{show_places(place_of(step))}step takes x and each part of the state by its name, "
            f"got step{got}\n  write step(self, x, h) or step(self, x, h, c)"
        )
    return tuple(p.name for p in parameters[1:])
