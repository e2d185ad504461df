"""Where the heads of a Transformer look, found again from the weights alone; positions."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import Ensue, commands_in
from torch import Tensor
from toy_runs import toy_run

from ensue import load
from ensue.errors import EnsueError
from ensue.layers.multihead import MultiHead, recorded_attention
from ensue.study.foundations.positions import positions
from ensue.tasks.explaining.heads import HeadMap, HeadMaps

TEXTS = {
    "classify-transformer": "the grim fish sees a dog",
    "language-transformer": "the grim fish sees",
    "translate-transformer": "the grim fish",
}
Call = tuple[MultiHead, Tensor, Tensor, Tensor]
EVERY = pytest.mark.parametrize("name", TEXTS)


def run_of(name: str) -> str:
    return str(toy_run(name) / "run")


def seen_by(name: str) -> tuple[Any, HeadMaps]:
    model = load(run_of(name))
    return model, model.attention(TEXTS[name])


# --- by brute force ------------------------------------------------------------------------------


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """What every layer of attention is called with, and what it gives."""
    recorded: list[Call] = []
    attend = MultiHead.attend

    def watched(self: MultiHead, queries: Tensor, memory: Tensor, visible: Any = None) -> Tensor:
        y = attend(self, queries, memory, visible)
        recorded.append((self, queries[0], memory[0], y[0]))
        return y

    monkeypatch.setattr(MultiHead, "attend", watched)
    return recorded


def brute_force(
    heads: MultiHead, queries: Tensor, memory: Tensor, sees: Callable[[int, int], bool]
) -> list[list[list[float]]]:
    """softmax(q·k/√d) over what is seen, number by number; queries (time, width), memory (time,
    2·width): keys and values."""
    each = heads.width // heads.heads
    q, k = queries.double().tolist(), memory[:, : heads.width].double().tolist()
    head_weights = []
    for head in range(heads.heads):
        part = range(head * each, (head + 1) * each)
        rows = []
        for i, query in enumerate(q):
            scores = {
                j: sum(query[c] * key[c] for c in part) / math.sqrt(each)
                for j, key in enumerate(k)
                if sees(i, j)
            }
            total = sum(map(math.exp, scores.values()))
            rows.append(
                [math.exp(scores[j]) / total if j in scores else 0.0 for j in range(len(k))]
            )
        head_weights.append(rows)
    return head_weights


def everywhere(i: int, j: int) -> bool:
    return True


def backwards(i: int, j: int) -> bool:
    return j <= i


SEES = {
    "encoder self-attention": everywhere,
    "decoder masked self-attention": backwards,
    "decoder cross-attention": everywhere,
    "masked self-attention": backwards,
}


@EVERY
def test_weights_are_those_that_the_network_used(name: str, calls: list[Call]) -> None:
    """Found again from queries and keys in float64; with them, the values give what the layer
    gave."""
    _, head_maps = seen_by(name)
    own_calls = calls[-len(head_maps.maps) :]  # a search may come before
    assert len(own_calls) == len(head_maps.maps)
    for head_map, call in zip(in_order_of_calls(head_maps), own_calls, strict=True):
        heads, queries, memory, y = call
        expected = brute_force(heads, queries, memory, SEES[head_map.name])
        weights = torch.tensor(head_map.heads, dtype=torch.float64)
        torch.testing.assert_close(weights, torch.tensor(expected).double(), rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(
            weights.sum(-1), torch.ones_like(weights[..., 0]), atol=1e-6, rtol=0
        )
        torch.testing.assert_close(torch.tensor(head_map.mean).double(), weights.mean(0))
        for i, row in enumerate(weights.unbind(1)):
            for j in range(row.shape[-1]):
                if not SEES[head_map.name](i, j):
                    assert row[:, j].tolist() == [0.0] * len(row)
        values = memory[:, heads.width :].double().view(len(memory), heads.heads, -1)
        context = torch.einsum("hqk,khw->qhw", weights, values).flatten(1)
        again = context @ heads.out_proj.weight.double().T + heads.out_proj.bias.double()
        torch.testing.assert_close(again, y.double(), rtol=1e-4, atol=1e-5)


def in_order_of_calls(head_maps: HeadMaps) -> list[HeadMap]:
    """The encoder's layers first; of a decoder's block masked self-attention, then cross."""

    def place(head_map: HeadMap) -> tuple[bool, int, bool]:
        return "encoder" not in head_map.name, head_map.layer, "cross" in head_map.name

    return sorted(head_maps.maps, key=place)


def test_tokens_stand_at_their_rows_and_columns() -> None:
    _, head_maps = seen_by("language-transformer")
    assert (
        head_maps.maps[0].queries
        == head_maps.maps[0].keys
        == ("</s>", "the", "grim", "fish", "sees")
    )
    model, head_maps = seen_by("translate-transformer")
    tokens = model.predict([TEXTS["translate-transformer"]])[0].tokens
    encoder, masked, cross = head_maps.maps
    assert encoder.keys == cross.keys == ("the", "grim", "fish")
    assert masked.queries == masked.keys == ("<s>", *tokens)
    assert cross.queries == (*tokens, "</s>")
    # the alignment of `explain` is the mean over the heads of the last layer
    aligned = torch.tensor(model.explain(TEXTS["translate-transformer"]).alignment)
    torch.testing.assert_close(aligned, torch.tensor(cross.mean), rtol=1e-3, atol=1e-5)


def test_a_network_is_left_as_it_was() -> None:
    model = load(run_of("classify-transformer"))
    layers = [module for module in model.networks[0].modules() if isinstance(module, MultiHead)]
    recorded = recorded_attention(model.networks[0])
    recorded.__enter__()
    assert all("attend" in layer.__dict__ for layer in layers)
    recorded.__exit__(ZeroDivisionError, ZeroDivisionError(), None)
    assert not any("attend" in layer.__dict__ for layer in layers)


# --- the commands --------------------------------------------------------------------------------


@pytest.fixture
def ensue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ensue:
    return commands_in(tmp_path, capsys, monkeypatch)


@EVERY
def test_attention_as_text_picture_and_json(name: str, ensue: Ensue, tmp_path: Path) -> None:
    command = ("explain", run_of(name), "--text", TEXTS[name], "--attention")
    code, out, err = ensue(*command, "--picture", "a.svg")
    assert code == 0, err
    assert "self-attention, layer 1" in out
    assert "head 2" in out
    assert "head 2" in (tmp_path / "a.svg").read_text("utf-8")
    facts = json.loads(ensue(*command, "--layer", "1", "--json")[1])
    _, head_maps = seen_by(name)
    assert facts["maps"][0]["heads"] == [
        [[*row] for row in head] for head in head_maps.maps[0].heads
    ]
    assert "\x1b[48;5;" in head_maps.as_text(60, colour=True)


def test_mistakes(ensue: Ensue) -> None:
    def message_of(*words: str) -> str:
        code, out, err = ensue("explain", *words)
        assert (code, out) == (2, "")
        return err.splitlines()[-1]

    words, language = run_of("classify-words"), run_of("language-transformer")
    assert message_of(words, "--text", "the fish", "--attention") == (
        "OptionError: --attention: expected a Transformer, got 1 × bidirectional LSTM of 4; train "
        "one with --set model.encoder=transformer"
    )
    assert "--set model.family=transformer" in message_of(
        run_of("language-ngram"), "--text", "the fish", "--attention"
    )
    assert (
        "a run of task language can only be explained by its attention; add --attention"
        in message_of(language, "--text", "the")
    )
    assert "--layer: expected a layer from 1 to 1, got 2" in message_of(
        language, "--text", "the", "--attention", "--layer", "2"
    )
    series = run_of("forecast-linear")
    assert "--attention: expected a run with a Transformer, got one of task forecast" in message_of(
        series, "--file", "x.csv", "--attention"
    )
    assert "or classify or language or table, got one of task forecast" in message_of(
        series, "--file", "x.csv"
    )
    with pytest.raises(EnsueError, match="at most 200 tokens, got 301; give a part of the text"):
        load(language).attention("the " * 300)


# --- positions -----------------------------------------------------------------------------------


def test_positions_are_the_formula_and_closeness_depends_on_distance_alone() -> None:
    encoding = positions(12, 10)
    for p, row in enumerate(encoding.table):
        for k, value in enumerate(row):
            angle = p / 10000 ** ((k - k % 2) / 10)
            assert value == pytest.approx(math.cos(angle) if k % 2 else math.sin(angle), abs=1e-12)
    table = torch.tensor(encoding.table, dtype=torch.float64)
    products = table @ table.T / 5
    for p in range(12):
        for q in range(p, 12):
            assert float(products[p, q]) == pytest.approx(encoding.closeness[q - p], abs=1e-12)


def test_the_positions_command(ensue: Ensue, tmp_path: Path) -> None:
    code, out, err = ensue("positions", "--steps", "5", "--width", "8", "--picture", "p.svg")
    assert (code, err) == (0, "wrote p.svg\n")
    assert out.splitlines()[2] == "0  ▒█▒█▒█▒█"
    picture = (tmp_path / "p.svg").read_text("utf-8")
    assert picture.count("h70v76h-70z") == 5 * 8
    facts = json.loads(ensue("positions", "--steps", "5", "--width", "8", "--json")[1])
    assert facts["closeness"][0] == 1.0
    code, _, err = ensue("positions", "--width", "7")
    assert (code, err) == (
        2,
        "OptionError: expected steps ≥ 1 and an even width ≥ 2, got 50 and 7\n",
    )
    code, _, err = ensue("positions", "--width", "8000")
    assert "expected at most 40,000 numbers, steps × width, got 400,000" in err
