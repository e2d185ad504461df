"""Tables of settings: each key has a default, a check and a meaning. One message lists all
problems."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Self, Union, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    TypeAdapter,
    ValidationError,
)
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, core_schema

from ensue.errors import ConfigError
from ensue.files.opening import DRAWS, LAYER_WIDTH, LAYERS

MOST_LISTED = 30  # maximum number of known keys in the message on an unknown one


# --- what a type says of itself: each stands in Annotated, for the check and for the reader ----


@dataclass(frozen=True)
class NoneWord:
    """The word for None in TOML, which has no null."""

    word: str

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        def read(value: Any) -> Any:
            return None if value == self.word else value

        return core_schema.no_info_before_validator_function(read, handler(source))


@dataclass(frozen=True)
class OneOf:
    """The value is the name of a row of a table. table: a function that returns the table, which
    may be defined later and grow."""

    table: Callable[[], Collection[str]]
    noun: str = ""  # noun for rows that users add themselves

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        def check(name: str) -> str:
            if name not in self.table():
                raise ValueError(one_of(self.table(), name) + of_your_own(self.noun))
            return name

        return core_schema.no_info_after_validator_function(check, handler(source))


@dataclass(frozen=True)
class Expected:
    """A description of valid values, for keys with a custom check."""

    text: str


OFF = NoneWord("off")
Size = Annotated[int, Field(ge=1)]
Width = Annotated[int, Field(ge=1, le=LAYER_WIDTH)]  # of a layer
Draws = Annotated[int, Field(ge=1, le=DRAWS)]
Depth = Annotated[int, Field(ge=1, le=LAYERS)]
Rate = Annotated[float, Field(ge=0, lt=1)]


class Table(BaseModel):
    """One table of config.toml. Defaults of keys are defined here and nowhere else."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    # Keys for options of the command line that have another name.
    words: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    # The closest key, for options that the table does not have.
    instead: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def __pydantic_init_subclass__(cls, **arguments: Any) -> None:
        """Keeps the description of a key whose default a subclass changes."""
        super().__pydantic_init_subclass__(**arguments)
        for key, field in cls.model_fields.items():
            if field.description is None:
                field.description = _meaning_above(cls, key)

    @classmethod
    def of(cls, values: Mapping[str, Any], where: str) -> Self:
        """A table from TOML values; one message lists all problems."""
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            raise ConfigError(together(problems(error, cls, where))) from None

    def table(self) -> dict[str, Any]:
        """The complete table as TOML values, which `of` reads."""
        fields = type(self).model_fields
        return {k: in_toml(v, fields[k]) for k, v in self.model_dump(mode="json").items()}


def _meaning_above(table: type[Table], key: str) -> str | None:
    above = [base for base in table.__mro__[1:] if issubclass(base, Table)]
    descriptions = (
        base.model_fields[key].description for base in above if key in base.model_fields
    )
    return next((meaning for meaning in descriptions if meaning), None)


def in_toml(value: Any, field: FieldInfo) -> Any:
    """The value in TOML; None becomes its word."""
    if value is not None:
        return value
    return next(mark.word for mark in field.metadata if isinstance(mark, NoneWord))


# --- what a value may be ------------------------------------------------------------------------

_SIGNS = {"gt": ">", "ge": "≥", "lt": "<", "le": "≤"}
_ONE = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
_MANY = {int: "whole numbers", float: "numbers", str: "texts"}


def expected_of(field: FieldInfo) -> str:
    """The valid values of a key in words: "a number ≥ 0 and < 1", "adam, adamw, sgd"."""
    return _expected(field.annotation, field.metadata, _ONE)


def _expected(kind: Any, metadata: Iterable[Any], scalars: Mapping[Any, str]) -> str:
    marks = list(metadata)
    for mark in marks:
        if isinstance(mark, Expected):
            return mark.text
        if isinstance(mark, OneOf):
            return ", ".join(mark.table())
        if isinstance(mark, NoneWord):
            inner = next(arg for arg in get_args(kind) if arg is not NoneType)
            return f"{_expected(inner, (), scalars)}, or {mark.word}"
    origin, inside = get_origin(kind), get_args(kind)
    if origin is Annotated:
        below = [
            mark_inside for mark in inside[1:] for mark_inside in getattr(mark, "metadata", [mark])
        ]
        return _expected(inside[0], below, scalars)
    if origin is Literal:
        return ", ".join(map(str, inside))
    if origin in (list, dict):
        many = _expected(inside[-1], (), _MANY)
        lists = "a list of" if origin is list else "a table of"
        return f"{lists} {many}" if scalars is _ONE else f"lists of {many}"
    if origin in (Union, UnionType):
        return " or ".join(_expected(kind, (), scalars) for kind in inside)
    return scalars.get(kind, "a value") + _bounds(marks)


