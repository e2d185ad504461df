"""The [model] table of a translator: its network, its batches, its search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from ensue.settings import OFF, Rate, Size
from ensue.tasks.blocks.cell_name import OptionalCell, whole_heads
from ensue.tasks.settings import DecoderSettings, SearchSettings


class PairSettings(DecoderSettings, SearchSettings):
    """Keys of one family have no effect on the other."""

    renamed: ClassVar[Mapping[str, str]] = {  # of a transformer
        "width": "hidden_size",
        "inner": "inner_size",
        "dropout": "dropout_layers",
    }

    family: Literal["recurrent", "transformer"] = "recurrent"
    # of both: hidden_size is the width of a transformer, its dropout_layers is 0.1 as a rule
    shared: bool = False  # one vocabulary, and one embedding, for both sides
    dropout_layers: Rate = 0.2
    smoothing: Rate = 0.1
    # recurrent, beside the keys of every decoder
    decoder_cell: OptionalCell = ""  # "" is the encoder's
    bidirectional: bool = True
    bridge: Literal["states", "zero"] = "states"  # what the decoder begins with
    reverse_source: bool = False
    attend_output: Literal["combined", "context"] = "combined"
    dropout_input: Rate = 0.2
    dropout_output: Rate = 0.2
    # transformer
    heads: Size = 4
    inner_size: Annotated[Size | None, OFF] = None  # of the feed-forward layers; off: 4 × width
    norm: Literal["before", "after"] = "before"
    dropout_attention: Rate = 0.0
    # batches
    batch_tokens: Size = 4000  # of the longer side, padding counted
    batch_rows: Annotated[Size | None, OFF] = 64
    # search
    longest_factor: float = Field(2.0, gt=0)  # a translation has at most this times the tokens
    longest_extra: Annotated[int, Field(ge=0)] = 20  # of its source, and so many more

    @classmethod
    def upgraded(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Tables of 0.1.0 held the keys of both families beside each other: of a transformer the
        renamed ones are meant, of a recurrent network the others."""
        old = {key: value for key, value in values.items() if key in cls.renamed}
        found = {key: value for key, value in values.items() if key not in cls.renamed}
        if values.get("family") == "transformer":
            return {**found, **{cls.renamed[key]: value for key, value in old.items()}}
        # a part of them is a mistake, to be told as one
        return found if len(old) == len(cls.renamed) else dict(values)

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_the_family(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("family") == "transformer":
            return {"dropout_layers": 0.1, **values}
        return values

    @model_validator(mode="after")
    def _whole_heads(self) -> Self:
        if self.family == "transformer":
            whole_heads(self.hidden_size, self.heads)
        return self
