"""Which engine runs, and that every way of calling one gives the same: by name, by torch.compile,
exported, in inference mode, under autocast, in several processes, one step at a time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from laws import OneNumber, Reading, Sizes
from parity import KernelInputs, needs_native
from torch import Tensor, nn
from torch.testing import assert_close

from ensue.cells import (
    CELLS,
    GRU,
    LSTM,
    Cell,
    LayerNormLSTM,
    PeepholeLSTM,
    RecurrentDropout,
    Residual,
    SimpleRNN,
    Zoneout,
)
from ensue.engine import NAMES, choose, eager, engines_used, run
from ensue.engine.native import native as native_function
from ensue.engine.native.stream import NativeStep
from ensue.errors import OptionError, ShapeError
from ensue.layers import GRU as GRULayer
from ensue.layers import LSTM as LSTMLayer
from ensue.layers import Recurrent

native_module = sys.modules[native_function.__module__]
CLOSE = {"rtol": 1e-4, "atol": 1e-5}
LENGTHS = torch.tensor([2, 0, 4])


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(1)


# --- which one runs ----------------------------------------------------------------------


@needs_native
@pytest.mark.parametrize("name", CELLS)
def test_auto_takes_native_for_every_cell(name: str) -> None:
    layer, x = Recurrent(name, 3, 4, 2, bidirectional=True), torch.randn(4, 3, 3)
    for lengths in (None, LENGTHS):
        with engines_used() as used:
            layer(x, lengths=lengths)
        assert used == ["native"] * 4  # layers and directions
    assert choose(CELLS[name](), x) == ("native", "")


def test_an_engine_is_taken_by_its_name() -> None:
    layer, x = Recurrent(LSTM(), 3, 4), torch.randn(4, 3, 3)
    for engine in ("eager", "bptt", "torch"):
        layer.engine = engine
        with engines_used() as used:
            layer(x)
        assert used == [engine]


def test_one_list_of_engines_inside_another() -> None:
    layer, x = Recurrent(LSTM(), 3, 4, engine="eager"), torch.randn(4, 3, 3)
    with engines_used() as outer:
        with engines_used() as inner:
            layer(x)
        layer(x)
    assert (inner, outer) == (["eager"], ["eager"])


@pytest.mark.parametrize(
    ("cell", "x", "expected", "reason"),
    [
        (LSTM(), torch.empty(2, 2, 3, device="meta"), "torch", "x is on meta, it runs on the CPU"),
        (PeepholeLSTM(), torch.empty(2, 2, 3, device="meta"), "eager", "x is on meta"),
        (
            GRU(),
            torch.empty(2, 2, 3).half(),
            "torch",
            "torch.float16 is not among float32, float64",
        ),
        (GRU(), torch.empty(0, 2, 3).half(), "eager", "torch.float16 is not among"),
    ],
)
def test_what_native_cannot_run_has_a_reason(
    cell: Cell, x: Tensor, expected: str, reason: str
) -> None:
    engine, choice = choose(cell, x)
    assert engine == expected
    assert reason in choice
    parameters = {n: x.new_empty(s) for n, s in cell.shapes(3, 4).items()}
    state = tuple(x.new_empty(2, 4) for _ in cell.parts)
    with pytest.raises(OptionError, match=r"native engine: "):
        run(cell, parameters, x, state, engine="native")


@pytest.mark.parametrize(("wrong", "meant"), [("nativ", "native"), ("egaer", "eager")])
def test_an_unknown_engine_gets_a_suggestion(wrong: str, meant: str) -> None:
    message = (
        f"unknown engine '{wrong}': did you mean '{meant}'\\? Known: auto, bptt, eager, native"
    )
    with pytest.raises(OptionError, match=message):
        Recurrent(LSTM(), 3, 4, engine=wrong)
    layer = LSTMLayer(3, 4)
    layer.engine = wrong
    with pytest.raises(OptionError, match=message):
        layer(torch.randn(2, 2, 3))


# --- torch's own kernels -----------------------------------------------------------------


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    "cell", [SimpleRNN("tanh"), SimpleRNN("relu"), GRU(), LSTM()], ids=lambda c: type(c).__name__
)
def test_the_torch_engine_is_the_eager_one(cell: Cell, reverse: bool) -> None:
    one = replace(KernelInputs.of(cell, 3, 5, 6, 4), reverse=reverse)
    assert_close(one.outcome("torch"), one.outcome("eager"), rtol=1e-9, atol=1e-10)


class Doubled(SimpleRNN):
    """A step of its own under the same parameters."""

    def step(self, x: Any, h: Any) -> Any:
        return 2 * super().step(x, h)


@pytest.mark.parametrize(
    ("cell", "shape", "lengths", "message"),
    [
        (PeepholeLSTM(), (4, 3, 3), None, "engine torch: PeepholeLSTM has no kernel there"),
        (SimpleRNN("sigmoid"), (4, 3, 3), None, "engine torch: SimpleRNN has no kernel there"),
        (Doubled(), (4, 3, 3), None, "engine torch: Doubled has no kernel there"),
        (Zoneout(LSTM()), (4, 3, 3), None, "engine torch: Zoneout has no kernel there"),
        (LSTM(), (4, 3, 3), LENGTHS, "engine torch: unequal lengths need packed sequences there"),
        (LSTM(), (0, 3, 3), None, "engine torch: no steps or no rows"),
    ],
)
def test_the_torch_engine_refuses_the_rest(
    cell: Cell, shape: tuple[int, ...], lengths: Tensor | None, message: str
) -> None:
    layer = Recurrent(cell, 3, 4, engine="torch").eval()
    with pytest.raises(OptionError, match=message):
        layer(torch.randn(shape), lengths=lengths)


# --- torch.compile and torch.export ------------------------------------------------------

COMPILED: dict[str, Callable[[], nn.Module]] = {
    "LSTM": lambda: Recurrent(LSTM(), 3, 5),
    "bidirectional stack": lambda: Recurrent(GRU(), 3, 5, 2, bidirectional=True),
    "shared end": lambda: Recurrent(
        LayerNormLSTM(), 3, 5, bidirectional=True, backward_start="shared_end"
    ),
    "an output of its own": lambda: Recurrent([Sizes(), Reading()], 3, 5),
    "outside training": lambda: Recurrent(Zoneout(OneNumber()), 3, 5).eval(),
    "drop-in": lambda: GRULayer(3, 5, 2, bidirectional=True),
}


def flat(state: Any) -> Iterator[Tensor]:
    if isinstance(state, Tensor):
        yield state
    else:
        for part in state:
            yield from flat(part)


def outcome(
    call: Callable[..., Any], layer: nn.Module, x: Tensor, lengths: Tensor | None
) -> list[Tensor]:
    """Outputs, final state, and the gradients of a cost of both."""
    x = x.clone().requires_grad_()
    y, state = call(x, lengths=lengths)
    values = [y, *flat(state)]
    cost = sum((v * torch.linspace(-1, 2, v.numel()).view(v.shape)).sum() for v in values)
    gradients = torch.autograd.grad(cost, [x, *layer.parameters()])
    return [v.detach() for v in values] + list(gradients)


@pytest.fixture
def compile_afresh() -> Iterator[None]:
    import torch._dynamo  # which is slow to import

    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@needs_native
@pytest.mark.usefixtures("compile_afresh")
@pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["dense", "lengths"])
@pytest.mark.parametrize("name", COMPILED)
def test_torch_compile_sees_one_whole_graph(name: str, lengths: Tensor | None) -> None:
    layer, x = COMPILED[name](), torch.randn(4, 3, 3)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    layer.engine = "eager"
    expected = outcome(layer, layer, x, lengths)
    layer.engine = "auto"
    assert_close(outcome(compiled, layer, x, lengths), expected, **CLOSE)
    other = x.flip(0)  # the same graph again
    values = outcome(compiled, layer, other, lengths)
    layer.engine = "eager"
    assert_close(values, outcome(layer, layer, other, lengths), **CLOSE)


@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")  # read by the compiler
@pytest.mark.usefixtures("compile_afresh")
@pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["dense", "lengths"])
@pytest.mark.parametrize("engine", ["eager", "bptt"])
def test_torch_compile_leaves_a_loop_in_python_alone(engine: str, lengths: Tensor | None) -> None:
    layer, x = COMPILED["bidirectional stack"](), torch.randn(4, 3, 3)
    layer.engine = engine
    compiled = torch.compile(layer, backend="aot_eager")
    expected = outcome(layer, layer, x, lengths)
    assert_close(outcome(compiled, layer, x, lengths), expected, **CLOSE)
    with torch._dynamo.config.patch(error_on_recompile=True):
        assert_close(outcome(compiled, layer, x, lengths), expected, **CLOSE)


@needs_native
@pytest.mark.usefixtures("compile_afresh")
def test_torch_compile_draws_masks_in_training() -> None:
    layer, x = Recurrent(Zoneout(LSTM(), 0.4), 3, 5), torch.randn(4, 3, 3)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    torch.manual_seed(7)
    values = outcome(compiled, layer, x, LENGTHS)
    torch.manual_seed(7)
    assert_close(values, outcome(layer, layer, x, LENGTHS), **CLOSE)


@needs_native
@pytest.mark.usefixtures("compile_afresh")
def test_lengths_are_checked_inside_a_graph_too() -> None:
    layer = Recurrent(LSTM(), 3, 5)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    x = torch.randn(4, 3, 3)
    compiled(x, lengths=LENGTHS)
    with pytest.raises(ShapeError, match=r"lengths\[1\] = 5: expected 0 to 4"):
        compiled(x, lengths=torch.tensor([2, 5, 4]))


@needs_native
@pytest.mark.usefixtures("compile_afresh")
@pytest.mark.parametrize("name", ["LSTM", "bidirectional stack", "outside training"])
def test_an_exported_program_does_the_same(name: str, tmp_path: Path) -> None:
    layer, x = COMPILED[name]().eval(), torch.randn(4, 3, 3)
    program = torch.export.export(layer, (x,), {"lengths": LENGTHS})
    assert_close(program.module()(x, lengths=LENGTHS), layer(x, lengths=LENGTHS), **CLOSE)
    torch.export.save(program, tmp_path / "program.pt2")
    again = torch.export.load(tmp_path / "program.pt2").module()
    other = torch.randn(4, 3, 3)
    assert_close(again(other, lengths=LENGTHS), layer(other, lengths=LENGTHS), **CLOSE)


@pytest.mark.usefixtures("compile_afresh")
@pytest.mark.parametrize("strict", [False, True], ids=["not strict", "strict"])
@pytest.mark.parametrize("engine", NAMES)
def test_an_exported_graph_has_one_operator_whatever_would_run(engine: str, strict: bool) -> None:
    """Loops cannot be traced over lengths that are not known, and no compiler is needed."""
    layer, x = Recurrent(LSTM(), 3, 5, engine=engine).eval(), torch.randn(4, 3, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native_module, "_missing_compiler", lambda: "no compiler is found")
        patch.setattr(native_module, "kernel_for", lambda *_: pytest.fail("a kernel was compiled"))
        program = torch.export.export(layer, (x,), {"lengths": LENGTHS}, strict=strict)
    called = [node.target for node in program.graph.nodes if node.op == "call_function"]
    assert called.count(torch.ops.ensue.recurrence.default) == 1
    assert not [target for target in called if "lstm" in str(target) or "mm" in str(target)]


# --- modes -------------------------------------------------------------------------------


def test_inference_mode() -> None:
    layer, x = Recurrent(PeepholeLSTM(), 3, 5, 2, bidirectional=True), torch.randn(4, 3, 3)
    expected = layer(x, lengths=LENGTHS)
    with torch.inference_mode():
        output = layer(x, lengths=LENGTHS)
        again = layer(x.clone(), output[1], lengths=LENGTHS)[0]
    assert output[0].is_inference()
    assert_close(output, expected, rtol=0, atol=0)
    assert_close(again, layer(x, expected[1], lengths=LENGTHS)[0], rtol=0, atol=0)


ENGINES_HERE = ["eager", pytest.param("native", marks=needs_native)]


@pytest.mark.parametrize("engine", ENGINES_HERE)
@pytest.mark.parametrize("make", [lambda: Recurrent(LSTM(), 4, 5), lambda: LSTMLayer(4, 5)])
def test_autocast_computes_in_the_type_of_the_parameters(
    make: Callable[[], nn.Module], engine: str
) -> None:
    """A linear layer in front gives bfloat16; cells keep to float32, in every engine."""
    front, layer, x = nn.Linear(3, 4), make(), torch.randn(4, 3, 3)
    layer.engine = engine
    with torch.autocast("cpu", torch.bfloat16):
        between = front(x)
        y, state = layer(between)
        continued, _ = layer(between, state)
    assert between.dtype == torch.bfloat16
    assert {v.dtype for v in (y, *flat(state), continued)} == {torch.float32}
    (y * y).sum().backward()
    gradients = [p.grad for p in layer.parameters()]
    assert front.weight.grad.isfinite().all()
    inputs = between.detach().float()
    exact, end = layer(inputs)
    expected = torch.autograd.grad((exact * exact).sum(), list(layer.parameters()))
    assert_close(y, exact, rtol=0, atol=0)
    assert_close(gradients, list(expected), rtol=0, atol=0)
    assert_close(continued, layer(inputs, end)[0], rtol=0, atol=0)


@needs_native
def test_the_native_backward_pass_keeps_its_type_inside_autocast() -> None:
    layer, x = Recurrent(LSTM(), 4, 5), torch.randn(40, 10, 4, requires_grad=True)
    by = [x, *layer.parameters()]
    with torch.autocast("cpu", torch.bfloat16):
        inside = torch.autograd.grad(layer(x)[0].sum(), by)
    assert {g.dtype for g in inside} == {torch.float32}
    assert_close(inside, torch.autograd.grad(layer(x)[0].sum(), by), rtol=0, atol=0)


def test_another_type_is_a_mistake_without_autocast() -> None:
    message = "expected torch.float32, the parameters' type, got torch.bfloat16"
    for layer in (Recurrent(LSTM(), 3, 5), LSTMLayer(3, 5)):
        with pytest.raises(ShapeError, match=message):
            layer(torch.randn(4, 3, 3).bfloat16())


# --- several processes -------------------------------------------------------------------

WORKER = """
import sys, torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from ensue.engine import engines_used
from ensue.layers import LSTM

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells, self.out = LSTM(3, 6, 2, bidirectional=True), nn.Linear(12, 1)
    def forward(self, x, lengths):
        return self.out(self.cells(x, lengths=lengths)[0])

