"""`ensue train`: from a configuration to a model in its folder."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from ensue.data.tokenise import Tokeniser
from ensue.errors import DataError, RunError
from ensue.models.collect import Collected, Numbers
from ensue.models.image_model import shape_of
from ensue.models.labels import known_rows
from ensue.models.task_model import Fitting, TaskModel
from ensue.models.translator import Translator
from ensue.runs.captions import run_captions
from ensue.runs.config import RunConfig
from ensue.runs.forecast import series_steps
from ensue.runs.images import run_pictures
from ensue.runs.parts import Reading
from ensue.runs.trained_on import refuse_changed_files, remember_files
from ensue.training import Outcome, RunFolder, Watcher, processes
from ensue.training.disk import write_whole

POINTS = 5  # of a curve of costs, each of these is printed
MOST_PLACES = 3  # named of rows that are left out


@dataclass(frozen=True)
class Trained:
    model: TaskModel
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
        learned = folder.model.exists() or any(folder.checkpoints.glob("step-*"))
        differs = _differences(folder, config) if learned and folder.config.exists() else {}
        refused = [line for key, line in differs.items() if key not in allow]
        if not refused:
            if differs or not learned or not folder.config.exists():
                write_whole(folder.config, config.text_of().encode())
            return config
    many = "1 setting differs" if len(refused) == 1 else f"{len(refused)} settings differ"
    allowed = " ".join(f"--allow {key}" for key in differs)
    raise RunError(
        f"{folder.config}: {many} from this command\n" + "\n".join(refused) + "\n"
        f"Next: `ensue train --run {folder.path}` goes on with what is there; for the new "
        f"settings name another run, or go on with them from where it is: {allowed}"
    )


def _differences(folder: RunFolder, config: RunConfig) -> dict[str, str]:
    """By key, the settings that the folder has otherwise."""
    before, now = RunConfig.read(folder.config).flat(), config.flat()
    return {
        key: f"  {key}: was {before.get(key)!r}, now {now.get(key)!r}"
        for key in dict.fromkeys([*before, *now])
        if before.get(key) != now.get(key)
    }


def train_run(
    config: RunConfig,
    folder: RunFolder,
    watchers: Sequence[Watcher] = (),
    say: Callable[[str], None] = lambda line: None,
    allow: Collection[str] = (),
) -> Trained:
    """Reads the data, trains or goes on, and writes the model."""
    model, numbers = config.estimator(), Numbers()
    train, held = _parts(config, model, numbers, say)
    say(f"{len(train):,} row{'s' * (len(train) != 1)} to train on, {len(held):,} to validate on")
    outcomes = model.fit_parts(
        train, held, numbers, Fitting(folder, watchers, config.flat(), allow)
    )
    if any(own.epochs > 1 and own.best_update == own.updates for own in outcomes):
        say(
            "the validation score was still improving: more epochs may help "
            f"(--set train.epochs={2 * config.train.epochs} --allow train.epochs)"
        )
    refuse_changed_files(folder, config, allow)
    if processes.team().first:
        model.save(folder.model)
        remember_files(folder, config)
        card = _card(folder.path.name, config, model, outcomes, len(train), len(held))
        write_whole(folder.path / "card.md", card.encode())
    return Trained(model, outcomes, {"train": len(train), "validation": len(held)})


def _parts(
    config: RunConfig, model: TaskModel, numbers: Numbers, say: Callable[[str], None]
) -> tuple[Collected, Collected]:
    """What is trained on, and what is validated on."""
    if steps := series_steps(config):
        return steps.collect("train", numbers), steps.collect("validation", numbers)
    if pictures := run_pictures(config) or run_captions(config.data, model):
        train = pictures.collect("train", numbers)
        rejected = pictures.rejected
        held = pictures.collect("validation", numbers, shape_of(train))
    else:
        reading = _reading(config)
        train = _training_part(model, reading, numbers)
        rejected = reading.rejected
        held = reading.collect("validation", numbers, model.tokeniser, label_tokeniser(model))
    if rejected:
        say(f"{rejected:,} bad row{'s' * (rejected > 1)} left out")
    _check_sizes(config, train, held)
    seen = config.pairs or config.tabular  # texts and numbers need not have been seen
    return train, held if seen else _known(train, held, numbers, say)


def suggest_rate(config: RunConfig, say: Callable[[str], None]) -> str:
    """A learning rate for this model and data, with the curve it comes from."""
    model, numbers = config.estimator(), Numbers()
    own = series_steps(config) or run_pictures(config) or run_captions(config.data, model)
    if own:
        train = own.collect("train", numbers)
    else:
        train = _training_part(model, _reading(config), numbers)
    say(f"{len(train):,} rows; trying rates")
    curve = model.find_rate(train, numbers)
    points = list(zip(curve.rates, curve.smoothed, strict=True))[::POINTS]
    lines = [f"{rate:10.2e}  {cost:.4f}" for rate, cost in points]
    return "\n".join(["      rate  cost", *lines, f"suggested: train.rate={curve.suggestion:.2g}"])


def _reading(config: RunConfig) -> Reading:
    return Reading(config.data, config.steps, pairs=config.pairs, table=config.tabular)


def _training_part(model: TaskModel, reading: Reading, numbers: Numbers) -> Collected:
    """Read once more where the tokeniser is learned from it."""
    values = (own.value for own in reading.rows("train"))
    if isinstance(model, Translator):
        model.prepare_pairs(values, (own.label for own in reading.rows("train")))
    else:
        model.prepare(values)
    return reading.collect("train", numbers, model.tokeniser, label_tokeniser(model))


def label_tokeniser(model: TaskModel) -> Tokeniser | None:
    """Of labels that are texts."""
    return model.target_tokeniser if isinstance(model, Translator) else None


def _known(
    train: Collected, held: Collected, numbers: Numbers, say: Callable[[str], None]
) -> Collected:
    """The validation part without labels that training does not have, which nothing can learn."""
    kept, wrong = known_rows(held, train, numbers)
    if len(wrong):
        many = "1 row" if len(wrong) == 1 else f"{len(wrong):,} rows"
        places = [held.names[int(row)] for row in wrong[:MOST_PLACES]]
        more = ", …" * (len(wrong) > MOST_PLACES)
        told = (
            f"{many} of the validation part left out, with labels that the training part does "
            f"not have: {', '.join(places)}{more}"
        )
        if not len(kept):
            raise DataError(f"{told}; no row is left: is this the right column?")
        say(told)
    return kept


def _check_sizes(config: RunConfig, train: Collected, held: Collected) -> None:
    """A split by hash leaves a part of few rows empty."""
    for name, part in (("train", train), ("validation", held)):
        if not len(part):
            what = "groups" if config.data.group else "rows"
            raise DataError(
                f"{', '.join(config.data.train)}: no row falls into the {name} part: too few "
                f"{what} to be split by their hash. Give more rows, another "
                "--set data.split_seed=1, or a file with --validation"
            )


def _card(
    name: str,
    config: RunConfig,
    model: TaskModel,
    outcomes: Sequence[Outcome],
    rows: int,
    held: int,
) -> str:
    """What the model is, what it was made of, and how well it did on validation."""
    lines = [
        f"# {name}",
        "",
        model.summary(),
        "",
        f"- task: {config.task}",
        f"- data: {', '.join(config.data.train)} ({rows:,} rows to train, {held:,} to validate)",
    ]
    for number, own in enumerate(outcomes, 1):
        scores = ", ".join(f"{n} {v:.4f}" for n, v in (own.scores or {}).items())
        lines.append(
            f"- network {number}: {own.updates:,} updates in {own.epochs} epochs, stopped by "
            f"{own.reason}; best on validation: {scores}"
        )
    lines.append("- the whole configuration: config.toml")
    return "\n".join(lines) + "\n"
