"""The commands about this machine: a first look, a check-up, measurements."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from ensue.cli.app import (
    AsJson,
    Dark,
    Picture,
    answer,
    app,
    as_json_text,
    check_files,
    say,
    write_picture,
)
from ensue.cli.grouped import grouped


@app.command()
def demo(
    what: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="dates: train a translator of dates; cell: what equations give."
        ),
    ] = "dates",
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Output folder.")] = Path(
        "ensue-demo"
    ),
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
    """Check what this machine has and lacks, with advice.

    Versions, processor, compiler, cache, data sets and extras, with advice on each.
    """
    from ensue.doctor import as_text, examine

    findings = examine()
    answer(as_json_text([asdict(one) for one in findings]) if as_json else as_text(findings))


Cases = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="CASE",
        help="Select cases by words of their names: lengths, LSTM.train, T400.B32.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class BenchOptions:
    words: Cases = None
    full: Annotated[
        bool, typer.Option("--full/--quick", help="All shapes of the grid, or four.")
    ] = False
    own: Annotated[
        list[str] | None,
        typer.Option(
            "--cell",
            metavar="FILE",
            help="Python file of a cell: mine.py, mine.py:MyCell; may be repeated.",
        ),
    ] = None
    against: Annotated[
        list[str] | None,
        typer.Option(
            "--against", metavar="NAME", help="Compare with this contender only; may be repeated."
        ),
    ] = None
    runs: Annotated[
        int, typer.Option("--runs", metavar="N", min=1, help="Number of runs for each median.")
    ] = 15
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads", metavar="N", min=1, help="Number of threads; torch's default if not given."
        ),
    ] = None
    json_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Write the measurements to a JSON file."),
    ] = None
    picture: Picture = None
    dark: Dark = False
    earlier: Annotated[
        Path | None,
        typer.Option(
            "--read",
            metavar="FILE",
            help="Show the measurements of a JSON file instead of measuring.",
        ),
    ] = None
    only_list: Annotated[
        bool, typer.Option("--list", help="Print the names of the cases only.")
    ] = False


@app.command()
@grouped
def bench(options: BenchOptions) -> None:
    """Benchmark the native engine against torch.nn.

    And against a plain torch loop of the same equations. JAX and ONNX Runtime take part if `make
    bench-peers` has installed them. Ctrl-C prints what has been measured so far. `ensue bench
    export` measures exported layers instead.
    """
    from ensue.bench.bench import Options, choose_cases, load_cells, run_bench
    from ensue.bench.saved import read, save
    from ensue.bench.table import write_report

    check_files(options.json_file, options.picture)
    if options.words == ["export"]:
        _bench_exports(options)
        return
    if options.earlier is not None:
        report = read(options.earlier)
    else:
        loaded = load_cells(options.own or [])
        cases = choose_cases(loaded, options.full, options.words or [])
        if options.only_list:
            answer("\n".join(case.name for case in cases))
            return
        how = Options(options.runs, frozenset(options.against or []), threads=options.threads)
        report = run_bench(cases, loaded, how)
    write_report(report)
    if options.json_file is not None:
        save(report, options.json_file)
        say(f"wrote {options.json_file}")
    if options.picture is not None:
        from ensue.bench.picture import draw

        write_picture(options.picture, draw(report), options.dark)
    if options.earlier is None and not report.finished:
        raise KeyboardInterrupt


def _bench_exports(options: BenchOptions) -> None:
    """Exported layers: a table in Markdown, and the measurements as JSON where asked for."""
    from ensue.bench.exported import markdown, measure
    from ensue.files.disk import write_whole

    found = list(measure(options.runs, say))
    answer(markdown(found))
    if options.json_file is not None:
        text = as_json_text([asdict(own) for own in found]) + "\n"
        write_whole(options.json_file, text.encode())
        say(f"wrote {options.json_file}")
