"""Steps one at a time: weights are packed once; a step then takes a few microseconds.

For serving and decoding. Calls go directly to the kernel, without torch's dispatcher, in the
calling thread; no gradients are recorded.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from threading import Lock

from torch import Tensor

from ensue.cells.cell import Cell
from ensue.engine.native.cache import loaded
from ensue.engine.native.call import DEFINES, Call, Threads, WorkSpace, core
from ensue.engine.native.emission import buffers
from ensue.engine.native.emission.buffers import Buffer, X, Y
from ensue.engine.recurrence import hidden_size
from ensue.errors import OptionError, ShapeError


class NativeStep:
    """A cell with its weights packed, for `batch` rows. Masks are their expectations.

    Parameters are read at construction: construct it again after they change. Threads may share
    it; they share one work space, so their steps wait for each other."""

    def __init__(
        self, cell: Cell, parameters: Mapping[str, Tensor], input_size: int, batch: int
    ) -> None:
        equations = cell.equations(input_size, hidden_size(cell, parameters), training=False)
        self._parameters_copy = {n: p.detach().contiguous().clone() for n, p in parameters.items()}
        like = next(iter(self._parameters_copy.values()))
        if like.dtype not in DEFINES:
            raise OptionError(f"step: expected parameters of float32 or float64, got {like.dtype}")
        self.dtype, self.batch, self.parts = like.dtype, batch, cell.parts
        self.widths = dict(equations.graph.sizes)
        self.input_size, self.output_size = input_size, equations.output.width
        self.state_sizes = [n.width for n in equations.old.values()]
        from ensue.engine.native.emission.program import stream_program
        from ensue.engine.native.emission.source import write_step_source

        program = stream_program(equations)
        source = write_step_source(program)
        self._function = source.functions["forward"]
        self._library = loaded(source.text, DEFINES[self.dtype])
        self.output_part = program.output_part
        self._memory = self._allocate(like)
        self._lock = Lock()
        self._prepare([self.widths[size] for size in source.sizes])

    def _allocate(self, like: Tensor) -> dict[Buffer, Tensor]:
        """Allocates all buffers except x, the states and the output, which change with each
        step."""
        memory = {buffers.parameter(n): p for n, p in self._parameters_copy.items()}
        space = WorkSpace(self._function, self.widths, core(self.dtype).lanes())
        total, starts = space.layout(self.batch)
        whole = like.new_empty(total)
        memory |= {buffer: whole[start:] for buffer, start in starts.items()}
        for buffer, width in space.strides.items():
            memory[buffer] = memory[buffer][: self.batch * width].view(-1, width or 1)
        return memory

    def _strides(self) -> list[int]:
        """The row stride of each buffer."""
        strides = {b: v.stride(0) for b, v in self._memory.items() if v.dim() == 2}
        strides |= {X: self.input_size, Y: self.output_size}
        for part, size in zip(self.parts, self.state_sizes, strict=True):
            of_part = (buffers.states(part), buffers.initial(part), buffers.final(part))
            strides |= dict.fromkeys(of_part, size)
        return [strides.get(buffer, 0) for buffer in self._function.buffers]

    def _prepare(self, sizes: list[int]) -> None:
        """Fills in the parts of the call that stay the same for all steps, and packs the
        weights."""
        listed, memory = self._function.buffers, self._memory
        numbers = [*sizes, *self._strides()]
        self._pointers = (ctypes.c_void_p * len(listed))(
            *(memory[b].data_ptr() if b in memory else None for b in listed)
        )
        self._numbers = (ctypes.c_long * len(numbers))(*numbers)
        self._first = (ctypes.c_long * 2)(0, self.batch)
        shared = core(self.dtype)
        self._call = Call(
            buffers=ctypes.addressof(self._pointers),
            sizes=ctypes.addressof(self._numbers),
            first=ctypes.addressof(self._first),
            steps=1,
            batch=self.batch,
            threads=1,
            began=self.batch,
            products=ctypes.cast(shared.products, ctypes.c_void_p),
            pack=ctypes.cast(shared.pack, ctypes.c_void_p),
        )
        self._threads = Threads()
        self._arguments = (ctypes.byref(self._call), ctypes.byref(self._threads))
        self._library.pack_forward(*self._arguments)
        self._run = self._library.run_forward
        self._at_x, self._at_y = listed.index(X), listed.index(Y)
        self._at_old = [listed.index(buffers.initial(part)) for part in self.parts]
        self._at_new = [listed.index(buffers.states(part)) for part in self.parts]

    def empty(self) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Tensors for an output and a state, for the argument `out` of `step`."""
        like = next(iter(self._parameters_copy.values()))
        state = tuple(like.new_empty(self.batch, size) for size in self.state_sizes)
        if self.output_part is not None:
            return state[self.parts.index(self.output_part)], state
        return like.new_empty(self.batch, self.output_size), state

    def check(self, x: Tensor, state: Sequence[Tensor]) -> None:
        if len(state) != len(self.parts):
            parts = ", ".join(self.parts)
            raise ShapeError(
                f"step: state: expected {len(self.parts)} parts ({parts}), got {len(state)}"
            )
        expected = [(self.batch, n) for n in (self.input_size, *self.state_sizes)]
        for name, tensor, shape in zip(("x", *self.parts), (x, *state), expected, strict=True):
            if tuple(tensor.shape) != shape or tensor.dtype != self.dtype:
                raise ShapeError(
                    f"step: {name}: expected {shape} of {self.dtype}, "
                    f"got {tuple(tensor.shape)} of {tensor.dtype}"
                )
            if not tensor.is_contiguous():
                raise ShapeError(f"step: {name}: expected a contiguous tensor")

    def step(
        self,
        x: Tensor,
        state: Sequence[Tensor],
        out: tuple[Tensor, tuple[Tensor, ...]] | None = None,
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """x (batch, input) and the state in, output (batch, features) and the new state out.

        `out`, from `empty`, is overwritten and returned; it must not share memory with `state`."""
        if out is None:
            self.check(x, state)
            out = self.empty()
        y, new = out
        pointers = self._pointers
        with self._lock:
            pointers[self._at_x] = x.data_ptr()
            for at, tensor in zip(self._at_old, state, strict=True):
                pointers[at] = tensor.data_ptr()
            for at, tensor in zip(self._at_new, new, strict=True):
                pointers[at] = tensor.data_ptr()
            if self.output_part is None:
                pointers[self._at_y] = y.data_ptr()
            self._run(*self._arguments)
        return out
