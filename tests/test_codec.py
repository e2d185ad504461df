"""What files hold of what was learned: written as it is declared, and read with every check."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, make_dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from ensue.data.tokenise import Tokeniser
from ensue.data.vocabulary import Vocabulary
from ensue.tasks.blocks.layer_settings import EncoderSettings
from ensue.tasks.codec import Packed, packed, unpacked, weights
from ensue.tasks.declarations import (
    AS_ARRAY,
    DISTINCT,
    IN_FACTS,
    NEXT_TO,
    NOT_SAVED,
    OMITTED,
    RISING,
    Arrays,
    Axis,
    Derived,
    Equal,
    Keys,
    Kinds,
    Labels,
    Length,
    Let,
    OfClass,
    OneOf,
    Positive,
    Range,
    SavedAs,
    Shape,
    Unfit,
    Words,
)

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
LABELS = Vocabulary.closed({"bad": 1, "good": 2})
WORDS = Vocabulary.build({"a": 2, "b": 1})


class Two(NamedTuple):
    one: float
    other: Positive


@dataclass(frozen=True)
class Circle:
    radius: Positive
    kind: ClassVar[str] = "circle"


@dataclass(frozen=True)
class Polygon:
    corners: Annotated[Floats, Shape(None, 2)]
    kind: ClassVar[str] = "polygon"


SHAPES = {"circle": Circle, "polygon": Polygon}


@dataclass(frozen=True)
class Scaled:
    """Refers to names around it."""

    names: tuple[str, ...]
    mean: Annotated[Floats, Shape(Axis("rows"), "names")]
    spread: Annotated[Floats, Shape(Axis("rows"), "names"), Range(above=0)]

    def check_saved(self) -> None:
        if "forbidden" in self.names:
            raise Unfit("expected other names", "names")


class Line(nn.Module):
    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(inputs))


@dataclass(frozen=True)
class Everything:
    words: Words
    labels: Annotated[Labels, IN_FACTS]
    cut: Annotated[Tokeniser, SavedAs("tokeniser")]
    settings: EncoderSettings
    shapes: tuple[Annotated[Any, Kinds(SHAPES)], ...]
    parts: Annotated[Mapping[str, Words], SavedAs("part ")]
    scaled: Annotated[Scaled, Let(rows="count")]
    beside: Annotated[Scaled, SavedAs("", fields={"names": "other_names"}), Let(rows=0)]
    linear: Annotated[Line, NEXT_TO, weights(lambda entry: Line(entry.count))]
    table: Annotated[Mapping[str, int], Arrays(lambda entry: entry, lambda arrays, _: {**arrays})]
    either: Annotated[Two | Circle | None, OfClass("either_class")]
    count: Annotated[int, Range(high="most")]
    flag: Annotated[bool, AS_ARRAY]
    most: Annotated[int, Derived("most")]
    ids: Annotated[tuple[str, ...], OMITTED] = ()
    maybe: Two | None = None
    start: Annotated[Floats | None, NOT_SAVED] = None


def everything(**changed: Any) -> Everything:
    rows, names = np.ones((3, 2)), ("x", "y")
    values: dict[str, Any] = {
        "words": WORDS,
        "labels": LABELS,
        "cut": Tokeniser(),
        "settings": EncoderSettings(hidden_size=7),
        "shapes": (Circle(1.0), Polygon(rows)),
        "parts": {"letters": WORDS},
        "scaled": Scaled(names, rows, rows),
        "beside": Scaled(names, rows[0], rows[0]),
        "linear": Line(3),
        "table": {"free": np.arange(3)},
        "either": Two(1.0, 2.0),
        "count": 3,
        "flag": True,
        "most": 5,
    }
    return Everything(**values | changed)


def stored(value: Everything) -> Packed:
    """As the files of a model give it back."""
    encoded = packed(value)
    facts, known = json.loads(json.dumps([encoded.facts, encoded.vocabularies]))
    return Packed(facts, known, encoded.arrays)


def read(stored: Packed) -> Everything:
    return unpacked(Everything, stored, most=5, either_class=Two)


def test_a_value_is_read_as_it_was_written() -> None:
    one = everything(ids=("k",), maybe=Two(1.0, 2.0), start=np.ones(3))
    decoded = read(stored(one))
    again, expected = packed(decoded), packed(one)
    assert (again.facts, again.vocabularies) == (expected.facts, expected.vocabularies)
    assert again.arrays.keys() == expected.arrays.keys()
    for name, array in expected.arrays.items():
        np.testing.assert_array_equal(again.arrays[name], array)
    assert (decoded.most, decoded.start, decoded.either) == (5, None, Two(1.0, 2.0))
    assert torch.equal(decoded.linear.weight, one.linear.weight)
    assert decoded.linear.weight.requires_grad


def test_names_in_files_are_those_that_are_declared() -> None:
    packed_value = packed(everything())
    plain = {"labels", "tokeniser", "settings", "shapes", "scaled", "other_names", "count"}
    assert {*packed_value.facts} == {*plain, "either"}
    assert [shape["kind"] for shape in packed_value.facts["shapes"]] == ["circle", "polygon"]
    assert {*packed_value.vocabularies} == {"words", "part letters"}
    scaled = {"scaled.mean", "scaled.spread", "mean", "spread"}
    others = {"shapes.1.corners", "weight", "table.free", "flag"}
    assert {*packed_value.arrays} == scaled | others
    assert packed_value.arrays["flag"].tolist() == [True]
    facts = packed(everything(ids=("k",), maybe=Two(1.0, 2.0))).facts
    assert (facts["ids"], facts["maybe"]) == (["k"], {"one": 1.0, "other": 2.0})


WRONG: list[tuple[str, Any, str]] = [
    ("words", None, "words: missing"),
    ("words", LABELS.to_dict(), "words: expected the specials <pad>, <unk>, got bad, good"),
    ("part letters", [], "part .letters: this is not a vocabulary"),
    ("labels", WORDS.to_dict(), "labels: expected labels, got <pad>"),
    ("tokeniser", [], "tokeniser: this is not a tokeniser"),
    ("settings", 3, "settings: expected values by name, got 3"),
    ("shapes", 3, "shapes: expected a list, got 3"),
    ("shapes", [{"kind": "line"}], "shapes.0.kind: expected one of 'circle', 'polygon', got"),
    ("shapes", [{"kind": "circle", "radius": 0}], "shapes.0.radius: expected a number > 0, got 0"),
    ("shapes", [{"kind": "circle", "radius": 1, "x": 2}], "shapes.0.x: not known"),
    ("scaled", {}, "scaled.names: missing"),
    ("scaled", {"names": ["x"]}, "scaled.mean: expected 3 × 1 float64, got 3 × 2 float64"),
    ("scaled", {"names": ["x", "forbidden"]}, "scaled.names: expected other names"),
    ("other_names", ["x"], "mean: expected 1 float64, got 2 float64"),
    ("either", {"one": 1}, "either.other: missing"),
    ("either", None, "either: missing"),
    ("count", 6, "count: expected a whole number from 0 to 5, got 6"),
    ("count", 4, "scaled.mean: expected 4 × 2 float64, got 3 × 2 float64"),
    ("weight", np.zeros(2), "weight: expected 3 float32 or float64, got 2 float64"),
    ("maybe", {"one": 1}, "maybe.other: missing"),
    ("weight", None, "weight: expected numbers, got None"),
    ("flag", np.array([1]), "flag: expected 1 bool, got 1 int64"),
    ("scaled.mean", None, "scaled.mean: missing"),
    ("scaled.more", np.ones(2), "scaled.more: not known"),
    ("scaled.spread", -np.ones((3, 2)), "scaled.spread: expected numbers > 0, got -1.0"),
    ("shapes.1.corners", np.ones(2), "shapes.1.corners: expected any × 2 float64, got 2 float64"),
]


@pytest.mark.parametrize(("key", "value", "message"), WRONG, ids=range(len(WRONG)))
def test_a_wrong_part_is_named(key: str, value: Any, message: str) -> None:
    files = stored(everything())
    plain, known, arrays = dict(files.facts), dict(files.vocabularies), dict(files.arrays)
    section = arrays if key in arrays or isinstance(value, np.ndarray) else plain
    section = known if key in known else section
    section[key] = value
    if value is None:
        del section[key]
    with pytest.raises(Unfit) as refused:
        read(Packed(plain, known, arrays))
    assert str(refused.value).startswith(message)


# --- one value -----------------------------------------------------------------------------------

Whole = Annotated[int, Range(low=1, high=3)]
Share = Annotated[float, Range(above=0, high=1)]
SINGLE = Annotated[Singles, Shape(2)]


def value_of(hint: Any, value: Any) -> Any:
    """A field `v` of this type, of a file that says this of it."""
    record: Any = make_dataclass("Record", [("v", hint)])
    in_file = {"v": value}
    files = Packed(arrays=in_file) if isinstance(value, np.ndarray) else Packed(in_file)
    return unpacked(record, files, names=("a", "b"), count=7).v


FITS: list[tuple[Any, Any, Any]] = [
    (str, "a", "a"),
    (bool, False, False),
    (Whole, 3, 3),
    (float, 2, 2),
    (Annotated[str, OneOf({"a": 1})], "a", "a"),
    (str | None, None, None),
    (Annotated[tuple[str, ...], Length(2)], ["a", "b"], ("a", "b")),
    (Annotated[Sequence[str], Length("names")], ["a", "b"], ("a", "b")),
    (tuple[str, int], ["a", 1], ("a", 1)),
    (Annotated[tuple[str, ...], DISTINCT], [], ()),
    (Mapping[str, int], {"any": 1}, {"any": 1}),
    (Annotated[int, Equal("count")], 7, 7),
    (Annotated[Mapping[str, int], Keys("names")], {"a": 1, "b": 2}, {"a": 1, "b": 2}),
    (Two, {"one": 1, "other": 2}, Two(1, 2)),
    (Annotated[Labels, IN_FACTS], LABELS.to_dict(), LABELS),
]
UNFIT: list[tuple[Any, Any, str]] = [
    (str, 3, "expected a text, got 3"),
    (Annotated[int, Equal("count")], 8, "expected 7, got 8"),
    (bool, 1, "expected true or false, got 1"),
    (Annotated[int, Range(low=1, high=10**6)], 10**9, "expected a whole number from 1 to 1,000,0"),
    (int, True, "expected a whole number from 0"),
    (int, 1.0, "expected a whole number from 0"),
    (float, float("nan"), "expected a finite number, got nan"),
    (float, 1e300, "expected a finite number, got 1e+300"),
    (float, 10**400, "expected a finite number, got 1000"),
    (float, "1", "expected a finite number, got '1'"),
    (Share, 0, "expected a number > 0 and ≤ 1, got 0"),
    (Annotated[str, OneOf(("a", "b"))], [], "expected one of 'a', 'b', got []"),
    (tuple[str, ...], "ab", "expected a list, got 'ab'"),
    (Annotated[tuple[str, ...], Length(2)], ["a"], "expected 2 values, got 1"),
    (tuple[str, int], ["a"], "expected 2 values, got 1"),
    (Annotated[tuple[str, ...], DISTINCT], ["a", "a"], "expected distinct values"),
    (Two, [], "expected values by name, got []"),
    (Mapping[str, str], 3, "expected values by name, got 3"),
    (Annotated[Labels, IN_FACTS], {"specials": [], "tokens": [], "counts": []}, "expected labels"),
    (str, b"x" * 10**6, "expected a text, got b'xxx"),
    (SINGLE, np.zeros((3, 2), np.float32), "expected 2 float32, got 3 × 2 float32"),
    (SINGLE, np.zeros((), np.float32), "expected 2 float32, got one float32"),
    (SINGLE, np.zeros(2, np.float16), "expected 2 float32, got 2 float16"),
    (SINGLE, np.zeros(2), "expected 2 float32, got 2 float64"),
    (SINGLE, np.array([np.inf, 0], np.float32), "expected finite numbers, got NaN or infinity"),
    (Annotated[Floats, Shape(2), Range(low=0)], np.array([0.0, -2]), "expected numbers ≥ 0, got"),
    (Annotated[Floats, Shape(2), Range(high=1)], np.array([0.0, 2]), "expected numbers ≤ 1, got"),
    (Annotated[Floats, Shape(2), RISING], np.array([2.0, 2]), "expected rising numbers"),
    (Annotated[Floats, Shape("names")], np.zeros(3), "expected 2 float64, got 3 float64"),
]  # fmt: skip
INSIDE: list[tuple[Any, Any, str]] = [
    (tuple[str, ...], ["a", 1], "v.1: expected a text, got 1"),
    (Mapping[str, str], {"a": 1}, "v.a: expected a text, got 1"),
    (Annotated[Mapping[str, int], Keys("names")], {"a": 1}, "v.b: missing"),
    (Annotated[Mapping[str, int], Keys("names")], {"a": 1, "b": 1, "c": 1}, "v.c: not known"),
    (Two, {"one": 1}, "v.other: missing"),
    (Two, {"one": 1, "other": 1, "third": 1}, "v.third: not known"),
    (Mapping[str, str], {"x" * 10**6: 1}, "v.xxx"),
]


@pytest.mark.parametrize(("hint", "value", "expected"), FITS, ids=range(len(FITS)))
def test_what_fits_is_given_back(hint: Any, value: Any, expected: Any) -> None:
    assert value_of(hint, value) == expected
    assert type(value_of(hint, value)) is type(expected)


@pytest.mark.parametrize(
    ("hint", "value", "message"),
    [*((hint, value, f"v: {message}") for hint, value, message in UNFIT), *INSIDE],
)
def test_what_does_not_fit_is_told_by_its_name(hint: Any, value: Any, message: str) -> None:
    with pytest.raises(Unfit) as refused:
        value_of(hint, value)
    assert str(refused.value).startswith(message)
    assert len(str(refused.value)) < 300


def test_an_array_that_fits_is_the_same() -> None:
    array = np.array([[1, 2]], np.float32)
    hint = Annotated[Singles, Shape(None, 2), Range(low=1, high=2, above=0), RISING]
    assert value_of(hint, array) is array


def test_weights_are_compared_before_a_module_has_memory() -> None:
    hint = Annotated[Line, weights(lambda _: Line(1 << 40))]
    record: Any = make_dataclass("Record", [("v", hint)])
    with pytest.raises(Unfit, match=r"^v\.weight: expected 1,099,511,627,776 float32 or float64"):
        unpacked(record, Packed(arrays={"v.weight": np.zeros(3)}))
