"""Initial values of parameters: the schemes by name.

standard    input matrices Glorot-uniform and recurrent ones orthogonal, each gate by itself;
            vectors as their cell declares (forget biases 1, gains 1, else 0);
torch       everything uniform in ±1/√hidden, as torch.nn's recurrent layers;
glorot      all matrices Glorot-uniform, vectors as in standard;
he          all matrices He-normal (for ReLU), vectors as in standard;
identity    recurrent matrices the identity (Le et al. 2015), the rest as in standard;
positive    matrices uniform in [0, 0.1], vectors 0 (a textbook's choice, poor; for comparison).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from ensue.equations import Matrix
from ensue.equations.declare import Parameter
from ensue.errors import unknown

BlockRule = Callable[[Tensor, bool, int], None]


def _standard(block: Tensor, recurrent: bool, hidden: int) -> None:
    nn.init.orthogonal_(block) if recurrent else nn.init.xavier_uniform_(block)


def _uniform(block: Tensor, recurrent: bool, hidden: int) -> None:
    bound = hidden**-0.5 if hidden else 0.0
    nn.init.uniform_(block, -bound, bound)


def _glorot(block: Tensor, recurrent: bool, hidden: int) -> None:
    nn.init.xavier_uniform_(block)


def _he(block: Tensor, recurrent: bool, hidden: int) -> None:
    nn.init.kaiming_normal_(block, nonlinearity="relu")


def _identity(block: Tensor, recurrent: bool, hidden: int) -> None:
    nn.init.eye_(block) if recurrent else nn.init.xavier_uniform_(block)


def _positive(block: Tensor, recurrent: bool, hidden: int) -> None:
    nn.init.uniform_(block, 0.0, 0.1)


SCHEMES: dict[str, BlockRule] = {
    "standard": _standard,
    "torch": _uniform,
    "glorot": _glorot,
    "he": _he,
    "identity": _identity,
    "positive": _positive,
}


@torch.no_grad()
def initialise(
    declared: Mapping[str, Parameter], tensors: Mapping[str, Tensor], scheme: str, hidden: int
) -> None:
    """Fills the tensors of the declared parameters in place, gate by gate.

    >>> cell = LSTM()
    >>> tensors = {name: torch.empty(shape) for name, shape in cell.shapes(8, 16).items()}
    >>> initialise(cell.parameters, tensors, "standard", hidden=16)
    >>> tensors["b"].unique()  # the forget gate's start at 1
    tensor([0., 1.])
    """
    if scheme not in SCHEMES:
        raise unknown("initialisation", scheme, SCHEMES)
    for name, d in declared.items():
        for gate, block in zip(d.gates, tensors[name].chunk(len(d.gates)), strict=True):
            if isinstance(d, Matrix):
                SCHEMES[scheme](block, d.of != "x", hidden)
            elif scheme == "torch":
                _uniform(block, False, hidden)
            elif scheme == "positive":
                block.zero_()
            else:
                start = d.init.get(gate, 0.0) if isinstance(d.init, Mapping) else d.init
                block.fill_(start or 0.0)
