"""What the heads of a network look at while it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from torch import Tensor, nn

from ensue.layers.multihead import MultiHead

Recorded = Mapping[str, list[Tensor]]


@contextmanager
def recorded_attention(network: nn.Module) -> Iterator[Recorded]:
    """While inside, the weights α (batch, heads, queries, keys) of every `MultiHead` of a network:
    by the name of the module, one for each time that it was called.

    They are found from the very queries, memory and mask that the layer is called with; what it
    gives stays as it is. Weights are those before dropout."""
    found: dict[str, list[Tensor]] = {}
    heads = {name: own for name, own in network.named_modules() if isinstance(own, MultiHead)}
    for name, own in heads.items():
        found[name] = []
        own.__dict__["attend"] = _recording(own, found[name])
    try:
        yield found
    finally:
        for own in heads.values():
            del own.__dict__["attend"]


def _recording(heads: MultiHead, found: list[Tensor]) -> Callable[..., Tensor]:
    attend = heads.attend

    def recording(queries: Tensor, memory: Tensor, seen: Tensor | None = None) -> Tensor:
        found.append(heads.weights(queries, memory, seen).detach())
        return attend(queries, memory, seen)

    return recording
