"""Mutations of a module: all single changes of an operator, constant, index or name.

They are found in the syntax tree and made in the text, so that line numbers, comments and
everything else stay as they are."""

from __future__ import annotations

import ast
import io
import tokenize
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

OPERATORS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.Pow: ("**", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}
# What these hold decides how much is shown or how fast it goes, and no result.
DISPLAY_NAMES = (
    "SHOWN",
    "PREVIEW",
    "MOST_NAMED",
    "MOST_SHOWN",
    "MOST_TOLD",
    "__all__",
    "__slots__",
)
DISPLAY_KEYWORDS = {"maxsize", "stacklevel", "strict", "flush", "indent", "help"}
DISPLAY_CALLS = {"print", "echo", "warn", "TypeVar", "NewType"}
UNCHANGED = (ast.Import, ast.ImportFrom, ast.Raise, ast.JoinedStr, ast.Global, ast.Nonlocal)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
TINY = 1e-3  # a tolerance: twice as much of it would change nothing


@dataclass(frozen=True)
class Mutation:
    """One change: bytes start to end of a file become `after`.

    lines: first and last line of the code that must run for it to show, None where it shows
    at import; name: what is being assigned at import, "" inside a function."""

    file: str
    line: int
    start: int
    end: int
    kind: str  # operator, constant, index or name
    before: str
    after: str
    lines: tuple[int, int] | None
    name: str = ""

    def applied(self, source: bytes) -> bytes:
        return source[: self.start] + self.after.encode() + source[self.end :]

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.before} → {self.after or 'nothing'}"


class Text:
    """A module's bytes, by the lines and columns of its syntax tree and by its tokens."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        lines = source.splitlines(keepends=True)
        self.starts = [0]
        for line in lines:
            self.starts.append(self.starts[-1] + len(line))
        self.tokens: list[tuple[int, int, str]] = []
        for token in tokenize.tokenize(io.BytesIO(source).readline):
            if token.type in (tokenize.OP, tokenize.NAME):
                row, column = token.start  # columns of tokens are characters, of nodes bytes
                ahead = lines[row - 1].decode()[:column].encode()
                start = self.starts[row - 1] + len(ahead)
                self.tokens.append((start, start + len(token.string.encode()), token.string))

    def start(self, node: ast.expr | ast.stmt) -> int:
        return self.starts[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.starts[node.end_lineno - 1] + node.end_col_offset

    def of(self, node: ast.expr) -> str:
        return self.source[self.start(node) : self.end(node)].decode()

    def line_at(self, offset: int) -> int:
        return bisect_left(self.starts, offset + 1)

    def words(self, start: int, end: int, words: list[str]) -> tuple[int, int] | None:
        """Where these tokens stand one after another between two offsets."""
        at = bisect_left(self.tokens, (start, 0, ""))
        while at + len(words) <= len(self.tokens) and self.tokens[at][0] < end:
            tokens = self.tokens[at : at + len(words)]
            if [string for _, _, string in tokens] == words:
                return tokens[0][0], tokens[-1][1]
            at += 1
        return None


def bound_names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, int]:
    """The arguments and local names that a function reads, with the line that binds them."""
    arguments = function.args
    names = {
        argument.arg: 0
        for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    }
    read = set()
    for node in inside(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names[node.id] = min(names.get(node.id, node.lineno), node.lineno)
        elif isinstance(node, ast.Name):
            read.add(node.id)
    return {
        name: line
        for name, line in names.items()
        if name in read and name not in ("self", "cls") and not name.startswith("_")
    }


def inside(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function's body that bind in the function and not in one inside it."""
    for node in ast.iter_child_nodes(function):
        comprehensions = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Lambda, *comprehensions)):
            yield node
            yield from inside(node)


def changed_number(value: int | float) -> str:
    if isinstance(value, int):
        return str(value + 1)
    if value == 0:
        return "1.0"
    return repr(value * 1000 if abs(value) < TINY else value * 2)


def is_text(node: ast.expr) -> bool:
    """Whether an operand is plainly a string or a type, where an operator means another thing."""
    if isinstance(node, ast.Constant):
        return node.value is None or isinstance(node.value, str)
    return isinstance(node, ast.JoinedStr)


