"""One compiled cell: its buffers, its calls, and the large products around the loop."""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ensue.engine.native.cache import loaded
from ensue.engine.native.outer import add_outer
from ensue.engine.native.plan import Plan, make_plan
from ensue.engine.native.program import Place, Program
from ensue.engine.native.source import Function, write_source
from ensue.engine.native.threads import Threads, alone_in_a_child, runtime, thread_count
from ensue.equations import Equations
from ensue.equations.declare import Parameter
from ensue.equations.node import ONE

PAD = 16  # columns between rows: rows of 4096 bytes would meet in the same cache sets
DEFINES = {
    torch.float32: ("-DREAL=float", "-DREAL_BITS=32"),
    torch.float64: ("-DREAL=double", "-DREAL_BITS=64"),
}


STEPS = ("XP", "EX", "US")  # buffers with a row for every step: products of x, values saved


class Call(ctypes.Structure):
    """kernel.hpp's Call."""

    _fields_ = [
        *(
            (name, ctypes.c_void_p)
            for name in ("buffers", "sizes", "base", "alive", "index", "first")
        ),
        *((name, ctypes.c_long) for name in ("steps", "batch", "threads", "began")),
        ("reverse", ctypes.c_int),
        ("train", ctypes.c_int),
        ("products", ctypes.c_void_p),
        ("pack", ctypes.c_void_p),
    ]


@functools.cache
def core(dtype: torch.dtype) -> ctypes.CDLL:
    """The part of all kernels that does not depend on a cell."""
    source = Path(__file__).with_name("products.cpp").read_text()
    return loaded(source, DEFINES[dtype])


@dataclass
class Tape:
    """What the backward pass needs of a forward one."""

    plan: Plan
    buffers: dict[str, Tensor]


