"""`ensue train`: from a configuration to a model in its folder."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from ensue.errors import DataError, RunError
from ensue.files.atomic_folder import finite, remove, sealed
from ensue.files.attempt import add_note, note_failure, restored
from ensue.files.disk import write_whole
from ensue.runs.card import write_card
from ensue.runs.config import RunConfig
from ensue.runs.data_files import refuse_changed_files, remember_files
from ensue.runs.messages import Message, Say, nobody, rejected_message
from ensue.tasks.fitting import Fitting
from ensue.tasks.model import Model
from ensue.training import Outcome, RunFolder, Stopped, Watcher, processes
from ensue.training.devices import device_of

FORMAT = 1  # of training.json
POINTS = 5  # every fifth point of a curve is printed
# Which columns mean what: weights that were learned from others are no answer to these.
MEANING = tuple(
    f"data.{key}" for key in ("text", "second", "label", "separator", "sequence", "features")
)
ELSEWHERE = "train.device"  # a run goes on wherever it is
AnyModel = Model[Any, Any, Any]


@dataclass(frozen=True)
class Trained:
    """outcomes: of each network; rows: how many to train and to validate on."""

    config: RunConfig
    model: AnyModel
    outcomes: Sequence[Outcome]
    rows: dict[str, int]

    def best(self) -> str:
        """The validation scores of the weights that were kept."""
        scores = [own.scores or {} for own in self.outcomes]
        names = sorted({name for own in scores for name in own})
        shown = {name: [f"{own[name]:.4f}" for own in scores] for name in names}
        return "best on validation: " + ", ".join(f"{n} {' '.join(v)}" for n, v in shown.items())


def settle(folder: RunFolder, config: RunConfig, allow: Collection[str] = ()) -> RunConfig:
    """Writes the configuration into the folder, or finds the same one there; as long as nothing
    was learned by it, or where all that differs is allowed to, another one takes its place. A
    folder that another process works in is refused before any data is read."""
    with folder.locked():
        learned = folder.has_weights()
        differs = _differences(folder, config) if learned and folder.config.exists() else {}
        allow = {*allow} - {*MEANING}
        refused = [line for key, line in differs.items() if key not in {*allow, ELSEWHERE}]
        if not refused:
            if differs or not learned or not folder.config.exists():
                write_whole(folder.config, config.text_of(folder.path).encode())
            return config
    many = "1 setting differs" if len(refused) == 1 else f"{len(refused)} settings differ"
    allowed = " ".join(f"--allow {key}" for key in differs if key != ELSEWHERE)
    resume = "" if {*differs} & {*MEANING} else f", or resume with them: {allowed}"
    raise RunError(
        f"{folder.config}: {many} from this command\n" + "\n".join(refused) + "\n"
        f"Next: `ensue train --run {folder.path}` resumes it with its own settings; "
        f"for the new ones name another run{resume}"
    )


def _differences(folder: RunFolder, config: RunConfig) -> dict[str, str]:
    """By key, the settings that the folder has otherwise; a run of another task is refused."""
    there = RunConfig.read(folder.config)
    if there.task != config.task:
        raise RunError(
            f"{folder.path}: this folder holds a run to {there.task}, and this command is one to "
            f"{config.task}; name another folder with --run"
        )
    before, now = there.flat(), config.flat()
    return {
        key: f"  {key}: was {before.get(key)!r}, now {now.get(key)!r}"
        for key in dict.fromkeys([*before, *now])
        if before.get(key) != now.get(key)
    }


@contextmanager
def attempted(folder: RunFolder) -> Iterator[None]:
    """A training from its configuration on. If it fails before anything was learned, the folder is
    as it was before; one that was there already says why."""
    was_there = folder.config.exists()
    try:
        with restored(folder, Stopped):
            yield
    except Stopped:
        raise
    except Exception as error:
        if was_there and not folder.has_weights() and not folder.holder():
            note_failure(folder, error)
            add_note(error, f"Nothing was trained: {folder.path} is as it was before.")
        raise


def train_run(
    config: RunConfig,
    folder: RunFolder,
    watchers: Sequence[Watcher] = (),
    say: Say = nobody,
    allow: Collection[str] = (),
) -> Trained:
    """Reads the data, trains or resumes, and writes the model."""
    device_of(config.train.device)  # told before any data is read
    model = config.new_model()
    train, held = read_parts(config, model, say)
    rows = {"train": len(train), "validation": len(held)}
    many = f"{len(train):,} row{'s' * (len(train) != 1)}"
    say(Message(f"{many} to train on, {len(held):,} to validate on"))
    outcomes = model.fit_parts(train, held, Fitting(folder, watchers, config.flat(), allow))
    if any(own.epochs > 1 and own.best_update == own.updates for own in outcomes):
        more = f"--set train.epochs={2 * config.train.epochs} --allow train.epochs"
        say(Message(f"the validation score was still improving: more epochs may help ({more})"))
    refuse_changed_files(folder, config, allow)
    trained = Trained(config, model, outcomes, rows)
    if processes.team().first:
        _write(folder, trained)
    return trained


def _write(folder: RunFolder, trained: Trained) -> None:
    """What came of a training. The model is there before what it makes superfluous goes."""
    trained.model.save(folder.model)
    remember_files(folder, trained.config)
    networks = [finite(asdict(own)) for own in trained.outcomes]
    facts = {"format": FORMAT, "rows": trained.rows, "networks": networks}
    write_whole(folder.training, sealed(facts))
    write_card(folder, trained)
    if folder.learned.is_dir():
        remove(folder.learned)
    folder.failure.unlink(missing_ok=True)


def read_parts(config: RunConfig, model: AnyModel, say: Say) -> tuple[Any, Any]:
    """What is trained on, and what is validated on."""
    files = model.task.files(config.data, model)
    train = files.part("train")
    for message in rejected_message(files.rejected):
        say(message)
    held = files.part("validation", like=train)
    for name, part in (("train", train), ("validation", held)):
        if not len(part):
            what = "groups" if config.data.group else "rows"
            raise DataError(
                f"{', '.join(config.data.train)}: no row falls into the {name} part: too few "
                f"{what} to be split by their hash. Give more rows, another "
                "--set data.split_seed=1, or a file with --validation"
            )
    return train, held


def suggest_rate(config: RunConfig, say: Say = nobody) -> str:
    """A learning rate for this model and data, with the curve it comes from."""
    model = config.new_model()
    train = model.task.files(config.data, model).part("train")
    say(Message(f"{len(train):,} rows; trying rates"))
    curve = model.find_rate(train)
    points = list(zip(curve.rates, curve.smoothed, strict=True))[::POINTS]
    lines = [f"{rate:10.2e}  {cost:.4f}" for rate, cost in points]
    return "\n".join(["      rate  cost", *lines, f"suggested: train.rate={curve.suggestion:.2g}"])
