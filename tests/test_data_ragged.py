"""Rows of different length in one array, and the fingerprint of such columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.data.fingerprint import fingerprint
from ensue.data.ragged import Ragged
from ensue.errors import OptionError

ROWS = st.lists(st.lists(st.integers(0, 99), max_size=6), max_size=8)


@given(ROWS)
def test_rows_come_back(rows: list[list[int]]) -> None:
    ragged = Ragged.of(rows, np.int32)
    assert len(ragged) == len(rows)
    assert [ragged.row(k).tolist() for k in range(len(rows))] == rows
    assert ragged.lengths.tolist() == [len(row) for row in rows]
    assert ragged.values.dtype == np.int32


@given(ROWS.filter(len), st.data())
def test_taking_and_padding_are_the_rows_one_by_one(rows: list[list[int]], data) -> None:
    ragged = Ragged.of(rows, np.int64)
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=5))
    subset = ragged.take(chosen)
    assert [subset.row(k).tolist() for k in range(len(subset))] == [rows[k] for k in chosen]
    padded = ragged.padded(chosen, fill=-1)
    assert padded.shape == (max((len(rows[k]) for k in chosen), default=0), len(chosen))
    for column, k in zip(padded.T.tolist(), chosen, strict=True):
        assert column == rows[k] + [-1] * (len(padded) - len(rows[k]))


def test_rows_of_vectors_keep_their_features() -> None:
    rows = [np.arange(6.0).reshape(3, 2), np.empty((0, 2)), np.ones((1, 2))]
    ragged = Ragged.of(rows, np.float32, (2,))
    assert np.array_equal(ragged.row(0), rows[0])
    assert ragged.row(1).shape == (0, 2)
    padded = ragged.padded([2, 0])
    assert padded.shape == (3, 2, 2)
    assert padded[:, 0].tolist() == [[1, 1], [0, 0], [0, 0]]
    assert np.array_equal(padded[:, 1], rows[0])
    assert padded.flags.c_contiguous


# --- fingerprints ------------------------------------------------------------------------


def columns() -> dict[str, np.ndarray | Ragged]:
    return {"text": Ragged.of([[1, 2], [3]], np.int32), "label": np.array([0, 1])}


CHANGES = {
    "a value": lambda c: {**c, "label": np.array([0, 2])},
    "the order of rows": lambda c: {**c, "label": np.array([1, 0])},
    "a type": lambda c: {**c, "label": c["label"].astype(np.int32)},
    "a shape": lambda c: {**c, "label": c["label"][:, None]},
    "a name": lambda c: {"words": c["text"], "label": c["label"]},
    "the order of columns": lambda c: dict(reversed(c.items())),
    "where a row ends": lambda c: {**c, "text": Ragged.of([[1], [2, 3]], np.int32)},
    "one column less": lambda c: {"text": c["text"]},
    "an empty column more": lambda c: {**c, "more": np.array([])},
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_changes_the_fingerprint(change: str) -> None:
    assert fingerprint(CHANGES[change](columns())) != fingerprint(columns())


def test_the_fingerprint_is_that_of_values_not_of_memory() -> None:
    label = np.array([0, 9, 1, 9])[::2]
    table = {"text": columns()["text"], "label": label}
    assert fingerprint(table) == fingerprint(columns())
    turned = {**table, "label": label.astype(">i8")}
    assert fingerprint(turned) == fingerprint(columns())
    assert len(fingerprint({})) == 64


def test_a_column_of_objects_has_no_fingerprint() -> None:
    with pytest.raises(OptionError) as caught:
        fingerprint({"label": np.array(["a", None], object)})
    assert str(caught.value) == "label: expected numbers or fixed-width values, got object"
