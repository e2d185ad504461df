"""The [model] table of a labeller."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from ensue.settings import Expected, OneOf, Rate, Width
from ensue.tasks.blocks.layer_settings import known_cell
from ensue.tasks.label.network import LABEL_OUTPUTS
from ensue.tasks.settings import LabelSettings

AUTO, SEARCHES = "auto", ("exact", "beam", "greedy")


class LabellerSettings(LabelSettings):
    """The encoder, the features of words, and the output that assigns labels.

    >>> LabellerSettings(output='crf').affixes
    4
    """

    character_size: Annotated[int, Field(ge=0)] = Field(
        32, description="Size of the character vectors; 0: no characters."
    )
    character_hidden: Width = Field(
        64,
        description="State size of the cell that reads the characters of a word, in each "
        "direction.",
    )
    affixes: Annotated[int, Field(ge=0, le=6)] = Field(
        4, description="Maximum length of prefix and suffix features; 0: none."
    )
    shapes: bool = Field(True, description="Word-shape features: capitals, digits, signs.")
    once_dropout: Rate = Field(
        0.3, description="Word dropout of words that occur once in the training part."
    )
    output: Annotated[str, OneOf(lambda: LABEL_OUTPUTS)] = Field(
        "stepwise",
        description="Output layer: independent labels, a CRF, or labels that depend on the "
        "previous one.",
    )
    previous_cell: Annotated[str, Expected('a name of `ensue cell list`, or ""')] = Field(
        "",
        description="Cell that reads the previous labels; empty: a linear layer. Only "
        "for output=previous.",
    )
    previous_start: Literal["learned", "zero"] = Field(
        "learned", description="Vector of the label before the first. Only for output=previous."
    )
    search: Literal["auto", "exact", "beam", "greedy"] = Field(
        "auto",
        validate_default=True,
        description="Search for the best labels; auto: exact, or beam if a cell reads labels.",
    )
    beam: Width = Field(8, description="Beam width, for search=beam.")
    linear_share: Annotated[
        Literal["fitted"] | Rate, Expected('"fitted", or a number ≥ 0 and < 1')
    ] = Field(
        0.0,
        description="Weight of the linear chain of word features next to the network, in a model "
        "of text; fitted: to the validation part, together with a bias for spans.",
    )
    legal_only: bool = Field(
        False, description="Predict only valid sequences of span tags (BIO and its variants)."
    )

    @field_validator("previous_cell")
    @classmethod
    def _known_cell(cls, cell: str) -> str:
        return known_cell(cell) if cell else cell

    @field_validator("search")
    @classmethod
    def _search_of_the_output(cls, search: str, info: ValidationInfo) -> str:
        """Checks that the output supports the search; auto is its default."""
        table = info.data
        if not {"output", "previous_cell"} <= table.keys():  # one of these is already a problem
            return search
        offer = LABEL_OUTPUTS[table["output"]].offer(table)
        if search == AUTO:
            return offer.searches[0]
        if search not in offer.searches:
            known = ", ".join((AUTO, *offer.searches))
            raise ValueError(f"expected one of {known} with {offer.by}, got {search!r}")
        return search
