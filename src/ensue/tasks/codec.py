"""The learned part of a model folder, declared once: by the fields of its dataclasses.

JSON values are stored among the facts, vocabularies and arrays in separate files, each under the
name of its field; the fields of a nested dataclass are stored below the name of their parent.
`Annotated` declares limits, shapes and other names. `packed` writes a value by these declarations.
`unpacked` reads it and checks all of it, because a file with valid digests may still have content
that Ensue never writes. A value that does not fit raises `Unfit`, which `saved.loading` turns into
one Ensue error. Shapes are compared, and counts capped, before anything of that size is allocated.

>>> class Column(NamedTuple):
...     name: str
...     spread: Annotated[float, Range(above=0)]
>>> packed(Column("area", 2.0)).facts
{'name': 'area', 'spread': 2.0}
>>> unpacked(Column, Packed({"name": "area", "spread": -1.0}))
Traceback (most recent call last):
...
ensue.tasks.declarations.Unfit: spread: expected a number > 0, got -1.0
"""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from functools import cache, cached_property, partial
from inspect import get_annotations
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    NamedTuple,
    Protocol,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
import torch
from torch import Tensor, nn

from ensue.data.tokenise import Tokeniser
from ensue.data.vocabulary import SPECIALS, Vocabulary
from ensue.errors import DataError, OptionError
from ensue.settings import Table
from ensue.tasks.declarations import (
    AS_ARRAY,
    DISTINCT,
    IN_FACTS,
    NOT_SAVED,
    OMITTED,
    Array,
    Arrays,
    Check,
    Derived,
    Equal,
    Keys,
    Kinds,
    Length,
    Let,
    OfClass,
    OneOf,
    Range,
    SavedAs,
    Scope,
    Shape,
    Specials,
    Unfit,
    cut,
    expected,
    number,
    referred,
)

T = TypeVar("T")
Reader = Callable[["Kind", Any, "Place", Scope], Any]

LARGEST = 1e30  # of a number: its square, and sums of squares, are finite
PLAIN = "plain"  # in the scope: whether facts are those of `check_plain`
MOST = 1 << 53  # of a count: a whole number that a float64 holds
FLOATS = ("float32", "float64")
KIND = "kind"  # key of a value's class, if there are several


@dataclass(frozen=True)
class Packed:
    """A learned value in the form of files: plain values, vocabularies, arrays."""

    facts: Mapping[str, Any] = field(default_factory=dict)
    vocabularies: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, Array] = field(default_factory=dict)


class Stored(Protocol):
    """A `Packed`, or a saved model that contains one."""

    @property
    def facts(self) -> Mapping[str, Any]: ...
    @property
    def vocabularies(self) -> Mapping[str, Any]: ...
    @property
    def arrays(self) -> Mapping[str, Array]: ...


def weights(build: Callable[[Any], nn.Module]) -> Arrays:
    """Declares the weights of a module, float32 or float64. build: makes the module from a scope.
    It is first called without memory for weights, to compare shapes with the file."""
    return Arrays(_state, partial(_with_weights, build))


def _state(module: nn.Module) -> dict[str, Array]:
    return {name: tensor.detach().numpy() for name, tensor in module.state_dict().items()}


def _with_weights(
    build: Callable[[Any], nn.Module], arrays: Mapping[str, Array], scope: Any
) -> nn.Module:
    with torch.device("meta"):
        module = build(scope)
    tensors: dict[str, Tensor] = {}
    for name, tensor in module.state_dict().items():
        try:
            array = _array(arrays.get(name), tuple(tensor.shape), FLOATS)
        except Unfit as error:
            raise error.below(name) from None
        tensors[name] = torch.from_numpy(array.copy())
    module.load_state_dict(tensors, assign=True)
    return module


