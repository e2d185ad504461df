"""Every task on a stand-in for a GPU: that each tensor is where it should be, as no GPU is at hand.

What a GPU itself does, its kernels and its memory, is not run here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import pytest
import torch
import toy_task
from commands import Ensue, commands_in
from stand_in_gpu import CPU, GPU, OnGPU, stand_in_gpu
from task_laws import FILED, TABLE, AnyModel, Row
from test_task_laws import Stop, assert_close

import ensue
from ensue.engine import engines_used
from ensue.errors import ConfigError, OptionError
from ensue.layers import Recurrent
from ensue.tasks import TASKS
from ensue.tasks.abilities import Choice
from ensue.training import Notice, Stopped, TrainSettings, Validated, checkpoint, train
from ensue.training.facts import check_same, facts
from ensue.training.gradients import not_finite_cost
from ensue.training.processes import Team, device_of, device_of_weights, moved
from ensue.training.progress import Progress
from ensue.training.trainee import seeded

CLOSE = 1e-4  # of numbers that another engine has computed
FEWER = (20, 8, 8, 6)  # rows of each part
QUICK = {"epochs": 1, "most_updates": 2, "averaging": 0.9}


@pytest.fixture(scope="module", autouse=True)
def _ninth_task() -> Iterator[None]:
    TASKS.register(toy_task.TASK)
    yield
    TASKS.unregister(toy_task.TASK.name)


def fewer(rows: Iterable[Row]) -> list[Row]:
    """The stand-in takes long for an operation, and few rows tell where tensors are."""
    return [replace(row, counts=FEWER) for row in rows]


def by_task(rows: Iterable[Row]) -> Iterator[Any]:
    """Every row; of those of a task, `make test` has the first, the slow tests the others."""
    tasks: set[str] = set()
    for row in rows:
        yield pytest.param(row, marks=[pytest.mark.slow] if row.task in tasks else [])
        tasks.add(row.task)


every_row = pytest.mark.parametrize("row", [*by_task(fewer(TABLE))], ids=str)


def row_of(name: str) -> Row:
    return next(row for row in fewer(TABLE) if str(row) == name)


def states(model: AnyModel) -> list[torch.Tensor]:
    return [tensor for network in model.networks for tensor in network.state_dict().values()]


def answers_of(model: AnyModel, row: Row) -> list[Any]:
    """Answers and an evaluation; explanations and texts where the task has them."""
    questions, columns = row.questions(), row.data.columns
    evaluation = model.evaluate(row.parts()[2], **columns)
    answers = [asdict(answer) for answer in model.predict(questions)]
    answers.append({name: score.value for name, score in evaluation.scores.items()})
    explains, generates = model.task.explains, model.task.generates
    if explains is not None and getattr(model.settings, "attention", "") != "none":
        answers.append(asdict(explains.explain(model, questions[0]).result))
    if generates is not None:
        writer = generates.writer(model, "", whole=False)
        answers.append(writer.texts(Choice(most_tokens=4), 2))
        answers.append(writer.texts(Choice(most_tokens=4, width=2)))
        answers.append(list(writer.pieces(Choice(most_tokens=4))))
        answers.append([list(suggestion) for suggestion in writer.suggestions(3)])
    return answers


# --- the stand-in ----------------------------------------------------------------------------


def test_the_stand_in_refuses_what_a_gpu_refuses() -> None:
    with stand_in_gpu() as mode:
        on_gpu, here = torch.ones(2, 2).to(GPU), torch.ones(2, 2)
        assert on_gpu.device == (on_gpu + 1).device == torch.zeros(3, device=GPU).device == GPU
        assert mode.counts["gpu"]
        for wrong in (
            lambda: on_gpu + here,
            lambda: torch.cat([here, on_gpu]),
            lambda: here.index_select(0, torch.zeros(1, dtype=torch.int64).to(GPU)),
            lambda: here[torch.zeros(1, dtype=torch.int64).to(GPU)],
            lambda: on_gpu.bernoulli_(generator=torch.Generator()),
        ):
            with pytest.raises(RuntimeError, match="expected a"):
                wrong()
        with pytest.raises(RuntimeError):
            on_gpu.numpy()
        # what a GPU takes: single numbers, indices from the CPU, copies both ways
        assert (on_gpu * torch.tensor(2.0)).device == on_gpu[torch.tensor([0])].device == GPU
        assert here.copy_(on_gpu).device == on_gpu.cpu().device == CPU
        assert float(on_gpu.sum()) == 4.0


def test_a_network_of_the_stand_in_learns_as_on_the_cpu() -> None:
    def step(device: torch.device) -> list[torch.Tensor]:
        torch.manual_seed(1)
        net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
        net.to(device)
        adam = torch.optim.Adam(net.parameters(), fused=True)
        net(torch.ones(2, 3).to(device)).sum().backward()
        adam.step()
        return [p.detach().cpu() for p in net.parameters()]

    with stand_in_gpu():
        on_gpu = step(GPU)
    assert all(map(torch.allclose, on_gpu, step(CPU)))


# --- every task ------------------------------------------------------------------------------


@every_row
def test_a_task_learns_validates_and_answers_on_the_gpu(row: Row, tmp_path: Path) -> None:
    """Training with its rehearsal, validation, checkpoints, answers, evaluation; then the model
    that was saved answers on the CPU as it does there."""
    with stand_in_gpu() as mode:
        model = row.fitted(tmp_path / "run", model=row.new(device="cuda", **QUICK))
        assert all(isinstance(tensor, OnGPU) for tensor in states(model))
        answers = answers_of(model, row)
        assert mode.counts["gpu"] or not states(model)
        model.save(tmp_path / "model")
    again = type(model).load(tmp_path / "model", device="cpu")
    assert not any(isinstance(tensor, OnGPU) for tensor in states(again))
    assert_close(answers, answers_of(again, row))


@pytest.mark.parametrize("row", fewer(FILED), ids=lambda row: row.task)
def test_a_model_of_the_cpu_answers_the_same_on_the_gpu(row: Row, tmp_path: Path) -> None:
    model = row.fitted(model=row.new(device="cpu", **QUICK))
    answers = answers_of(model, row)
    model.save(tmp_path / "model")
    with stand_in_gpu():
        again = ensue.load(tmp_path / "model")
        assert all(isinstance(tensor, OnGPU) for tensor in states(again))
        assert_close(answers, answers_of(again, row))
        assert_close(answers, answers_of(again.to("cpu"), row))
        assert not any(isinstance(tensor, OnGPU) for tensor in states(again))


def test_rates_are_tried_on_the_gpu() -> None:
    row = row_of("tally recurrent")
    with stand_in_gpu() as mode:
        model = row.new(device="cuda")
        part = model.reader.labelled(row.parts()[0], row.data.columns)
        assert model.find_rate(part).suggestion > 0
        assert mode.counts["gpu"]


def test_the_layer_whose_output_is_not_finite_is_found_on_the_gpu() -> None:
    row = row_of("tally recurrent")
    with stand_in_gpu():
        model = row.fitted(model=row.new(device="cuda", **QUICK))
        part = model.reader.labelled(row.parts()[0], row.data.columns)
        network = model.networks[0]
        layer = network.recurrent
        assert isinstance(layer, Recurrent)
        layer.register_forward_hook(
            lambda *arguments: (arguments[2][0] * torch.inf, arguments[2][1])
        )
        source = model.task.source(part, model, 1)
        message = not_finite_cost(network, source, 1, float("nan"), source.batches(0)[0], {})
    assert "first in the output of layer recurrent" in str(message)


# --- checkpoints -----------------------------------------------------------------------------

ANYWHERE = ["tally recurrent", "language recurrent", "language window of two"]
SAME = {f"dropout_{name}": 0.0 for name in ("input", "output", "layers", "word", "recurrent")}
LONGER = {"epochs": 2, "averaging": 0.9, "check_every": 2, "checkpoint_updates": 1}


def continued(row: Row, folder: Path, first: str, then: str, messages: list[str]) -> AnyModel:
    """A run that is stopped after its third update, and continues elsewhere."""
    known = type(row.new().settings).model_fields
    changed = {key: value for key, value in SAME.items() if key in known}
    with stand_in_gpu(), pytest.raises(Stopped):
        row.fitted(folder, [Stop(3)], model=row.new(changed, device=first, **LONGER))

    def watch(event: Any) -> None:
        if isinstance(event, Notice):
            messages.append(event.text)

    with stand_in_gpu():
        return row.fitted(folder, [watch], model=row.new(changed, device=then, **LONGER))


@pytest.mark.parametrize("name", ANYWHERE)
def test_a_run_goes_on_on_another_device(name: str, tmp_path: Path) -> None:
    """Weights, moments, average, best weights and what is carried go with it: the numbers are
    those of a run that stayed."""
    row, models, messages = row_of(name), dict[str, AnyModel](), dict[str, list[str]]()
    for first, then in (("cpu", "cpu"), ("cuda", "cpu"), ("cpu", "cuda")):
        key = f"{first} {then}"
        models[key] = continued(row, tmp_path / key, first, then, messages.setdefault(key, []))
        on_gpu = [isinstance(tensor, OnGPU) for tensor in states(models[key])]
        assert all(on_gpu) if then == "cuda" else not any(on_gpu)
    for key, model in models.items():
        for one, other in zip(states(models["cpu cpu"]), states(model), strict=True):
            torch.testing.assert_close(other.cpu(), one, rtol=CLOSE, atol=CLOSE)
        first, then = key.split()
        lines = [text for text in messages[key] if text.startswith("device: ")]
        expected = [f'device: was "{first}", now "{then}": not bit-exact'] * (first != then)
        assert lines == expected


class Carrying(torch.nn.Module):
    """A cost of one matrix of weights; the sum of its rows is carried."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2, 3))

    def forward(self, batch: Any, carried: Any) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        return (self.weight * batch).sum() ** 2, {"state": self.weight.sum(0)}


