"""The command `explain`: which inputs led to an answer."""

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ensue.cli.app import (
    AsJson,
    Dark,
    Device,
    Html,
    Picture,
    Run,
    answer,
    app,
    as_json_text,
    check_files,
    grouped,
    option,
    teller,
    write_file,
    write_picture,
)
from ensue.cli.task_options import as_asked, options_by_task, with_task_options
from ensue.cli.trusting import TrustCell, trusted
from ensue.errors import OptionError, RunError
from ensue.tasks.options import EXPLAIN, Option

if TYPE_CHECKING:
    from ensue.data.settings import DataSettings
    from ensue.tasks.abilities import Explains, Explanation
    from ensue.tasks.any_model import AnyModel

File = Annotated[
    str | None, option("--file FILE", "File with the input, in the format of the training files.")
]
Row = Annotated[int, option("--row N", "Row of the file, counted from 1.", min=1)]
Attention = Annotated[bool, option("--attention", "Show where each head of a Transformer looks.")]
Layer = Annotated[
    int | None, option("--layer N", "With --attention: show only this layer, counted from 1.")
]


@dataclass(frozen=True)
class ExplainOptions:
    run: Run
    file: File = None
    row: Row = 1
    attention: Attention = False
    layer: Layer = None
    picture: Picture = None
    dark: Dark = False
    html: Html = None
    device: Device = "auto"
    trust_cell: TrustCell = ""
    as_json: AsJson = False


@app.command(
    examples="""
    ensue explain reviews --text "a fine film"  which words its class rests on
    ensue explain reviews --text "a film" --method integrated
    ensue explain names --text "Ada in Turin" --step 3  one label of a labeller
    ensue explain dates --text "3 May 1997"  where its words look
    ensue explain story --text "once upon" --attention  every head of it
    """
)
@with_task_options(EXPLAIN)
@grouped
def explain(options: ExplainOptions, option_values: Mapping[Option, Any]) -> None:
    """Show which parts of the input an answer rests on.

    Classes, labels and numbers: the contribution of each token, by leaving it out (occlusion), by
    gradient × input, or by integrated gradients. Translations and captions: where each word looks.
    Transformers: where each head looks, with --attention.
    """
    from ensue.runs.load import load_run
    from ensue.training import RunFolder

    check_files(options.html, options.picture)
    subject = _subject(options, option_values)
    folder, trust = RunFolder(options.run), trusted(options.trust_cell)
    config, model = load_run(folder, trust, options.device, teller())
    explains = _ability(options.run, model, options.attention)
    options_of_task = as_asked(
        {k: v for k, v in option_values.items() if not k.subject}, EXPLAIN, model.task.name
    )
    if subject is None:
        assert options.file is not None
        value = _row_of(options.file, options.row, config.data, model)
    elif (row := model.reader.named_row(subject.word, option_values[subject])) is not None:
        value = row
    elif explains.option == subject:
        value = option_values[subject]
    else:
        flags = " or ".join(options_by_task(EXPLAIN)[subject])
        raise RunError(
            f"{options.run}: {subject.flag}: expected a run of task {flags}, got one of "
            f"task {model.task.name}"
        )
    if options.attention:
        options_of_task = {**options_of_task, "layer": options.layer}
    _show(explains.explain(model, value, options_of_task), options)


def _subject(options: ExplainOptions, option_values: Mapping[Option, Any]) -> Option | None:
    """The option whose value is explained; None for a row of --file."""
    subjects = [each for each in option_values if each.subject]
    if len(subjects) + (options.file is not None) != 1:
        flags = [subject.flag for subject in subjects] + ["--file"] * (options.file is not None)
        got = ", ".join(flags) or "none"
        raise OptionError(f"explain: expected one of {_known()}, --file, got {got}")
    if options.layer is not None and not options.attention:
        raise OptionError("--layer: expected --attention as well, got none")
    return subjects[0] if subjects else None


def _show(explanation: "Explanation", options: ExplainOptions) -> None:
    from ensue.drawing.document import as_page

    if options.as_json:
        answer(as_json_text(asdict(explanation.result)))
    else:
        colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        answer(explanation.as_text(shutil.get_terminal_size().columns, colour), styled=colour)
    if options.picture is not None:
        write_picture(options.picture, explanation.as_svg(), options.dark)
    if options.html is not None:
        page = as_page(explanation.document(f"Explanation of {options.run}"))
        write_file(options.html, page)


def _ability(run: Path, model: "AnyModel", attention: bool) -> "Explains":
    task, abilities = model.task, model.abilities
    explains = abilities.heads if attention else abilities.explains
    if explains is not None:
        return explains
    if abilities.heads is not None:
        raise RunError(
            f"{run}: a run of task {task.name} can only be explained by its attention; add "
            "--attention"
        )
    if attention:
        raise RunError(
            f"{run}: --attention: expected a run with a Transformer, got one of task {task.name}"
        )
    owners = options_by_task(EXPLAIN).items()
    names = dict.fromkeys(name for each, tasks in owners if each.subject for name in tasks)
    raise RunError(
        f"{run}: expected a run of task {' or '.join(names)}, got one of task {task.name}"
    )


def _row_of(file: str, row: int, data: "DataSettings", model: "AnyModel") -> Any:
    """The input of a row of a file."""
    from ensue.tasks.reader import QuestionFiles

    passed = 0
    for questions in model.reader.question_files(QuestionFiles([file], data)):
        if questions.shown_inputs is None:
            break
        if row <= passed + len(questions.shown_inputs):
            return questions.shown_inputs[row - passed - 1]
        passed += len(questions.shown_inputs)
    raise OptionError(f"--row: expected a row of {file} from 1 to {passed:,}, got {row}")


def _known() -> str:
    """--text (translate), --image (caption)"""
    owners = options_by_task(EXPLAIN).items()
    return ", ".join(f"{each.flag} ({', '.join(tasks)})" for each, tasks in owners if each.subject)
