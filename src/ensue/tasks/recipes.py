"""Training recipes other than the default: quick and best."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ensue.errors import OptionError, unknown
from ensue.settings import Table
from ensue.training.settings import TrainSettings

if TYPE_CHECKING:
    from ensue.tasks.task import Task

QUICK, BEST = "quick", "best"
FEWER, MORE = 4, 4  # factor of the default number of epochs
QUICK_UPDATES = 1000  # about a minute on two cores, with default networks
BEST_MEMBERS = 5
Recipe = Mapping[str, Any]  # settings by their full keys, "train.epochs"


def usual_recipes(task: Task[Any, Any, Any]) -> dict[str, Recipe]:
    """The recipes that every task has. quick: a quarter of the epochs, and no more updates than
    about a minute allows; best: several networks, each with four times the epochs and twice the
    patience."""
    usual = TrainSettings.of({**task.train_defaults, "watch": "cost"})
    patience = usual.patience or usual.epochs
    return {
        QUICK: {
            "train.epochs": max(1, usual.epochs // FEWER),
            "train.most_updates": min(QUICK_UPDATES, usual.most_updates or QUICK_UPDATES),
            "train.patience": max(1, patience // 2),
        },
        BEST: {
            "members": BEST_MEMBERS,
            "train.epochs": MORE * usual.epochs,
            "train.patience": 2 * patience,
        },
    }


def recipes_of(task: Task[Any, Any, Any]) -> dict[str, Recipe]:
    """All recipes of a task, by name."""
    return {**usual_recipes(task), **task.more_recipes}


def recipe_of(
    task: Task[Any, Any, Any], name: str, model: Any = None, based: bool = False
) -> Recipe:
    """The settings of a recipe; none for the default "".

    model: the given [model] table. If its family is solved, not trained, the recipe's `members` is
    left out. based: whether the training begins from a base, which then decides the settings that
    depend on it."""
    known = recipes_of(task)
    if not name:
        return {}
    if name not in known:
        raise unknown("recipe", name, known)
    chosen = dict(model or {})
    usual = task.settings.model_fields.get("family")
    family = task.families.get(chosen.get("family", usual.default if usual else ""))
    solved = family is not None and family.solved
    left_out = {"members"} if solved else set()
    left_out |= task.transfers.follows if based else set()
    return {key: value for key, value in known[name].items() if key not in left_out}


def with_recipe(
    task: Task[Any, Any, Any],
    name: str,
    tables: Mapping[str, Any],
    members: int | None,
    based: bool = False,
) -> tuple[list[Any], int]:
    """The tables of a model and its number of networks: given values unchanged, all others from the
    recipe. based: whether the training begins from a base."""
    combined, recipe = dict(tables), recipe_of(task, name, tables["model"], based)
    for key, value in recipe.items():
        table, _, name_of_key = key.rpartition(".")
        if table:
            combined[table] = _beside(combined[table], name_of_key, value)
    many = int(recipe.get("members", 1)) if members is None else members
    if many < 1:
        raise OptionError(f"members: expected a number of networks ≥ 1, got {many}")
    return [*combined.values()], many


def _beside(values: Any, key: str, value: Any) -> Any:
    """The given values, and one more setting unless it was given."""
    if isinstance(values, Table):
        combined = dict(values) | ({} if key in values.model_fields_set else {key: value})
        return type(values).of(combined, "train")
    return {key: value, **(values or {})}
