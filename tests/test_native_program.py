"""What a kernel is made of: its programs, buffers and schedules, before anything is compiled.

Each law runs over every built-in cell and the odd ones of the laws, for whole sequences and for a
single step, with masks and without."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
import torch
from laws import (
    Elementwise,
    Functions,
    Masked,
    NumberTimesState,
    OneNumber,
    Reading,
    SeveralOperands,
    Sizes,
    nested,
)
from parity import needs_native

from ensue.cells import CELLS, GRU, LSTM, Cell, GRUResetBefore, LayerNormLSTM, SimpleRNN, Zoneout
from ensue.engine.native.emission import buffers
from ensue.engine.native.emission.buffers import (
    ADJOINTS,
    NUMBERS_SAVED,
    PRODUCTS,
    Buffer,
    GateRun,
    Operand,
    X,
    join_neighbours,
)
from ensue.engine.native.emission.directions import backward_direction, forward_direction
from ensue.engine.native.emission.program import (
    Program,
    sequence_program,
    single_step_program,
    stream_program,
)
from ensue.engine.native.emission.source import write_source, write_step_source
from ensue.engine.native.kernel import Kernel
from ensue.engine.recurrence import Recurrence
from ensue.equations import Equations, Matrix, below, mean, tanh
from ensue.equations.schedule import REDUCTIONS, Schedule

MADE: dict[str, Callable[[], Cell]] = {
    **CELLS,
    "Sizes": Sizes,
    "Elementwise": Elementwise,
    "Functions": Functions,
    "Reading": Reading,
    "OneNumber": OneNumber,
    "Masked": Masked,
    "SeveralOperands": SeveralOperands,
    "NumberTimesState": NumberTimesState,
    "Zoneout(OneNumber)": lambda: Zoneout(OneNumber()),
    "nested": nested,
}
PROGRAMS: dict[str, Callable[[Equations], Program]] = {
    "sequence": sequence_program,
    "single step": single_step_program,
}
ROWS = [(name, kind, training) for name in MADE for kind in PROGRAMS for training in (True, False)]


@pytest.fixture(params=ROWS, ids=lambda row: f"{row[0]}, {row[1]}{', masks' * row[2]}")
def program(request: pytest.FixtureRequest) -> Program:
    name, kind, training = request.param
    return PROGRAMS[kind](MADE[name]().equations(17, 17, training))


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


# --- what is read and what is stored ------------------------------------------------------


def kept_from_forward(program: Program) -> list[Buffer]:
    """The buffers that the forward pass fills or is given, and the backward one never writes."""
    input_buffers = [buffer for buffer in program.forward.columns if buffer != ADJOINTS]
    return [*input_buffers, *(buffers.states(part) for part in program.forward.state)]


def test_the_backward_pass_reads_what_its_schedule_says(program: Program) -> None:
    """The emitted code names these buffers and no others."""
    text = write_source(program).text.partition("static void backward_rows")[2]
    tape_buffers, named = kept_from_forward(program), words(text)
    schedule, locations = program.backward.schedule, program.backward.locations
    read = {locations[node].buffer for node in schedule.reads if node in locations}
    assert {b.name for b in tape_buffers if b in read} == {
        b.name for b in tape_buffers if b.name in named
    }


def test_so_does_the_forward_pass(program: Program) -> None:
    """Except for values that it both saves and reads again, which it has computed."""
    forward = program.forward
    text = write_source(program).text.partition("static void forward_rows")[2]
    text = text.partition("static void backward_pack")[0]
    input_buffers = [b for b in kept_from_forward(program) if b not in (PRODUCTS, NUMBERS_SAVED)]
    read = {forward.locations[n].buffer for n in forward.schedule.reads if n in forward.locations}
    states = {buffers.states(part) for part in forward.state}  # written too
    assert {b for b in input_buffers if b in read} | states == {
        b for b in input_buffers if b.name in words(text)
    }


def test_whatever_is_read_has_been_stored(program: Program) -> None:
    """A value that the backward pass reads is given to it, or stored by the forward pass."""
    stored = {
        (node, store.location)
        for node, stores in forward_direction(program.forward).stores.items()
        for store in stores
    }
    input_nodes = {program.forward.equations.x, *program.forward.equations.old.values()}
    for node in program.backward.schedule.reads:
        if node.op in ("constant", "count", "vector", "mask", "given") or node in input_nodes:
            continue
        hoisted = node in program.forward.hoisted  # the product before the loop stores it
        assert hoisted or (node, program.backward.locations[node]) in stored


def test_no_product_or_reduction_is_computed_again(program: Program) -> None:
    """What would need one is saved; the elementwise rest is not."""
    forward, costly = program.forward, ("dot", "product", *REDUCTIONS)
    computed = set(below([forward.output, *forward.state.values()]))
    for stage in program.backward.schedule.stages:
        phases = [node for phase in stage.phases.values() for node in phase.body]
        again = computed & {*phases, *stage.scalars}
        assert not [node for node in again if node.op in costly]


@needs_native
@pytest.mark.parametrize(
    ("cell", "taped"),
    [(SimpleRNN(), "S_h"), (GRU(), "XP S_h"), (LSTM(), "XP S_h S_c"), (LayerNormLSTM(), "XP US")],
)
def test_a_tape_keeps_what_is_read_and_nothing_else(cell: Cell, taped: str) -> None:
    kernel = Kernel(cell.equations(3, 5), torch.float32)
    assert [b.name for b in kernel.layout.buffers][: len(taped.split())] == taped.split()
    one = [torch.zeros(2, 5) for _ in cell.parts]
    parameters = {name: torch.zeros(shape) for name, shape in cell.shapes(3, 5).items()}
    _, _, tape = kernel.run(Recurrence(cell, parameters, torch.zeros(4, 2, 3), tuple(one)), True)
    tape_buffers = {b.name for b in tape.memory} & {"XP", "US"}
    assert tape_buffers == set(taped.split()) & {"XP", "US"}


# --- where values are stored --------------------------------------------------------------


def test_saved_values_do_not_share_memory(program: Program) -> None:
    locations = [program.forward.locations[node] for node in program.forward.saved]
    assert len(set(locations)) == len(locations)
    adjoints = list(program.backward.adjoints.values())
    assert len(set(adjoints)) == len(adjoints)


def test_an_adjoint_comes_over_a_saved_value_once_that_has_been_read(program: Program) -> None:
    """Walks through the backward pass and forgets what is written over."""
    backward, written, sizes = program.backward, set[int](), program.forward.columns
    if backward.overlay:
        assert sizes[PRODUCTS][: len(sizes[ADJOINTS])] == sizes[ADJOINTS]

    def is_there(node: Any) -> bool:
        location = backward.locations[node]
        over = backward.overlay and location.buffer is PRODUCTS
        return not over or location.slot not in written

    for phase in backward.schedule.phases:
        assert all(is_there(n) for n in phase.loads if n in backward.locations)
        slots = {backward.adjoints[n].slot for n in phase.stores if n in backward.adjoints}
        assert slots.isdisjoint(written)
        written |= slots
        operands = {operand for dot in phase.dots for operand in dot.args}
        assert all(is_there(n) for n in operands if n in backward.locations)
    for run in backward.products:
        if backward.overlay and run.operand.buffer is PRODUCTS:
            assert run.operand.column >= program.forward.width(ADJOINTS)


def test_every_buffer_of_a_function_has_a_name_of_its_own(program: Program) -> None:
    for direction in (forward_direction(program.forward), backward_direction(program)):
        names = [buffer.name for buffer in direction.buffers]
        assert len(set(names)) == len(names)
    assert buffers.states("h") is buffers.states("h")
    assert buffers.states("h") != buffers.initial("h")


# --- products outside of the loop ---------------------------------------------------------


def test_every_product_before_the_loop_is_in_one_run(program: Program) -> None:
    forward, equations = program.forward, program.equations
    columns = sorted(
        k for run in forward.products for k in range(run.column, run.column + run.height)
    )
    assert columns == list(range(sum(n.width for n in forward.hoisted)))
    for run in forward.products:
        assert run.height % run.gates == 0
        assert 0 <= run.first < run.last <= equations.shapes[run.matrix][0]
        assert run.operand.width == equations.shapes[run.matrix][1]


def test_neighbouring_gates_are_one_product() -> None:
    (before,) = sequence_program(LSTM().equations(3, 5)).forward.products
    assert before == GateRun("W", 0, 4, 0, 20, 0, Operand(X, 0, 3))
    after = single_step_program(GRUResetBefore().equations(3, 5)).backward.products
    assert [(run.matrix, run.gates, run.operand.part) for run in after] == [
        ("W", 3, None),
        ("U", 2, "h"),
        ("U", 1, None),
    ]


def test_gates_of_different_operands_stay_apart() -> None:
    one = GateRun("U", 0, 1, 0, 5, 0, Operand(X, 0, 5))
    beside = GateRun("U", 1, 1, 5, 10, 5, Operand(X, 0, 5))
    other = beside._replace(operand=Operand(buffers.initial("h"), 0, 5, "h"))
    assert join_neighbours([one, beside]) == [one._replace(gates=2, last=10)]
    assert join_neighbours([one, other]) == [one, other]
    assert join_neighbours([one, beside._replace(column=6)]) == [one, beside._replace(column=6)]


# --- schedules ----------------------------------------------------------------------------


def test_a_schedule_reads_no_value_that_it_computes(program: Program) -> None:
    for schedule in (program.forward.schedule, program.backward.schedule):
        computed = {node for phase in schedule.phases for node in phase.body}
        assert computed.isdisjoint(schedule.reads)


def test_reads_of_a_schedule_by_hand() -> None:
    equations = SimpleRNN().equations(3, 5)
    schedule: Schedule = stream_program(equations).schedule
    read = {node.op for node in schedule.reads}
    assert read == {"x", "state", "vector"}
    assert {equations.x, *equations.old.values()} <= set(schedule.reads)


# --- the text -----------------------------------------------------------------------------

DIGESTS = """
import hashlib, sys
sys.path.insert(0, sys.argv[1])
from test_native_program import Numbers, MADE, PROGRAMS, write_source
for make in (Numbers, *MADE.values()):
    for program in PROGRAMS.values():
        text = write_source(program(make().equations(17, 17))).text
        print(hashlib.sha256(text.encode()).hexdigest())
