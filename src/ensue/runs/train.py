"""`ensue train`: from a configuration to a model in its folder."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ensue.data.rows import Tally
from ensue.data.settings import DataSettings
from ensue.data.stream import opened_once
from ensue.errors import ConfigError, DataError, RunError
from ensue.escape import in_shell
from ensue.files.atomic_folder import Damaged, digest, finite, remove, sealed
from ensue.files.attempt import add_note, note_failure, restored
from ensue.files.disk import free_name, write_whole
from ensue.files.format import FORMAT
from ensue.files.opening import HISTORY_FILE, read_plain
from ensue.files.seal import CONFIG, DATA, Seal, seal_folder, seal_in, sealed_config
from ensue.runs.card import write_card
from ensue.runs.config import RunConfig
from ensue.runs.data_files import data_facts, refuse_changed_files
from ensue.runs.messages import Message, MessageCallback, nobody, rejected_message
from ensue.tasks.any_model import AnyModel
from ensue.tasks.evaluation.summary import Summary, summary_lines
from ensue.tasks.fitting import Fitting, holding
from ensue.tasks.model_settings import Tables, adapt
from ensue.tasks.rows.unlabelled import unlabelled_in_files
from ensue.tasks.saved import MEMBER, write_model
from ensue.training import Outcome, RunFolder, Stopped, Watcher, processes
from ensue.training.processes import device_of

# --- the parts of the files that training needs ------------------------------------------------


def drawn(train: Any, data: DataSettings) -> Any:
    """A random sample of `train_rows` rows of the training part, in their order."""
    if data.train_rows is None or data.train_rows >= len(train):
        return train
    order = np.random.default_rng(data.split_seed).permutation(len(train))
    return train.take(np.sort(order[: data.train_rows]))


def read_unlabelled(
    config: RunConfig, model: AnyModel, train: Any, say: MessageCallback
) -> Any | None:
    """Unlabelled rows to learn from; None if there are none."""
    bad = Tally()
    unlabelled = unlabelled_in_files(model, config.data, train, bad.add)
    for message in rejected_message(bad.count):
        say(message)
    return unlabelled


def read_parts(config: RunConfig, model: AnyModel, say: MessageCallback) -> tuple[Any, Any]:
    """The training part and the validation part."""
    files = model.reader.files(config.data)
    train = drawn(files.part("train"), config.data)
    for message in rejected_message(files.rejected):
        say(message)
    if len(train):
        model.reader.check(train, "training")
    validation = files.part("validation", like=train)
    for name, part in (("train", train), ("validation", validation)):
        if not len(part):
            what = "groups" if config.data.group else "different rows"
            raise DataError(
                f"{', '.join(config.data.train)}: no row falls into the {name} part: too few "
                f"{what} to be split by their hash (equal ones stay in one part). Give more rows, "
                "another --set data.split_seed=1, or a file with --validation"
            )
    return train, validation


POINTS = 5  # every fifth point of a curve is printed
# The roles of columns: weights that were learned from other columns do not fit these.
MEANING = tuple(
    f"data.{key}"
    for key in ("text", "image", "tree", "second", "label", "separator", "sequence", "features")
)
MOST_ALLOWED = 3  # with more changed settings it is another run
OTHER_RUN = ("data.train", "data.validation", "data.unlabelled", "members")
ELSEWHERE = "train.device"  # a run may continue on another device


@dataclass(frozen=True)
class Trained:
    """The result of `train_run`. outcomes: the outcome of each network; rows: numbers of training,
    validation and unlabelled rows; answer: validation scores of the combined model, empty for a
    single network; summary: its main score next to the strongest baseline, if it was wanted and is
    known."""

    config: RunConfig
    model: AnyModel
    outcomes: Sequence[Outcome]
    rows: dict[str, int]
    answer: Mapping[str, float] = field(default_factory=dict)
    summary: Summary | None = None

    def best(self) -> str:
        """The validation score, the strongest baseline and their difference, a line each; the
        networks alone, and further scores."""
        rows = self.rows["validation"]
        networks = [outcome.scores or {} for outcome in self.outcomes]
        lines = summary_lines(self.summary, self.config.train.watch, networks, self.answer)
        return "\n  ".join([f"validation part, {rows:,} row{'s' * (rows != 1)}", *lines])


# --- the configuration -------------------------------------------------------------------------


def settle(
    folder: RunFolder, config: RunConfig, allow: Collection[str] = (), say: MessageCallback = nobody
) -> RunConfig:
    """Writes the configuration into the folder. A different one is replaced if nothing was trained
    with it yet, or if `allow` has all differences. If another process works in the folder, an error
    is raised before data is read."""
    with folder.locked():
        text = read_plain(folder.config) if folder.config.exists() else None
        began = _began_with(folder, text, say) if folder.has_weights() else None
        if began is not None:
            differs = _differences(folder, RunConfig.of_text(began, folder.config), config)
            _refuse(folder, differs, allow, _same(folder, text, config))
        if text is None or not _same(folder, text, config):
            if began not in (None, text):
                say(Message(f"{folder.config}: edited by hand; overwritten", warning=True))
            write_whole(folder.config, config.text_of(folder.path).encode())
        return config


def _refuse_other_reading(folder: RunFolder, config: RunConfig, allow: Collection[str]) -> None:
    """Checks [data] as `settle` does, but before data is read: the files may not be readable with
    other reading options."""
    text = read_plain(folder.config) if folder.config.exists() else None
    began = _began_with(folder, text, nobody) if folder.has_weights() else None
    if began is None:
        return
    given_keys = {f"{table}.{key}" for table, keys in config.explicit.items() for key in keys}
    differs = _differences(folder, RunConfig.of_text(began, folder.config), config)
    known = {key: line for key, line in differs.items() if key in given_keys or _of_data(key)}
    if any(map(_of_data, known)):
        _refuse(folder, known, allow, _same(folder, text, config))


def _of_data(key: str) -> bool:
    return key.startswith("data.")


def _refuse(
    folder: RunFolder, differs: Mapping[str, str], allow: Collection[str], edited: bool
) -> None:
    known = {*allow} - {*MEANING} | {ELSEWHERE}
    if refused := [line for key, line in differs.items() if key not in known]:
        raise _refused(folder, differs, refused, edited)


def _began_with(folder: RunFolder, text: bytes | None, say: MessageCallback) -> bytes | None:
    """The configuration that a run began with: the sealed one, else the one in the folder."""
    place = seal_folder(folder)
    try:
        seal = {} if place is None else seal_in(place)
    except Damaged as why:
        say(Message(f"{place}: {why}; it is overwritten", warning=True))
        return text
    return seal.get(CONFIG, text)


def _same(folder: RunFolder, text: bytes | None, config: RunConfig) -> bool:
    """Whether a configuration file has the same content."""
    try:
        return text is not None and RunConfig.of_text(text, folder.config).flat() == config.flat()
    except ConfigError:
        return False


def _differences(folder: RunFolder, earlier: RunConfig, config: RunConfig) -> dict[str, str]:
    """The settings, by key, that differ in the folder; raises an error for a run of another
    task."""
    _refuse_another_task(folder, earlier, config)
    before, now = earlier.flat(), config.flat()
    return {
        key: f"  {key}: was {before.get(key)!r}, now {now.get(key)!r}"
        for key in dict.fromkeys([*before, *now])
        if before.get(key) != now.get(key)
    }


def _refuse_another_task(folder: RunFolder, before: RunConfig, config: RunConfig) -> None:
    if before.task != config.task:
        raise RunError(
            f"{folder.path}: this folder holds a run of task {before.task}, but this command "
            f"trains one of task {config.task}; name another folder: --run "
            f"{in_shell(free_name(folder.path))}"
        )


def _refused(
    folder: RunFolder, differs: Mapping[str, str], refused: Sequence[str], edited: bool
) -> RunError:
    """The error on settings that must not change. edited: whether config.toml itself was changed
    after the run began; it then agrees with the command, but not with the settings that the run
    began with."""
    many = "1 setting differs" if len(refused) == 1 else f"{len(refused)} settings differ"
    keys = [key for key in differs if key != ELSEWHERE]
    resume = ""
    if len(keys) <= MOST_ALLOWED and not {*keys} & {*MEANING, *OTHER_RUN}:
        allowed = " ".join(f"--allow {key}" for key in keys)
        resume = f", or resume with them: {allowed}"
    what = "this command"
    back = f"`ensue train --run {in_shell(folder.path)}` resumes it with its own settings"
    if edited:
        what = "the settings that the run began with"
        back = f"restore the file from {seal_folder(folder)}/{CONFIG}"
    return RunError(
        f"{folder.config}: {many} from {what}\n" + "\n".join(refused) + "\n"
        f"Next: {back}; for the new ones name another folder, "
        f"--run {in_shell(free_name(folder.path))}{resume}"
    )


# --- training ----------------------------------------------------------------------------------


@contextmanager
def attempted(folder: RunFolder) -> Iterator[None]:
    """Locks the folder for a training. If the training fails before anything was learned, the
    folder is restored; an existing run records the failure."""
    with folder.locked():
        was_there = folder.config.exists()
        try:
            with restored(folder, Stopped):
                yield
        except Stopped:
            raise
        except Exception as error:
            if was_there and not folder.has_weights():
                note_failure(folder, error)
                add_note(error, f"Nothing was trained: {folder.path} is unchanged.")
            raise


def train_run(
    config: RunConfig,
    folder: RunFolder,
    watchers: Sequence[Watcher] = (),
    say: MessageCallback = nobody,
    allow: Collection[str] = (),
    members_first: Callable[[int], None] | None = None,
    outputs: bool = False,
    summary: bool = False,
) -> Trained:
    """Settles the configuration, reads the data, trains or resumes, and writes the model.
    members_first, outputs, summary: as in `Fitting`."""
    device_of(config.train.device)  # reported before data is read
    _refuse_ensemble(folder)
    first = processes.team().first
    with holding(folder), opened_once():
        if first:
            _refuse_other_reading(folder, config, allow)
        model = config.new_model()
        model.read_base(folder)
        train, validation = read_parts(config, model, say)
        facts = data_facts(folder, config) if first else b""  # of the files as they were read
        config = config.changed(adapt(model, train, lambda line: say(Message(line))))
        seal = {}
        if first:
            settle(folder, config, allow, say)
            seal = {CONFIG: read_plain(folder.config), DATA: facts}
        rows = {"train": len(train), "validation": len(validation)}
        many = f"{len(train):,} row{'s' * (len(train) != 1)}"
        say(Message(f"{many} to train on, {len(validation):,} to validate on"))
        more = read_unlabelled(config, model, train, say)
        rows |= {} if more is None else {"unlabelled": len(more)}
        how = Fitting(
            folder, watchers, config.flat(), allow, seal, members_first, outputs, more, summary
        )
        outcomes = model.fit_parts(train, validation, how)
        if any(map(_still_improving, outcomes)):
            more = f"--epochs {2 * config.train.epochs} --allow train.epochs"
            say(Message(f"the validation score was still improving: more epochs may help ({more})"))
        refuse_changed_files(folder, config, allow)
        answered = model.answered
        trained = Trained(config, model, outcomes, rows, answered.scores, answered.summary)
        if first:
            _write(folder, trained, seal, say)
    return trained


def _still_improving(outcome: Outcome) -> bool:
    """Whether training ended at the maximum number of epochs, and the watched score was best in the
    last one. An equal score at a lower cost does not count as better."""
    latest = outcome.best_update == outcome.updates and not outcome.stale
    return latest and outcome.reason == "epochs" and outcome.epochs > 1


def _refuse_ensemble(folder: RunFolder) -> None:
    """Raises an error for the folder of an ensemble of trials: its models were trained
    elsewhere."""
    if any(folder.model.glob(f"{MEMBER}*")):
        raise RunError(
            f"{folder.path}: this folder holds an ensemble, which is not trained: its models "
            f"were, each in a separate folder; `ensue predict {in_shell(folder.path)} FILE` "
            "uses it. Name another --run"
        )


def _write(folder: RunFolder, trained: Trained, seal: Seal, say: MessageCallback) -> None:
    """Writes the result of a training. The model is written before the files that it replaces are
    deleted; data.json never contradicts the model next to it."""
    if folder.data.exists() and read_plain(folder.data) != seal[DATA]:
        folder.data.unlink()
    write_model(folder.model, trained.model.as_saved(seal))
    write_whole(folder.data, seal[DATA])
    networks = [finite(asdict(outcome)) for outcome in trained.outcomes]
    rows = [
        digest(read_plain(member.history, HISTORY_FILE))
        for member in folder.members()
        if member.history.exists()
    ]
    facts = {"format": FORMAT, "rows": trained.rows, "networks": networks, "histories": rows}
    facts |= {"answer": finite({**trained.answer})} if trained.answer else {}
    write_whole(folder.training, sealed(facts))
    write_card(folder, trained, say)
    if folder.learned.is_dir():
        remove(folder.learned)
    folder.failure.unlink(missing_ok=True)
    try:
        _, config_text = sealed_config(folder, folder.model, seal)
    except (OSError, RunError) as error:
        config_text = (
            "the run finished with its original settings, but the file was changed "
            f"meanwhile. {error}"
        )
    if config_text:
        say(Message(config_text, warning=True))


def complete(config: RunConfig, say: MessageCallback = nobody) -> RunConfig:
    """The configuration with the defaults for its training part, as `train_run` settles it."""
    if not config.description.adapts and not config.base.path:
        return config
    return adapted(config, say)[0]


def adapted(config: RunConfig, say: MessageCallback = nobody) -> tuple[RunConfig, AnyModel, Any]:
    """The completed configuration, an unfitted model, and the training part."""
    model, train, tables = _adapted(config, say)
    return config.changed(tables), model, train


def _adapted(config: RunConfig, say: MessageCallback) -> tuple[AnyModel, Any, Tables]:
    """An unfitted model, its training part, and the settings that follow from it."""
    model = config.new_model()
    model.read_base()
    train = drawn(model.reader.files(config.data).part("train"), config.data)
    return model, train, adapt(model, train, lambda line: say(Message(line)))


def suggest_rate(config: RunConfig, say: MessageCallback = nobody) -> str:
    """A suggested learning rate for this model and data, with the curve it comes from."""
    model, train, _ = _adapted(config, say)
    say(Message(f"{len(train):,} rows: trying learning rates"))
    curve = model.find_rate(train)
    points = list(zip(curve.rates, curve.smoothed, strict=True))[::POINTS]
    lines = [f"{rate:10.2e}  {cost:.4f}" for rate, cost in points]
    return "\n".join(["      rate  cost", *lines, f"suggested: train.rate={curve.suggestion:.2g}"])
