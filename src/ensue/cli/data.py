"""`ensue data …`: check files before training on them."""

import shutil
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ensue.cli.app import AsJson, Quiet, answer, as_json_text, group, grouped, names_of, report
from ensue.cli.help import DATA, READING
from ensue.data.formats import format_names

if TYPE_CHECKING:
    from ensue.data.options import ReadOptions

data = group("data", "Check data files before training on them, show them, make small ones.")

Encoding = Annotated[
    str,
    typer.Option(
        "--encoding",
        metavar="NAME",
        help="Character encoding: utf-8, cp1252, …",
        rich_help_panel=READING,
    ),
]
Format = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="NAME",
        help=f"File format, if the file name does not tell it: {', '.join(format_names())}.",
        rich_help_panel=READING,
    ),
]
Delimiter = Annotated[
    str,
    typer.Option(
        "--delimiter",
        metavar="SIGN",
        help="Column delimiter of CSV and TSV files.",
        rich_help_panel=READING,
    ),
]
Decimal = Annotated[
    str,
    typer.Option(
        "--decimal",
        metavar="SIGN",
        help="Decimal sign of the numbers in CSV and TSV files: . or ,",
        rich_help_panel=READING,
    ),
]
Header = Annotated[
    str,
    typer.Option(
        "--header",
        metavar="A,B,C",
        help="Column names, for tables without a header line.",
        rich_help_panel=READING,
    ),
]
NoQuote = Annotated[
    bool,
    typer.Option(
        "--no-quote", help="Treat quotes in CSV as plain characters.", rich_help_panel=READING
    ),
]
SkipBad = Annotated[
    bool,
    typer.Option(
        "--skip-bad", help="Skip faulty rows instead of stopping.", rich_help_panel=READING
    ),
]
Text = Annotated[
    str,
    typer.Option(
        "--text",
        "--source",
        metavar="COLUMN",
        help="Column of the text or the tokens.",
        rich_help_panel=DATA,
    ),
]
Texts = Annotated[
    list[str] | None,
    typer.Option(
        "--text",
        "--source",
        metavar="COLUMN",
        help="Column of the text or the tokens; may be repeated for several texts.",
        rich_help_panel=DATA,
    ),
]
Columns = Annotated[
    str,
    typer.Option(
        "--columns",
        metavar="A,B",
        help="Columns of numbers and categories that are read together with the other inputs.",
        rich_help_panel=DATA,
    ),
]
Image = Annotated[
    str,
    typer.Option(
        "--image",
        metavar="COLUMN",
        help="Column with the names of pictures, read together with the other inputs.",
        rich_help_panel=DATA,
    ),
]
Tree = Annotated[
    str,
    typer.Option(
        "--tree",
        metavar="COLUMN",
        help="Column of trees in brackets, read together with the other inputs.",
        rich_help_panel=DATA,
    ),
]
Label = Annotated[
    str,
    typer.Option(
        "--label",
        "--target",
        metavar="COLUMN",
        help="Column of the label or the target; for forecasts, one or more: a,b.",
        rich_help_panel=DATA,
    ),
]
Validation = Annotated[
    list[str] | None,
    typer.Option(
        "--validation",
        metavar="FILE",
        help="Validation file, for early stopping; may be repeated.",
        rich_help_panel=DATA,
    ),
]
Test = Annotated[
    list[str] | None,
    typer.Option(
        "--test",
        metavar="FILE",
        help="Test file, not read before `ensue evaluate`; may be repeated.",
        rich_help_panel=DATA,
    ),
]


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """How files are read."""

    format: Format = ""
    encoding: Encoding = ""
    delimiter: Delimiter = ""
    decimal: Decimal = ""
    header: Header = ""
    no_quote: NoQuote = False

    def as_data(self) -> dict[str, Any]:
        """What was said, as keys of [data]."""
        said = {own.name: getattr(self, own.name) for own in fields(ReadingOptions)}
        said["header"] = names_of(self.header)
        return {key: value for key, value in said.items() if value}

    def read_options(self) -> "ReadOptions":
        from ensue.data.settings import DataSettings

        return DataSettings.of({"train": [], **self.as_data()}, "data").read_options()


@dataclass(frozen=True, kw_only=True)
class TolerantOptions(ReadingOptions):
    """The same, where faulty lines may be left out."""

    skip_bad: SkipBad = False

    def as_data(self) -> dict[str, Any]:
        return super().as_data() | ({"skip_bad": True} if self.skip_bad else {})


