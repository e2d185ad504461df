"""`ensue cell list` and `ensue cell show`: exact words, and errors that say what to do."""

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from ensue import cli
from ensue.cells import CELLS, LSTM
from ensue.cells.load import load_cell
from ensue.errors import OptionError
from ensue.layers import Recurrent

Out = pytest.CaptureFixture[str]


def run(*arguments: str) -> int | str | None:
    with pytest.raises(SystemExit) as ending:
        cli.main(arguments)
    return ending.value.code


def printed(capsys: Out, *arguments: str) -> str:
    assert run(*arguments) == 0
    return capsys.readouterr().out


def complaint(capsys: Out, *arguments: str) -> str:
    assert run(*arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    return err


SHOWN = """\
GRUResetBefore
  GRU, reset before the product: the candidate reads U·(r*h).

  h' = (1 − z)*n + z*h: z near 1 keeps. Cho et al. 2014; with u = 1 − z the same cell.

equations
  r  = σ(W_r·x + U_r·h + b_r)
  z  = σ(W_z·x + U_z·h + b_z)
  n  = tanh(W_n·x + U_n·(r*h) + b_n)
  h' = (1 - z)*n + z*h

sizes       input 3, hidden 4
state       h (4)
parameters  96: W 12×3, U 12×4, b 12
flops       228 for one row and step, 168 of them in products
order       before the loop: W_r W_z W_n · x
            in the loop: U_r U_z · h
            then: U_n · (r*h)
"""


def test_show_says_all_there_is(capsys: Out) -> None:
    arguments = ("cell", "show", "GRUResetBefore", "--input", "3", "--hidden", "4")
    assert printed(capsys, *arguments) == SHOWN


def test_the_derivative_is_shown_when_asked_for(capsys: Out) -> None:
    text = printed(capsys, "cell", "show", "SimpleRNN", "--gradient")
    assert (
        """
derivative
  s  = W·x + U·h + b
  h' = tanh(s)
  ∂b = (∂y + ∂h')*(1 - h'*h')
  ∂U = ∂b hᵀ
  ∂h = Uᵀ·∂b
  ∂W = ∂b xᵀ
  ∂x = Wᵀ·∂b

"""
        in text
    )


def test_latex_stands_alone(capsys: Out) -> None:
    assert printed(capsys, "cell", "show", "LSTM", "--latex") == LSTM().equations().latex() + "\n"


def test_json_holds_the_same(capsys: Out) -> None:
    cell_facts = json.loads(printed(capsys, "cell", "show", "LSTM", "--json"))
    equations = LSTM().equations()
    assert cell_facts["equations"] == str(equations)
    assert cell_facts["latex"] == equations.latex()
    assert cell_facts["derivative"] == equations.derivative_text()
    assert cell_facts["shapes"] == {"W": [256, 32], "U": [256, 64], "b": [256]}
    assert cell_facts["counts"]["parameters"] == 256 * (32 + 64 + 1)
    assert cell_facts["counts"]["product_flops"] == 2 * 256 * (32 + 64)
    assert cell_facts["state"] == {"h": 64, "c": 64}
    assert cell_facts["stages"] == [
        "before the loop: W_i W_f W_g W_o · x",
        "in the loop: U_i U_f U_g U_o · h",
    ]


def test_the_code_of_the_kernel_needs_no_compiler(
    capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    text = printed(capsys, "cell", "show", "GRUResetBefore", "--code")
    assert "//     n  = tanh(W_n·x + U_n·(r*h) + b_n)\n" in text
    assert '#include "kernel.hpp"' in text
    for entry in ("void forward(", "void backward("):
        assert entry in text
    cell_facts = json.loads(printed(capsys, "cell", "show", "GRUResetBefore", "--code", "--json"))
    assert cell_facts["code"] == text
    assert cell_facts["name"] == "GRUResetBefore"


def test_reductions_have_stages_of_their_own(capsys: Out) -> None:
    cell_facts = json.loads(printed(capsys, "cell", "show", "LayerNormLSTM", "--json"))
    assert cell_facts["stages"][1:] == [
        "in the loop: U_i U_f U_g U_o · h, 4 × mean",
        "then: 4 × mean",
        "then: mean",
        "then: mean",
    ]


def test_the_list_has_every_cell(capsys: Out) -> None:
    lines = printed(capsys, "cell", "list").splitlines()
    assert [line.split()[0] for line in lines] == list(CELLS)
    assert lines[0] == (
        "SimpleRNN             6,208  "
        "Simple recurrent network: h' = g(W·x + U·h + b), g chosen by name."
    )
    rows = json.loads(printed(capsys, "cell", "list", "--input", "3", "--hidden", "4", "--json"))
    counts = {row["name"]: row["parameters"] for row in rows}
    assert counts == {name: make().count(3, 4) for name, make in CELLS.items()}


def test_a_picture_is_written(tmp_path: Path, capsys: Out) -> None:
    file = tmp_path / "lstm.svg"
    assert run("cell", "show", "LSTM", "--picture", str(file)) == 0
    out, err = capsys.readouterr()
    assert out.startswith("LSTM\n")
    assert err == f"wrote {file}\n"
    assert ElementTree.fromstring(file.read_text(encoding="utf-8")).tag.endswith("svg")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("lstm.gif", "expected a file name that ends in .svg, .png, .pdf, got '.gif'"),
        ("nowhere/lstm.svg", "nowhere is not a folder"),
    ],
)
def test_a_picture_that_cannot_be_written(
    name: str, problem: str, tmp_path: Path, capsys: Out
) -> None:
    err = complaint(capsys, "cell", "show", "LSTM", "--picture", str(tmp_path / name))
    assert err.startswith(f"OptionError: {tmp_path / name}")
    assert problem in err


