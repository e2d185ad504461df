"""The run folder of an ensemble: a model that answers for several runs, which stay as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ensue.files.atomic_folder import finite, sealed
from ensue.files.disk import write_whole
from ensue.files.format import FORMAT
from ensue.files.seal import CONFIG, DATA
from ensue.runs.config import RunConfig
from ensue.runs.data_files import data_facts
from ensue.runs.load import load_run
from ensue.tasks.ensembles.model import EnsembleModel
from ensue.tasks.saved import write_model
from ensue.training import RunFolder

HEAD = (
    "# An ensemble: model/ has all of its models; text, model and train are those of the first.\n"
)


def write_ensemble(
    folder: RunFolder,
    runs: Sequence[RunFolder],
    counts: Sequence[int],
    rows: Mapping[str, int],
    scores: Mapping[str, float],
) -> EnsembleModel:
    """Copies the models of these runs, the first of them the best one, into a run folder of their
    own, in the place of an ensemble that is there. rows, scores: as in its training.json."""
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