@dataclass(frozen=True, kw_only=True)
class CheckOptions(ReadingOptions):
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES", help="Training files; two parallel files as source,target."
        ),
    ]
    text: Texts = None
    columns: Columns = ""
    image: Image = ""
    tree: Tree = ""
    label: Label = ""
    validation: Annotated[
        list[str] | None,
        typer.Option(
            "--validation",
            metavar="FILE",
            help="Validation file, checked for leakage; may be repeated.",
            rich_help_panel=DATA,
        ),
    ] = None
    test: Annotated[
        list[str] | None,
        typer.Option(
            "--test",
            metavar="FILE",
            help="Test file, checked for leakage; may be repeated.",
            rich_help_panel=DATA,
        ),
    ] = None
    quiet: Quiet = False
    as_json: AsJson = False


@data.command("check")
@grouped
def check_data(options: CheckOptions) -> None:
    """Find the faults of data files, rows in two parts, odd labels.

    Reports every fault with file, line and reason; leakage between parts, labels and lengths. Exit
    code 2 if a row is faulty.
    """
    from ensue.data.check import check, check_parallel
    from ensue.data.parallel import parallel

    given = {"train": options.files, "validation": options.validation, "test": options.test}
    parts = {name: paths for name, paths in given.items() if paths}
    reading = options.read_options()
    if parallel(path for paths in parts.values() for path in paths):
        found = check_parallel(parts, reading)
    else:
        texts, columns = options.text or [], names_of(options.columns)
        joins = len(texts) > 1 or columns or options.image or options.tree
        beside = [name for name in (*columns, options.image, options.tree) if name]
        found = check(
            parts,
            reading,
            text=texts[0] if texts else None,
            label=options.label or None,
            inputs=[*texts, *beside] if joins else (),
            image=options.image,
        )
    as_json = options.as_json
    answer(as_json_text(found.as_json()) if as_json else found.as_text())
    if not found.ok:
        raise typer.Exit(2)


@dataclass(frozen=True, kw_only=True)
class ShowOptions(ReadingOptions):
    file: Annotated[str, typer.Argument(metavar="FILE", help="Data file or folder.")]
    rows: Annotated[int, typer.Option("--rows", min=1, metavar="N", help="Number of rows.")] = 5
    text: Text = ""


@data.command("show")
@grouped
def show_data(options: ShowOptions) -> None:
    """Show the first rows as they are read, and as tokens."""
    from ensue.data.show import Preview

    found = Preview.of(options.file, options.read_options(), options.rows)
    width = shutil.get_terminal_size().columns
    answer(found.as_text(width))
    answer("")
    answer(found.tokens(options.text, width))


@data.command("make")
def make_data(
    task: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="dates, shapes, arithmetic, logic, counting, adding, 'temporal order', copy, "
            "parity or dyck.",
        ),
    ],
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="dates: .conll or .tsv; shapes: a folder; arithmetic, logic: .trees; the others: "
            ".jsonl.",
        ),
    ],
    rows: Annotated[int, typer.Option("--rows", min=1, metavar="N", help="Number of rows.")] = 1000,
    steps: Annotated[
        int, typer.Option("--steps", min=1, metavar="N", help="Length of a sequence.")
    ] = 20,
    depth: Annotated[
        int, typer.Option("--depth", min=1, max=12, metavar="N", help="Greatest depth of a tree.")
    ] = 6,
    part: Annotated[
        str,
        typer.Option(
            "--part", metavar="NAME", help="train, validation or test; no row is in two parts."
        ),
    ] = "train",
    seed: Annotated[
        int, typer.Option("--seed", min=0, metavar="N", help="Random seed of the rows.")
    ] = 1,
) -> None:
    """Write a built-in data set to a file, to try commands on."""
    from ensue.data.tasks.write import write_task

    about = write_task(task, file, rows=rows, steps=steps, depth=depth, part=part, seed=seed)
    report(f"{file}: {rows:,} rows; {about}")


@data.command("ngrams")
def count_ngrams(
    files: Annotated[list[str], typer.Argument(metavar="FILES", help="Files of text.")],
    held_out: Annotated[
        list[str] | None,
        typer.Option(
            "--held-out", metavar="FILE", help="Text to hold out; else a tenth of the files."
        ),
    ] = None,
    order: Annotated[
        int, typer.Option("--order", min=1, max=10, metavar="N", help="Greatest n.")
    ] = 5,
    level: Annotated[
        str,
        typer.Option("--level", metavar="NAME", help="What a token is: spaces, words, characters."),
    ] = "spaces",
    after: Annotated[
        str | None,
        typer.Option("--after", metavar="TEXT", help="Count what follows these words."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Count n-grams: how many, how many unseen, bytes, perplexity by n.

    Plain maximum likelihood says 0, and a perplexity of infinity, where an n-gram was never seen;
    beside it stands smoothing.
    """
    from ensue.tasks import TASKS

    counts = next(own.counts for own in TASKS.values() if own.counts is not None)
    found = counts.study(files, held_out or [], order=order, level=level, after=after)
    answer(as_json_text(asdict(found)) if as_json else found.as_text())
