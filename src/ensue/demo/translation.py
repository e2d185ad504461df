"""`ensue demo`: a network trained from scratch turns dates as people write them into ISO dates.

It trains while you watch and is tested on days that it has never seen, next to the same network
without attention. The demo also shows what it cannot do."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from itertools import islice
from pathlib import Path
from random import Random
from time import perf_counter
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ensue.data.tasks.dates import CASES, FORMATS, Date, dates, written
from ensue.demo.console import begin, heading, indented, note, one_thread, one_thread_each
from ensue.demo.page import DemoTrial, lengths_beside
from ensue.drawing import write
from ensue.errors import EnsueError, OptionError, RunError
from ensue.escape import in_shell

# -------------------------------------------------------------------------------------------------
# The dates for training and for tests: none is in two parts.
#
# Further tests use two kinds of unseen dates: formats that the training part never has in capitals,
# and words with typing errors.

CAPITALS = CASES.index(str.upper)
# Formats that are learned in every style except capitals.
NEVER_IN_CAPITALS = frozenset(
    [name for name, form in FORMATS.items() if form.language != "figures"][::6]
)
SHORTEST = 4  # minimum length of a mistyped word
AT_ONCE = 1000


def learned(date: Date) -> bool:
    """Whether the training part may have dates like this one."""
    return not (date.format in NEVER_IN_CAPITALS and date.text.isupper())


def rows(part: str, count: int, seed: int) -> list[Date]:
    """Rows of a part for the network."""
    cells = (
        one
        for first in range(0, 10 * count, AT_ONCE)
        for one in dates(seed, part, AT_ONCE, first=first)
        if learned(one)
    )
    return list(islice(cells, count))


def unseen(count: int, seed: int) -> list[Date]:
    """Dates of the test part, in combinations of format and capitals that the training part does
    not have."""
    forms = sorted(NEVER_IN_CAPITALS)
    days = [date.fromisoformat(one.iso) for one in dates(seed, "test", count)]
    return [written(day, forms[k % len(forms)], CAPITALS) for k, day in enumerate(days)]


def mistyped(right: list[Date], seed: int) -> list[Date]:
    """The dates that have a long word, with one mistake in it: two letters swapped, one missing, or
    one doubled. The first letter stays."""
    changed = []
    for k, one in enumerate(right):
        chance = Random(f"{seed} {k}")
        long = [w for w in one.text.split(" ") if len(w) >= SHORTEST and w.isalpha()]
        if not long:
            continue
        word = chance.choice(long)
        at = chance.randrange(1, len(word) - 1)
        here, next_one = word[at], word[at + 1]
        letters = chance.choice((next_one + here, next_one, here * 2 + next_one))
        wrong = word[:at] + letters + word[at + 2 :]
        changed.append(replace(one, text=one.text.replace(word, wrong, 1), character_tags=()))
    return changed


if TYPE_CHECKING:
    from ensue.data.tasks.dates import Date
    from ensue.runs.config import RunConfig
    from ensue.tasks.any_model import AnyModel
    from ensue.training import RunFolder

SEED = 1
ROWS = {"train": 40_000, "validation": 1000, "test": 6000}
OTHERS = 1000  # test dates of each unseen kind
SETTINGS: dict[str, dict[str, Any]] = {
    "text": {"level": "characters", "min_count": 1},
    "model": {
        "cell": "GRU",
        "attention": "additive",
        "hidden_size": 96,
        "embedding_size": 64,
        "dropout_input": 0.0,
        "dropout_layers": 0.0,
        "dropout_output": 0.0,
        "smoothing": 0.0,
        "batch_rows": 64,
        "beam": 1,
        "validation_rows": 300,
    },
    "train": {
        "epochs": 2,
        "rate": 0.004,
        "schedule": "linear",
        "warmup": 30,
        "check_every": 200,
        "watch": "exact",
        "seed": SEED,
    },
}
SHOWN = "Mittwoch, der 24. Oktober 2012"
EXAMPLES = 6
LONGEST = 12  # letters shown of an answer


def run(out: Path) -> None:
    """The whole demo, on stdout; files go into the folder."""
    console = begin("Dates as people write them, read by a network with attention.")
    parts = _say_data(console, out)
    attentive, plain = _say_training(console, out)
    trials = _trials(attentive, parts)
    beside = DemoTrial.of("without attention", plain, parts["test"])
    _say_scores(console, trials, beside)
    _say_alignment(console, attentive, out)
    _say_mistakes(console, trials)
    _say_next(console, out, attentive, trials, beside)


# -------------------------------------------------------------------- 1: the data
def _say_data(console: Console, out: Path) -> dict[str, list[Date]]:
    heading(console, 1, "What it learns from")
    from ensue.data.tasks.dates import FORMATS

    parts = {part: rows(part, count, SEED) for part, count in ROWS.items()}
    table = Table.grid(padding=(0, 3))
    for one in parts["train"][:EXAMPLES]:
        table.add_row(one.text, Text("→", style="dim"), Text(one.iso, style="green"))
    indented(console, table)
    counts = ", ".join(
        f"{len(part_rows):,} to {_PURPOSE[part]}" for part, part_rows in parts.items()
    )
    note(
        console,
        f"""{len(FORMATS)} formats in five languages and figures; {counts}; no day is in two of
        the three. What could be read in two ways is settled by a rule: with points the day comes
        first (3.5.97), with slashes the month (5/3/97), with hyphens the year (1997-05-03); years
        50–99 are 19xx, 00–49 are 20xx.""",
    )
    try:
        out.mkdir(parents=True, exist_ok=True)
        for part, part_rows in parts.items():
            lines = [f"{one.text}\t{one.iso}\n" for one in part_rows]
            (out / f"{part}.tsv").write_text("".join(["text\tiso\n", *lines]), encoding="utf-8")
    except OSError as problem:
        message = f"{out} cannot be written: {problem.strerror}; name another folder with --out"
        raise OptionError(message) from problem
    return parts


_PURPOSE = {"train": "train on", "validation": "validate on", "test": "test on"}


# -------------------------------------------------------------------- 2: training
def _say_training(console: Console, out: Path) -> tuple[AnyModel, AnyModel]:
    """Trains the network with attention and, in a second process, the one without. Both become runs
    in the folder, for the commands printed at the end."""
    heading(console, 2, "Training from scratch, with and without attention")
    from ensue.runs.load import load_run
    from ensue.runs.train import train_run
    from ensue.training import Display, RunFolder

    without = _configured(out, "dates-without-attention", "none")[1]
    command = [
        sys.executable,
        "-P",
        "-m",
        "ensue",
        "train",
        "--quiet",
        "--run",
        str(without.path),
    ]
    begun = perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=one_thread_each()) as other:
        config, folder = _configured(out, "dates", "additive")
        with one_thread():
            trained = train_run(config, folder, [Display()])
        seconds = perf_counter() - begun
    if other.returncode:
        raise RunError(f"{without.path}: training ended with exit code {other.returncode}")
    plain = load_run(RunFolder(without.path))[1]
    outcome = trained.outcomes[0]
    indented(
        console,
        f"{_size(trained.model):,} parameters, {outcome.updates:,} updates, {seconds:.0f} seconds; "
        f"without attention {_size(plain):,} parameters",
    )
    return trained.model, plain


def _size(model: AnyModel) -> int:
    return sum(parameter.numel() for parameter in model.networks[0].parameters())


def _configured(out: Path, name: str, attention: str) -> tuple[RunConfig, RunFolder]:
    """The configuration of a run; deletes a run that has other settings or another version."""
    from ensue.runs.config import RunConfig
    from ensue.runs.train import settle
    from ensue.training import RunFolder

    data = {
        **{part: [str((out / f"{part}.tsv").resolve())] for part in ROWS},
        "text": "text",
        "label": "iso",
    }
    model = {**SETTINGS["model"], "attention": attention}
    config = RunConfig.of({"task": "translate", "data": data, **SETTINGS, "model": model})
    folder = RunFolder(out / name)
    if folder.config.exists() and not _continues(folder, config):
        shutil.rmtree(folder.path)
        folder = RunFolder(out / name)
    return settle(folder, config), folder


def _continues(folder: RunFolder, config: RunConfig) -> bool:
    """Whether an unfinished run has this configuration."""
    from ensue.runs.config import RunConfig

    try:
        return not folder.model.exists() and RunConfig.of_run(folder) == config
    except EnsueError:
        return False


# -------------------------------------------------------------------- 3: scores
def _trials(model: AnyModel, parts: dict[str, list[Date]]) -> list[DemoTrial]:

    wrong = mistyped(parts["test"][: 2 * OTHERS], SEED)[:OTHERS]
    return [
        DemoTrial.of("new days", model, parts["test"]),
        DemoTrial.of("new in capitals", model, unseen(OTHERS, SEED)),
        DemoTrial.of("typed wrong", model, wrong),
    ]


def _say_scores(console: Console, trials: Sequence[DemoTrial], beside: DemoTrial) -> None:
    heading(console, 3, "The test, opened once")
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    table.add_column("dates")
    table.add_column("how many", justify="right")
    table.add_column("exactly right", justify="right", style="green")
    for trial in trials:
        table.add_row(trial.name, f"{len(trial.dates):,}", f"{trial.exact:.2%}")
    table.add_row("new days, without attention", f"{len(beside.dates):,}", f"{beside.exact:.2%}")
    table.add_row("a guess: the most frequent day", "", f"{trials[0].guess:.2%}")
    indented(console, table, after=0)
    note(
        console,
        """New days: none of them was in training. New in capitals: formats that training has, but
        never in capitals. Typed wrong: in one word two letters are exchanged, one is missing, or
        one is there twice; a word such as “lulgio” may be beyond guessing.""",
    )

    formats = trials[0].by_format()
    worst = min(formats, key=lambda row: row.share)
    hardest = f"Of {len(formats)} formats the hardest is “{worst.name}”: {worst.share:.1%} right"
    if worst.share == 1:
        hardest = f"In none of the {len(formats)} formats is one wrong"
    note(console, f"{hardest}. All of them are in the report.")
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    table.add_column("characters", justify="right")
    table.add_column("dates", justify="right")
    table.add_column("with attention", justify="right", style="green")
    table.add_column("without", justify="right", style="yellow")
    for name, count, ours, theirs in lengths_beside(trials[0], beside):
        table.add_row(name, f"{count:,}", f"{ours:.1%}", f"{theirs:.1%}")
    indented(console, table, after=0)
    note(
        console,
        """Both have the same cells, letters and updates. Without attention the whole date must fit
        into one state, which takes far longer to learn.""",
    )


# -------------------------------------------------------------------- 4: alignment
def _say_alignment(console: Console, model: AnyModel, out: Path) -> None:
    heading(console, 4, "Where it looks")
    explains = model.task.explains
    assert explains is not None
    explanation = explains.explain(model, SHOWN)
    colour = console.is_terminal and not console.no_color
    drawn = explanation.as_text(console.width - 6, colour)
    indented(console, Text.from_ansi(drawn) if colour else Text(drawn))
    write(explanation.as_svg(), out / "alignment.svg")
    note(
        console,
        """Each row is a letter it writes, with its probability; the shades are the weights α of
        the letters it reads. It learned by itself which belong together.""",
    )


# -------------------------------------------------------------------- 5: mistakes
def _say_mistakes(console: Console, trials: Sequence[DemoTrial]) -> None:
    heading(console, 5, "Where it fails")
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for name in ("written", "it says", "it is", "what kind"):
        table.add_column(name, no_wrap=name != "what kind")
    for trial in trials:
        for one, answer in trial.mistakes()[:3]:
            shown_answer = Text(
                answer if len(answer) <= LONGEST else answer[:LONGEST] + "…", style="red"
            )
            table.add_row(one.text, shown_answer, one.iso, trial.name)
    if not table.row_count:
        table.add_row("no mistake was found", "", "", "")
    indented(console, table)


# -------------------------------------------------------------------- 6: what next
def _say_next(
    console: Console,
    out: Path,
    model: AnyModel,
    trials: Sequence[DemoTrial],
    beside: DemoTrial,
) -> None:
    heading(console, 6, "What to try next")
    from ensue.demo.page import report
    from ensue.drawing.document import as_page

    page = out / "report.html"
    page.write_text(as_page(report(model, trials, beside, out / "dates")), encoding="utf-8")
    lines = Table.grid(padding=(0, 2))
    run = in_shell(out / "dates")
    for command, what in (
        (f"{page}", "all of this, and every format"),
        (f"echo 'le 3 mai 1997' | ensue predict {run}", "a date of your own"),
        (f"ensue explain {run} --text '3. Mai 97'", "where it looks"),
        (f"ensue evaluate {run}", "every score of this test"),
        ("ensue train pairs.tsv --task translate", "docs/tutorials/translate.md"),
        ("ensue demo cell", "a cell is its equations"),
    ):
        lines.add_row(Text(command, style="cyan"), what)
    indented(console, lines)