class TwoRows:
    fingerprint = "two rows"

    def batches(self, epoch: int) -> list[list[int]]:
        return [[0], [1]]

    def batch(self, rows: Any) -> torch.Tensor:
        return torch.full((2, 3), 1.0 + rows[0])

    def targets(self, rows: Any) -> float:
        return 1.0

    tokens = targets

    def name(self, row: int) -> str:
        return f"row {row}"


def tensors_of(at: Progress, network: Carrying) -> dict[str, torch.Tensor]:
    """All tensors of a training, by group and name."""
    groups = at.tensors(network)
    assert groups.keys() == {"weights", "optimiser", "best", "average", "carried"}
    return {
        f"{group} {name}": t for group, tensors in groups.items() for name, t in tensors.items()
    }


@pytest.mark.parametrize("optimiser", ["sgd", "adam", "adamw"])
def test_all_that_a_checkpoint_holds_goes_where_the_weights_are(
    optimiser: str, tmp_path: Path
) -> None:
    settings = TrainSettings(optimiser=optimiser, averaging=0.9, check_every=1)
    with stand_in_gpu():
        network = Carrying().to(GPU)
        at = Progress.begin(network, settings)
        rows = train(network, TwoRows(), lambda: {"cost": 1.0}, settings, at)
        next(row for row in rows if isinstance(row, Validated))
        before = tensors_of(at, network)
        assert all(isinstance(tensor, OnGPU) for tensor in before.values())
        saved = checkpoint.read(checkpoint.save(tmp_path, 1, at.tensors(network), at.scalars(), {}))
        files = [tensor for group in saved.tensors.values() for tensor in group.values()]
        assert not any(isinstance(tensor, OnGPU) for tensor in files)
        for device in (CPU, GPU):
            network = Carrying().to(device)
            after = Progress.begin(network, settings)
            after.load(network, saved.tensors, saved.scalars)
            tensors = tensors_of(after, network)
            assert {tensor.device for tensor in tensors.values()} == {device}
            assert tensors.keys() == before.keys()
            assert all(torch.equal(tensors[name].cpu(), before[name].cpu()) for name in tensors)
            network.weight.grad = torch.ones(2, 3).to(device)
            after.optimiser.step(0.1)  # fused: takes no tensor that is elsewhere


