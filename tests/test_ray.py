"""Jobs on a Ray cluster of two nodes: the bytes of one process, whatever becomes of a node.

`make test-ray` runs these; a cluster takes a minute to start.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import job_functions as functions
import pytest
from commands import Ensue, commands_in

from ensue.errors import DataError, JobError, MissingExtra, OptionError
from ensue.jobs import Job, Ray, in_order

pytestmark = pytest.mark.slow
TRAINED = ("--epochs", "1", "--hidden-size", "4", "--set", "model.embedding_size=4")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two nodes on the loopback, each of them with one processor."""
    utils = pytest.importorskip("ray.cluster_utils", reason="pip install 'ensue[ray]'")
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", path)  # of the workers, which import functions of tests
        patched.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # nodes are on the loopback
        patched.setenv("RAY_worker_niceness", "0")  # else they starve where much else runs
        head = {"num_cpus": 1, "include_dashboard": False}
        nodes = utils.Cluster(initialize_head=True, head_node_args=head)
        nodes.second = nodes.add_node(num_cpus=1)
        patched.setenv("RAY_ADDRESS", nodes.address)
        yield nodes
        import ray

        ray.shutdown()
        nodes.shutdown()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cluster")
    rows = [f"{k},{'all is well' if k % 2 else 'bad news'} {k % 99},{k % 2}" for k in range(12_000)]
    (folder / "train.csv").write_text("\n".join(["id,text,label", *rows[:200]]))
    (folder / "new.csv").write_text("\n".join(["id,text,label", *rows]))
    return folder


@pytest.fixture
def ensue(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ensue:
    run = commands_in(place, capsys, monkeypatch)
    if not (place / "run").exists():
        columns = ("--text", "text", "--label", "label")
        assert run("train", "train.csv", *columns, "--run", "run", *TRAINED)[0] == 0
    return run


def test_jobs_of_a_cluster_come_back_as_those_of_this_machine(cluster: Any) -> None:
    jobs = [
        Job("fine", functions.squared, {"number": 7}),
        Job("told", functions.surroundings, {"value": "ü"}),
        Job("wrong", functions.refused, {"place": "a.csv:7"}),
        Job("mistaken", functions.mistaken),
    ]
    progress: list[Any] = []
    fine, printed, wrong, mistaken = in_order(
        jobs, Ray(2), lambda job, value: progress.append(value)
    )
    assert fine.get() == 49
    assert (printed.get()["value"], printed.get()["threads"]) == ("ü", "1")
    assert type(wrong.error) is DataError
    assert type(mistaken.error) is JobError
    assert str(mistaken.error) == "mistaken: ZeroDivisionError: division by zero"
    assert progress in ([], [{"seen": 7}])


def test_members_of_a_cluster_are_those_of_this_machine(
    place: Path, ensue: Ensue, cluster: Any
) -> None:
    words = ("train", "train.csv", "--text", "text", "--label", "label", "--members", "2", *TRAINED)
    assert ensue(*words, "--run", "here", "--workers", "1")[0] == 0
    assert ensue(*words, "--run", "there", "--on", "ray")[0] == 0
    weights = [sorted((place / run / "model").glob("*.safetensors")) for run in ("here", "there")]
    assert [file.read_bytes() for file in weights[0]] == [file.read_bytes() for file in weights[1]]


def test_answers_of_a_cluster_are_the_bytes_of_one_process_though_a_node_dies(
    place: Path, ensue: Ensue, cluster: Any
) -> None:
    assert ensue("predict", "run", "new.csv", "--out", "here.jsonl")[0] == 0
    killer = threading.Timer(4, cluster.remove_node, [cluster.second, False])
    killer.start()
    assert ensue("predict", "run", "new.csv", "--out", "there.jsonl", "--on", "ray")[0] == 0
    killer.join()
    assert (place / "here.jsonl").read_bytes() == (place / "there.jsonl").read_bytes()


SELECT = ("select", "train.csv", "--text", "text", "--label", "label", "--trials", "4", *TRAINED,
          "--set", "model.batch_tokens=64", "--set", "text.level=words", "--quiet")  # fmt: skip


def table_of(place: Path) -> Any:
    """A selection without its times."""
    facts = json.loads((place / "selection.json").read_text())
    timed = {"seconds", "around", "after", "speed"}
    rows = [{k: v for k, v in row.items() if k not in timed} for row in facts["rows"]]
    return facts["winner"], facts["test"], facts["search"], rows


def test_a_selection_on_a_cluster_is_that_of_this_machine_though_a_node_dies(
    place: Path, ensue: Ensue, cluster: Any
) -> None:
    """Trials of the node that is gone go on elsewhere, from their folders."""
    assert ensue(*SELECT, "--run", "chosen-here")[0] == 0
    node = cluster.add_node(num_cpus=1)
    killer = threading.Timer(6, cluster.remove_node, [node, False])
    killer.start()
    code, _, err = ensue(*SELECT, "--run", "chosen-there", "--on", "ray", "--workers", "2")
    assert code == 0, err
    killer.join()
    assert table_of(place / "chosen-there") == table_of(place / "chosen-here")
    winner = table_of(place / "chosen-here")[0]
    weights = [place / folder / winner / "model" for folder in ("chosen-here", "chosen-there")]
    here, other_bytes = ((folder / "network-1.safetensors").read_bytes() for folder in weights)
    assert here == other_bytes


# --- without a cluster ------------------------------------------------------------------------


def test_a_cluster_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray", reason="pip install 'ensue[ray]'")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)

    def refuse(**how: object) -> None:
        raise ConnectionError("Could not find any running Ray instance. Start one.\nMore.")

    monkeypatch.setattr(ray, "init", refuse)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(
        OptionError, match=r"^ray: expected a cluster, this machine has none: Could"
    ):
        list(in_order([Job("fine", functions.squared, {"number": 7})], Ray(1)))


def test_ray_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"pip install 'ensue\[ray\]'"):
        list(in_order([Job("fine", functions.squared, {"number": 7})], Ray(1)))
