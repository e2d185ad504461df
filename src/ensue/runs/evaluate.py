"""`ensue evaluate`: opens the test part of a run, records every opening, and stores the result."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ensue import __version__
from ensue.data.fingerprint import digest_of
from ensue.data.parallel import sides_of
from ensue.data.settings import DataSettings
from ensue.errors import DataError, EnsueError, OptionError
from ensue.runs.card import add_evaluations
from ensue.runs.config import PARTS, RunConfig
from ensue.runs.data_files import key_of, split_still_holds
from ensue.runs.evaluations import (
    Evaluated,
    EvaluatedFile,
    keep_evaluation,
    read_evaluations,
)
from ensue.runs.load import LoadedRun, Loading, open_run
from ensue.runs.messages import Message, MessageCallback, log, nobody, rejected_message
from ensue.settings import one_of
from ensue.tasks.any_model import AnyModel
from ensue.tasks.data_argument import check_words
from ensue.tasks.evaluation.openings import record_opening
from ensue.tasks.evaluation.report import Evaluation, TimesOpened
from ensue.tasks.options import DECISIONS, EVALUATE
from ensue.training import RunFolder

HELD_OUT = ("validation", "test")  # parts that can be evaluated


@dataclass(frozen=True)
class EvaluationRequest:
    """A request to evaluate a run. part: test or validation; test: files instead of the run's test
    part; reading: keys of [data] instead of the run's; options: options of the task; picture:
    whether to draw it; loading: how to load the model."""

    part: str = "test"
    test: Sequence[str] = ()
    reading: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    picture: bool = False
    loading: Loading = field(default_factory=Loading)


@dataclass(frozen=True)
class Opened:
    """An evaluation, and how often this test part was evaluated, by this run and by all runs next
    to it. svg: its picture, if requested; not_kept: the error of writing it into the run's folder,
    if any."""

    evaluation: Evaluation
    by_this_run: int
    by_all: int
    svg: str = ""
    not_kept: EnsueError | None = None


def evaluate_run(
    folder: RunFolder, request: EvaluationRequest, say: MessageCallback = nobody
) -> Opened:
    """Opens the test part (or other files as test part), records the opening, and stores the result
    in the run's folder."""
    run = open_run(folder, request.loading, say)
    config, model = run.config, run.model
    part_name, test = request.part, list(request.test)
    if test and part_name != "test":
        raise OptionError("--test and --validation: expected one of them, got both; leave one out")
    data = config.data.model_copy(update={**request.reading, **({"test": test} if test else {})})
    if part_name == "test" and not data.has_test:
        raise DataError(f"{folder.path}: this run has no test part; give a file with --test")
    draws = model.abilities.draws
    if request.picture and draws is None:
        raise OptionError(f"--picture: a run of task {model.task.name} has no picture")
    _refuse_missing(folder, data, request)
    _warn(folder, config, data, request, say)
    part = _part(folder, data, model, part_name, say)
    evaluation = model.evaluate_part(part, request.options)
    svg = ""
    if part_name == "validation" and (what := model.knows_validation()):
        note = (
            f"These rows are not test data: {what} also learned from them at the end of training."
        )
        evaluation = replace(evaluation, notes=(*evaluation.notes, note))
    if request.picture and draws is not None:
        svg = draws.evaluated(model, part)
    opening = None
    files = tuple(
        EvaluatedFile(key_of(path, folder), digest_of([path])) for path in data.files(part_name)
    )
    if part_name == "test":
        known = _known_openings(folder, files)
        opening = record_opening(folder, digest_of(data.files("test")), evaluation, known)
        for doubt in opening.doubts:
            say(Message(doubt, warning=True))
    evaluated = _evaluated(run, replace(config, data=data), request, evaluation)
    evaluated = replace(evaluated, files=files, opening=opening.digest if opening else "")
    not_kept = _keep(folder, evaluated, say)
    ours, by_all = (opening.by_this_run, opening.by_all) if opening else (0, 0)
    return Opened(evaluation, ours, by_all, svg, not_kept)


def evaluate_in_python(
    folder: RunFolder, part: str, test: Sequence[str], options: Mapping[str, Any], how: Loading
) -> Evaluation:
    """`evaluate_run` for `Run.evaluate`: warnings are logged; a result that cannot be stored raises
    an error."""
    if part not in HELD_OUT:
        raise OptionError(f"part: {one_of(HELD_OUT, part)}")
    check_words(RunConfig.of_run(folder).description, options, EVALUATE)
    evaluated = evaluate_run(
        folder, EvaluationRequest(part, test, options=options, loading=how), log
    )
    if evaluated.not_kept is not None:
        raise evaluated.not_kept
    by_others = evaluated.by_all - evaluated.by_this_run
    return evaluated.evaluation.opened_as(TimesOpened(evaluated.by_all, by_others))


