"""Loading a trained run: its configuration and its model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ensue.cells import Cell
from ensue.errors import RunError
from ensue.escape import in_shell
from ensue.files.atomic_folder import MANIFEST
from ensue.files.attempt import failure_of
from ensue.files.seal import sealed_config
from ensue.runs.config import RunConfig
from ensue.runs.messages import Message, MessageCallback, log, nobody
from ensue.tasks import TASKS, unfinished
from ensue.tasks.any_model import AnyModel
from ensue.tasks.data_argument import openings_of
from ensue.tasks.evaluation.openings import Openings
from ensue.tasks.saved import Saved, read_model
from ensue.tasks.saved_cells import NO_TRUST, Trust
from ensue.tasks.unfinished import BestSoFar
from ensue.training import RunFolder


@dataclass(frozen=True)
class Loading:
    """Options of loading. trust: files of custom cells that may run; device: where the model runs;
    best_so_far: accept an unfinished run, with its best weights; digest: the digest of the expected
    model, "" for any model."""

    trust: Trust = NO_TRUST
    device: str = "auto"
    best_so_far: bool = False
    digest: str = ""


@dataclass(frozen=True)
class LoadedRun:
    """A loaded run. digest: the digest of the model's content; best: the source of the weights, if
    the run is unfinished."""

    config: RunConfig
    model: AnyModel
    digest: str
    best: BestSoFar | None = None


def load_run(
    folder: RunFolder, trust: Trust = NO_TRUST, device: str = "auto", say: MessageCallback = nobody
) -> tuple[RunConfig, AnyModel]:
    """A run's model with its configuration. trust: files of custom cells that may run; device:
    where the model runs."""
    run = open_run(folder, Loading(trust, device), say)
    return run.config, run.model


def open_run(folder: RunFolder, how: Loading, say: MessageCallback = nobody) -> LoadedRun:
    """A run's model, with the configuration that it was trained with. say: callback for the source
    of the weights of an unfinished run, and for edited files."""
    if not folder.config.exists():
        raise RunError(
            f"{folder.path}: there is no run here; train one: "
            f"`ensue train FILE --run {in_shell(folder.path)}`"
        )
    folder.check_weights()
    best = None
    if how.best_so_far and (folder.learned.is_dir() or not folder.model.is_dir()):
        _refuse_nothing(folder)
        best = unfinished.best_so_far(folder)
        say(Message(f"{folder.path}: {best.line()}", warning=True))
    elif not folder.model.is_dir():
        raise not_finished(folder)
    saved = read_model(folder.model) if best is None else best.saved
    if how.digest and saved.digest != how.digest:
        raise RunError(
            f"{folder.path}: the model changed while the command ran: the run was trained "
            "again. Repeat the command"
        )
    text, stored = sealed_config(folder, Path(saved.place), saved.seal)
    if stored:
        say(Message(stored, warning=True))
    config, model = RunConfig.of_text(text, folder.config), _model_of(saved, how)
    return LoadedRun(config, model, saved.digest, best)


def _model_of(saved: Saved, how: Loading) -> AnyModel:
    if saved.kind not in TASKS:
        raise RunError(f"{saved.place}: unknown kind of model {saved.kind!r}")
    if saved.ensemble:
        from ensue.tasks.ensembles.model import EnsembleModel

        return EnsembleModel.of_saved(saved, how.trust, how.device)
    return TASKS[saved.kind].model_class.of_saved(saved, how.trust, how.device)


def not_finished(folder: RunFolder) -> RunError:
    """Why a run has no model yet, and a remedy."""
    _refuse_nothing(folder)
    path, failure, holder = folder.path, failure_of(folder), folder.holder()
    run = in_shell(path)
    resume = f"`ensue train --run {in_shell(path)}` resumes it"
    if holder:
        message, resume = f"it is being trained by {holder}", "wait for it"
    elif failure is not None:
        message = f"failed: {failure.reason}"
    else:
        message = "this run is not finished"
    return RunError(
        f"{path}: {message}; {resume}. Its best weights so far are used by `ensue evaluate {run} "
        f"--best-so-far`, `ensue predict {run} --best-so-far`, load({str(path)!r}, "
        "best_so_far=True)"
    )


def _refuse_nothing(folder: RunFolder) -> None:
    """Raises RunError if the run has no weights yet."""
    path, failure, holder = folder.path, failure_of(folder), folder.holder()
    if folder.has_weights():
        return
    if holder:
        raise RunError(f"{path}: nothing was trained yet; {holder} has begun. Wait for it")
    if failure is not None:
        raise RunError(
            f"{path}: failed: {failure.reason}; nothing was trained. Fix this, then `ensue train "
            f"--run {in_shell(path)}`"
        )
    raise RunError(
        f"{path}: nothing was trained yet; `ensue train --run {in_shell(path)}` trains it"
    )


def load(
    run: Path | str,
    *,
    trust: bool | str | Sequence[str] = False,
    cell: Cell | type[Cell] | None = None,
    device: str = "auto",
    best_so_far: bool = False,
) -> AnyModel:
    """The model of a run folder, or of a folder that `save` wrote, for any task.

    Custom cells never run without permission: `trust` runs the files in the folder, or only those
    with these sha256; `cell` replaces them. device: where the model runs: auto, cpu or cuda.
    best_so_far: for a run that was stopped or is still training, load the best weights so far.

    >>> lines = ["the dog runs", "the cat sleeps"]
    >>> LanguageModel(model={"family": "ngram"}).fit(lines, lines).save("saved")
    >>> type(load("saved")).__name__
    'LanguageModel'
    """
    folder, how = RunFolder(run), Loading(Trust(trust, cell), device, best_so_far)
    is_model = (folder.path / MANIFEST).exists()  # the model of a run has a copy of config.toml
    if folder.config.exists() and not is_model:
        loaded = open_run(folder, how, log)
        model, data = loaded.model, loaded.config.data
        model.openings = openings_of(folder, *data.validation, *(data.train if data.test else []))
        return model
    if best_so_far and folder.learned.is_dir():  # of `fit(…, folder=run)`, which was stopped
        model = _model_of(unfinished.best_so_far(folder).saved, how)
        model.openings = Openings(folder)
        return model
    in_run = folder.model.is_dir()
    model = _model_of(read_model(folder.model if in_run else folder.path), how)
    model.openings = Openings(folder if in_run else None)
    return model
