"""Reading a base: a run, a saved model, a file of word vectors or of weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ensue.data.formats import endings
from ensue.errors import OptionError, RunError
from ensue.escape import in_shell
from ensue.files.atomic_folder import MANIFEST
from ensue.files.run_folder import RunFolder
from ensue.tasks import TASKS
from ensue.tasks.blocks.cell_name import cell_references
from ensue.tasks.kept_cells import Trust
from ensue.tasks.saved import Saved, read_model
from ensue.tasks.transfer.pretrained import Pretrained, read_copy
from ensue.tasks.transfer.two_ways import joined
from ensue.tasks.transfer.weight_files import vectors_base, weights_base

if TYPE_CHECKING:
    from ensue.tasks.model import Model

# How a file is read, by the end of its name; any other has word vectors.
READERS: Mapping[str, Callable[[str], Pretrained]] = {".safetensors": weights_base}
TEXT = "text"  # the format of data whose endings word vectors have as well
NAME_THE_CELL = "name the cell for this training too, --set model.cell=FILE:NAME"


def read_base(model: Model[Any, Any, Any], folder: RunFolder | None) -> Pretrained:
    """What a training begins from: the copy in its folder, once there is one, else the base. A
    base that is not the one that the training began from is refused."""
    base = model.base
    if folder is not None and folder.base.is_dir():
        copy = read_copy(folder.base)
        _refuse_changed(model, copy, folder)
        return model.task.transfers.taken(copy, model)
    found = _found(model)
    if base.digest and base.digest != found.digest:
        raise RunError(
            f"{found.called}: this is not the base that the configuration names: expected the "
            f"digest {base.digest[:12]}…, got {found.digest[:12]}…. Put it back, or take the new "
            'one: --set base.digest=""'
        )
    return model.task.transfers.taken(found, model)


def _refuse_changed(model: Model[Any, Any, Any], copy: Pretrained, folder: RunFolder) -> None:
    """The base that a command names is the one that its run began from, as far as it is there."""
    base = model.base
    now = base.digest
    if not now and all(Path(path).exists() for path in base.path):
        now = _found(model).digest
    if now and now != copy.digest:
        raise RunError(
            f"{', '.join(base.path)}: the base has changed since {folder.path} began: was "
            f"{copy.digest[:12]}…, now {now[:12]}…. Next: `ensue train --run "
            f"{in_shell(folder.path)}` resumes the run with the base that it began from; for the "
            "new one name another folder"
        )


def _found(model: Model[Any, Any, Any]) -> Pretrained:
    """What the bases that a configuration names give together."""
    read = [_read(path, model) for path in model.base.path]
    return joined(read, model.task.transfers.backward_alone)


def _read(path: str, model: Model[Any, Any, Any]) -> Pretrained:
    place = Path(path)
    if not path or not place.exists():
        raise OptionError(
            f"base: expected a run, a model or a file, got {path or 'an empty name'}: there is "
            "none; `ensue runs` lists runs"
        )
    if place.is_dir():
        return _model(path, model)
    data = endings().get(place.suffix, TEXT)
    if data != TEXT:
        raise OptionError(
            f"base: expected a run, a model, word vectors or weights, got {path}, a file of data "
            f"({data}); a base is trained first, `ensue pretrain {in_shell(path)} --run NAME`, and "
            "then named"
        )
    return READERS.get(place.suffix, vectors_base)(path)


def _model(path: str, model: Model[Any, Any, Any]) -> Pretrained:
    """The encoder of a run's model, or of a saved one."""
    run = RunFolder(path)
    run.check_weights()
    if not run.model.is_dir() and not (run.path / MANIFEST).exists():
        raise RunError(
            f"{path}: this run is not finished, and has no model to begin from yet; `ensue train "
            f"--run {in_shell(path)}` resumes it"
            if run.config.is_file()
            else f"{path}: expected the folder of a run or of a saved model, got one of neither; "
            "`ensue runs` lists runs"
        )
    saved = read_model(run.model if run.model.is_dir() else run.path)
    if saved.kind not in TASKS:
        raise RunError(f"{path}: unknown kind of model {saved.kind!r}")
    task = TASKS[saved.kind]
    loaded = task.model_class.of_saved(saved, _trust(saved, model), "cpu")
    return task.transfers.gives(loaded, path, saved.digest)


def _trust(saved: Saved, model: Model[Any, Any, Any]) -> Trust:
    """A cell of one's own in the base is the one that this training has too, and nothing of the
    base's folder is run."""
    own = cell_references(model.model)
    if saved.facts.get("cells") and own:
        return Trust(cell=next(iter(own.values())).loaded().cell, command=NAME_THE_CELL)
    return Trust(command=NAME_THE_CELL, instead=NAME_THE_CELL)
