"""The commands about this machine: a first look, a check-up, measurements."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ensue.cli.app import AsJson, app, check_files, write_picture


@app.command()
def demo(
    what: Annotated[
        str,
        typer.Argument(help="dates: training and translation; cell: what equations give."),
    ] = "dates",
    out: Annotated[Path, typer.Option("--out", help="Folder for what it writes.")] = Path(
        "ensue-demo"
    ),
) -> None:
    """See what Ensue does: it learns, while you look, to read dates as people write them.

    `ensue demo cell` shows in a few seconds what a cell written as equations gives.
    """
    from ensue.demo import cell, translation
    from ensue.errors import unknown

    demos = {"dates": translation.run, "cell": cell.run}
    if what not in demos:
        raise unknown("demo", what, demos)
    demos[what](out)


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Say what this machine has and lacks.

    Versions, processor, compiler, cache, data sets and extras, each with what to do about it.
    """
    from ensue.doctor import as_text, examine

    findings = examine()
    print(json.dumps([asdict(one) for one in findings]) if as_json else as_text(findings))


Cases = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="CASE",
        help="Words of the names of cases, joined by dots: lengths, LSTM.train, T400.B32.",
    ),
]


@app.command()
def bench(
    words: Cases = None,
    full: Annotated[
        bool, typer.Option("--full/--quick", help="The whole grid of shapes, or four of them.")
    ] = False,
    own: Annotated[
        list[str] | None,
        typer.Option("--cell", help="A cell of your own: mine.py, mine.py:MyCell."),
    ] = None,
    against: Annotated[
        list[str] | None, typer.Option("--against", help="Only this opponent; may be repeated.")
    ] = None,
    runs: Annotated[int, typer.Option("--runs", min=1, help="Runs for each median.")] = 15,
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, help="As many as torch takes, if not given.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write everything into a JSON file too.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", help="Draw the results into an .svg file too.")
    ] = None,
    earlier: Annotated[
        Path | None, typer.Option("--read", help="Measure nothing: show what --json has written.")
    ] = None,
    only_list: Annotated[
        bool, typer.Option("--list", help="Print the names of the cases and nothing else.")
    ] = False,
) -> None:
    """Measure the native engine beside torch.nn and a plain torch loop.

    JAX and ONNX Runtime take part where `make bench-peers` has installed them. Ctrl-C shows
    what has been measured by then.
    """
    from ensue.bench.bench import Options, choose_cases, load_cells, run_bench
    from ensue.bench.saved import read, save
    from ensue.bench.table import write_report

    check_files(json_file, picture)
    if earlier is not None:
        report = read(earlier)
    else:
        loaded = load_cells(own or [])
        cases = choose_cases(loaded, full, words or [])
        if only_list:
            print("\n".join(case.name for case in cases))
            return
        options = Options(runs, frozenset(against or []), threads=threads)
        report = run_bench(cases, loaded, options)
    write_report(report)
    if json_file is not None:
        save(report, json_file)
    if picture is not None:
        from ensue.bench.picture import draw

        write_picture(picture, draw(report))
    if earlier is None and not report.finished:
        raise KeyboardInterrupt