def test_the_facts_of_a_run_hold_the_device_and_not_the_setting() -> None:
    with stand_in_gpu():
        network = Carrying().to(GPU)
        now = facts(network, TwoRows(), None, TrainSettings(device="auto"), Team(0, 1), {})
    assert now["device"] == "cuda"
    assert "train.device" not in now["config"]
    assert "train.rate" in now["config"]
    line = 'device: was "cpu", now "cuda": not bit-exact'
    assert check_same(Path("run"), {**now, "device": "cpu"}, now, ()) == [line]
    assert check_same(Path("run"), now, now, ()) == []


# --- the setting -----------------------------------------------------------------------------


def test_auto_is_the_gpu_where_there_is_one() -> None:
    assert TrainSettings().device == "auto"
    assert device_of("auto") == device_of("cpu") == CPU
    with stand_in_gpu():
        assert device_of("auto") == device_of("cuda") == GPU
        assert device_of("cpu") == CPU


def test_a_device_that_is_not_there_is_told_with_what_is() -> None:
    with pytest.raises(OptionError) as error:
        device_of("cuda")
    assert str(error.value) == (
        f"device: expected one that is there, cpu, got 'cuda': torch {torch.__version__} is built "
        "without CUDA; use --device cpu or auto, or install a torch with CUDA"
    )
    with mock.patch("torch.version.cuda", "12.4"), pytest.raises(OptionError, match="nvidia-smi"):
        device_of("cuda")
    with pytest.raises(OptionError, match="device: expected one of auto, cpu, cuda, got 'gpu'"):
        device_of("gpu")
    with pytest.raises(ConfigError, match=r"train\.device: .*cuda.*got 'gpu'"):
        TrainSettings.of({"device": "gpu"})
    row = row_of("tally recurrent")
    with pytest.raises(OptionError, match="is built without CUDA"):
        row.fitted(model=row.new(device="cuda"))


