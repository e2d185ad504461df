"""An ensemble of trials by forward selection (Caruana et al. 2004): it starts with the best trial
and repeatedly adds the one that improves the mean answer on validation most. The same trial may be
added several times. The ensemble has its own run folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ensue.errors import RunError
from ensue.files.atomic_folder import finite, sealed
from ensue.files.disk import write_whole
from ensue.files.format import FORMAT
from ensue.files.seal import CONFIG, DATA
from ensue.metrics.table import METRICS
from ensue.runs.config import RunConfig
from ensue.runs.data_files import data_facts
from ensue.runs.load import load_run
from ensue.runs.messages import nobody
from ensue.runs.train import read_parts
from ensue.study.selection.entries import TOGETHER, Entry
from ensue.study.selection.outputs import read_outputs
from ensue.tasks.abilities import Outputs
from ensue.tasks.ensembles.model import EnsembleModel
from ensue.tasks.fitting import answerable
from ensue.tasks.saved import write_model
from ensue.training import RunFolder

HEAD = (
    "# An ensemble: model/ has all of its models; text, model and train describe the first one.\n"
)


def write_ensemble(
    folder: RunFolder,
    runs: Sequence[RunFolder],
    counts: Sequence[int],
    rows: Mapping[str, int],
    scores: Mapping[str, float],
) -> EnsembleModel:
    """Copies the models of these runs, the best one first, into a new run folder, which replaces an
    earlier ensemble. rows, scores: the facts for its training.json."""
    loaded = [load_run(run, device="cpu") for run in runs]
    config: RunConfig = loaded[0][0]
    model = EnsembleModel([model_of_run for _, model_of_run in loaded], counts)
    facts: dict[str, Any] = {"format": FORMAT, "rows": {**rows}, "networks": [], "histories": []}
    with folder.locked():
        text = (HEAD + config.text_of(folder.path)).encode()
        seal = {CONFIG: text, DATA: data_facts(folder, config)}
        write_whole(folder.config, text)
        write_model(folder.model, model.as_saved(seal))
        write_whole(folder.data, seal[DATA])
        write_whole(folder.training, sealed({**facts, "answer": finite({**scores})}))
    return model


MOST = 25  # maximum trials of an ensemble, with repetitions


def forward_selected(
    outputs: Mapping[str, Outputs], score: Callable[[Outputs], float], higher_is_better: bool
) -> tuple[dict[str, int], float]:
    """The weight of each member, in the order of addition, and the score of the ensemble. outputs:
    by name, best first."""
    sign = 1 if higher_is_better else -1
    counts: dict[str, int] = {}
    chosen: list[Any] = []
    best = -np.inf
    while sum(counts.values()) < MOST:
        tried = {name: sign * score([*chosen, *output]) for name, output in outputs.items()}
        name = max(tried, key=lambda each: tried[each])  # of equals the first
        if not tried[name] > best:
            break
        best = tried[name]
        chosen += outputs[name]
        counts[name] = counts.get(name, 0) + 1
    return counts, sign * best


def ensemble_of(place: Path, entries: Sequence[Entry], measure: str) -> Entry | None:
    """The ensemble of finished trials, the best first; None if a single one is as good. Writes the
    run folder of the ensemble."""
    outputs = {entry.name: read_outputs(place / entry.folder, entry.outputs) for entry in entries}
    known = {name: arrays for name, arrays in outputs.items() if arrays}
    if len(known) < 2:
        return None
    best = next(entry for entry in entries if entry.name in known)
    config, model = load_run(RunFolder(place / best.folder), device="cpu")
    averages = config.description.averages
    assert averages is not None
    train, labelled = read_parts(config, model, nobody)
    validation = answerable(model, train, labelled, lambda line: None)
    shape = known[best.name][0].shape
    alike = {name: arrays for name, arrays in known.items() if arrays[0].shape == shape}
    if shape[:1] != (len(labelled),):
        raise RunError(
            f"{place / best.folder}: expected answers for {len(labelled):,} validation rows, got "
            f"an array of shape {shape}. Select without --together, or name another --run"
        )

    def scores(outputs: Outputs) -> dict[str, float]:
        return averages.scores(outputs, validation, model)

    higher = METRICS[measure].higher_is_better
    counts, _ = forward_selected(alike, lambda chosen: scores(chosen)[measure], higher)
    together = scores([output for name, many in counts.items() for output in [*alike[name]] * many])
    if len(counts) < 2 or not METRICS[measure].better(together[measure], best.score):
        return None
    runs = [
        RunFolder(place / entry.folder)
        for name in counts
        for entry in entries
        if entry.name == name
    ]
    rows = {"train": len(train), "validation": len(labelled)}
    folder = RunFolder(place / TOGETHER)
    written = write_ensemble(folder, runs, [*counts.values()], rows, together)
    listed = " + ".join(f"{many} × {name}" for name, many in counts.items())
    return Entry(
        TOGETHER,
        TOGETHER,
        what=listed,
        parameters=sum(
            parameter.numel() for net in written.networks for parameter in net.parameters()
        )
        or None,
        size=sum(file.stat().st_size for file in folder.model.iterdir()),
        score=together[measure],
    )
