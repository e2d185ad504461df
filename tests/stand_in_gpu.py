"""A stand-in for a GPU: tensors that say they are on cuda:0, and keep their numbers on the CPU.

Inside `stand_in_gpu()` whatever is brought to cuda:0, or made there, is such a tensor. An
operation on tensors of both devices is refused, as with a GPU, and so is `numpy` of one that is
there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest import mock

import torch
from torch import Generator, Tensor
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing

aten = torch.ops.aten
CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)
# torch knows no wrapper on cuda without a CUDA build; on meta it knows one, and Python sees cuda
HIDDEN = torch.device("meta")
BETWEEN = {aten.copy_.default}  # may have one tensor here and one there
INDEXED = {  # whose indices may be on the CPU
    aten.index.Tensor,
    aten.index_put.default,
    aten.index_put_.default,
    aten._index_put_impl_.default,
}


NESTED = (tuple, list, dict)


def leaves_of(value: Any) -> list[Any]:
    """What stands in a tuple, list or dictionary, and in those within it; torch's own function
    takes five times as long, and is asked at every operation."""
    leaves = []
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, NESTED):
            leaves += leaves_of(item)
        else:
            leaves.append(item)
    return leaves


def mapped(function: Any, value: Any) -> Any:
    """Each leaf by its function."""
    if not isinstance(value, NESTED):
        return function(value)
    if isinstance(value, dict):
        return {key: mapped(function, entry) for key, entry in value.items()}
    return type(value)([mapped(function, entry) for entry in value])


@cache
def shares_memory(func: Any) -> bool:
    """Whether what an operation gives may be, or may look into, what it was given."""
    schema = func._schema
    return any(argument.alias_info is not None for argument in (*schema.arguments, *schema.returns))


class OnGPU(Tensor):
    """A tensor of the stand-in. numbers: its values, on the CPU."""

    numbers: Tensor
    device = property(lambda self: GPU)
    is_cuda, is_cpu, is_meta = (
        property(lambda self, flag=flag: flag) for flag in (True, False, False)
    )
    __torch_function__ = torch._C._disabled_torch_function_impl

    def __new__(cls, numbers: Tensor) -> OnGPU:
        return Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls,
            numbers.size(),
            strides=numbers.stride(),
            storage_offset=numbers.storage_offset(),
            dtype=numbers.dtype,
            device=HIDDEN,
        )

    def __init__(self, numbers: Tensor) -> None:
        self.numbers = numbers

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["numbers"], None

    @staticmethod
    def __tensor_unflatten__(tensors: dict[str, Tensor], *_: Any) -> OnGPU:
        return OnGPU(tensors["numbers"])

    def __repr__(self) -> str:  # type: ignore[override]
        return f"OnGPU({self.numbers})"

    def tolist(self) -> Any:
        return self.numbers.tolist()

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        keywords = kwargs or {}
        return computed(func, args, keywords, leaves_of((args, keywords)))


def computed(func: Any, args: Any, kwargs: Any, leaves: list[Any]) -> Any:
    """The operation on the numbers; its result is where the operation was. leaves: of args and
    kwargs."""
    on_gpu = check_one_device(func, args, leaves)
    goes, device = on_gpu, kwargs.get("device")
    if device is not None:
        goes = torch.device(device) != CPU
    elif func in BETWEEN:
        goes = isinstance(args[0], OnGPU)
    elif func is aten._local_scalar_dense.default:
        goes = False
    arguments, named = mapped(_on_cpu, (args, kwargs))
    result = func(*arguments, **named)
    if not goes:
        return result
    result = mapped(_on_gpu, result)
    if not on_gpu or func is aten._to_copy.default or not shares_memory(func):
        return result
    return return_and_correct_aliasing(func, args, kwargs, result)


def check_one_device(func: Any, args: Any, leaves: list[Any]) -> bool:
    """Whether the operation is one of the GPU; RuntimeError where its tensors are not together.
    A single number may come from the CPU, and indices may."""
    tensors = [value for value in leaves if isinstance(value, Tensor)]
    are_on_gpu = [isinstance(tensor, OnGPU) for tensor in tensors]
    if any(are_on_gpu) and any(isinstance(value, Generator) for value in leaves):
        raise RuntimeError(f"{func}: expected a generator on {GPU}, got one on the CPU")
    if all(are_on_gpu) or not any(are_on_gpu) or func in BETWEEN:
        return any(are_on_gpu)
    here = [tensor for tensor, is_on_gpu in zip(tensors, are_on_gpu, strict=True) if not is_on_gpu]
    if func in INDEXED and isinstance(args[0], OnGPU):
        indices = leaves_of(args[1:2])
        here = [tensor for tensor in here if not any(tensor is index for index in indices)]
    if any(tensor.dim() for tensor in here):
        shapes = ", ".join(f"{tuple(tensor.shape)} on {tensor.device}" for tensor in tensors)
        raise RuntimeError(f"{func}: expected all tensors on the same device, got {shapes}")
    return True


def _on_cpu(value: Any) -> Any:
    if isinstance(value, torch.device):
        return CPU
    return value.numbers if isinstance(value, OnGPU) else value


def _on_gpu(value: Any) -> Any:
    return OnGPU(value) if isinstance(value, Tensor) and not isinstance(value, OnGPU) else value


class GPUMode(TorchDispatchMode):
    """Counts the operations of each device."""

    # with the key of this mode torch does not look for a driver where cuda:0 is named
    _mode_key = torch._C._TorchDispatchModeKey.FAKE

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # what switches the compiler off, at every operation, takes a third of it

    def __init__(self) -> None:
        super().__init__(_dispatch_key=None)
        self.counts = Counter[str]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        keywords = kwargs or {}
        leaves = leaves_of((args, keywords))
        if any(isinstance(leaf, OnGPU) for leaf in leaves):
            self.counts["gpu"] += 1
            return computed(func, args, keywords, leaves)
        self.counts["cpu"] += 1
        if any(isinstance(leaf, torch.device) for leaf in leaves):
            return computed(func, args, keywords, leaves)
        return func(*args, **keywords)  # nothing is there, nor goes there


@contextmanager
def stand_in_gpu() -> Iterator[GPUMode]:
    """Inside, there is a GPU."""
    with (
        mock.patch("torch.cuda.is_available", return_value=True),
        mock.patch("torch.cuda.device_count", return_value=1),
        GPUMode() as mode,
    ):
        yield mode