def _bounds(marks: Iterable[Any]) -> str:
    bounds = {sign: getattr(m, sign) for m in marks for sign in _SIGNS if hasattr(m, sign)}
    if {*bounds} == {"ge", "le"}:
        return f" from {bounds['ge']:g} to {bounds['le']:g}"
    return " and".join(f" {_SIGNS[sign]} {value:g}" for sign, value in bounds.items())


# --- problems ---------------------------------------------------------------------------------


def problems(error: ValidationError, model: type[BaseModel], where: str) -> list[str]:
    """Each problem as `where.key: expected …, got …`; the known keys follow the last unknown
    one."""
    errors = error.errors(include_url=False)
    strange = [one for one in errors if _is_unknown(one)]
    return [_problem(one, model, where, strange[-1:] == [one]) for one in errors]


_KINDS = {"int": "a whole number", "float": "a number", "string": "a text"}


def _is_unknown(one: ErrorDetails) -> bool:
    return one["type"] == "extra_forbidden"


def _problem(one: ErrorDetails, model: type[BaseModel], where: str, lists_known: bool) -> str:
    key = ".".join([where, *map(str, one["loc"])])
    kind, got, context = one["type"], one["input"], one.get("ctx", {})
    if _is_unknown(one):
        hint = known_keys(list(model.model_fields)) if lists_known else ""
        return f"{key}: {unknown_key(str(one['loc'][-1]), model.model_fields)}{hint}"
    if kind == "literal_error":
        known = [word.strip("'") for word in context["expected"].replace(" or ", ", ").split(", ")]
        return f"{key}: {one_of(known, got)}"
    if kind == "value_error":
        return f"{key}: {context['error']}"
    for name, sign in _SIGNS.items():
        if name in context:
            return f"{key}: expected a number {sign} {context[name]:g}, got {got!r}"
    if kind == "finite_number":
        return f"{key}: expected a finite number, got {got!r}"
    if kind in ("list_type", "tuple_type"):
        field = model.model_fields.get(str(one["loc"][0])) if len(one["loc"]) == 1 else None
        if field is None:
            return f"{key}: expected a list, got {got!r}"
        hint = _as_list(got, field.annotation)
        return f"{key}: expected {expected_of(field)}, got {got!r}{hint}"
    expected = _KINDS.get(kind.partition("_")[0])
    if expected:
        return f"{key}: expected {expected}, got {got!r}"
    return f"{key}: {one['msg']}, got {got!r}"


def _as_list(got: object, kind: Any) -> str:
    """Advice on a list whose brackets are missing; "" if the text is not such a list.

    >>> _as_list("600, 6000", list[int]), _as_list("day,hour", list[str]), _as_list("", list[int])
    ('; write [600,6000]', '; write ["day","hour"]', '; write []')
    >>> _as_list("600,a", list[int])
    ''
    """
    if not isinstance(got, str) or {*got} & {*"[]\"'"}:
        return ""
    parts = [part.strip() for part in got.split(",")] if got.strip() else []
    for written in (parts, [json.dumps(part, ensure_ascii=False) for part in parts]):
        text = f"[{','.join(written)}]"
        try:
            TypeAdapter(kind).validate_json(text, strict=True)
        except ValidationError:
            continue
        return f"; write {text}"
    return ""


def unknown_key(key: str, known: Iterable[str], what: str = "key") -> str:
    """
    >>> unknown_key("raet", ["rate", "seed"])
    'unknown key, did you mean rate?'
    """
    near = get_close_matches(key, list(known), n=1)
    return f"unknown {what}, did you mean {near[0]}?" if near else f"unknown {what}."


def known_keys(keys: list[str]) -> str:
    """The known keys of a table, for the message on an unknown one.

    >>> known_keys(["rate", "seed"])
    ' Known: rate, seed'
    """
    more = len(keys) - MOST_LISTED
    rest = f" and {more} more, which `ensue settings` lists" if more > 0 else ""
    return f" Known: {', '.join(keys[:MOST_LISTED])}{rest}"


def of_your_own(noun: str) -> str:
    """Advice for an unknown name that may be a row which the user adds; "" if noun is empty."""
    if not noun:
        return ""
    return f"; a {noun} of your own is imported first, in a script that then calls ensue.cli.main()"


def one_of(known: Iterable[str], got: object) -> str:
    names = list(known)
    near = get_close_matches(str(got), names, n=1)
    guess = f", did you mean {near[0]!r}?" if near else ""
    return f"expected one of {', '.join(names)}, got {got!r}{guess}"


def together(lines: list[str]) -> str:
    if len(lines) == 1:
        return lines[0]
    return "\n  ".join([f"{len(lines)} problems in the settings", *lines])
