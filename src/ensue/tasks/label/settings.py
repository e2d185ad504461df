"""The [model] table of a labeller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator

from ensue.settings import Rate, Size, one_of
from ensue.tasks.blocks.cell_name import known_cell
from ensue.tasks.label.network import LABEL_OUTPUTS
from ensue.tasks.settings import LabelSettings

AUTO, SEARCHES = "auto", ("exact", "beam", "greedy")


class LabellerSettings(LabelSettings):
    """Its encoder, what it sees of a word, and the output that gives labels."""

    character_size: Annotated[int, Field(ge=0)] = 32  # of a letter's vector; 0 leaves letters out
    character_hidden: Size = 64  # of the cell that reads a word's letters, each direction
    affixes: Annotated[int, Field(ge=0, le=6)] = 4  # longest prefix and suffix; 0 leaves them out
    shapes: bool = True
    once_dropout: Rate = 0.3  # of words seen once, in place of word_dropout
    output: str = "stepwise"
    previous_cell: str = ""  # joins the previous label by a cell of this name; "" by a layer
    previous_start: Literal["learned", "zero"] = "learned"
    # auto becomes exact, or beam after a cell
    search: Literal["auto", "exact", "beam", "greedy"] = Field("auto", validate_default=True)
    beam: Size = 8
    legal_only: bool = False  # only legal sequences of span tags

    @classmethod
    def upgraded(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """In 0.1.0, whose tables have norm_place, an output without the search that was set used
        the one it has."""
        found = super().upgraded(values)
        output = LABEL_OUTPUTS.get(str(found.get("output")))
        if "norm_place" in values and output is not None:
            offered = output.offer(found).searches
            if found.get("search") in [name for name in SEARCHES if name not in offered]:
                found["search"] = AUTO
        return found

    @field_validator("output")
    @classmethod
    def _known_output(cls, output: str) -> str:
        if output not in LABEL_OUTPUTS:
            raise ValueError(one_of(LABEL_OUTPUTS, output))
        return output

    @field_validator("previous_cell")
    @classmethod
    def _known_cell(cls, cell: str) -> str:
        return known_cell(cell) if cell else cell

    @field_validator("search")
    @classmethod
    def _search_of_the_output(cls, search: str, info: ValidationInfo) -> str:
        """One that the output has; auto is the usual one of it."""
        table = info.data
        if not {"output", "previous_cell"} <= table.keys():  # one of these is a problem already
            return search
        offer = LABEL_OUTPUTS[table["output"]].offer(table)
        if search == AUTO:
            return offer.searches[0]
        if search not in offer.searches:
            known = ", ".join((AUTO, *offer.searches))
            raise ValueError(f"expected one of {known} with {offer.by}, got {search!r}")
        return search