# --- cells from files -----------------------------------------------------------------

OWN = '''
from ensue.cells import LSTM, Cell, Zoneout
from ensue.equations import Matrix, tanh

class Mine(Cell):
    """One line."""
    W, U = Matrix("x"), Matrix("h")
    def step(self, x, h):
        return tanh(self.W @ x + self.U @ h)
'''
SECOND = """
class Other(Mine):
    def __init__(self, rate):
        self.rate = rate

calm = Zoneout(LSTM(), 0.2)
slow = Other(0.5)

class _Hidden(Mine):
    pass
"""


def written(folder: Path, text: str, name: str = "mine.py") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def test_the_only_cell_of_a_file(tmp_path: Path, capsys: Out) -> None:
    text = printed(capsys, "cell", "show", written(tmp_path, OWN))
    assert text.startswith("Mine\n  One line.\n\nequations\n  h' = tanh(W·x + U·h)\n\nsizes")


def test_a_cell_of_a_file_by_name(tmp_path: Path) -> None:
    file = written(tmp_path, OWN + SECOND)
    assert type(load_cell(f"{file}:Mine")).__name__ == "Mine"
    assert load_cell(f"{file}:calm").masks["m_h"].rate == 0.2
    assert vars(load_cell(f"{file}:slow"))["rate"] == 0.5


def test_a_file_finds_the_modules_beside_it(tmp_path: Path) -> None:
    written(tmp_path, OWN, "beside_it.py")
    file = written(tmp_path, "from beside_it import Mine\nclass Third(Mine): pass\n")
    assert type(load_cell(file)).__name__ == "Third"


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        (OWN + SECOND, "", "{file} defines 2 cells: Mine, Other; choose one, such as {file}:Mine"),
        (
            OWN + SECOND,
            ":Othr",
            "unknown cell of {file} 'Othr': did you mean 'Other'? Known: Mine, Other, calm, slow",
        ),
        (
            OWN + SECOND,
            ":Other",
            "{file}: Other needs arguments: rate; create one in the file, mine = Other(...), "
            "and name it: {file}:mine",
        ),
        (
            "from ensue.cells import LSTM\nx = 1\n",
            "",
            "{file} defines no cell: expected a class that inherits from ensue.cells.Cell and "
            "has a step(self, x, h)",
        ),
        (
            "from ensue.cells import Cell\nclass A(Cell): pass\n",
            "",
            "{file}: A has no step(self, x, h)",
        ),
        (
            "from ensue.cells import Cell\nclass A(Cell): pass\n",
            ":A",
            "{file}: A has no step(self, x, h)",
        ),
        (
            "x = 1\ny = x / 0\n",
            "",
            "{file}: importing it failed at line 2\n  ZeroDivisionError: division by zero\n"
            "  importing executes the whole file: put everything except cells under "
            'if __name__ == "__main__"',
        ),
    ],
)
def test_a_file_without_the_one_cell(
    text: str, name: str, message: str, tmp_path: Path, capsys: Out
) -> None:
    file = written(tmp_path, text)
    err = complaint(capsys, "cell", "show", file + name)
    assert err == f"OptionError: {message.format(file=file)}\n"


@pytest.mark.parametrize("text", ["def f(:\n", "import sys\nsys.exit(3)\n"])
def test_a_file_that_cannot_be_imported(text: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="importing it failed at line"):
        load_cell(written(tmp_path, text))


def test_what_is_no_cell_and_no_file(tmp_path: Path, capsys: Out) -> None:
    err = complaint(capsys, "cell", "show", "LTSM")
    assert err.startswith("OptionError: unknown cell 'LTSM': did you mean 'LSTM'? Known: Coupled")
    assert err.endswith("; or a file of your own, such as mine.py or mine.py:MyCell\n")
    err = complaint(capsys, "cell", "show", "nowhere.py:A")
    assert err == (
        "OptionError: nowhere.py: there is no such file; expected a Python file with a cell in it\n"
    )
    err = complaint(capsys, "cell", "show", str(tmp_path))
    assert err == (
        f"OptionError: {tmp_path}: is a folder; expected a Python file with a cell in it\n"
    )
    err = complaint(capsys, "cell", "show", written(tmp_path, OWN, "mine.txt"))
    assert "expected a Python file, with a name that ends in .py" in err


def test_a_step_that_is_no_equation_is_told_with_its_line(tmp_path: Path, capsys: Out) -> None:
    wrong = OWN.replace("self.U @ h", "self.U @ h.T")
    err = complaint(capsys, "cell", "show", written(tmp_path, wrong))
    assert "mine.py:9, in step" in err
    assert "return tanh(self.W @ x + self.U @ h.T)" in err


def test_a_network_is_unfolded(capsys: Out, tmp_path: Path) -> None:
    place = tmp_path / "both.svg"
    sizes = ("--input", "2", "--hidden", "3")
    words = ("cell", "show", "GRU", *sizes, "--unfold", "4", "--layers", "2", "--bidirectional")
    assert "GRU" in printed(capsys, *words, "--picture", str(place))
    network = Recurrent("GRU", 2, 3, 2, bidirectional=True)
    assert place.read_text("utf-8") == network.unfolded(4)
    assert "--unfold: expected --picture FILE with it" in complaint(capsys, *words)
    assert "expected --unfold N with them" in complaint(
        capsys, "cell", "show", "GRU", "--layers", "2", "--picture", str(place)
    )
