"""`ensue demo cell`: what "a cell is its equations" means, shown in a few seconds.

Nothing is read from a file and nothing is trained; every number is computed while you look.
torch is imported after the first lines are printed.
"""

from __future__ import annotations

import inspect
import math
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from ensue.demo.console import begin, heading, indented, note, one_thread
from ensue.drawing import write
from ensue.errors import OptionError

if TYPE_CHECKING:
    from torch import Tensor

    from ensue.cells import Cell

STEPS, ROWS, INPUTS, UNITS = 12, 3, 5, 6  # for the gradients
FARTHEST, WARM_UP, WIDE = 40, 20, 32  # of the memory chart: steps, earlier steps, units
LOWEST = -10  # lowest value of the chart, as a power of ten
BLOCKS = " ▁▂▃▄▅▆▇█"


def run(folder: Path) -> None:
    """The whole demo, on stdout; pictures go into the folder."""
    console = begin("A cell is its equations: they are written once, and the rest is derived.")
    _say_equations(console)
    with one_thread():
        _say_gradients(console)
        _say_memory(console)
    _say_pictures(console, folder)


# -------------------------------------------------------------------- 1: the equations
def _say_equations(console: Console) -> None:
    heading(console, 1, "The peephole LSTM, as its author wrote it")
    from ensue.cells import PeepholeLSTM

    source = textwrap.dedent(inspect.getsource(PeepholeLSTM.step))
    code = Syntax(source.rstrip(), "python", theme="ansi_dark", background_color="default")
    indented(console, code if console.is_terminal else source.rstrip())
    console.print("    The equations that were read from it:\n")
    indented(console, Text(PeepholeLSTM().equations().text(), style="cyan"))


# -------------------------------------------------------------------- 2: gradients
def gradients() -> dict[str, dict[str, Tensor]]:
    """The gradient of one cost by every parameter of a peephole LSTM, in four ways, float64.

    The cost is a fixed random combination of all outputs of all steps."""
    import torch

    from ensue.cells import PeepholeLSTM
    from ensue.engine import run as run_cell
    from ensue.layers import Recurrent

    torch.manual_seed(1)
    layer = Recurrent(PeepholeLSTM(), INPUTS, UNITS, init="torch").double()
    x = torch.randn(STEPS, ROWS, INPUTS, dtype=torch.float64)
    weights = torch.randn(STEPS, ROWS, UNITS, dtype=torch.float64)
    cell, parameters = layer.ways[0].way()
    zero = tuple(x.new_zeros(ROWS, UNITS) for _ in cell.parts)

    def cost(engine: str) -> Tensor:
        return (weights * run_cell(cell, parameters, x, zero, engine=engine)[0]).sum()

    def backward(engine: str) -> dict[str, Tensor]:
        slopes = torch.autograd.grad(cost(engine), list(parameters.values()))
        return dict(zip(parameters, slopes, strict=True))

    stream = layer.rtrl(ROWS)
    forward = {name: torch.zeros_like(p) for name, p in parameters.items()}
    for t in range(STEPS):
        stream.step(x[t])
        for name, gradient in stream.gradient(weights[t])[0].items():
            forward[name] += gradient
    return {
        "autograd of the loop": backward("eager"),
        "derivative graph": backward("bptt"),
        "RTRL": forward,
        "finite differences": _differences(lambda: cost("eager"), parameters),
    }


