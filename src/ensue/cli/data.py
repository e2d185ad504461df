"""`ensue data …`: check files before training on them."""

import shutil
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ensue.cli.app import (
    AsJson,
    Quiet,
    answer,
    argument,
    as_json_text,
    group,
    grouped,
    names_of,
    option,
    report,
)
from ensue.cli.help import DATA, READING
from ensue.data.formats import format_names

if TYPE_CHECKING:
    from ensue.data.options import ReadOptions

data = group("data", "Check, show and make data files.")

Encoding = Annotated[
    str, option("--encoding NAME", "Character encoding: utf-8, cp1252, …", READING)
]
Format = Annotated[
    str,
    option(
        "--format NAME",
        f"File format, if the file name does not show it: {', '.join(format_names())}.",
        READING,
    ),
]
Delimiter = Annotated[
    str, option("--delimiter SIGN", "Column delimiter of CSV and TSV files.", READING)
]
Decimal = Annotated[
    str,
    option("--decimal SIGN", "Decimal sign of the numbers in CSV and TSV files: . or ,", READING),
]
Header = Annotated[
    str, option("--header A,B,C", "Column names, for tables without a header line.", READING)
]
NoQuote = Annotated[bool, option("--no-quote", "Treat quotes in CSV as plain characters.", READING)]
SkipBad = Annotated[bool, option("--skip-bad", "Skip faulty rows instead of stopping.", READING)]
Text = Annotated[str, option("--text, --source COLUMN", "Column of the text or the tokens.", DATA)]
Texts = Annotated[
    list[str] | None,
    option(
        "--text, --source COLUMN",
        "Column of the text or the tokens; may be repeated for several texts.",
        DATA,
    ),
]
Columns = Annotated[
    str,
    option(
        "--columns A,B",
        "Columns of numbers and categories, read together with the other inputs.",
        DATA,
    ),
]
Image = Annotated[
    str,
    option(
        "--image COLUMN",
        "Column with the names of pictures, read together with the other inputs.",
        DATA,
    ),
]
Tree = Annotated[
    str,
    option(
        "--tree COLUMN",
        "Column of trees in brackets, read together with the other inputs.",
        DATA,
    ),
]
Label = Annotated[
    str,
    option(
        "--label, --target COLUMN",
        "Column of the label or the target; for forecasts, one or more: a,b.",
        DATA,
    ),
]
Validation = Annotated[
    list[str] | None,
    option("--validation FILE", "Validation file, for early stopping; may be repeated.", DATA),
]
Test = Annotated[
    list[str] | None,
    option("--test FILE", "Test file, not read before `ensue evaluate`; may be repeated.", DATA),
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
        """The options as keys of [data]."""
        values = {field.name: getattr(self, field.name) for field in fields(ReadingOptions)}
        values["header"] = names_of(self.header)
        return {key: value for key, value in values.items() if value}

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
        list[str], argument("FILES", "Training files; two parallel files as source,target.")
    ]
    text: Texts = None
    columns: Columns = ""
    image: Image = ""
    tree: Tree = ""
    label: Label = ""
    validation: Annotated[
        list[str] | None,
        option("--validation FILE", "Validation file, checked for leakage; may be repeated.", DATA),
    ] = None
    test: Annotated[
        list[str] | None,
        option("--test FILE", "Test file, checked for leakage; may be repeated.", DATA),
    ] = None
    quiet: Quiet = False
    as_json: AsJson = False


@data.command("check")
@grouped
def check_data(options: CheckOptions) -> None:
    """Check data files: faulty rows, leakage between parts, odd labels.

    Reports every fault with file, line and reason; leakage between parts, labels and lengths. Exit
    code 2 if a row is faulty.
    """
    from ensue.data.check import check, check_parallel
    from ensue.data.parallel import parallel

    files = {"train": options.files, "validation": options.validation, "test": options.test}
    parts = {name: paths for name, paths in files.items() if paths}
    reading = options.read_options()
    if parallel(path for paths in parts.values() for path in paths):
        findings = check_parallel(parts, reading)
    else:
        texts, columns = options.text or [], names_of(options.columns)
        joins = len(texts) > 1 or columns or options.image or options.tree
        beside = [name for name in (*columns, options.image, options.tree) if name]
        findings = check(
            parts,
            reading,
            text=texts[0] if texts else None,
            label=options.label or None,
            inputs=[*texts, *beside] if joins else (),
            image=options.image,
        )
    as_json = options.as_json
    answer(as_json_text(findings.as_json()) if as_json else findings.as_text())
    if not findings.ok:
        raise typer.Exit(2)


@dataclass(frozen=True, kw_only=True)
class ShowOptions(ReadingOptions):
    file: Annotated[str, argument("FILE", "Data file or folder.")]
    rows: Annotated[int, option("--rows N", "Number of rows.", min=1)] = 5
    text: Text = ""


@data.command("show")
@grouped
def show_data(options: ShowOptions) -> None:
    """Show the first rows as they are read, and as tokens."""
    from ensue.data.show import Preview

    preview = Preview.of(options.file, options.read_options(), options.rows)
    width = shutil.get_terminal_size().columns
    answer(preview.as_text(width))
    answer("")
    answer(preview.tokens(options.text, width))


@data.command("make")
def make_data(
    task: Annotated[
        str,
        argument(
            "NAME",
            "dates, shapes, arithmetic, logic, counting, adding, 'temporal order', copy, "
            "parity or dyck.",
        ),
    ],
    file: Annotated[
        Path,
        argument(
            "FILE",
            "dates: .conll or .tsv; shapes: a folder; arithmetic, logic: .trees; the others: "
            ".jsonl.",
        ),
    ],
    rows: Annotated[int, option("--rows N", "Number of rows.", min=1)] = 1000,
    steps: Annotated[int, option("--steps N", "Length of a sequence.", min=1)] = 20,
    depth: Annotated[int, option("--depth N", "Maximum depth of a tree.", min=1, max=12)] = 6,
    part: Annotated[
        str, option("--part NAME", "train, validation or test; no row is in two parts.")
    ] = "train",
    seed: Annotated[int, option("--seed N", "Random seed of the rows.", min=0)] = 1,
    replace: Annotated[bool, option("--replace", "Replace an existing file.")] = False,
) -> None:
    """Write a built-in data set to a file, to try commands on."""
    from ensue.data.tasks.write import write_task

    about = write_task(
        task, file, rows=rows, steps=steps, depth=depth, part=part, seed=seed, replace=replace
    )
    report(f"{file}: {rows:,} rows; {about}")


@data.command("ngrams")
def count_ngrams(
    files: Annotated[list[str], argument("FILES", "Files of text.")],
    held_out: Annotated[
        list[str] | None, option("--held-out FILE", "Held-out text. [a tenth of the files]")
    ] = None,
    order: Annotated[int, option("--order N", "Greatest n.", min=1, max=10)] = 5,
    level: Annotated[
        str, option("--level NAME", "Kind of token: spaces, words, characters.")
    ] = "spaces",
    after: Annotated[
        str | None, option("--after TEXT", "Show which words follow this text, and how often.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Count n-grams: how many, how many unseen, bytes, perplexity by n.

    Plain maximum likelihood gives unseen n-grams probability 0, so the perplexity is infinite; the
    smoothed model is next to it.
    """
    from ensue.tasks import TASKS

    counts = next(each_task.counts for each_task in TASKS.values() if each_task.counts is not None)
    counted = counts.study(files, held_out or [], order=order, level=level, after=after)
    answer(as_json_text(asdict(counted)) if as_json else counted.as_text())
