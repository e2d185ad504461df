"""Help pages: commands in groups, options under headings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from typer.core import TyperCommand, TyperGroup

from ensue.cli.commands import GROUPS
from ensue.cli.page import Page, widest
from ensue.cli.reading import reading_shown
from ensue.cli.usage import unknown_command

ARGUMENTS, OPTIONS = "Arguments", "Options"
DATA, SETTINGS, READING = "Data", "Settings that matter most", "How files are read"
HEADINGS = (ARGUMENTS, DATA, SETTINGS, OPTIONS, READING)  # others come after them
MOST_SPELLINGS = 2  # of an option that has more, the first ones are shown

# What is put into help texts when they are read, by the mark that stands for it there.
FILLED_IN: dict[str, Callable[[], str]] = {}


class Command(TyperCommand):
    """A command whose options stand under headings; while it reads files, it shows how far it
    is."""

    def get_help_option(self, ctx: Any) -> Any:
        return _settled(super().get_help_option(ctx))

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
            page.entries(examples, widest([own for own in examples if own[1]], page.width))
        formatter.write(f"{page}\n")


class Commands(TyperGroup):
    """Commands in groups."""

    def get_help_option(self, ctx: Any) -> Any:
        return _settled(super().get_help_option(ctx))

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
            heading: [(name, _sentence(own)) for name, own in commands.items()]
            for heading, commands in _grouped(self, ctx).items()
        }
        _list_sections(page, listed)
        _list_parameters(page, self, ctx)
        page.paragraphs(self.epilog or "")
        formatter.write(f"{page}\n")


def _settled(help_option: Any) -> Any:
    """With a default that needs no conversion: for one, Typer would load pydantic."""
    if help_option is not None:
        help_option.default = False
    return help_option


def _begun(command: Any, ctx: Any) -> Page:
    """A page with the line on usage."""
    page = Page(sys.stdout)
    shown = [_argument(own) for own in command.params if own.param_type_name == "argument"]
    if isinstance(command, TyperGroup):
        shown.append("COMMAND")
    page.heading("Usage:", " ".join([ctx.command_path, *shown, "[OPTIONS]"]))
    return page


def _argument(param: Any) -> str:
    name = param.metavar.removesuffix("…") + "…" * (param.nargs != 1)
    return name if param.required else f"[{name}]"


def _sentence(command: Any) -> str:
    """The first sentence of a command's help, without its full stop."""
    return str(command.help or "").partition("\n\n")[0].replace("\n", " ").removesuffix(".")


def _grouped(group: Any, ctx: Any) -> dict[str, dict[str, Any]]:
    """The commands of a group by heading; groups inside of it are opened."""
    names = group.list_commands(ctx)
    if ctx.parent is not None:
        return {"Commands": {name: group.get_command(ctx, name) for name in names}}
    headings = {heading: [n for n in own if n in names] for heading, own in GROUPS.items()}
    return {
        heading: {k: v for name in own for k, v in _opened(name, group.get_command(ctx, name))}
        for heading, own in headings.items()
        if own
    }


def _opened(name: str, command: Any) -> list[tuple[str, Any]]:
    if not isinstance(command, TyperGroup):
        return [(name, command)]
    return [(f"{name} {below}", own) for below, own in command.commands.items()]


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
    """One column of names for all of them."""
    column = widest(own for rows in sections.values() for own in rows)
    for heading, rows in sections.items():
        if rows:
            page.heading(heading)
            page.entries(rows, column)


def _names(param: Any) -> str:
    """-h, --help; --run, --out FOLDER"""
    if param.param_type_name == "argument":
        return _argument(param)
    spellings = sorted([*param.opts, *param.secondary_opts], key=lambda own: own.startswith("--"))
    shown = ", ".join(spellings[:MOST_SPELLINGS])
    return shown if param.is_flag else f"{shown} {param.metavar}"


def _meaning(param: Any) -> str:
    """The help text with the default."""
    told, default = param.help or "", param.default
    for mark in [own for own in FILLED_IN if own in told]:
        told = told.replace(mark, FILLED_IN[mark]())
    if not param.show_default or default is None or default is False or default == "":
        return told
    return f"{told} [{default}]"


def _examples(lines: str) -> list[tuple[str, str]]:
    """Lines of a command and what it does, two or more spaces between them."""
    pairs = (line.strip().partition("  ") for line in lines.strip().splitlines())
    return [(command, meaning.strip()) for command, _, meaning in pairs]
