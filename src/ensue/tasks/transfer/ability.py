"""The transfer ability of a task: what its encoder can give and take."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from torch import Tensor, nn

from ensue.errors import OptionError
from ensue.tasks.transfer.unfreezing import FROM_THE_TOP, Unfreezing

if TYPE_CHECKING:
    from ensue.tasks.any_model import AnyModel
    from ensue.tasks.transfer.pretrained import Pretrained

TEXT = ("level", "lower", "numbers", "breaks", "subword_count")  # what tokens follow from
DROPOUT = ("dropout_input", "dropout_layers", "dropout_output", "dropout_recurrent", "word_dropout")


class EncoderNames(NamedTuple):
    """Names of transferable weights in a network. table: the name or prefix of its word vectors, ""
    if it has none; encoder: prefixes of names in an encoder, with their prefixes in the network."""

    table: str
    encoder: Mapping[str, str]

    def renamed(self, name: str) -> str:
        """The name in the network of a weight of the encoder."""
        for begin, renamed_begin in self.encoder.items():
            if name.startswith(begin):
                return renamed_begin + name.removeprefix(begin)
        return ""


class Transfers(ABC):
    """The transfer of a task's encoder to and from other models. backward_alone: whether layers
    that read from the right can be a base alone; follows: settings that a base decides instead of
    recipes."""

    backward_alone: ClassVar[bool] = False
    follows: ClassVar[frozenset[str]] = frozenset(f"text.{key}" for key in TEXT)

    @abstractmethod
    def gives(self, model: AnyModel, called: str, digest: str) -> Pretrained:
        """The encoder of a trained model, with its vocabulary or scale."""

    def adapted(self, pretrained: Pretrained, model: AnyModel) -> Pretrained:
        """The parts of a base that models of this task use: its encoder."""
        return replace(pretrained, language={}, whole={})

    @abstractmethod
    def architecture(self, pretrained: Pretrained, model: AnyModel) -> dict[str, Any]:
        """The settings of [model] for a network with the layers of a base."""

    def recipe(
        self, pretrained: Pretrained, model: AnyModel, rows: int
    ) -> Mapping[str, Mapping[str, Any]]:
        """Defaults by table and key for training from a base on this number of rows."""
        return {}

    def unfreezing(self, model: AnyModel, train: Any) -> Unfreezing:
        """The resolution of `base.recipe = auto` for a training part, after the settings of a base
        were taken over."""
        return FROM_THE_TOP

    @abstractmethod
    def names(self, network: nn.Module) -> EncoderNames:
        """The names of an encoder's weights in a network."""

    @abstractmethod
    def first(
        self, pretrained: Pretrained, model: AnyModel, network: nn.Module
    ) -> dict[str, Tensor]:
        """The weights of a base by their names in a fresh network of the model."""

    def learned(self, pretrained: Pretrained, model: AnyModel) -> Pretrained:
        """The base with the words that the model has learned, as stored in its run."""
        return pretrained


@dataclass(frozen=True)
class Refuses(Transfers):
    """The transfer of a task without a transferable encoder. why: the reason, for messages."""

    why: str = "its networks have no encoder of words or vectors"

    def gives(self, model: AnyModel, called: str, digest: str) -> Pretrained:
        raise OptionError(f"{called}: a {model.task.name} model cannot be a base: {self.why}")

    def architecture(self, pretrained: Pretrained, model: AnyModel) -> dict[str, Any]:
        raise OptionError(
            f"base: a {model.task.name} model cannot begin from {pretrained.called}: {self.why}"
        )

    def names(self, network: nn.Module) -> EncoderNames:
        raise AssertionError("a base was refused")

    def first(
        self, pretrained: Pretrained, model: AnyModel, network: nn.Module
    ) -> dict[str, Tensor]:
        raise AssertionError("a base was refused")
