"""The [base] table: the base of a training, and how the layers taken over learn."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from ensue.settings import NoneWord, OneOf, Size, Table
from ensue.tasks.transfer.new_words import STARTS
from ensue.tasks.transfer.unfreezing import AUTO, RECIPES

ALL = NoneWord("all")


class BaseSettings(Table):
    """The base that training begins from. All settings need `path`.

    >>> BaseSettings(path=["lm"]).recipe
    'auto'
    """

    path: list[str] = Field(
        [],
        description="Run or model to start from, or a file of word vectors, or of torch.nn "
        "weights as safetensors; or two, a forward and a backward language model.",
    )
    digest: str = Field("", description="Digest of the base at the beginning of the run.")
    layers: Annotated[Size | None, ALL] = Field(
        None, description="Number of lower layers to reuse; those above are dropped."
    )
    added: int = Field(0, ge=0, description="Number of fresh layers on top of the reused ones.")
    recipe: Annotated[str, OneOf(lambda: (AUTO, *RECIPES))] = Field(
        AUTO,
        description="How the layers of the base learn: gradual, one after another from the top; "
        "whole, all from the start; frozen, never; auto: whole with rate_decay 1 if a linear "
        "prediction of the labels from the base's layers is much worse than one from the words; "
        "otherwise gradual.",
    )
    unfreeze_every: float = Field(
        1.0, gt=0, description="Epochs until the next layer is unfrozen, with recipe gradual."
    )
    freeze: int = Field(
        0, ge=0, description="Number of lowest layers to freeze; the word vectors are the first."
    )
    rate_decay: float = Field(
        2.6, ge=1, description="Divisor of the learning rate from each layer to the one below."
    )
    dropout_scale: float = Field(
        0.5, ge=0, le=1, description="Factor for the dropout rates of the base."
    )
    new_words: Annotated[str, OneOf(lambda: STARTS)] = Field(
        "letters",
        description="Initial vectors of words that the base lacks: from words with the same "
        "letter trigrams, or the mean of all.",
    )

    @model_validator(mode="after")
    def _of_a_base(self) -> Self:
        usual = type(self).model_fields
        changed = [key for key in usual if getattr(self, key) != usual[key].default]
        if changed and not self.path:
            raise ValueError(
                f"{', '.join(changed)}: expected a base as well, got none; name one, --base RUN"
            )
        return self
