"""Help pages: commands in groups, options under headings."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from textwrap import wrap
from typing import Any, TextIO

import typer
from typer.core import TyperCommand, TyperGroup

from ensue.cli.commands import GROUPS
from ensue.cli.reading import reading_shown
from ensue.cli.trusting import with_trusted
from ensue.errors import OptionError

WIDEST = 100  # a longer line is hard to read
NARROWEST = 40
NAMES = 26  # maximum width of a name with its meaning on the same line
INDENT = "  "
BOUND, HELD = re.compile(r"([≥≤<>]) (?=\d)"), "\xa0"  # "≥ 1" stays on one line


def has_colour(stream: TextIO) -> bool:
    """Whether the stream is a terminal that may be coloured."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return stream.isatty() and not plain


def widest(rows: Iterable[tuple[str, str]], most: int = NAMES) -> int:
    """The width of a column for the names, without names that are wider than most."""
    return max((len(name) for name, _ in rows if len(name) <= most), default=0)


class Page:
    """Lines of text, as wide as the terminal; headings are bold if it supports colours."""

    def __init__(self, stream: TextIO | None = None) -> None:
        columns = shutil.get_terminal_size().columns
        self.width = max(NARROWEST, min(columns, WIDEST))
        self._bold = has_colour(stream or sys.stdout)
        self._lines: list[str] = []

    def heading(self, text: str, rest: str = "") -> None:
        """A heading after an empty line. rest: text on the same line, not in bold."""
        if self._lines:
            self._lines.append("")
        bold = f"\x1b[1m{text}\x1b[0m" if self._bold else text
        first, *more = self._wrapped(f"{text} {rest}".rstrip(), "")
        self._lines += [bold + first.removeprefix(text), *more]

    def paragraphs(self, text: str, indent: str = "") -> None:
        """Fills paragraphs to the width; lines that begin with a space stay unchanged."""
        for block in text.split("\n\n"):
            if self._lines:
                self._lines.append("")
            if block.startswith(" "):
                self._lines += block.split("\n")
            else:
                self._lines += self._wrapped(" ".join(block.split()), indent)

    def entries(self, rows: Sequence[tuple[str, str]], column: int | None = None) -> None:
        """Names with their meanings. column: the width of the names; a longer name has a line to
        itself."""
        start = len(INDENT) + (widest(rows) if column is None else column) + 2
        for name, text in rows:
            lines = self._wrapped(text, " " * start) or [""]
            if len(INDENT + name) + 2 <= start:
                lines[0] = f"{INDENT}{name}".ljust(start) + lines[0].lstrip()
            else:
                self._lines.append(INDENT + name)
            self._lines += [line.rstrip() for line in lines if line.strip()]

    def _wrapped(self, text: str, indent: str) -> list[str]:
        lines = wrap(
            BOUND.sub(rf"\1{HELD}", text),
            self.width,
            initial_indent=indent,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        return [line.replace(HELD, " ") for line in lines]

    def __str__(self) -> str:
        return "\n".join(self._lines)


UsageError: type[Exception] = typer.BadParameter.__mro__[1]  # Typer has no public name for it
HELP = "help"
REPHRASED = {
    "Input should be a valid integer, unable to parse string as an integer": "expected a whole "
    "number",
    "Input should be a valid number, unable to parse string as a number": "expected a number",
    "Input should be greater than or equal to": "expected a number ≥",
    "Input should be less than or equal to": "expected a number ≤",
}


def unknown_command(path: str, got: str, known: Iterable[str]) -> OptionError:
    """The error for an unknown command. path: the command above it, `ensue data`."""
    near = get_close_matches(got.lower(), [*known, HELP], n=1)
    message = f"{path}: unknown command {got!r}: "
    if near == [HELP]:
        return OptionError(f"{message}did you mean `{path} --help`?")
    guess = f"did you mean `{path} {near[0]}`? " if near else ""
    return OptionError(f"{message}{guess}`{path} --help` lists them all")


def usage_message(problem: Any, words: Sequence[str]) -> OptionError:
    """Typer's error about the words of a command, as one of Ensue's errors."""
    ctx, param = getattr(problem, "ctx", None), getattr(problem, "param", None)
    path = ctx.command_path if ctx is not None else " ".join(["ensue", *words[:1]])
    if hasattr(problem, "possibilities"):
        message = _unknown_option(problem, ctx)
    elif hasattr(problem, "option_name"):
        message = f"{problem.option_name}: expected a value after it, got nothing"
    elif hasattr(problem, "param_type") and param is not None:
        message = f"expected {param.metavar}, got nothing"
    elif param is not None:
        message = _wrong_value(problem.message, param, words)
    else:
        message = problem.format_message().rstrip(".")
    return OptionError(f"{path}: {message}\n`{path} --help` lists what it takes")


def _wrong_value(message: str, param: Any, words: Sequence[str]) -> str:
    for theirs, ours in REPHRASED.items():
        message = message.replace(theirs, ours)
    apart = [part for word in words for part in word.split("=", 1)]  # --epochs=abc
    values = [apart[at + 1] for at, word in enumerate(apart[:-1]) if word in param.opts]
    return f"{param.opts[0]}: {message}" + (f", got {values[-1]!r}" if values else "")


def _unknown_option(problem: Any, ctx: Any) -> str:
    """The nearest option, or the setting that has this name."""
    flag = problem.option_name
    known = [opt for param in ctx.command.get_params(ctx) for opt in param.opts] if ctx else []
    if "--set" in known and (keys := _settings_called(flag)):
        return f"unknown option {flag}, did you mean --set {' or '.join(keys)}=…?"
    bare = {name.lstrip("-"): name for name in known}
    near = get_close_matches(flag.lstrip("-"), bare, n=1)
    return f"unknown option {flag}" + (f", did you mean {bare[near[0]]}?" if near else "")


def _settings_called(flag: str) -> list[str]:
    """The settings that some task has under the name of an option, `--weight-decay`."""
    from ensue.runs.known_settings import known_settings
    from ensue.tasks import TASKS

    name = flag.lstrip("-").replace("-", "_")
    keys = (key for task in TASKS for key, setting in known_settings(task) if setting.key == name)
    return list(dict.fromkeys(keys))


ARGUMENTS, OPTIONS = "Arguments", "Options"
DATA, SETTINGS, READING = "Data", "Settings that matter most", "How files are read"
HEADINGS = (ARGUMENTS, DATA, SETTINGS, OPTIONS, READING)  # others come after them
MOST_SPELLINGS = 2  # of an option that has more, the first ones are shown

# What is put into help texts when they are read, by the mark that stands for it there.
FILLED_IN: dict[str, Callable[[], str]] = {}


class Command(TyperCommand):
    """A command with its options under headings, which shows its progress while it reads files."""

    def get_help_option(self, ctx: Any) -> Any:
        return _with_help_text(super().get_help_option(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_trusted(args))

    def invoke(self, ctx: Any) -> Any:
        with reading_shown(quiet=ctx.params.get("quiet", False)):
            return super().invoke(ctx)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        page = _begun(self, ctx)
        page.paragraphs(self.help or "")
        _list_parameters(page, self, ctx)
        if self.epilog:
            examples = _examples(self.epilog)
            page.heading("Examples")
            page.entries(
                examples, widest([example for example in examples if example[1]], page.width)
            )
        formatter.write(f"{page}\n")


class Commands(TyperGroup):
    """Commands in groups."""

    def get_help_option(self, ctx: Any) -> Any:
        return _with_help_text(super().get_help_option(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args or ["--help"])

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            raise unknown_command(ctx.command_path, args[0], self.list_commands(ctx))
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        page = _begun(self, ctx)
        page.paragraphs(self.help or "")
        listed = {
            heading: [(name, _sentence(command)) for name, command in commands.items()]
            for heading, commands in _grouped(self, ctx).items()
        }
        _list_sections(page, listed)
        _list_parameters(page, self, ctx)
        page.paragraphs(self.epilog or "")
        formatter.write(f"{page}\n")


def _with_help_text(help_option: Any) -> Any:
    """The help option with a default that needs no conversion; to convert one, Typer would load
    pydantic."""
    if help_option is not None:
        help_option.default = False
    return help_option


def _begun(command: Any, ctx: Any) -> Page:
    """A page with the line on usage."""
    page = Page(sys.stdout)
    arguments = [
        _argument(param) for param in command.params if param.param_type_name == "argument"
    ]
    if isinstance(command, TyperGroup):
        arguments.append("COMMAND")
    page.heading("Usage:", " ".join([ctx.command_path, *arguments, "[OPTIONS]"]))
    return page


def _argument(param: Any) -> str:
    name = param.metavar.removesuffix("…") + "…" * (param.nargs != 1)
    return name if param.required else f"[{name}]"


def _sentence(command: Any) -> str:
    """The first sentence of a command's help, without its full stop."""
    return str(command.help or "").partition("\n\n")[0].replace("\n", " ").removesuffix(".")


def _grouped(group: Any, ctx: Any) -> dict[str, dict[str, Any]]:
    """The commands of a group by heading; groups inside the group are opened."""
    names = group.list_commands(ctx)
    if ctx.parent is not None:
        return {"Commands": {name: group.get_command(ctx, name) for name in names}}
    headings = {heading: [n for n in value if n in names] for heading, value in GROUPS.items()}
    return {
        heading: {
            k: v for name in name_of_command for k, v in _opened(name, group.get_command(ctx, name))
        }
        for heading, name_of_command in headings.items()
        if name_of_command
    }


def _opened(name: str, command: Any) -> list[tuple[str, Any]]:
    if not isinstance(command, TyperGroup):
        return [(name, command)]
    return [(f"{name} {below}", inner) for below, inner in command.commands.items()]


def _list_parameters(page: Page, command: Any, ctx: Any) -> None:
    sections: dict[str, list[tuple[str, str]]] = {heading: [] for heading in HEADINGS}
    for param in command.get_params(ctx):
        if param.hidden:
            continue
        heading = getattr(param, "rich_help_panel", None) or OPTIONS
        if param.param_type_name == "argument":
            heading = ARGUMENTS
        sections.setdefault(heading, []).append((_names(param), _meaning(param)))
    _list_sections(page, sections)


def _list_sections(page: Page, sections: Mapping[str, Sequence[tuple[str, str]]]) -> None:
    """Lists all sections with one common width for the column of names."""
    column = widest(row for rows in sections.values() for row in rows)
    for heading, rows in sections.items():
        if rows:
            page.heading(heading)
            page.entries(rows, column)


def _names(param: Any) -> str:
    """-h, --help; --run, --out FOLDER"""
    if param.param_type_name == "argument":
        return _argument(param)
    spellings = sorted(
        [*param.opts, *param.secondary_opts], key=lambda spelling: spelling.startswith("--")
    )
    listed = ", ".join(spellings[:MOST_SPELLINGS])
    return listed if param.is_flag else f"{listed} {param.metavar}"


def _meaning(param: Any) -> str:
    """The help text with the default."""
    text, default = param.help or "", param.default
    for mark in [mark_of_default for mark_of_default in FILLED_IN if mark_of_default in text]:
        text = text.replace(mark, FILLED_IN[mark]())
    if not param.show_default or default is None or default is False or default == "":
        return text
    return f"{text} [{default}]"


def _examples(lines: str) -> list[tuple[str, str]]:
    """Lines of a command and what it does, two or more spaces between them."""
    pairs = (line.strip().partition("  ") for line in lines.strip().splitlines())
    return [(command, meaning.strip()) for command, _, meaning in pairs]