def _differences(cost: Callable[[], Tensor], parameters: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Central differences, one number at a time."""
    import torch

    slopes, step = {}, 1e-5
    with torch.no_grad():
        for name, parameter in parameters.items():
            flat, slope = parameter.view(-1), torch.zeros_like(parameter)
            for k in range(flat.numel()):
                number = flat[k].item()
                flat[k] = number + step
                above = cost()
                flat[k] = number - step
                slope.view(-1)[k] = (above - cost()) / (2 * step)
                flat[k] = number
            slopes[name] = slope
    return slopes


def _say_gradients(console: Console) -> None:
    heading(console, 2, "Its gradient, four independent ways")
    results = gradients()
    reference = results.pop("autograd of the loop")
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    table.add_column("parameter")
    table.add_column("largest gradient", justify="right")
    for way in results:
        table.add_column(way, justify="right", style="green")
    for name, gradient in reference.items():
        largest = f"{gradient.abs().max().item():.3f}"
        apart = [f"{(g[name] - gradient).abs().max().item():.0e}" for g in results.values()]
        shape = "×".join(map(str, gradient.shape))
        table.add_row(f"{name}  {shape}", largest, *apart)
    console.print("    Largest difference from torch's autograd of the time loop:")
    indented(console, table, after=0)
    note(
        console,
        f"""float64, {STEPS} steps, {ROWS} rows. The derivative graph is the step's graph,
        differentiated and walked backwards in time (BPTT); RTRL carries exact derivatives
        forwards in time; finite differences move one number at a time.""",
    )


# -------------------------------------------------------------------- 3: memory
def reach(cell: Cell, keep: float = 0.0) -> tuple[list[float], float]:
    """‖∂s_t/∂s_k‖₂ for t − k = 1, 2, … along a random input, s the whole state; and σ_max(U).

    It is the product of the step's exact Jacobians, for a layer that was just initialised with the
    scheme "standard". `keep` is added to the biases of the gate z."""
    import torch

    from ensue.engine import jacobian
    from ensue.engine.bptt import step_leaves
    from ensue.engine.eager import one_step
    from ensue.engine.interpreter import Blocks
    from ensue.layers import Recurrent

    torch.manual_seed(1)
    layer = Recurrent(cell, WIDE, WIDE, init="standard").double().requires_grad_(False)
    _, parameters = layer.ways[0].way()
    equations = cell.equations(WIDE, WIDE, training=False)
    blocks, bound = Blocks(equations, parameters), cell.on_tensors(parameters)
    if keep:
        blocks.vectors["b", "z"].add_(keep)  # a view of the layer's b
    state = tuple(torch.zeros(1, WIDE, dtype=torch.float64) for _ in cell.parts)
    size = WIDE * len(state)
    product, norms = torch.eye(size, dtype=torch.float64), []
    for t, x in enumerate(torch.randn(WARM_UP + FARTHEST, 1, WIDE, dtype=torch.float64)):
        if t >= WARM_UP:
            leaves = step_leaves(equations, x, state, None)
            by_part = [jacobian(equations, part, leaves, blocks) for part in equations.old.values()]
            # (1, output and new state, old state): the last rows are the new state
            product = torch.cat(by_part, 2)[0, -size:] @ product
            norms.append(torch.linalg.matrix_norm(product, 2).item())
        state = one_step(bound, x, state, WIDE)[1]
    return norms, torch.linalg.matrix_norm(parameters["U"][:WIDE], 2).item()


def chart(values: list[float], height: int = 3) -> list[str]:
    """A bar chart as lines of block characters: one bar per value, on a logarithmic scale from
    10^LOWEST to 1."""
    full = 8 * height
    share = [1 - math.log10(max(value, 1e-300)) / LOWEST for value in values]
    eighths = [round(full * min(max(s, 0.0), 1.0)) for s in share]
    return [
        "".join(BLOCKS[min(max(e - 8 * line, 0), 8)] for e in eighths)
        for line in reversed(range(height))
    ]


def _say_memory(console: Console) -> None:
    heading(console, 3, "How far back a fresh cell remembers")
    from ensue.cells import GRU, LSTM, SimpleRNN

    simple, sigma = reach(SimpleRNN())
    series = {
        "SimpleRNN": (simple, "magenta"),
        "GRU": (reach(GRU())[0], "yellow"),
        "GRU, b_z + 3": (reach(GRU(), keep=3.0)[0], "green"),
        "LSTM": (reach(LSTM())[0], "cyan"),
    }
    marks = (10, 20, FARTHEST)
    console.print(
        Text(f"    ‖∂s_t/∂s_k‖₂ over the distance t − k, from 1 down to 1e{LOWEST}\n", style="bold")
    )
    for name, (norms, colour) in series.items():
        upper, middle, lower = chart(norms)
        numbers = "".join(f"{norms[k - 1]:>9.0e}" for k in marks)
        for label, line, after in (("", upper, ""), (name, middle, numbers), ("", lower, "")):
            console.print(Text(f"    {label:<14}").append(line, style=colour).append(after))
        console.print()
    axis = f"{'1':<{FARTHEST - 2}}{FARTHEST}" + "".join(f"{f'at {k}':>9}" for k in marks)
    console.print(Text(f"    {'t − k':<14}{axis}\n", style="bold"))
    note(
        console,
        f"""Exact: the 2-norm of the product of the step's Jacobians along one random input, s the
        whole state (h, or h and c), {WIDE} units, initialised by the scheme "standard", nothing
        trained. For SimpleRNN σ_max(U)^(t−k) is a bound; here σ_max(U) = {sigma:.2f}, since U
        starts orthogonal, so all loss comes from tanh. A fresh GRU is little better. A gate
        that keeps helps: by its bias (z near 1), or in the LSTM by a forget bias that starts
        at 1.""",
    )


# -------------------------------------------------------------------- 4: pictures
def _say_pictures(console: Console, folder: Path) -> None:
    heading(console, 4, "Pictures, and what to try next")
    from ensue.cells import PeepholeLSTM
    from ensue.layers import Recurrent

    pictures = {
        "peephole.svg": (PeepholeLSTM().equations().svg(), "the graph of one step"),
        "unfolded.svg": (
            Recurrent("GRU", 32, 64, 2, bidirectional=True).unfolded(5),
            "two layers in both directions, unrolled over 5 steps",
        ),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        message = f"{folder} cannot be written: {problem.strerror}; name another folder with --out"
        raise OptionError(message) from problem
    for name, (svg, _) in pictures.items():
        write(svg, folder / name)
    lines = Table.grid(padding=(0, 2))
    for name, (_, what) in pictures.items():
        lines.add_row(Text(str(folder / name), style="cyan"), what)
    lines.add_row("", "")
    for command, what in (
        ("ensue cell list", "every built-in cell"),
        ("ensue cell show GRU --gradient", "one of them, with its derivative"),
        ("ensue cell show mine.py", "the cell in a file of your own: docs/explanation/cells.md"),
        ("ensue doctor", "what this machine has and lacks"),
    ):
        lines.add_row(Text(command, style="cyan"), what)
    indented(console, lines)
