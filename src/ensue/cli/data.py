"""`ensue data …`: look at files before a run is spent on them."""

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ensue.cli.app import AsJson, group

if TYPE_CHECKING:
    from ensue.data.options import ReadOptions

data = group("data", "Data files: find every fault in them, see what a model will see.")

Encoding = Annotated[str, typer.Option("--encoding", help="Of the files: utf-8, cp1252, …")]
Format = Annotated[
    str, typer.Option("--format", help="csv, tsv, jsonl, conll, conllu, text, folder, parquet.")
]
Delimiter = Annotated[str, typer.Option("--delimiter", help="Between the columns of a table.")]
Header = Annotated[
    str, typer.Option("--header", help="Names of the columns, a,b,c, if no line has them.")
]
NoQuote = Annotated[bool, typer.Option("--no-quote", help="Quotes have no meaning in a table.")]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Leave faulty lines out.")]
Text = Annotated[
    str, typer.Option("--text", "--source", help="The column of the text or the tokens.")
]
Label = Annotated[
    str,
    typer.Option(
        "--label",
        "--target",
        help="The column of the label or the target; of a series those to forecast, a,b.",
    ),
]


def names_of(listed: str) -> list[str]:
    """a,b → the names a and b."""
    return [name.strip() for name in listed.split(",") if name.strip()]


def options_of(
    format: str, encoding: str, delimiter: str, header: str, no_quote: bool
) -> "ReadOptions":
    from ensue.data.options import ReadOptions

    return ReadOptions(
        format=format,
        encoding=encoding,
        delimiter=delimiter or None,
        quote=False if no_quote else None,
        header=tuple(names_of(header)) or True,
    )


@data.command("check")
def check_data(
    files: Annotated[
        list[str], typer.Argument(help="The training files; parallel ones as source,target.")
    ],
    validation: Annotated[
        list[str] | None, typer.Option("--validation", help="Compared with the others.")
    ] = None,
    test: Annotated[list[str] | None, typer.Option("--test", help="As --validation.")] = None,
    text: Text = "",
    label: Label = "",
    format: Format = "auto",
    encoding: Encoding = "utf-8",
    delimiter: Delimiter = "",
    header: Header = "",
    no_quote: NoQuote = False,
    as_json: AsJson = False,
) -> None:
    """Find every fault, with file, line and reason; leakage, labels and lengths.

    Exits with 2 if a line is at fault.
    """
    from ensue.data.check import check
    from ensue.runs.parallel import parallel
    from ensue.runs.parallel_check import check_parallel

    given = {"train": files, "validation": validation or [], "test": test or []}
    parts = {name: own for name, own in given.items() if own}
    options = options_of(format, encoding, delimiter, header, no_quote)
    if parallel(path for own in parts.values() for path in own):
        report = check_parallel(parts, options)
    else:
        report = check(parts, options, text=text or None, label=label or None)
    print(json.dumps(report.as_json(), ensure_ascii=False) if as_json else report.as_text())
    if not report.ok:
        raise typer.Exit(2)


@data.command("show")
def show_data(
    file: Annotated[str, typer.Argument(help="A file or a folder.")],
    rows: Annotated[int, typer.Option("--rows", min=1, help="How many.")] = 5,
    text: Text = "",
    format: Format = "auto",
    encoding: Encoding = "utf-8",
    delimiter: Delimiter = "",
    header: Header = "",
    no_quote: NoQuote = False,
) -> None:
    """Show the first rows as they are read, and as tokens."""
    from ensue.data.show import show
    from ensue.runs.infer import tokens_shown

    options = options_of(format, encoding, delimiter, header, no_quote)
    width = shutil.get_terminal_size().columns
    print(show(file, options, rows, width))
    print()
    print(tokens_shown(file, options, text, rows, width))


@data.command("make")
def make_data(
    task: Annotated[
        str, typer.Argument(help="dates, shapes, counting, 'temporal order', copy, parity, dyck.")
    ],
    file: Annotated[
        Path, typer.Argument(help="dates: .conll or .tsv; shapes: a folder; the others: .jsonl.")
    ],
    rows: Annotated[int, typer.Option("--rows", min=1, help="How many.")] = 1000,
    steps: Annotated[int, typer.Option("--steps", min=1, help="Of a sequence.")] = 20,
    part: Annotated[
        str, typer.Option("--part", help="train, validation or test: none shares a row.")
    ] = "train",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Another one makes other rows.")] = 1,
) -> None:
    """Write a built-in task as a file, to try the other commands on."""
    from ensue.data.tasks.write import write_task

    about = write_task(task, file, rows=rows, steps=steps, part=part, seed=seed)
    print(f"{file}: {rows:,} rows; {about}")