def test_a_table_without_the_key_reads() -> None:
    table = TrainSettings().table()
    del table["device"]
    assert TrainSettings.of(table).device == "auto"


# --- what is moved ---------------------------------------------------------------------------


class Pair(NamedTuple):
    one: torch.Tensor
    lengths: torch.Tensor


@dataclass(frozen=True)
class Batch:
    pair: Pair
    inputs: dict[str, torch.Tensor]
    several: list[torch.Tensor]
    wanted_lengths: torch.Tensor
    name: str = "batch"
    nothing: None = None


def test_tensors_are_moved_wherever_they_are_and_lengths_stay() -> None:
    ones = [torch.ones(1) for _ in range(7)]
    words = {"words": ones[2], "characters.lengths": ones[3]}
    batch = Batch(Pair(ones[0], ones[1]), words, ones[4:6], ones[6])
    with stand_in_gpu():
        on_gpu = moved(batch, GPU)
        assert (on_gpu.name, on_gpu.nothing, type(on_gpu.pair)) == ("batch", None, Pair)
        tensors = [on_gpu.pair.one, on_gpu.inputs["words"], *on_gpu.several]
        assert [tensor.device for tensor in tensors] == [GPU] * 4
        stay = [on_gpu.pair.lengths, on_gpu.inputs["characters.lengths"], on_gpu.wanted_lengths]
        assert [tensor.device for tensor in stay] == [CPU] * 3


