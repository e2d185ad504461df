"""The example of a cell of your own: as short as promised, and it runs."""

import inspect
from pathlib import Path

import pytest
from laws import example
from warm import Warm

from ensue import Classifier
from ensue.cells import GRU
from ensue.equations import below
from ensue.errors import OptionError

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


def test_it_runs_and_prints_its_equations(warm: Warm, tmp_path: Path) -> None:
    run = warm.run([str(PATH)], tmp_path, {})
    assert run.returncode == 0, run.stderr
    assert "g  = σ(d / sqrt(mean(d*d) + 1e-05) + b_g)" in run.stdout
    assert "every parameter has a gradient: True" in run.stdout


SCRIPT = """
from ensue import Classifier
from ensue.cells import Cell
from ensue.equations import Matrix, Vector, tanh

print("run")

class Mine(Cell):
    W, U, b = Matrix("x"), Matrix("h"), Vector()

    def step(self, x, h):
        return tanh(self.W @ x + self.U @ h + self.b)

small = {"cell": Mine, "hidden_size": 3, "embedding_size": 3}
model = Classifier(model=small, train={"epochs": 1}).fit([("a b", "x"), ("c d", "y")] * 6)
model.save("model")
print(model.predict(["a b"])[0] == Classifier.load("model", cell=Mine).predict(["a b"])[0])
"""


def test_a_script_that_trains_its_own_cell_is_run_once(tmp_path: Path, warm: Warm) -> None:
    (tmp_path / "train_me.py").write_text(SCRIPT)
    run = warm.fresh(["train_me.py"], tmp_path)
    assert (run.returncode, run.stdout) == (0, "run\nTrue\n"), run.stderr
    assert not list((tmp_path / "model").glob("*.py")), "a script is known by its equations alone"


def test_a_cell_for_a_model_without_one_of_its_own_is_refused(tmp_path: Path) -> None:
    small = {"hidden_size": 3, "embedding_size": 3}
    rows = [("a b", "x"), ("c d", "y")] * 6
    Classifier(model=small, train={"epochs": 1}).fit(rows).save(tmp_path / "model")
    with pytest.raises(OptionError, match="this model has no custom cell"):
        Classifier.load(tmp_path / "model", cell=GRU)
