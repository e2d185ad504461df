"""From files to encoded sequences: readers, vocabularies, splits, batches, built-in tasks.

Import its public names from here; each is loaded at its first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for editors and type checkers, the same names as in _PUBLIC
    from ensue.data.options import ReadOptions as ReadOptions
    from ensue.data.read import gather as gather
    from ensue.data.read import read_series as read_series
    from ensue.data.rows import Place as Place
    from ensue.data.rows import Problem as Problem
    from ensue.data.rows import Row as Row
    from ensue.data.split import by_group as by_group
    from ensue.data.split import by_hash as by_hash
    from ensue.data.split import equal_shares as equal_shares
    from ensue.data.split import folds as folds
    from ensue.data.split import stratified as stratified
    from ensue.data.tasks.dates import Date as Date
    from ensue.data.tasks.dates import dates as dates
    from ensue.data.tasks.series import air_passengers as air_passengers
    from ensue.data.tasks.series import known_series as known_series
    from ensue.data.tasks.shapes import Scene as Scene
    from ensue.data.tasks.shapes import shapes as shapes
    from ensue.data.tokenise import Tokeniser as Tokeniser
    from ensue.data.vocabulary import Vocabulary as Vocabulary
    from ensue.data.vocabulary import count_tokens as count_tokens

# Where each public name is defined.
_PUBLIC = {
    "Date": "tasks.dates",
    "Place": "rows",
    "Problem": "rows",
    "ReadOptions": "options",
    "Row": "rows",
    "Scene": "tasks.shapes",
    "Tokeniser": "tokenise",
    "Vocabulary": "vocabulary",
    "air_passengers": "tasks.series",
    "by_group": "split",
    "by_hash": "split",
    "count_tokens": "vocabulary",
    "dates": "tasks.dates",
    "equal_shares": "split",
    "folds": "split",
    "gather": "read",
    "known_series": "tasks.series",
    "read_series": "read",
    "shapes": "tasks.shapes",
    "stratified": "split",
}

__all__ = [*_PUBLIC]

if not TYPE_CHECKING:  # a type checker would accept every name

    def __getattr__(name: str) -> Any:
        if name in _PUBLIC:
            return getattr(import_module(f"ensue.data.{_PUBLIC[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
