"""A captioner for export: what reads the picture, one step of what says the words, the search."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

from ensue.tasks.caption.network import CaptionNetwork
from ensue.tasks.exported import BATCH, Exported, Graph, Input
from ensue.tasks.model import Model
from ensue.tasks.pictures.exported import picture_step
from ensue.tasks.seq2seq.exported import Encode, generating_graphs, search_step
from ensue.tasks.seq2seq.search import Search
from ensue.tasks.seq2seq.task import pair_networks


class EncodePictures(nn.Module):
    """pictures (batch, channels, height, width) instead of their lines."""

    def __init__(self, encode: nn.Module) -> None:
        super().__init__()
        self.encode = encode

    def forward(self, pictures: Tensor) -> Any:
        lines = pictures.flatten(1, 2).transpose(0, 1)
        return self.encode(lines, torch.zeros(1, dtype=torch.int64))


def exported(model: Model[Any, Any, Any], how: Search) -> Exported:
    shape = channels, height, width = model.learned.shape
    members = cast(list[CaptionNetwork], pair_networks(model))
    tall, wide = members[0].grid
    words = len(model.learned.target.words)
    lines = Input("lines", (channels * height, BATCH, width))
    encode, step = generating_graphs(members, lines, words, tall * wide)
    assert isinstance(encode.network, Encode)
    pictures = Graph(
        "encode",
        EncodePictures(encode.network),
        (Input("pictures", (BATCH, *shape)),),
        encode.outputs,
    )
    after = search_step(how, model.learned.target, channels * height)
    return Exported("caption", (pictures, step), (picture_step(shape),), (after,))