torch.manual_seed(0)
model, x = Model(), torch.randn(5, 8, 3)
lengths = torch.tensor([5, 3, 0, 4, 5, 1, 2, 5])
rank, place = int(sys.argv[1]), sys.argv[2]
torch.distributed.init_process_group("gloo", init_method=f"file://{place}", rank=rank, world_size=2)
shared = DistributedDataParallel(model)
rows = slice(4 * rank, 4 * rank + 4)
for _ in range(2):  # twice: a bucket that is used again
    model.zero_grad()
    with engines_used() as used:
        shared(x[:, rows], lengths[rows]).square().mean().backward()
gradients = [p.grad.clone() for p in model.parameters()]
model.zero_grad()
model(x, lengths).square().mean().backward()
for a, b in zip(gradients, (p.grad for p in model.parameters())):
    torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)
torch.distributed.destroy_process_group()
print(*used)
"""


@pytest.mark.slow
@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch without torch.distributed")
def test_two_processes_find_the_gradient_of_one(tmp_path: Path) -> None:
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(rank), str(tmp_path / "meeting")],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    outputs = [worker.communicate(timeout=300) for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], outputs
    assert outputs[0][0] == outputs[1][0]


# --- one step at a time ------------------------------------------------------------------

STEPPED: dict[str, Cell] = {
    **{name: cell() for name, cell in CELLS.items()},
    "RecurrentDropout": RecurrentDropout(GRU()),
    "Zoneout": Zoneout(LSTM()),
    "Residual": Residual(LayerNormLSTM()),
    "all three": Residual(Zoneout(RecurrentDropout(LSTM()))),
    "OneNumber": OneNumber(),
    "Reading": Reading(),
    "Sizes": Sizes(),
}


def stepped(cell: Cell, batch: int = 3) -> tuple[KernelInputs, NativeStep]:
    one = replace(KernelInputs.of(cell, 5, 5, 6, batch), masks=None)
    return one, NativeStep(cell, one.parameters, 5, batch)


@needs_native
@pytest.mark.parametrize("name", STEPPED)
def test_steps_are_those_of_the_eager_engine(name: str) -> None:
    """With rows chosen again between steps, as a beam of hypotheses does."""
    cell = STEPPED[name]
    one, step = stepped(cell)
    state = theirs = one.state
    for k, x in enumerate(one.x):
        y, state = step.step(x, state)
        expected, theirs = eager(cell, one.parameters, x.unsqueeze(0), theirs)
        assert_close((y, state), (expected[0], theirs), rtol=1e-10, atol=1e-12)
        chosen = torch.tensor([[0, 1, 2], [2, 2, 0], [1, 0, 2]][k % 3])
        state, theirs = (tuple(s[chosen] for s in parts) for parts in (state, theirs))


@needs_native
@pytest.mark.parametrize("name", ["LSTM", "Reading"])
def test_steps_into_memory_of_ones_own(name: str) -> None:
    one, step = stepped(STEPPED[name])
    outs = step.empty(), step.empty()
    expected, final = eager(one.cell, one.parameters, one.x, one.state)
    state = one.state
    for k, x in enumerate(one.x):
        y, state = step.step(x, state, outs[k % 2])
        assert all(a is b for a, b in zip(state, outs[k % 2][1], strict=True))
        assert_close(y, expected[k], rtol=1e-10, atol=1e-12)
    assert_close(state, final, rtol=1e-10, atol=1e-12)


@needs_native
@pytest.mark.parametrize("batch", [0, 1, 17])
def test_a_step_of_any_number_of_rows(batch: int) -> None:
    one, step = stepped(STEPPED["LayerNormLSTM"], batch)
    expected, theirs = eager(one.cell, one.parameters, one.x[:1], one.state)
    assert_close(step.step(one.x[0], one.state), (expected[0], theirs), rtol=1e-10, atol=1e-12)


@needs_native
def test_a_step_names_what_is_wrong() -> None:
    one, step = stepped(STEPPED["LSTM"])
    x, (h, c) = one.x[0], one.state
    wrong: dict[str, tuple[Tensor, tuple[Tensor, ...]]] = {
        r"step: x: expected \(3, 5\) of torch.float64, got \(3, 4\)": (x[:, :4], (h, c)),
        r"step: x: expected \(3, 5\) .* got \(2, 5\)": (x[:2], (h, c)),
        r"step: c: expected \(3, 5\) of torch.float64, got \(3, 5\) of torch.float32": (
            x,
            (h, c.float()),
        ),
        r"step: h: expected a contiguous tensor": (x, (h[:, :1].expand(3, 5), c)),
        r"step: state: expected 2 parts \(h, c\), got 1": (x, (h,)),
    }
    for message, (inputs, state) in wrong.items():
        with pytest.raises(ShapeError, match=message):
            step.step(inputs, state)
    halves = {name: p.bfloat16() for name, p in one.parameters.items()}
    with pytest.raises(OptionError, match=r"step: expected parameters of float32 or float64"):
        NativeStep(one.cell, halves, 5, 3)
