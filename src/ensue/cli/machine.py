"""The commands about this machine: a first look, a check-up, measurements."""

import sys
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Annotated

from ensue.cli.app import (
    AsJson,
    Dark,
    Picture,
    answer,
    app,
    argument,
    as_json_text,
    grouped,
    option,
)
from ensue.errors import OptionError


@app.command()
def demo(
    what: Annotated[
        str,
        argument("NAME", "dates: train a translator of dates; cell: write a cell as equations."),
    ] = "dates",
    out: Annotated[Path, option("--out FOLDER", "Output folder.")] = Path("ensue-demo"),
) -> None:
    """See a small network learn to read dates, in about two minutes.

    `ensue demo cell` shows, in a few seconds, what a cell written as equations gives.
    """
    from ensue.demo import cell, translation
    from ensue.errors import unknown

    demos = {"dates": translation.run, "cell": cell.run}
    if what not in demos:
        raise unknown("demo", what, demos)
    demos[what](out)


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Check this machine: compiler, GPU, packages, data sets.

    Versions, processor, compiler, cache, data sets and extras, with advice on each.
    """
    from ensue.doctor import as_text, examine

    findings = examine()
    answer(as_json_text([asdict(one) for one in findings]) if as_json else as_text(findings))


Cases = Annotated[
    list[str] | None,
    argument("CASE", "Select cases by words of their names: lengths, LSTM.train, T400.B32."),
]


@dataclass(frozen=True, kw_only=True)
class BenchOptions:
    words: Cases = None
    full: Annotated[
        bool, option("--full/--quick", "Measure all shapes of the grid, or only four.")
    ] = False
    cells: Annotated[
        list[str] | None,
        option("--cell FILE", "Python file of a cell: mine.py, mine.py:MyCell; may be repeated."),
    ] = None
    against: Annotated[
        list[str] | None,
        option("--against NAME", "Compare with this contender only; may be repeated."),
    ] = None
    runs: Annotated[int, option("--runs N", "Number of runs for each median.", min=1)] = 15
    threads: Annotated[
        int | None, option("--threads N", "Number of threads; torch's default if not given.", min=1)
    ] = None
    json_file: Annotated[
        Path | None, option("--json FILE", "Write the measurements to a JSON file.")
    ] = None
    picture: Picture = None
    dark: Dark = False
    earlier: Annotated[
        Path | None,
        option("--read FILE", "Show the measurements of a JSON file instead of measuring."),
    ] = None
    only_list: Annotated[bool, option("--list", "Print only the names of the cases.")] = False


@app.command()
@grouped
def bench(options: BenchOptions) -> None:
    """Benchmark the native engine against torch.nn.

    Also compares with a plain torch loop of the same equations, and with JAX and ONNX Runtime if
    `make bench-peers` has installed them. Ctrl-C prints what has been measured so far. `ensue
    bench export` measures exported layers instead.
    """
    _module_of_checkout("benchmarks.engine.command").run_command(options)


def _module_of_checkout(name: str) -> ModuleType:
    """A module of `benchmarks/`, next to the `src/` that this package runs from."""
    source = Path(__file__).resolve().parents[2]
    folder = source.parent / "benchmarks"
    start = folder / "__init__.py"
    if source.name != "src" or not start.is_file():
        raise OptionError(
            "ensue bench: the benchmarks are not installed with the package. Fix: clone the "
            "repository and run `make bench` there"
        )
    package = folder.name
    if package not in sys.modules:  # by its path: another folder of that name may come first
        spec = spec_from_file_location(package, start, submodule_search_locations=[str(folder)])
        assert spec is not None
        assert spec.loader is not None
        sys.modules[package] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[package])
    return import_module(name)