class Kernel:
    """The compiled equations of a cell, for one type of numbers."""

    def __init__(self, equations: Equations, dtype: torch.dtype) -> None:
        self.program, self.dtype = Program(equations), dtype
        self.source = write_source(self.program)
        self.library = loaded(self.source.text, DEFINES[dtype])
        shared = core(dtype)
        self.lanes = shared.lanes()
        self._products, self._pack = (
            ctypes.cast(f, ctypes.c_void_p).value for f in (shared.products, shared.pack)
        )
        self._entry = {name: getattr(self.library, name) for name in self.source.functions}
        self._layouts: dict[Any, tuple[int, dict[str, int], dict[str, int]]] = {}
        self.widths = dict(equations.graph.sizes)
        self._sizes = [self.widths[s] for s in self.source.sizes]
        self.flops = equations.counts().product_flops  # of a row and step
        self.parts = list(self.program.state)
        self.output_part = next(
            (p for p, n in self.program.state.items() if n is self.program.output), None
        )
        self._saved = self._saved_buffers()
        self.x_runs = self._x_runs()

    @property
    def taped(self) -> list[str]:
        """The buffers of a tape that cannot be made again of the inputs and outputs."""
        return [*self._saved, *(f"S_{part}" for part in self.parts)]

    def _saved_buffers(self) -> list[str]:
        """Those of the buffers of every step that the backward pass reads."""
        back = self.source.text.partition("static void backward_pack")[2]
        read = set(re.findall(r"\w+", back))
        read |= {run.source.buffer for run in self.program.runs if isinstance(run.source, Place)}
        return [n for n in STEPS if n in self.program.buffers and n in read]

    def plan(self, steps: int, batch: int, lengths: Tensor | None, reverse: bool) -> Plan:
        threads = thread_count(batch, steps * batch * self.flops)
        return make_plan(steps, batch, lengths, reverse, threads)

    def _x_runs(self) -> list[tuple[str, int, int, tuple[str, ...]]]:
        """Neighbouring gates of a matrix of x: (matrix, first gate, gates, column in XP)."""
        found: list[tuple[str, int, int, tuple[str, ...]]] = []
        for node in self.program.hoisted:
            ref, place = node.attr, self.program.x_products[node.attr]
            gate = self.program.order(ref)[1]
            if found and found[-1][0] == ref.name and found[-1][1] + found[-1][2] == gate:
                found[-1] = (ref.name, found[-1][1], found[-1][2] + 1, found[-1][3])
            else:
                found.append((ref.name, gate, 1, place.offset))
        return found

    def width(self, sizes: Sequence[str]) -> int:
        return sum(self.widths[s] for s in sizes)

    def block(self, parameters: Mapping[str, Tensor], name: str, gate: int, gates: int) -> Tensor:
        """The rows of neighbouring gates of a stacked parameter."""
        declared = self.program.equations.declarations[name]
        assert isinstance(declared, Parameter)
        rows = self.widths[declared.size]
        return parameters[name][gate * rows : (gate + gates) * rows]

    # ---------------------------------------------------------------- forward
    @alone_in_a_child()
    def forward(
        self,
        x: Tensor,
        state: Sequence[Tensor],
        parameters: Mapping[str, Tensor],
        masks: Mapping[str, Tensor],
        plan: Plan,
        train: bool,
        capacity: int = 0,
    ) -> tuple[Tensor, list[Tensor], Tape]:
        """Outputs (time, batch, features), final states (batch, features), and the tape, whose
        buffers have `capacity` rows if that is more than needed."""
        b = self.inputs(x, state, parameters, masks, plan)
        rows, packed = plan.rows, plan.index is not None
        for name in STEPS:
            if name in self.program.buffers:
                b[name] = x.new_empty(max(rows, capacity), self.tape_width(name))
        for name, gate, gates, column in self.x_runs:
            weight = self.block(parameters, name, gate, gates)
            columns = _columns(b["XP"][:rows], self.width(column), weight.shape[0])
            torch.mm(b["X"], weight.t(), out=columns)
        for part in self.parts:
            if packed or part != self.output_part:
                kept = max(rows - plan.began if packed else rows, capacity)
                b[f"S_{part}"] = x.new_empty(kept, self.tape_width(f"S_{part}"))
            b[f"F_{part}"] = b[f"H_{part}"].clone() if packed else b[f"H_{part}"]
        shape = (plan.steps, plan.batch, self.widths[self.program.output.size])
        y = x.new_zeros(shape) if packed else x.new_empty(shape)
        b["Y"] = y.view(-1, shape[2])
        if not packed and self.output_part is not None:
            b[f"S_{self.output_part}"] = b["Y"]
        if rows:
            self._call("forward", b, plan, x, train)
        final = [self._final(b, part, plan) for part in self.parts]
        if not packed and self.output_part is not None:
            del b[f"S_{self.output_part}"]
        del b["Y"]  # autograd keeps the output, and gives it back
        b = {n: t for n, t in b.items() if n not in STEPS or n in self._saved}
        return y, final, Tape(plan, b)

    def inputs(
        self,
        x: Tensor,
        state: Sequence[Tensor],
        parameters: Mapping[str, Tensor],
        masks: Mapping[str, Tensor],
        plan: Plan,
    ) -> dict[str, Tensor]:
        """The buffers that hold what was given, rows in the order in which they are stored."""
        b = {f"P_{n}": p.contiguous() for n, p in parameters.items()}
        b["X"] = self._stored(x, plan)
        b.update({f"M_{n}": self._mask(n, m, plan) for n, m in masks.items()})
        for part, begin in zip(self.parts, state, strict=True):
            b[f"H_{part}"] = _sorted(begin, plan)
        return b

    def tape_width(self, name: str) -> int:
        """Columns of a buffer of the tape, with the padding between its rows."""
        if name.startswith("S_"):
            return self.widths[self.program.state[name[2:]].size]
        return self.width(self.program.buffers[name].sizes) + PAD

    def _stored(self, x: Tensor, plan: Plan) -> Tensor:
        """Rows of (time, batch, features) in the order in which they are stored."""
        flat = x.reshape(plan.steps * plan.batch, x.shape[2])
        flat = flat if plan.index is None else flat.index_select(0, plan.index)
        return flat.contiguous()

    def _mask(self, name: str, mask: Tensor, plan: Plan) -> Tensor:
        if self.program.equations.declarations[name].over == "step":
            return self._stored(mask, plan)
        return _sorted(mask, plan)

    def _layout(self, function: Function, batch: int) -> tuple[int, dict[str, int], dict[str, int]]:
        """(numbers in all, first number of each buffer, row strides), on cache-line borders."""
        wide = self.width(function.scratch)
        strides = {
            "Z": wide + PAD if wide else 0,
            "RED": function.reductions * self.lanes,
            "RS": function.numbers,
        }
        counts = {name: batch * stride for name, stride in strides.items()}
        for panels in function.panels:
            units = -(-self.widths[panels.size] // self.lanes) * self.lanes
            counts[panels.buffer] = panels.gates * units * self.width(panels.columns)
        starts, at = {}, 0
        for name, count in counts.items():
            starts[name] = at
            at += -(-count // 16) * 16
        return at, starts, strides

    def _final(self, b: dict[str, Tensor], part: str, plan: Plan) -> Tensor:
        if plan.order is not None:
            return torch.empty_like(b[f"F_{part}"]).index_copy_(0, plan.order, b[f"F_{part}"])
        if plan.steps == 0:
            return b[f"H_{part}"].clone()
        states = b[f"S_{part}"]
        return (states[: plan.batch] if plan.reverse else states[-plan.batch :]).clone()

    def _call(self, name: str, b: dict[str, Tensor], plan: Plan, like: Tensor, train: bool) -> None:
        function = self.source.functions[name]
        key = (name, plan.batch)
        if key not in self._layouts:
            self._layouts[key] = self._layout(function, plan.batch)
        total, starts, strides = self._layouts[key]
        space = like.new_empty(total)  # work space, in use until the call is over
        begin, item = space.data_ptr(), space.element_size()
        names, sizes = function.buffers, len(self._sizes)
        c_pointers = (ctypes.c_void_p * len(names))()
        c_numbers = (ctypes.c_long * (sizes + len(names)))(*self._sizes)
        for k, buffer in enumerate(names):
            tensor = b.get(buffer)
            if tensor is not None:
                c_pointers[k] = tensor.data_ptr()
                if tensor.dim() == 2:
                    c_numbers[sizes + k] = tensor.stride(0)
            elif buffer in starts:
                c_pointers[k] = begin + starts[buffer] * item
                c_numbers[sizes + k] = strides.get(buffer, 0)
        call = Call(
            ctypes.addressof(c_pointers),
            ctypes.addressof(c_numbers),
            *(t.data_ptr() if t is not None else None for t in (plan.base, plan.alive, plan.index)),
            plan.first.data_ptr(),
            plan.steps,
            plan.batch,
            plan.threads,
            plan.began,
            plan.reverse,
            train,
            self._products,
            self._pack,
        )
        self._entry[name](ctypes.byref(call), ctypes.byref(runtime() or Threads()))

    # ---------------------------------------------------------------- backward
    @alone_in_a_child()
    def backward(
        self,
        tape: Tape,
        parameters: dict[str, Tensor],
        y: Tensor,
        d_y: Tensor,
        d_final: Sequence[Tensor],
        want_x: bool,
        want: set[str],
    ) -> tuple[Tensor | None, list[Tensor], dict[str, Tensor]]:
        """Derivatives by x, by the initial state and by the parameters that are wanted."""
        plan, b = tape.plan, dict(tape.buffers)
        if self.output_part is not None and plan.index is None:
            b[f"S_{self.output_part}"] = y.view(plan.rows, y.shape[2])
        like = b["X"]
        b["DY"] = d_y.contiguous().view(plan.steps * plan.batch, d_y.shape[2])
        if "D" in self.program.buffers:
            b["D"] = like.new_empty(plan.rows, self.tape_width("D"))
        if self.program.d_x is not None:
            b["DX"] = like.new_empty(plan.rows, like.shape[1])
        sums = [self.widths[n.size] for n in self.program.d_vectors.values()]
        b["ACC"] = like.new_zeros(plan.threads, 2 * sum(-(-n // 16) * 16 for n in sums))
        for part, d in zip(self.parts, d_final, strict=True):
            carried = _sorted(d, plan)
            if part in self.program.doubled:
                b[f"I_{part}"], b[f"Q_{part}"] = carried.clone(), carried.clone()
            else:
                b[f"C_{part}"] = carried.clone()
        if plan.rows:
            self._call("backward", b, plan, like, True)
        d_state = [self._carried(b, part, plan) for part in self.parts]
        d_x = self._d_x(b, parameters, plan) if want_x else None
        return d_x, d_state, self._d_parameters(b, parameters, plan, want)

    def _carried(self, b: dict[str, Tensor], part: str, plan: Plan) -> Tensor:
        if part in self.program.doubled:
            d = b[f"Q_{part}"] if plan.steps % 2 else b[f"I_{part}"]
        else:
            d = b[f"C_{part}"]
        return d if plan.order is None else torch.empty_like(d).index_copy_(0, plan.order, d)

    def _d_x(self, b: dict[str, Tensor], parameters: dict[str, Tensor], plan: Plan) -> Tensor:
        d_x = b.get("DX")
        for run in self.program.runs:
            if run.source != "x":
                continue
            weight = self.block(parameters, run.matrix, run.first_gate, run.gates)
            d = _columns(b["D"], self.width(run.offset), weight.shape[0])
            if d_x is None:  # into a given tensor, here and below: autocast leaves its type alone
                d_x = torch.mm(d, weight, out=d.new_empty(d.shape[0], weight.shape[1]))
            else:
                d_x.addmm_(d, weight)
        shape = (plan.steps, plan.batch, b["X"].shape[1])
        if d_x is None:
            return b["X"].new_zeros(shape)
        if plan.index is not None:
            full = d_x.new_zeros(plan.steps * plan.batch, d_x.shape[1])
            d_x = full.index_copy_(0, plan.index, d_x)
        return d_x.view(shape)

    def _d_parameters(
        self, b: dict[str, Tensor], parameters: dict[str, Tensor], plan: Plan, want: set[str]
    ) -> dict[str, Tensor]:
        found: dict[str, Tensor] = {}
        written: set[tuple[str, int]] = set()  # gates of matrices
        for run in self.program.runs:
            if run.matrix not in want:
                continue
            if run.matrix not in found:
                found[run.matrix] = torch.zeros_like(
                    parameters[run.matrix], memory_format=torch.contiguous_format
                )
            rows = self.block(found, run.matrix, run.first_gate, run.gates)
            d = _columns(b["D"], self.width(run.offset), rows.shape[0])
            gates = {(run.matrix, run.first_gate + k) for k in range(run.gates)}
            fresh = not gates & written
            written |= gates
            for adjoint, operand in self._pairs(b, run.source, d, plan):
                add_outer(adjoint, operand, rows, fresh)
                fresh = False
        self._d_vectors(b, parameters, found, want)
        for name in want - found.keys():
            found[name] = torch.zeros_like(parameters[name])
        return found

    def _pairs(
        self, b: dict[str, Tensor], source: str | Place, d: Tensor, plan: Plan
    ) -> list[tuple[Tensor, Tensor]]:
        """(adjoints, operands), row by row, whose products are a matrix's gradient."""
        if source == "x":
            return [(d, b["X"])]
        if isinstance(source, Place):
            width = next(n.width for n, p in self.program.places.items() if p == source)
            return [(d, _columns(b[source.buffer][: plan.rows], self.width(source.offset), width))]
        begin, n = b[f"H_{source}"], plan.began
        states = b[f"S_{source}"][: plan.rows - n if plan.started is not None else plan.rows]
        if plan.started is not None:
            return [(d[n:], states), (d[:n], begin.index_select(0, plan.started))]
        if plan.reverse:
            return [(d[:-n], states[n:]), (d[-n:], begin)] if plan.rows else []
        return [(d[n:], states[:-n]), (d[:n], begin)] if plan.rows else []

    def _d_vectors(
        self,
        b: dict[str, Tensor],
        parameters: dict[str, Tensor],
        found: dict[str, Tensor],
        want: set[str],
    ) -> None:
        sums, at = b["ACC"][:, b["ACC"].shape[1] // 2 :].sum(0), 0
        seen: dict[Any, Tensor] = {}
        for ref, node in self.program.d_vectors.items():
            width = self.widths[node.size]
            value = sums[at : at + width]
            at += -(-width // 16) * 16
            value = value if node.size == ONE else seen.setdefault(node, value)
            if ref.name in want:
                if ref.name not in found:
                    found[ref.name] = torch.zeros_like(parameters[ref.name])
                gate = self.program.order(ref)[1]
                self.block(found, ref.name, gate, 1).copy_(value)


def _sorted(v: Tensor, plan: Plan) -> Tensor:
    """Rows of a (batch, features) tensor in the order in which they are stored."""
    return v.contiguous() if plan.order is None else v.index_select(0, plan.order)


def _columns(buffer: Tensor, first: int, count: int) -> Tensor:
    return buffer[:, first : first + count]