# --- the declarations of a type ------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """A type with its declarations. inside: the kinds of its elements, one for each position or one
    for all."""

    base: Any
    notes: tuple[Any, ...] = ()
    inside: tuple[Kind, ...] = ()
    optional: bool = False

    def note(self, kind: type[T]) -> T | None:
        """The declaration of this class that is nearest to the field."""
        known_note: T | None = self._by_class.get(kind)
        return known_note

    @cached_property
    def _by_class(self) -> dict[type[Any], Any]:
        return {type(note): note for note in self.notes}

    @cached_property
    def is_record(self) -> bool:
        plain = is_dataclass(self.base) or hasattr(self.base, "_fields")
        named = self.note(Kinds) is not None or self.note(OfClass) is not None
        return named or (plain and self.base not in READERS)

    @cached_property
    def holds(self) -> bool:
        """Whether values are stored below its name."""
        return self.reader in (_read_record, _read_arrays, _read_list, _read_by_name, _read_table)

    @cached_property
    def is_texts(self) -> bool:
        return self.inside == (Kind(str),)

    @cached_property
    def reader(self) -> Reader:
        if self.note(Arrays) is not None:
            return _read_arrays
        return _read_record if self.is_record else READERS.get(self.base, _read_table)

    @property
    def is_array(self) -> bool:
        return self.base is np.ndarray or AS_ARRAY in self.notes

    @property
    def is_vocabulary(self) -> bool:
        return self.base is Vocabulary and IN_FACTS not in self.notes

    @property
    def is_vocabularies(self) -> bool:
        return self.base is Mapping and self.inside[0].is_vocabulary

    def each(self, values: Sized) -> tuple[Kind, ...]:
        """The kind of each value of a list."""
        return self.inside if len(self.inside) > 1 else self.inside * len(values)


def kind_of(hint: Any) -> Kind:
    origin, inside = get_origin(hint), get_args(hint)
    if origin is Annotated:
        kind = kind_of(inside[0])
        return replace(kind, notes=(*kind.notes, *inside[1:]))
    if origin in (Union, UnionType):
        kind = kind_of(next(option for option in inside if option is not NoneType))
        return replace(kind, optional=NoneType in inside)
    if origin is np.ndarray:
        return Kind(np.ndarray, (), (Kind(np.dtype(get_args(inside[1])[0]).name),))
    if origin is tuple and inside[-1] is not ...:
        return Kind(tuple, (Length(len(inside)),), tuple(map(kind_of, inside)))
    if origin in (tuple, Sequence):
        return Kind(tuple, (), (kind_of(inside[0]),))
    if origin is Mapping:
        return Kind(Mapping, (), (kind_of(inside[1]),))
    return Kind(hint)


class Field(NamedTuple):
    name: str
    kind: Kind
    named: SavedAs


@cache
def fields_of(record: Any) -> tuple[Field, ...]:
    """The fields of a dataclass or a named tuple."""
    if hasattr(record, "_fields"):
        hints = get_type_hints(record, include_extras=True)
    else:
        every = ChainMap(*(get_annotations(base, eval_str=True) for base in record.__mro__))
        hints = {each.name: every[each.name] for each in fields(record)}
    kinds = {name: kind_of(hint) for name, hint in hints.items()}
    return tuple(Field(n, kind, kind.note(SavedAs) or SavedAs(n)) for n, kind in kinds.items())


@cache
def defaults_of(record: Any) -> frozenset[str]:
    """The fields that need not be given."""
    if hasattr(record, "_fields"):
        return frozenset(record._field_defaults)
    every = fields(record)
    return frozenset(
        each.name
        for each in every
        if each.default is not MISSING or each.default_factory is not MISSING
    )


class Place(NamedTuple):
    """The location of a value's fields: its facts, below `name`, and the arrays whose names begin
    with `prefix`. known: the whole file; fields: other keys of fields; keys, names: the facts and
    arrays that were read."""

    name: str
    facts: Any
    known: Stored
    prefix: str
    fields: Mapping[str, str]
    keys: set[str]
    names: set[str]

    @classmethod
    def top(cls, known: Stored) -> Place:
        return cls("", known.facts, known, "", {}, set(), set())

    def key(self, of_field: Field) -> str:
        return self.fields.get(of_field.name, of_field.named.key)

    def below(self, facts: Any, named: SavedAs) -> Place:
        """The location of a value with this name; without a name, next to the fields here."""
        arrays = named.key if named.arrays is None else named.arrays
        prefix = f"{self.prefix}{arrays}." if arrays else self.prefix
        if not named.key:
            return self._replace(prefix=prefix, fields=named.fields)
        name = f"{self.name}.{named.key}" if self.name else named.key
        return Place(name, facts, self.known, prefix, named.fields, set(), self.names)

    def arrays(self) -> dict[str, Array]:
        """The arrays by their names after the prefix."""
        begin, every = self.prefix, self.known.arrays.items()
        return {name.removeprefix(begin): array for name, array in every if name.startswith(begin)}


# --- writing -------------------------------------------------------------------------------------


def packed(value: object) -> Packed:
    """A dataclass or named tuple in the form of files."""
    result = Packed()
    _write_fields(value, Place.top(result))
    return result


def _write_fields(value: Any, at: Place) -> None:
    arrays = cast(dict[str, Array], at.known.arrays)
    vocabularies = cast(dict[str, Any], at.known.vocabularies)
    for each in fields_of(value.__class__):
        part, kind, key = getattr(value, each.name), each.kind, at.key(each)
        omitted = OMITTED in kind.notes and not part
        if part is None or omitted or NOT_SAVED in kind.notes or kind.note(Derived) is not None:
            continue
        below = at.below({}, each.named)
        if kind.is_array:
            arrays[f"{at.prefix}{key}"] = part if kind.base is np.ndarray else np.array([part])
        elif kind.is_vocabulary:
            vocabularies[key] = part.to_dict()
        elif kind.is_vocabularies:
            vocabularies |= {f"{key}{name}": words.to_dict() for name, words in part.items()}
        elif custom := kind.note(Arrays):
            arrays |= {f"{below.prefix}{name}": array for name, array in custom.of(part).items()}
        else:
            written = _written(part, kind, below)
            if key and (written or not kind.is_record):
                at.facts[key] = written


def _written(value: Any, kind: Kind, at: Place) -> Any:
    """A value as JSON; arrays and vocabularies in it go to separate files."""
    if kind.is_record:
        if kind.note(Kinds):
            at.facts[KIND] = value.kind
        _write_fields(value, at)
        return at.facts
    if kind.base is tuple:
        each = enumerate(zip(value, kind.each(value), strict=True))
        return [_written(item, of, at.below({}, SavedAs(str(k)))) for k, (item, of) in each]
    if kind.base is Mapping:
        (of,) = kind.inside
        return {key: _written(item, of, at.below({}, SavedAs(key))) for key, item in value.items()}
    if isinstance(value, Vocabulary | Tokeniser):
        return value.to_dict()
    return value.table() if isinstance(value, Table) else value


# --- reading -------------------------------------------------------------------------------------


def unpacked(record: type[T], stored: Stored, **context: Any) -> T:
    """The inverse of `packed`, checked. context: what declarations refer to."""
    return cast(T, _read_fields(record, Place.top(stored), Scope({}, values={PLAIN: 0, **context})))


def check_plain(record: Any, facts: Mapping[str, Any]) -> None:
    """Raises Unfit if plain facts are not those of a record: there null is an infinite number, and
    a field that is missing has its default."""
    unpacked(record, Packed(facts), **{PLAIN: 1})


def _read_fields(record: Any, at: Place, outer: Scope) -> Any:
    names: dict[str, Callable[[], Any]] = {}
    scope = Scope(names, outer)
    saved = [each for each in fields_of(record) if NOT_SAVED not in each.kind.notes]
    if outer[PLAIN]:
        usual = defaults_of(record)
        saved = [each for each in saved if each.name not in usual or at.key(each) in at.facts]
    names |= {each.name: partial(_read_field, each, at, scope) for each in saved}
    instance = record(**{each.name: scope[each.name] for each in saved})
    if hasattr(instance, "check_saved"):
        instance.check_saved()
    return instance


def _read_field(of_field: Field, at: Place, scope: Scope) -> Any:
    kind, key = of_field.kind, at.key(of_field)
    in_arrays = kind.is_array or kind.note(Arrays) is not None
    if note := kind.note(Derived):
        return referred(note.value, scope)
    of = kind.note(OfClass)
    if of is not None and referred(of.record, scope) is None:
        return None
    at.keys.add(key)
    try:
        raw = _raw(of_field, at)
        if raw is not None:
            return _read(kind, raw, at.below(raw, of_field.named) if kind.holds else at, scope)
        if kind.optional and of is None:
            return None
        if scope[PLAIN] and kind.base is float:
            return math.inf
        raise Unfit("missing")
    except Unfit as error:
        where = at.prefix.removesuffix(".") if in_arrays else at.name
        raise error.below(key).below(where, whole=True) from None


def _raw(of_field: Field, at: Place) -> Any:
    """The stored form of a field; None if it is missing."""
    kind, key = of_field.kind, at.key(of_field)
    if kind.is_array:
        at.names.add(f"{at.prefix}{key}")
        array = at.known.arrays.get(f"{at.prefix}{key}")
        if array is None or AS_ARRAY not in kind.notes:
            return array
        return _array(array, (1,), (np.dtype(kind.base).name,))[0].item()
    if kind.is_vocabulary:
        return at.known.vocabularies.get(key)
    if kind.is_vocabularies:
        every = at.known.vocabularies.items()
        return {name.removeprefix(key): words for name, words in every if name.startswith(key)}
    raw = at.facts.get(key, [] if OMITTED in kind.notes else None) if key else at.facts
    if raw is None and (kind.is_record or kind.note(Arrays) is not None):
        return {} if not kind.optional or at.below({}, of_field.named).arrays() else None
    return raw


def _read(kind: Kind, raw: Any, at: Place, scope: Scope) -> Any:
    """A value, checked by its declarations. at: the location of the values below it."""
    result = kind.reader(kind, raw, at, scope)
    if (same := kind.note(Equal)) and result != (value := referred(same.value, scope)):
        raise expected(repr(value), result)
    if further := kind.note(Check):
        further.check(result)
    return result


def _read_arrays(kind: Kind, raw: Any, at: Place, scope: Scope) -> Any:
    custom = kind.note(Arrays)
    assert custom is not None
    arrays = custom.made(at.arrays(), scope)
    at.names.update(f"{at.prefix}{name}" for name in custom.of(arrays))
    return arrays


def _read_table(kind: Kind, raw: Any, at: Place, scope: Scope) -> Any:
    return kind.base.of(_mapping(raw), at.name)


def _read_record(kind: Kind, raw: Any, at: Place, scope: Scope) -> Any:
    record, known = kind.base, _mapping(raw)
    if of := kind.note(OfClass):
        record = referred(of.record, scope)
    if kinds := kind.note(Kinds):
        at.keys.add(KIND)
        classes = referred(kinds.classes, scope)
        record = classes[_one_of(known.get(KIND), classes, KIND)]
    if let := kind.note(Let):
        scope = Scope({n: partial(referred, v, scope) for n, v in let.values.items()}, scope)
    instance = _read_fields(record, at, scope)
    named = kind.note(SavedAs) or SavedAs(KIND)
    if named.key and (odd := [key for key in known if key not in at.keys]):
        raise Unfit("not known", cut(str(odd[0])))
    if named.arrays or (named.key and named.arrays is None):
        for name in at.arrays():
            if f"{at.prefix}{name}" not in at.names:
                raise Unfit("not known", cut(name))
    return instance


def _mapping(raw: Any) -> Mapping[str, Any]:
    if not isinstance(raw, Mapping):
        raise expected("values by name", raw)
    return raw


def _one_of(raw: Any, names: Sequence[str] | Mapping[str, Any], name: str = "") -> str:
    if not isinstance(raw, str) or raw not in names:
        raise expected(f"one of {', '.join(map(repr, names))}", raw, name)
    return raw


def _read_text(kind: Kind, raw: Any, at: Place, scope: Scope) -> str:
    if choice := kind.note(OneOf):
        return _one_of(raw, choice.names)
    if not isinstance(raw, str):
        raise expected("a text", raw)
    return raw


def _read_flag(kind: Kind, raw: Any, at: Place, scope: Scope) -> bool:
    if not isinstance(raw, bool):
        raise expected("true or false", raw)
    return raw


def _read_whole(kind: Kind, raw: Any, at: Place, scope: Scope) -> int:
    limits = (kind.note(Range) or Range()).limits(scope)
    low, high = limits.get("≥", 0), limits.get("≤", MOST)
    if type(raw) is not int or not low <= raw <= high:
        raise expected(f"a whole number from {low:,} to {high:,}", raw)
    return raw


def _read_number(kind: Kind, raw: Any, at: Place, scope: Scope) -> float:
    limits = (kind.note(Range) or Range()).limits(scope)
    largest = math.inf if scope[PLAIN] else LARGEST
    if raw is None and scope[PLAIN]:
        return math.inf
    low, high = limits.get("≥", -largest), limits.get("≤", largest)
    above = limits.get(">", -math.inf)
    if type(raw) not in (int, float) or not low <= raw <= high or raw <= above:
        signs = " and ".join(f"{sign} {limit:g}" for sign, limit in limits.items())
        raise expected(f"a number {signs}" if signs else "a finite number", raw)
    return cast(float, raw)


def _read_list(kind: Kind, raw: Any, at: Place, scope: Scope) -> tuple[Any, ...]:
    if not isinstance(raw, list):
        raise expected("a list", raw)
    length = kind.note(Length)
    if length is not None and len(raw) != (count := number(length.size, scope)):
        raise Unfit(f"expected {count:,} values, got {len(raw):,}")
    if kind.is_texts and {*map(type, raw)} == {str}:
        items = tuple(raw)  # often long
    else:
        items = tuple(_each(enumerate(raw), kind.each(raw), at, scope))
    if DISTINCT in kind.notes and len({*items}) < len(items):
        raise Unfit("expected distinct values, got the same one twice")
    return items


def _read_by_name(kind: Kind, raw: Any, at: Place, scope: Scope) -> dict[str, Any]:
    known = _mapping(raw)
    if keys := kind.note(Keys):
        names = referred(keys.names, scope)
        for name in names:
            if name not in known:
                raise Unfit("missing", cut(name))
        if odd := [name for name in known if name not in names]:
            raise Unfit("not known", cut(odd[0]))
    return dict(zip(known, _each(known.items(), kind.each(known), at, scope), strict=True))


def _each(
    items: Iterable[tuple[Any, Any]], kinds: Sequence[Kind], at: Place, scope: Scope
) -> Iterator[Any]:
    """The values of a list or mapping, by key."""
    for (key, raw), kind in zip(items, kinds, strict=True):
        try:
            below = at.below(raw, SavedAs(str(key))) if kind.is_record else at
            yield _read(kind, raw, below, scope)
        except Unfit as error:
            raise error.below(str(key)) from None


def _read_vocabulary(kind: Kind, raw: Any, at: Place, scope: Scope) -> Vocabulary:
    try:
        vocabulary = Vocabulary.from_dict(raw)
    except DataError as error:
        raise Unfit(str(error)) from None
    specials = kind.note(Specials) or Specials(SPECIALS)
    if vocabulary.specials not in (specials.usual, *specials.others) or not vocabulary.tokens:
        expected_words = f"the specials {', '.join(specials.usual)}" if specials.usual else "labels"
        raise Unfit(f"expected {expected_words}, got {cut(', '.join(vocabulary.tokens) or 'none')}")
    return vocabulary


def _read_tokeniser(kind: Kind, raw: Any, at: Place, scope: Scope) -> Tokeniser:
    try:
        return Tokeniser.from_dict(raw)
    except (DataError, OptionError) as error:
        raise Unfit(str(error)) from None


def _read_array(kind: Kind, raw: Any, at: Place, scope: Scope) -> Array:
    shape, (dtype,) = kind.note(Shape), kind.inside
    assert shape is not None
    array = _array(raw, shape.numbers(scope), (dtype.base,))
    for sign, limit in (kind.note(Range) or Range()).limits(scope).items():
        if (wrong := BEYOND[sign](array, limit)).any():
            raise expected(f"numbers {sign} {limit:g}", array[wrong].flat[0].item())
    return array


# by the sign of a limit: the test for values beyond it
BEYOND = {"≥": np.less, "≤": np.greater, ">": np.less_equal}


def _array(value: Any, shape: Sequence[int | None], dtypes: Sequence[str]) -> Array:
    """An array of finite numbers with this shape and one of these types."""
    array = _of_shape(value, shape, dtypes)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise Unfit("expected finite numbers, got NaN or infinity")
    return array


def _of_shape(value: Any, shape: Sequence[int | None], dtypes: Sequence[str]) -> Array:
    if not isinstance(value, np.ndarray):
        raise expected("numbers", value)
    fits = len(value.shape) == len(shape) and all(
        size is None or size == got for size, got in zip(shape, value.shape, strict=True)
    )
    if not fits or value.dtype.name not in dtypes:
        expected_shape = f"{_sizes(shape)} {' or '.join(dtypes)}"
        raise Unfit(f"expected {expected_shape}, got {_sizes(value.shape)} {value.dtype.name}")
    return value


def _sizes(shape: Sequence[int | None]) -> str:
    return " × ".join("any" if size is None else f"{size:,}" for size in shape) or "one"


READERS: dict[Any, Reader] = {
    str: _read_text,
    bool: _read_flag,
    int: _read_whole,
    float: _read_number,
    tuple: _read_list,
    Mapping: _read_by_name,
    Vocabulary: _read_vocabulary,
    Tokeniser: _read_tokeniser,
    np.ndarray: _read_array,
}
