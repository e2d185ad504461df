"""What `ensue bench` does with its options."""

from __future__ import annotations

from dataclasses import asdict

from benchmarks.engine.bench import Options, choose_cases, load_cells, run_bench
from benchmarks.engine.saved import read, save
from benchmarks.engine.table import write_report
from ensue.cli.app import answer, as_json_text, check_files, say, write_picture
from ensue.cli.machine import BenchOptions
from ensue.files.disk import write_whole


def run_command(options: BenchOptions) -> None:
    """Measure the cases, or show earlier measurements; print, save and draw them."""
    check_files(options.json_file, options.picture)
    if options.words == ["export"]:
        _bench_exports(options)
        return
    if options.earlier is not None:
        report = read(options.earlier)
    else:
        loaded = load_cells(options.cells or [])
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
        from benchmarks.engine.picture import draw

        write_picture(options.picture, draw(report), options.dark)
    if options.earlier is None and not report.finished:
        raise KeyboardInterrupt


def _bench_exports(options: BenchOptions) -> None:
    """Exported layers: a table in Markdown, and the measurements as JSON where asked for."""
    from benchmarks.engine.exported import markdown, measure

    measurements = list(measure(options.runs, say))
    answer(markdown(measurements))
    if options.json_file is not None:
        text = as_json_text([asdict(row) for row in measurements]) + "\n"
        write_whole(options.json_file, text.encode())
        say(f"wrote {options.json_file}")
