"""Tables of settings: each key with its default and its check, every problem in one message."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from ensue.errors import ConfigError


def word(text: str) -> BeforeValidator:
    """TOML has no null: there the word stands for None."""
    return BeforeValidator(lambda value: None if value == text else value)


OFF = word("off")
Size = Annotated[int, Field(ge=1)]
Rate = Annotated[float, Field(ge=0, lt=1)]


class Table(BaseModel):
    """One table of config.toml. Every key has its default here, and only here."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    renamed: ClassVar[Mapping[str, str]] = {}  # keys of older versions, and what they are now

    @classmethod
    def upgraded(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """The values under the keys of this version."""
        return {cls.renamed.get(key, key): value for key, value in values.items()}

    @classmethod
    def of(cls, values: Mapping[str, Any], where: str) -> Self:
        """From a table as read from TOML, with every problem in one message."""
        try:
            return cls.model_validate(cls.upgraded(values))
        except ValidationError as error:
            raise ConfigError(together(problems(error, cls, where))) from None

    def table(self) -> dict[str, Any]:
        """The complete table, as TOML can hold it: `of` reads it back."""
        return {k: "off" if v is None else v for k, v in self.model_dump(mode="json").items()}


def problems(error: ValidationError, model: type[BaseModel], where: str) -> list[str]:
    """Each problem as `where.key: expected …, got …`."""
    return [_problem(one, model, where) for one in error.errors(include_url=False)]


_KINDS = {"int": "a whole number", "float": "a number", "string": "a text", "tuple": "a list"}
_SIGNS = {"gt": ">", "ge": "≥", "lt": "<", "le": "≤"}


def _problem(one: ErrorDetails, model: type[BaseModel], where: str) -> str:
    key = ".".join([where, *map(str, one["loc"])])
    kind, got, context = one["type"], one["input"], one.get("ctx", {})
    if kind == "extra_forbidden":
        near = get_close_matches(str(one["loc"][-1]), model.model_fields, n=1)
        return f"{key}: unknown key" + (f", did you mean {near[0]}?" if near else "")
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
    expected = _KINDS.get(kind.partition("_")[0])
    if expected:
        return f"{key}: expected {expected}, got {got!r}"
    return f"{key}: {one['msg']}, got {got!r}"


def one_of(known: Iterable[str], got: object) -> str:
    names = list(known)
    near = get_close_matches(str(got), names, n=1)
    guess = f", did you mean {near[0]!r}?" if near else ""
    return f"expected one of {', '.join(names)}, got {got!r}{guess}"


def together(lines: list[str]) -> str:
    if len(lines) == 1:
        return lines[0]
    return "\n  ".join([f"{len(lines)} problems in the settings", *lines])
