"""A foreign model with valid digests: it loads, or is refused with one error of ours."""

from __future__ import annotations

import json
import random
import re
import signal
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest
import safetensors.numpy
from hostile import hostile_files
from torch import nn
from toy_runs import CASES, toy_run

import ensue
from ensue.errors import EnsueError
from ensue.files.atomic_folder import MANIFEST, with_manifest
from ensue.files.format import FORMAT
from ensue.files.opening import LAYER_WIDTH, LAYERS
from ensue.tasks import TASKS

SECONDS = 20  # of processor time for one folder
LONGEST = 4000  # characters of a message


class Hangs(BaseException):
    """A folder that takes longer than any model does."""


def stop(number: int, frame: FrameType | None) -> None:
    raise Hangs


def refusal(place: Path) -> str:
    """What a folder is refused with; "" if it loads."""
    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        ensue.load(place)
    except EnsueError as error:
        return str(error)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return ""


def model_of(kind: str) -> Path:
    return toy_run(kind) / "run" / "model"


def test_every_task_has_a_model() -> None:
    assert {kind.partition("-")[0] for kind in CASES} == {*TASKS}


@pytest.mark.parametrize("kind", CASES)
def test_a_changed_model_is_refused_or_loads(kind: str, tmp_path: Path) -> None:
    model, draw = model_of(kind), random.Random(kind)
    for number in range(4):
        files, what = hostile_files(model, draw)
        place = tmp_path / str(number)
        place.mkdir()
        for name, data in files.items():
            (place / name).write_bytes(data)
        try:
            message = refusal(place)
        except (Exception, Hangs) as error:
            raise AssertionError(f"{what}: {type(error).__name__}") from error
        assert len(message) < LONGEST, what


def test_weights_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    draw = random.Random(1)
    for _ in range(1000):
        files, what = hostile_files(model_of("caption"), draw)
        if what.startswith("network-") and what.endswith("not finite"):
            break
    (tmp_path / "model").mkdir()
    for name, data in files.items():
        (tmp_path / "model" / name).write_bytes(data)
    assert "holds NaN or infinity" in refusal(tmp_path / "model")


def with_settings(model: Path, place: Path, **settings: int) -> Path:
    """The model with other settings, and digests that are right."""
    files = {file.name: file.read_bytes() for file in model.iterdir() if file.name != MANIFEST}
    facts = json.loads(files["model.json"])
    facts["model"] |= settings
    files["model.json"] = json.dumps(facts).encode()
    place.mkdir()
    for name, data in with_manifest(files, {"format": facts["format"]}).items():
        (place / name).write_bytes(data)
    return place


@pytest.mark.parametrize(
    "kind", ["classify-words", "label-crf", "language-transformer", "translate-plain"]
)
def test_settings_that_ask_for_memory_are_compared_with_the_weights_first(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No weight of the size that the settings tell of is ever made."""
    model = model_of(kind)
    monkeypatch.setattr(nn.Module, "register_parameter", only_small(nn.Module.register_parameter))
    assert refusal(with_settings(model, tmp_path / "same")) == ""
    place = with_settings(model, tmp_path / "large", hidden_size=LAYER_WIDTH)
    message = refusal(place)
    assert message.startswith(f"{place}: the weights of network 1 do not fit the settings")
    assert re.search(r"expected .*\d{5}.*, got", message)


def only_small(plain: Callable[..., None]) -> Callable[..., None]:
    def register(self: nn.Module, name: str, weight: nn.Parameter | None) -> None:
        if weight is not None and weight.device.type != "meta":
            assert weight.numel() < LAYER_WIDTH, name
        plain(self, name, weight)

    return register


def test_weights_are_compared_by_name(tmp_path: Path) -> None:
    model = model_of("classify-words")
    layers = json.loads((model / "model.json").read_bytes())["model"]["layers"]
    message = refusal(with_settings(model, tmp_path / "more", layers=layers + 1))
    assert message.endswith("got nothing. Fetch it again, or train it again")


def test_more_layers_than_any_network_has_are_refused(tmp_path: Path) -> None:
    model = model_of("classify-words")
    message = refusal(with_settings(model, tmp_path / "more", layers=10**6))
    assert f"model.layers: expected a number ≤ {LAYERS}" in message


@pytest.mark.parametrize("name", ["mean", "spread", "unit"])
def test_a_scale_that_does_not_fit_is_refused(name: str, tmp_path: Path) -> None:
    model = model_of("forecast-members")
    files = {file.name: file.read_bytes() for file in model.iterdir() if file.name != MANIFEST}
    arrays = safetensors.numpy.load(files["arrays.safetensors"])
    arrays[f"scale.{name}"] = arrays[f"scale.{name}"][:0]
    files["arrays.safetensors"] = safetensors.numpy.save(arrays)
    (tmp_path / "model").mkdir()
    for file, data in with_manifest(files, {"format": FORMAT}).items():
        (tmp_path / "model" / file).write_bytes(data)
    message = refusal(tmp_path / "model")
    assert (
        f"this is not a model written by Ensue (scale.{name}: expected 1 float64, got 0" in message
    )


def test_translations_without_end_are_refused(tmp_path: Path) -> None:
    model = model_of("translate-plain")
    message = refusal(with_settings(model, tmp_path / "long", longest_extra=10**18))
    assert "model.longest_extra: expected a number ≤ 4096" in message
