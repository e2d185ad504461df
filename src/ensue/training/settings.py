"""`TrainSettings`: the [train] table of a configuration, and what to say of a wrong one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import ErrorDetails

from ensue.errors import ConfigError

# What may be watched, and whether more of it is better.
HIGHER_IS_BETTER = {
    "cost": False,
    "perplexity": False,
    "error": False,
    "mae": False,
    "rmse": False,
    "accuracy": True,
    "exact": True,
    "f1": True,
    "macro_f1": True,
    "span_f1": True,
    "bleu": True,
    "chrf": True,
}
# These change when files are written and nothing that is learned.
WITHOUT_EFFECT = ("checkpoint_seconds", "checkpoint_updates")


def _word(word: str) -> BeforeValidator:
    """TOML has no null: there the word stands for None."""
    return BeforeValidator(lambda value: None if value == word else value)


Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(gt=0, lt=1)]
_OFF, _EPOCH = _word("off"), _word("epoch")


class TrainSettings(BaseModel):
    """How a model is trained. The cost of an update is the mean over its targets."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    seed: int = Field(1, ge=0)
    epochs: int = Field(10, ge=1)
    most_updates: Annotated[Count | None, _OFF] = None
    optimiser: Literal["sgd", "adam", "adamw"] = "adam"
    rate: float = Field(1e-3, gt=0)
    momentum: float = Field(0.9, ge=0, lt=1)  # of sgd
    betas: tuple[float, float] = Field((0.9, 0.999), strict=False)  # of adam and adamw
    weight_decay: float = Field(0.0, ge=0)  # what torch's optimiser of that name means by it
    l1: float = Field(0.0, ge=0)  # adds l1·Σ|w| to the cost, vectors left out
    l2: float = Field(0.0, ge=0)  # adds l2/2·Σw², vectors left out
    clip: Annotated[Positive | None, _OFF] = 1.0  # the largest norm of the gradient
    schedule: Literal["constant", "linear", "cosine", "inverse-sqrt", "plateau"] = "constant"
    warmup: int = Field(0, ge=0)  # updates
    decay: float = Field(0.5, gt=0, lt=1)  # the rate is multiplied by it on a plateau
    decay_patience: int = Field(1, ge=0)  # evaluations without a new best that are no plateau yet
    accumulate: int = Field(1, ge=1)  # batches of an update, in each process
    check_every: Annotated[Count | None, _EPOCH] = None  # updates
    patience: Annotated[Count | None, _OFF] = None  # evaluations without a new best
    watch: str = "cost"
    averaging: Annotated[Share | None, _OFF] = None
    precision: Literal["float32", "bfloat16"] = "float32"
    checkpoint_seconds: Annotated[Positive | None, _OFF] = 300.0
    checkpoint_updates: Annotated[Count | None, _OFF] = None

    @field_validator("betas")
    @classmethod
    def _betas_below_one(cls, betas: tuple[float, float]) -> tuple[float, float]:
        if not all(0 <= beta < 1 for beta in betas):
            raise ValueError(f"expected two numbers, each 0 ≤ beta < 1, got {list(betas)}")
        return betas

    @field_validator("watch")
    @classmethod
    def _watched_by_name(cls, watch: str) -> str:
        if watch not in HIGHER_IS_BETTER:
            raise ValueError(_one_of(HIGHER_IS_BETTER, watch))
        return watch

    @classmethod
    def of(cls, table: Mapping[str, Any], where: str = "train") -> TrainSettings:
        """From a table as read from TOML, with every problem in one message."""
        try:
            return cls.model_validate(dict(table))
        except ValidationError as error:
            raise ConfigError(together(problems(error, cls, where))) from None

    def table(self) -> dict[str, Any]:
        """The complete table, as TOML can hold it: `of` reads it back."""
        nothing = {"check_every": "epoch"}
        values = {**self.model_dump(), "betas": list(self.betas)}
        return {k: nothing.get(k, "off") if v is None else v for k, v in values.items()}

    def better(self, score: float, best: float | None) -> bool:
        """Whether a watched score beats the best so far; of equals the earlier one stays."""
        if best is None:
            return True
        return score > best if HIGHER_IS_BETTER[self.watch] else score < best


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
        return f"{key}: {_one_of(known, got)}"
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


def _one_of(known: Iterable[str], got: object) -> str:
    names = list(known)
    near = get_close_matches(str(got), names, n=1)
    guess = f", did you mean {near[0]!r}?" if near else ""
    return f"expected one of {', '.join(names)}, got {got!r}{guess}"


def together(lines: list[str]) -> str:
    if len(lines) == 1:
        return lines[0]
    return "\n  ".join([f"{len(lines)} problems in the settings", *lines])
