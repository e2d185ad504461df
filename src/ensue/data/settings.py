"""The [data] table of a configuration: which files, and how they are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from ensue.data.formats import format_names
from ensue.data.options import ReadOptions
from ensue.data.split import SHARES
from ensue.settings import Expected, NoneWord, Size, Table


class DataSettings(Table):
    """Which files, and how they are read. "train.en,train.de" are two parallel files, line by line.
    Files that are not named are split off the training files, by a hash of each row (of a pair: of
    its source) or of its group: 80/10/10, or 90/10 where the test part has its own file."""

    train: list[str] = Field(description="Training files; parallel files as train.en,train.de.")
    validation: list[str] = Field(
        [], description="Validation files; []: a part of the training files."
    )
    test: list[str] = Field([], description="Test files; []: a part of the training files.")
    unlabelled: list[str] = Field(
        [],
        description="Files of unlabelled texts, from which the linear model of the ensemble "
        "learns which words occur together.",
    )
    format: Annotated[str, Expected(", ".join(["auto", *format_names()]))] = Field(
        "auto", description="File format; auto: by the ending of the file's name."
    )
    encoding: str = Field("utf-8", description="Character encoding, as Python names it.")
    delimiter: str = Field(
        "", description='Column delimiter of CSV and TSV files; "" is a comma or a tab.'
    )
    decimal: Literal[".", ","] = Field(
        ".",
        description="Decimal sign of the numbers in CSV and TSV files; with a comma, points "
        "separate thousands.",
    )
    marked: list[str] = Field(
        [],
        description="Columns of numbers such as €12.50, 45 % or 1 234,5, read without their marks.",
    )
    header: list[str] = Field(
        [], description="Names of the columns, if no line of the file has them."
    )
    no_quote: bool = Field(False, description="Quotes in CSV files are plain characters.")
    text: str | list[str] = Field(
        "",
        description="Column of the text or the tokens; of several texts the list of their columns.",
    )
    second: str = Field(
        "", description="Column of the second text, which the first is matched with."
    )
    label: str = Field("", description="Column of the label, the labels or the target.")
    columns: list[str] = Field(
        [],
        description="Columns of numbers or categories, read together with the text; their "
        "cells may be empty.",
    )
    image: str = Field(
        "",
        description="Column with the names of picture files, relative to the folder of the file.",
    )
    tree: str = Field("", description="Column of trees in brackets, (S (NP the cat) (VP sat)).")
    separator: str = Field("", description="Separator between several labels of a row.")
    sequence: str = Field(
        "", description="Column with the sequence id, for tables with a row for each time step."
    )
    features: list[str] = Field(
        [], description="Numeric columns of each time step, with `sequence`."
    )
    group: str = Field("", description="Column whose equal values stay in the same part.")
    split_seed: int = Field(0, ge=0, description="Seed of the split.")
    train_rows: Annotated[Size | None, NoneWord("all")] = Field(
        None,
        description="Number of training rows to use, sampled by split_seed; a smaller sample "
        "is part of a larger one.",
    )
    skip_bad: bool = Field(False, description="Skip faulty rows instead of stopping.")

    @field_validator("columns")
    @classmethod
    def _each_once(cls, names: list[str]) -> list[str]:
        twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        if twice:
            raise ValueError(f"expected each column once, got {', '.join(map(repr, twice))} twice")
        return names

    @property
    def texts(self) -> list[str]:
        """The columns of texts."""
        return self.text if isinstance(self.text, list) else [self.text] * bool(self.text)

    @property
    def text_column(self) -> str:
        """The column of the only text; "" for none or several."""
        return self.text if isinstance(self.text, str) else ""

    @property
    def joins(self) -> bool:
        """Whether several inputs are read together."""
        return isinstance(self.text, list) or bool(self.image or self.tree)

    def files(self, part: str) -> list[str]:
        """The files of a part, or the training files that it is split off."""
        parts = {"train": self.train, "validation": self.validation, "test": self.test}
        return parts[part] or self.train

    def all_files(self) -> list[str]:
        """The files of all parts."""
        return [*self.train, *self.validation, *self.test, *self.unlabelled]

    @property
    def has_test(self) -> bool:
        """Whether there is a test part, from files or split off."""
        return bool(self.test) or not self.validation

    def shares(self, part: str) -> dict[str, float] | None:
        """The shares by which the files of a part are split; None if all their rows belong to the
        part."""
        if self.validation or (part != "train" and getattr(self, part)):
            return None
        shares = dict(SHARES)
        if self.test:
            shares["train"] += shares.pop("test")
        return shares

    def split_line(self, unit: str) -> str:
        """A message on how the files are split. unit: the thing that is hashed."""
        by = f"the hash of {self.group or unit}"
        if not self.validation and not self.test:
            return f"split: 80 % train, 10 % validation, 10 % test, by {by}"
        if not self.validation:
            return f"split: 90 % train, 10 % validation, by {by}; the test part is its own file"
        return "" if self.test else "split: no test part; give one to `ensue evaluate --test`"

    def read_options(
        self, by_line: bool = False, grouped: bool = True, others: bool = False
    ) -> ReadOptions:
        """The options for reading. by_line: the label of a long table may change from line to line;
        grouped: the column of the group is required; others: unnamed columns are kept too."""
        stepped = bool(self.sequence) and by_line
        names = [
            *([] if self.sequence else self.texts),
            self.image,
            self.tree,
            self.second,
            "" if stepped else self.label,
            self.group if grouped else "",
            *self.columns,
        ]
        return ReadOptions(
            format=self.format,
            encoding=self.encoding,
            delimiter=self.delimiter or None,
            quote=False if self.no_quote else None,
            decimal=self.decimal,
            marked=tuple(self.marked),
            header=tuple(self.header) or True,
            columns=tuple(dict.fromkeys(name for name in names if name)),
            empty=tuple(self.columns),
            others=others,
            numbers=tuple(self.features),
            sequence=self.sequence or None,
            step_columns=(self.label,) if stepped and self.label else (),
        )

    def roles(self) -> dict[str, Any]:
        """The roles of columns, for data from other sources than these files."""
        names = ("text", "second", "label", "separator", "sequence", "features", "columns")
        return {name: value for name in (*names, "image", "tree") if (value := getattr(self, name))}

    def for_questions(self, paths: Sequence[str], plain: bool = False) -> DataSettings:
        """The same reading options for other files, without labels. plain: each line is a row,
        whatever the names of the run's columns."""
        roles = {"label": "", "group": "", "separator": ""}
        change: dict[str, object] = {**roles, "train": list(paths), "validation": list(paths)}
        if plain:
            change |= {"text": "text", "sequence": "", "features": [], "format": "text"}
        return self.model_copy(update=change)
