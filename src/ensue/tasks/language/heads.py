"""Where the heads of a language model look."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import nn

from ensue.data.vocabulary import END
from ensue.errors import OptionError
from ensue.tasks.explaining.heads import HeadMaps, Looking, head_maps
from ensue.tasks.explaining.options import EXPLAINED
from ensue.tasks.language.families import AnyLanguageModel
from ensue.tasks.language.networks import LanguageNetwork
from ensue.tasks.task import NOTHING, Asked
from ensue.training.devices import device_of_weights


class LanguageHeads:
    """Masked self-attention: every token looks at itself and back, no farther than the context. The
    first one is the end of the text before."""

    option = EXPLAINED

    def explain(self, model: AnyLanguageModel, given: Any, asked: Asked = NOTHING) -> HeadMaps:
        """asked: layer."""
        model.must_be_fitted()
        part = model.task.asked([given], model)
        if not len(part.inputs.values):
            raise OptionError("explain: expected a text with at least one token, got none")
        names = part.numbers.token_names
        tokens = (END, *(names[k] for k in part.inputs.row(0)))
        numbers = torch.from_numpy(model.learned.rows(part).row(0).astype("int64"))

        def run(network: nn.Module) -> object:
            own = cast(LanguageNetwork, network)
            read = torch.cat([torch.tensor([own.first]), numbers])[:, None]
            return own.run(read.to(device_of_weights(own)), own.begin(1))

        looking = Looking("masked self-attention", lambda name: True, tokens, tokens)
        return head_maps(model, run, [looking], layer=asked.get("layer"))
