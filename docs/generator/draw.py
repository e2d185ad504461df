"""`make docs-pictures`: every picture of the site and of README.md, drawn by the commands that its
page shows (some with more data, so that there is something to see).

    make docs-pictures ARGS="forecast cell"    # only these
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from generator.architecture import architecture

FOLDER = Path(__file__).parent.parent / "pictures"

AIR_CSV = """import csv
from ensue.data import air_passengers
columns = air_passengers()
with open("air.csv", "w", newline="") as file:
    csv.writer(file).writerows([columns, *list(zip(*columns.values()))[:120]])
"""
AHEAD = """import pandas
from ensue import Forecaster
from ensue.data import air_passengers
frame = pandas.DataFrame(air_passengers())
model = Forecaster(model={"family": "linear", "look_back": 13, "horizon": 12})
model.fit(frame, time="month", target="passengers").picture(frame, "ahead.svg")
"""
MANUAL_TXT = """import pydoc_data.topics as manual
lines = [line.strip() for text in manual.topics.values() for line in text.splitlines()]
open("manual.txt", "w").write("\\n".join(line for line in lines if line))
"""
MINIMAL_PY = '''open("mine.py", "w").write("""
from ensue.cells import Cell
from ensue.equations import Matrix, Vector, sigmoid, tanh

class Minimal(Cell):
    W, U, b = Matrix("x", "un"), Matrix("h", "un"), Vector("un")

    def step(self, x, h):
        u = sigmoid(self.W.u @ x + self.U.u @ h + self.b.u)
        n = tanh(self.W.n @ x + self.U.n @ (u * h) + self.b.n)
        return (1 - u) * h + u * n
""")
'''
UNFOLDED = """from ensue.cells import GRU
from ensue.layers import Recurrent
layer = Recurrent(GRU(), 8, 16, num_layers=2, bidirectional=True)
open("unfolded.svg", "w").write(layer.unfolded(4))
"""

# The last command of each leaves NAME.svg; what begins with "python" is run by Python.
PICTURES: dict[str, tuple[str, ...]] = {
    "alignment": (  # minutes: the demo trains its network
        "demo --out out",
        "explain out/dates --text 'May 3rd, 1997' --picture alignment.svg",
    ),
    "forecast": (
        f"python {AIR_CSV}",
        "train air.csv --task forecast --target passengers --horizon 12 --run air"
        " --set model.family=linear --set model.look_back=13",
        "evaluate air --picture forecast.svg",
    ),
    "ahead": (f"python {AHEAD}",),
    "explain": (
        "data make dates parts.conll --rows 800",
        "train parts.conll --run parts --quick",
        "explain parts --text 'Thursday , 3 May 1997' --picture explain.svg",
    ),
    "heads": (  # minutes
        "data make dates dates.tsv --rows 8000",
        "train dates.tsv --task translate --text text --label iso --run iso"
        " --set model.family=transformer --set text.level=characters --set model.hidden_size=64"
        " --set model.layers=2 --set train.epochs=8 --set train.rate=0.002",
        "explain iso --text '3 May 1997' --attention --layer 2 --picture heads.svg",
    ),
    "positions": ("positions --picture positions.svg",),
    "gaze": (  # minutes
        "data make shapes shapes --rows 6000",
        "data make shapes held --rows 300 --part validation",
        "data make shapes unseen --rows 40 --part test",
        "train shapes/captions.tsv --validation held/captions.tsv --test unseen/captions.tsv"
        " --run captions --set train.watch=exact --set train.warmup=100",
        "explain captions --image unseen/02.png --picture gaze.svg",
    ),
    "selection": (
        f"python {MANUAL_TXT}",
        "select manual.txt --task language --run selection --models ngram:order=2,ngram,gru,lstm"
        " --set text.min_count=3 --set model.layers=1 --set model.hidden_size=64"
        " --set model.embedding_size=64 --set train.epochs=3 --picture selection.svg",
    ),
    "minimal": (f"python {MINIMAL_PY}", "cell show mine.py:Minimal --picture minimal.svg"),
    "unfolded": (f"python {UNFOLDED}",),
    "lab": ("lab --picture lab.svg",),
    "flow": ("flow --cell LSTM --hidden-size 32 --steps 60 --updates 0 --picture flow.svg",),
    "graph": ("graph 'sin(x*y) + x' --at x=1.5,y=2 --picture graph.svg",),
}


def draw(name: str) -> None:
    """Runs the commands in a folder of their own, and keeps the picture."""
    print(f"{name}.svg", file=sys.stderr)
    if name == "architecture":
        (FOLDER / "architecture.svg").write_text(architecture(), encoding="utf-8")
        return
    with TemporaryDirectory() as place:
        for command in PICTURES[name]:
            program, _, code = command.partition(" ")
            ensue = ["-m", "ensue", *shlex.split(command)]
            words = ["-c", code] if program == "python" else ensue
            subprocess.run(
                [sys.executable, *words],
                cwd=place,
                check=True,
                stdout=subprocess.DEVNULL,
                env=os.environ | {"NO_COLOR": "1"},
            )
        shutil.copy(Path(place, f"{name}.svg"), FOLDER / f"{name}.svg")


if __name__ == "__main__":
    for picture in sys.argv[1:] or ["architecture", *PICTURES]:
        draw(picture)