def test_a_network_without_weights_is_on_the_cpu() -> None:
    assert device_of_weights(torch.nn.Identity()) == device_of_weights(object()) == CPU
    with stand_in_gpu():
        assert device_of_weights(torch.nn.BatchNorm1d(2, affine=False).to(GPU)) == GPU


def test_the_generators_of_gpus_are_seeded_and_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """As far as the calls go: there is no such generator here."""
    seeds, devices, fork = list[int](), list[list[int]](), torch.random.fork_rng

    def forked(devices_: Any) -> Any:
        devices.append(list(devices_))
        return fork(devices=[])

    monkeypatch.setattr("torch.cuda.is_initialized", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setattr("torch.cuda.manual_seed_all", seeds.append)
    monkeypatch.setattr("torch.random.fork_rng", lambda *, devices: forked(devices))
    before = torch.random.get_rng_state()
    drawn = []
    for _ in range(2):
        with seeded(1, 2, 3):
            drawn.append(torch.rand(3))
    assert torch.equal(*drawn)
    assert torch.equal(before, torch.random.get_rng_state())
    assert devices == [[0, 1], [0, 1]]
    assert len(seeds) == 2
    assert seeds[0] == seeds[1]


# --- the engine ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "engine"), [("GRU", "torch"), ("LSTM", "torch"), ("MGU", "eager")]
)
def test_on_a_gpu_torchs_kernels_run_or_the_reference(cell: str, engine: str) -> None:
    x, lengths = torch.randn(5, 3, 2), torch.tensor([5, 2, 4])
    layer = Recurrent(cell, 2, 4, bidirectional=True).requires_grad_(False)
    expected, ragged = layer(x)[0], layer(x, lengths=lengths)[0]
    with stand_in_gpu():
        layer.to(GPU)
        with engines_used() as used:
            y, _ = layer(x.to(GPU))
        assert {*used} == {engine}
        torch.testing.assert_close(y.cpu(), expected)
        for lengths_of_rows in (lengths, lengths.to(GPU)):
            with engines_used() as used:
                y, _ = layer(x.to(GPU), lengths=lengths_of_rows)
            assert {*used} == {"eager"}
            torch.testing.assert_close(y.cpu(), ragged)


# --- the commands ----------------------------------------------------------------------------


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Ensue:
    return commands_in(tmp_path, capsys, monkeypatch)


SMALL = ["--set", "model.hidden_size=4", "--set", "model.embedding_size=4"]
TEXT = ["train", "corpus.txt", "--task", "language", *SMALL, "--set", "train.epochs=2"]


def test_the_device_is_a_word_of_the_commands(run: Ensue, tmp_path: Path) -> None:
    lines = [f"the {'small ' * (k % 3)}dog {'barks' if k % 2 else 'sleeps'} {k}" for k in range(80)]
    (tmp_path / "corpus.txt").write_text("\n".join(lines) + "\n")
    config = tmp_path / "run" / "config.toml"
    code, _, err = run(*TEXT, "--device", "cuda")
    assert code
    assert "device: expected one that is there, cpu, got 'cuda'" in err
    assert not [*(tmp_path / "run").rglob("step-*")]
    code, _, err = run(*TEXT, "--device", "gpu")
    assert code
    assert "train.device: " in err
    assert run(*TEXT)[0] == 0
    assert 'device = "auto"' in config.read_text()
    assert run(*TEXT, "--device", "cpu")[0] == 0  # the same run, elsewhere
    assert 'device = "cpu"' in config.read_text()
    assert run("train", "--run", "run", "--device", "auto")[0] == 0
    assert 'device = "auto"' in config.read_text()
    (tmp_path / "some.txt").write_text("the dog\n")
    for words in (
        ["evaluate", "run"],
        ["predict", "run", "some.txt"],
        ["generate", "run", "--tokens", "3"],
    ):
        code, out, _ = run(*words, "--device", "cpu")
        assert code == 0
        assert out
        code, out, err = run(*words, "--device", "cuda")
        assert code
        assert not out
        assert "use --device cpu or auto" in err
