"""torch's optimisers without torch's compiler, whose import takes longer than a small training."""

from __future__ import annotations

from inspect import unwrap
from typing import TypeVar, cast

import torch
from torch.optim import Optimizer

K = TypeVar("K", bound=Optimizer)


def without_compiler(kind: type[K]) -> type[K]:
    """The same optimiser. torch wraps these methods so that its compiler leaves them alone, and
    imports the compiler to do so; the last wrapper also says that an update has no gradient."""
    inside = {
        "add_param_group": unwrap(kind.add_param_group),
        "zero_grad": unwrap(kind.zero_grad),
        "step": torch.no_grad()(unwrap(kind.step)),
    }
    return cast(type[K], type(kind.__name__, (kind,), inside))


SGD = without_compiler(torch.optim.SGD)
Adam = without_compiler(torch.optim.Adam)
AdamW = without_compiler(torch.optim.AdamW)
LBFGS = without_compiler(torch.optim.LBFGS)
