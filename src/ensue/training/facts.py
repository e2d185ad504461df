"""The facts that a resumed run must share with its beginning, and their comparison."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch

from ensue import __version__
from ensue.engine.machine import machine_facts
from ensue.errors import RunError, unknown
from ensue.training.optimiser import ALL_LEARN, LayerRates
from ensue.training.processes import Team, device_of_weights
from ensue.training.settings import WITHOUT_EFFECT, TrainSettings
from ensue.training.trainee import Fingerprinted, Source, Trainee, Validation

# Changes to these only warn: the results differ in their last bits only.
NOT_BIT_EXACT = ("threads", "processes", "device", "ensue", "engine", "compiler", "flags", "cpu")
# Paths of files may change; `data`, `validation` and `base.digest` identify their content.
PATHS = ("data.train", "data.validation", "data.test", "data.unlabelled", "base.path")


@dataclass(frozen=True)
class RunSettings:
    """The settings of a run. values: the whole configuration by `table.key`, which must not change
    within a run; layers: the layers with a separate learning rate or a later start, by these
    settings."""

    values: Mapping[str, Any]
    layers: LayerRates = ALL_LEARN

    @classmethod
    def of(cls, settings: Mapping[str, Any] | RunSettings | None) -> RunSettings:
        return settings if isinstance(settings, RunSettings) else cls(settings or {})


def facts(
    trainee: Trainee,
    source: Source,
    validation: Validation | None,
    settings: TrainSettings,
    team: Team,
    config: Mapping[str, Any],
) -> dict[str, Any]:
    """The facts that a resumed run must share with its beginning. config: the whole configuration,
    by `table.key`; training settings are always included."""
    table = {f"train.{name}": value for name, value in settings.table().items()}
    table = {**table, **config}
    for name in (*(f"train.{key}" for key in WITHOUT_EFFECT), *PATHS):
        table.pop(name, None)
    shapes = ((n, tuple(t.shape), str(t.dtype)) for n, t in trainee.state_dict().items())
    fingerprinted = isinstance(validation, Fingerprinted)
    recorded = {
        "config": table,
        "data": source.fingerprint,
        "validation": cast(Fingerprinted, validation).fingerprint if fingerprinted else None,
        "model": "; ".join(f"{name} {shape} {dtype}" for name, shape, dtype in shapes),
        "ensue": __version__,
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "processes": team.world,
        "device": device_of_weights(trainee).type,
        **machine_facts(),
    }
    return dict(json.loads(json.dumps(recorded)))  # in the form that a checkpoint returns


def differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, str]:
    """The changed facts, each as `was …, now …`; keys of the configuration one by one. For a run of
    another version, only settings of both versions are compared."""
    names = [name for name in _names(was, now) if name not in PATHS]
    if was.get("ensue") != now.get("ensue"):
        known = was.get("config", {}).keys() ^ now.get("config", {}).keys()
        names = [name for name in names if name not in known]
    flat = [{**table, **table.get("config", {})} for table in (was, now)]
    before, after = ({name: table.get(name) for name in names} for table in flat)
    changed = {}
    for name in names:
        if before[name] != after[name]:
            if name == "model":
                changed[name] = _first_difference(str(before[name]), str(after[name]))
            else:
                changed[name] = f"was {_value_text(before[name])}, now {_value_text(after[name])}"
    return changed


def _names(*facts: Mapping[str, Any]) -> list[str]:
    """The names of the facts, including the keys of the configuration."""
    flat = [{**table, **table.get("config", {})} for table in facts]
    return list(dict.fromkeys(name for table in flat for name in table if name != "config"))


def check_allowed(allow: Collection[str], *facts: Mapping[str, Any]) -> None:
    """Checks that each name in `allow` is one that may change."""
    known = {*_names(*facts), *(f"train.{name}" for name in WITHOUT_EFFECT), *PATHS}
    for name in allow:
        if name not in known:
            raise unknown("name of what may have changed", name, known)


def _first_difference(was: str, now: str) -> str:
    """The first entry that differs between two lists of weights."""
    one, other = was.split("; "), now.split("; ")
    at = next((k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    if at is None:
        return f"was {len(one)} weights, now {len(other)}"
    return f"was {one[at]}, now {other[at]}"


def _value_text(value: object) -> str:
    return "not there" if value is None else json.dumps(value, ensure_ascii=False)


def check_same(
    path: Path, was: Mapping[str, Any], now: Mapping[str, Any], allow: Collection[str]
) -> list[str]:
    """Messages on accepted changes; raises RunError with all other changes."""
    changed = differences(was, now)
    refused = {n: text for n, text in changed.items() if n not in {*allow, *NOT_BIT_EXACT}}
    if refused:
        lines = [f"  {name}: {text}" for name, text in refused.items()]
        many = "1 change" if len(lines) == 1 else f"{len(lines)} changes"
        raise RunError(
            f"{path}: {many} since this run began\n" + "\n".join(lines) + "\n"
            "Undo them, name another run folder, or allow them by name: "
            + " ".join(f"--allow {name}" for name in refused)
        )
    last_bits = [f"{name}: {text}" for name, text in changed.items() if name in NOT_BIT_EXACT]
    allowed = [f"{name}: {text}: allowed" for name, text in changed.items() if name in allow]
    return allowed + [f"{'; '.join(last_bits)}: not bit-exact"] * bool(last_bits)