"""


class Numbers(Cell):
    """Three parts that are single numbers: the adjoint of each is read after it is written."""

    W = Matrix("x")
    part_sizes: ClassVar = {"first": "one", "second": "one", "third": "one"}

    def step(self, x: Any, h: Any, first: Any, second: Any, third: Any) -> Any:
        h = tanh(self.W @ x + h * first)
        return h, second * mean(h), third * first, first * second


def test_several_parts_may_need_two_buffers() -> None:
    """The order is that of the parts, for the text to be the same in every process."""
    program = sequence_program(Numbers().equations(5, 5))
    assert program.backward.doubled == ["first", "second", "third"]


def test_the_text_is_the_same_in_every_process() -> None:
    """Or it would be compiled again."""
    outputs = []
    for seed in ("1", "2"):
        command = [sys.executable, "-c", DIGESTS, os.path.dirname(__file__)]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        outputs.append(done.stdout.split())
    assert outputs[0] == outputs[1]
    assert len(outputs[0]) == 2 * (1 + len(MADE))


def test_a_step_by_itself_has_no_backward_pass() -> None:
    source = write_step_source(stream_program(LSTM().equations(3, 5)))
    assert list(source.functions) == ["forward"]
    assert "backward" not in source.text
    assert PRODUCTS not in source.functions["forward"].buffers


# --- what an engine is given --------------------------------------------------------------


def test_a_recurrence_is_made_again_of_its_constants_and_tensors() -> None:
    cell = LSTM()
    parameters = {name: torch.randn(shape) for name, shape in cell.shapes(3, 5).items()}
    one = Recurrence(cell, parameters, torch.randn(4, 2, 3), (torch.zeros(2, 5),) * 2, reverse=True)
    x, *rest = one.tensors
    again = one.constants.recurrence(x, tuple(rest))
    assert again == one
    assert one.sizes == (3, 5, False)


def test_a_recurrence_in_reverse_goes_forwards_over_turned_input() -> None:
    cell, lengths = Zoneout(Masked()), torch.tensor([3, 1])
    masks = {
        name: torch.randn(2, 5) if mask.over == "sequence" else torch.randn(3, 2, 5)
        for name, mask in cell.masks.items()
    }
    assert {mask.over for mask in cell.masks.values()} == {"sequence", "step"}
    x, state = torch.randn(3, 2, 5), (torch.zeros(2, 5),)
    one = Recurrence(cell, {}, x, state, lengths, masks, reverse=True)
    turned = one.forwards()
    assert not turned.reverse
    assert torch.equal(turned.x[:, 0], x[:, 0].flip(0))
    assert torch.equal(turned.x[:, 1], x[:, 1])
    assert turned.masks is not None
    for name, mask in cell.masks.items():
        same = torch.equal(turned.masks[name], masks[name])
        assert same == (mask.over == "sequence")
    assert turned.forwards() is turned