def _known_openings(folder: RunFolder, files: Sequence[EvaluatedFile]) -> list[str]:
    """The openings of these files for which the run has stored evaluations."""
    try:
        evaluations = read_evaluations(folder)
    except EnsueError:
        return []  # reported when the evaluation is stored
    digests = [file.sha256 for file in files]
    same = [each for each in evaluations if [file.sha256 for file in each.files] == digests]
    return [each.opening for each in same if each.opening]


def evaluate_validation(
    folder: RunFolder, how: Loading | None = None, say: MessageCallback = nobody
) -> None:
    """Evaluates the validation part of a run and stores the result, for example for a
    comparison."""
    request = EvaluationRequest("validation", loading=how or Loading())
    evaluated = evaluate_run(folder, request, say)
    if evaluated.not_kept is not None:
        raise evaluated.not_kept


def _evaluated(
    run: LoadedRun, config: RunConfig, request: EvaluationRequest, evaluation: Evaluation
) -> Evaluated:
    """The stored form of an evaluation. config: the configuration, with the files that were
    read."""
    return Evaluated(
        part=request.part,
        task=config.task,
        files=(),
        basis=basis_of(config, request.part),
        options=dict(request.options),
        model=run.digest,
        best_so_far=run.best.line() if run.best else "",
        when=datetime.now(UTC).isoformat(timespec="seconds"),
        ensue=__version__,
        evaluation=evaluation.of_rows(
            short_names(evaluation.names, config.data.files(request.part))
        ),
    )


def _keep(folder: RunFolder, evaluated: Evaluated, say: MessageCallback) -> EnsueError | None:
    """Writes an evaluation into the folder and the card. Returns the error, if any: the caller
    reports it after the scores. Scores with thresholds of one command are not kept."""
    tried = [decision.flag for decision in DECISIONS if decision.key in evaluated.options]
    if tried:
        by = " and ".join(tried)
        say(Message(f"not saved in {folder.path.name}: scores with {by} hold for this call only"))
        return None
    try:
        keep_evaluation(folder, evaluated)
        add_evaluations(folder, say)
    except EnsueError as error:
        return error
    return None


def basis_of(config: RunConfig, part: str) -> dict[str, Any]:
    """The settings that decide which rows are evaluated, and their targets; comparable evaluations
    have the same. They omit paths and the treatment of faulty rows; if the part has its own files,
    the settings of the split; and if the target is a label, the input columns."""
    data, named = config.data, config.description.compared_on
    free = {*PARTS, "skip_bad"}
    free |= {"split_seed", "group"} if data.shares(part) is None else set()
    free |= {"text", "second", "features"} if data.label else set()
    left = {f"data.{key}" for key in free}
    return {
        key: value
        for key, value in config.flat().items()
        if key not in left and {key, key.partition(".")[0]} & {*named}
    }


def short_names(names: Sequence[str], files: Sequence[str]) -> list[str]:
    """Names of rows without the folders of their files, which may be moved."""
    above = {f"{Path(side).parent}{os.sep}" for path in files for side in sides_of(path)}

    def short(name: str) -> str:
        return next(
            (name.removeprefix(prefix) for prefix in above if name.startswith(prefix)), name
        )

    return [short(name) for name in names]


def _refuse_missing(folder: RunFolder, data: DataSettings, request: EvaluationRequest) -> None:
    """Raises an error if the files of a part are missing, for example because only the run was
    moved."""
    files = {side for path in data.files(request.part) for side in sides_of(path)}
    gone = sorted(path for path in files if path not in request.test and not Path(path).exists())
    if gone:
        others = ", or give other rows with --test FILE" if request.part == "test" else ""
        raise DataError(
            f"{folder.path}: the rows of its {request.part} part are in {', '.join(gone)}, which "
            f"is missing: restore the file, or put it next to the run{others}"
        )


def _warn(
    folder: RunFolder,
    config: RunConfig,
    data: DataSettings,
    request: EvaluationRequest,
    say: MessageCallback,
) -> None:
    """Warnings about files that have changed, and about files that the model was trained with."""
    split_off = not (data.validation if request.part == "validation" else data.test)
    if split_off and (warning := split_still_holds(folder, config)):
        say(Message(warning, warning=True))
    learned = resolved([*config.data.train, *config.data.validation, *config.data.unlabelled])
    for path in request.test:
        if learned & resolved([path]):
            message = f"{path}: this run was trained with this file: the scores will be too good"
            say(Message(message, warning=True))


def _part(
    folder: RunFolder, data: DataSettings, model: AnyModel, name: str, say: MessageCallback
) -> Any:
    files = model.reader.files(data)
    part = files.part(name)
    for message in rejected_message(files.rejected):
        say(message)
    if not len(part):
        raise DataError(
            f"{folder.path}: no row falls into the {name} part: too few rows were split by their "
            "hash; give a file with --test"
        )
    return part


def resolved(paths: Iterable[str]) -> set[Path]:
    """The paths of all files, resolved."""
    return {Path(side).resolve() for path in paths for side in sides_of(path)}
