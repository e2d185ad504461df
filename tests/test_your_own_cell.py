"""The example of a cell of your own: as short as promised, and it runs."""

import inspect
import subprocess
import sys
from pathlib import Path

from laws import example

from ensue.equations import below

PATH = Path(__file__).resolve().parent.parent / "examples" / "your_own_cell.py"
MOST_LINES = 12


def test_the_class_is_short() -> None:
    lines = inspect.getsource(example("your_own_cell").LateGate).rstrip().splitlines()
    assert len(lines) <= MOST_LINES


def test_it_has_two_stages_of_products_and_a_reduction() -> None:
    """A product of what a product made, and a mean: what a fused engine must get right."""
    nodes = below(example("your_own_cell").LateGate().equations().roots)
    products = [node for node in nodes if node.op == "product"]
    late = [p for p in products if any(n.op == "product" for n in below(p.args))]
    assert late
    assert any(node.op == "mean" for node in nodes)


def test_it_runs_and_prints_its_equations() -> None:
    run = subprocess.run([sys.executable, PATH], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert "g  = σ(d / sqrt(mean(d*d) + 1e-05) + b_g)" in run.stdout
    assert "every parameter has a gradient: True" in run.stdout