class Finder(ast.NodeVisitor):
    """Collects the mutations of one module."""

    def __init__(self, file: str, source: bytes) -> None:
        self.file = file
        self.text = Text(source)
        self.mutations: list[Mutation] = []
        self.names: dict[str, int] = {}  # of the function being visited
        self.function: tuple[int, int] | None = None  # its lines
        self.lines: tuple[int, int] | None = None  # of the statement being visited
        self.assigned = ""
        self.index = False

    def add(self, kind: str, span: tuple[int, int] | None, after: str) -> None:
        if span is not None:
            start, end = span
            before = self.text.source[start:end].decode().strip()
            line = self.text.line_at(start)
            name = "" if self.lines else self.assigned
            self.mutations.append(
                Mutation(self.file, line, start, end, kind, before, after, self.lines, name)
            )

    def span(self, node: ast.expr) -> tuple[int, int]:
        return self.text.start(node), self.text.end(node)

    # --- statements -------------------------------------------------------------------

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, UNCHANGED):
            return
        if isinstance(node, ast.stmt) and self.function:
            body = getattr(node, "body", None)  # only the head of a compound statement
            last = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno
            self.lines = (node.lineno, last or node.lineno)
        super().visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        outer = self.names, self.function, self.lines
        body = (node.body[0].lineno, node.end_lineno or node.lineno)
        self.lines = body  # a default shows where the function runs
        for default in [*node.args.defaults, *filter(None, node.args.kw_defaults)]:
            self.visit(default)
        self.names, self.function = bound_names(node), body
        for statement in node.body:
            self.visit(statement)
        self.names, self.function, self.lines = outer

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        outer = self.function, self.lines
        self.function = self.lines = None
        for statement in node.body:
            self.visit(statement)
        self.function, self.lines = outer

    def visit_If(self, node: ast.If) -> None:
        if not {"TYPE_CHECKING", "__name__"} & {
            each.id for each in ast.walk(node.test) if isinstance(each, ast.Name)
        }:
            self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> None:
        self.visit(node.test)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit_value(node.targets, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit_value([node.target], node.value)

    def visit_value(self, targets: list[ast.expr], value: ast.expr) -> None:
        stored = [node for target in targets for node in ast.walk(target)]
        names = [node.id for node in stored if isinstance(node, ast.Name)]
        if not any(word in name for name in names for word in DISPLAY_NAMES):
            self.assigned = names[0] if names else ""
            for target in targets:
                self.visit(target)  # an index may stand in it
            self.visit(value)
            self.assigned = ""

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        before, after = OPERATORS.get(type(node.op), ("", ""))
        if before and not is_text(node.value):
            between = self.text.end(node.target), self.text.start(node.value)
            self.add("operator", self.text.words(*between, [before + "="]), after + "=")
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        value = node.value
        if (
            isinstance(value, ast.Tuple)
            and len(value.elts) == 2
            and not any(isinstance(element, ast.Starred) for element in value.elts)
        ):
            first, second = value.elts
            between = self.text.source[self.text.end(first) : self.text.start(second)].decode()
            swapped = self.text.of(second) + between + self.text.of(first)
            if self.text.of(first) != self.text.of(second):
                self.add("name", (self.text.start(first), self.text.end(second)), swapped)
        self.generic_visit(node)

    # --- expressions ------------------------------------------------------------------

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func.attr if isinstance(node.func, ast.Attribute) else None
        called = node.func.id if isinstance(node.func, ast.Name) else called
        if called in DISPLAY_CALLS:
            return
        self.visit(node.func)
        for argument in node.args[called == "cast" :]:  # the first of a cast is a type
            self.visit_inside(argument)
        for keyword in node.keywords:
            if keyword.arg not in DISPLAY_KEYWORDS:
                self.visit_inside(keyword.value)

    def visit_inside(self, node: ast.expr) -> None:
        """A part that is no index itself, wherever the whole stands."""
        outer, self.index = self.index, False
        self.visit(node)
        self.index = outer

    def visit_BinOp(self, node: ast.BinOp) -> None:
        before, after = OPERATORS.get(type(node.op), ("", ""))
        is_type = isinstance(node.op, ast.BitOr) and self.lines is None
        if before and not is_type and not is_text(node.left) and not is_text(node.right):
            between = self.text.end(node.left), self.text.start(node.right)
            self.add("operator", self.text.words(*between, [before]), after)
        self.visit_inside(node.left)
        self.visit_inside(node.right)

    def visit_between(self, parts: list[ast.expr], operators: list[ast.AST]) -> None:
        for left, right, operator in zip(parts, parts[1:], operators, strict=False):
            before, after = OPERATORS[type(operator)]
            between = self.text.end(left), self.text.start(right)
            self.add("operator", self.text.words(*between, before.split()), after)
        for part in parts:
            self.visit_inside(part)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        self.visit_between(node.values, [node.op] * len(node.values))

    def visit_Compare(self, node: ast.Compare) -> None:
        self.visit_between([node.left, *node.comparators], list(node.ops))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        sign = isinstance(node.op, ast.USub)
        if sign and isinstance(node.operand, ast.Constant):
            value = node.operand.value
            if isinstance(value, (int, float)):
                after = changed_number(-value)
                self.add("index" if self.index else "constant", self.span(node), after)
            return
        start = self.text.start(node)
        if isinstance(node.op, ast.Not):
            self.add("operator", (start, start + len("not ")), "")
        elif sign:
            self.add("operator", (start, start + len("-")), "")
        self.visit_inside(node.operand)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.visit_inside(node.value)
        outer, self.index = self.index, True
        self.visit(node.slice)
        self.index = outer

    def visit_Constant(self, node: ast.Constant) -> None:
        kind = "index" if self.index else "constant"
        if isinstance(node.value, bool):
            self.add(kind, self.span(node), str(not node.value))
        elif isinstance(node.value, (int, float)):
            self.add(kind, self.span(node), changed_number(node.value))

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load) or node.id not in self.names:
            return
        for name, line in self.names.items():
            if name != node.id and line < node.lineno:
                self.add("name", self.span(node), name)


def mutations(file: str, source: bytes) -> list[Mutation]:
    """All mutations of a module, in the order of its text."""
    finder = Finder(file, source)
    finder.visit(ast.parse(source))
    return sorted(
        finder.mutations, key=lambda mutation: (mutation.start, mutation.end, mutation.after)
    )


def is_valid(mutation: Mutation, source: bytes) -> bool:
    """Whether the changed module is still Python, and another program than before."""
    try:
        changed = ast.parse(mutation.applied(source))
    except SyntaxError:
        return False
    return ast.dump(changed) != ast.dump(ast.parse(source))
