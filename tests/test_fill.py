"""Words for a blank, from both sides: neither side sees the word."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from commands import commands_in
from torch.testing import assert_close

from ensue import LanguageModel
from ensue.data.vocabulary import END_NUMBER
from ensue.errors import DataError, OptionError
from ensue.layers.recurrent import Recurrent
from ensue.tasks.language.both_sides import BothSidesLanguage, around, fillers
from ensue.tasks.language.networks import DropoutRates
from ensue.tasks.language.streams import COLUMNS, STEPS, StreamBatch, StreamSource

WORDS = 12
SMALL = {"family": "both", "layers": 1, "hidden_size": 12, "embedding_size": 12, "columns": 2}


def network(tied: bool = True, hidden_size: int = 6) -> BothSidesLanguage:
    left, right = (Recurrent("LSTM", 6, hidden_size, 2) for _ in range(2))
    model = BothSidesLanguage(WORDS, left, right, tied=tied).double().eval()
    for p in model.parameters():
        torch.nn.init.uniform_(p, -0.5, 0.5)
    return model


@pytest.fixture(name="net", params=[(True, 6), (True, 5), (False, 6)], ids=str)
def _net(request: pytest.FixtureRequest) -> BothSidesLanguage:
    torch.manual_seed(2)
    return network(*request.param)


def text(length: int, seed: int = 1) -> np.ndarray:
    tokens = np.random.default_rng(seed).integers(4, WORDS, length).astype(np.int32)
    tokens[[0, -1]] = END_NUMBER
    return tokens


def by_hand(net: BothSidesLanguage, tokens: np.ndarray, at: int) -> torch.Tensor:
    """log p (words,) of what stands at a place: each side read step by step."""
    rows = net.table.weight
    state, left = None, torch.zeros(1, net.recurrent.output_size).double()
    for token in tokens[:at]:
        left, state = net.recurrent(rows[int(token)][None, None], state)
        left = left[0]
    state, right = None, torch.zeros(1, net.right.output_size).double()
    for token in tokens[:at:-1]:
        right, state = net.right(rows[int(token)][None, None], state)
        right = right[0]
    joined = net.join(torch.cat([left, right], -1))
    return (joined @ net.filler.weight.T + net.filler.bias).log_softmax(-1)[0]


def test_fillers_are_those_of_two_networks_that_are_read_by_hand(net: BothSidesLanguage) -> None:
    tokens = text(9)
    for at in (1, 4, 8):
        both, alone = fillers([net], torch.tensor(tokens[:at]), torch.tensor(tokens[at + 1 :]))
        assert_close(both, by_hand(net, tokens, at).detach())
        logs, _ = net.costs(*_alone(tokens[:at]))
        assert_close(alone.exp().sum(), torch.tensor(1.0).double())
        assert logs.shape == (at, 1)


def _alone(tokens: np.ndarray) -> tuple[StreamBatch, dict[str, torch.Tensor]]:
    column = torch.tensor(tokens)[:, None].long()
    return StreamBatch(column, column), {}


def test_the_score_of_a_text_is_that_of_each_blank_in_it(net: BothSidesLanguage) -> None:
    tokens = text(10)
    scores = around([net], tokens)
    for at in range(1, len(tokens)):
        both, alone = fillers([net], torch.tensor(tokens[:at]), torch.tensor(tokens[at + 1 :]))
        token = int(tokens[at])
        assert scores.logs[at - 1] == pytest.approx(float(both[token]))
        assert scores.logs_left[at - 1] == pytest.approx(float(alone[token]))
        assert scores.ranks[at - 1] == int((both >= both[token]).sum())
        assert scores.ranks_left[at - 1] == int((alone >= alone[token]).sum())
    assert scores.logs_left == pytest.approx(net.score_stream(tokens))


def test_neither_side_sees_the_word(net: BothSidesLanguage) -> None:
    tokens = text(10)
    for at in (1, 5, 8):
        changed = tokens.copy()
        changed[at] = 4 + (changed[at] - 3) % (WORDS - 4)
        assert_close(by_hand(net, tokens, at), by_hand(net, changed, at))
        for other in (at - 1, at + 1):
            before = float(around([net], changed).logs[other - 1]) if other > 0 else 0.0
            assert other == 0 or before != float(around([net], tokens).logs[other - 1])


def test_a_long_text_is_read_in_columns_that_padding_does_not_change() -> None:
    torch.manual_seed(2)
    net = network()
    tokens = text(COLUMNS * STEPS + 3 * COLUMNS + 4)
    scores = around([net], tokens)
    length = -(-(len(tokens) - 1) // COLUMNS)
    last = tokens[(COLUMNS - 1) * length :]
    assert len(last) - 1 < length  # the last column is padded
    alone = around([net], last)
    assert scores.logs[(COLUMNS - 1) * length :] == pytest.approx(alone.logs)
    assert np.array_equal(scores.ranks[(COLUMNS - 1) * length :], alone.ranks)


def test_a_text_that_is_too_short_for_its_columns_is_counted() -> None:
    with pytest.raises(DataError, match=r"^40 tokens are too few for 50 columns"):
        StreamSource(text(41), "text", columns=50, steps=10)


def test_in_training_a_piece_sees_the_tokens_ahead_of_it() -> None:
    torch.manual_seed(2)
    net, tokens = network(), text(61)
    source = StreamSource(tokens, "text", columns=2, steps=10, ahead=10)
    batches = source.batches(0)
    first, last = source.batch(batches[0]), source.batch(batches[-1])
    assert first.ahead is not None
    assert first.ahead.tolist() == source.y[10:20].tolist()
    assert last.ahead is not None
    assert last.ahead.shape == (0, 2)
    cost, carried = net(first, {})
    whole = StreamBatch(torch.cat([first.tokens]), first.targets, ahead=first.ahead)
    both, alone, _ = net.sides(whole, {})
    expected = sum(-logs.gather(-1, first.targets[..., None]).sum() for logs in (both, alone))
    assert_close(cost, expected)
    assert carried.keys() == net.begin(2).keys()


def test_the_mean_of_several_networks_fills() -> None:
    torch.manual_seed(3)
    nets = [network(), network()]
    before, after = torch.tensor([3, 5, 6]), torch.tensor([7, 3])
    each = [fillers([net], before, after)[0].exp() for net in nets]
    assert_close(fillers(nets, before, after)[0].exp(), (each[0] + each[1]) / 2)
    tokens = text(8)
    logs = [around([net], tokens).logs for net in nets]
    assert around(nets, tokens).logs == pytest.approx(np.log(np.exp(logs).mean(0)))


def test_dropout_is_for_training_alone() -> None:
    rates = DropoutRates(word=0.2, input=0.2, output=0.2)
    net = BothSidesLanguage(WORDS, Recurrent("GRU", 6, 6), Recurrent("GRU", 6, 6), rates=rates)
    batch = StreamSource(text(41), "text", columns=2, steps=10, ahead=5).batch([0])
    assert not torch.equal(net(batch, {})[0], net(batch, {})[0])
    net.eval()
    assert torch.equal(net(batch, {})[0], net(batch, {})[0])


# --- of a model ------------------------------------------------------------------------------


LINES = [
    f"the {who} opened {whose} {what} {when}"
    for who, whose in (("boy", "his"), ("girl", "her"))
    for what, when in (("book", "slowly"), ("door", "quickly"), ("eyes", "again"))
]


@pytest.fixture(name="model", scope="module")
def _model() -> LanguageModel:
    """Of lines in any order, so that those before tell nothing of a line."""
    lines = random.Random(1).choices(LINES, k=150)
    still = {f"dropout_{place}": 0.0 for place in ("input", "layers", "output")}
    train = {"epochs": 14, "rate": 0.03, "patience": None}
    settings = SMALL | still | {"columns": 5, "steps": 14}
    return LanguageModel({"min_count": 1}, settings, train).fit(lines, LINES)


def test_what_comes_after_the_blank_decides(model: LanguageModel) -> None:
    """Before the blank, all three are equally probable: only the last word tells."""
    for what, when in (("book", "slowly"), ("door", "quickly"), ("eyes", "again")):
        suggestions = model.fill(f"the boy opened his ___ {when}")
        assert suggestions.fillers[0].token == what
        assert suggestions.fillers[0].probability > 0.8
        before = dict(suggestions.before_alone)
        assert before[what] < 0.6
        assert suggestions.words[suggestions.blank] == what
        assert suggestions.bits[suggestions.blank] < suggestions.bits_before[suggestions.blank]


def test_probabilities_of_all_fillers_are_one_in_all(model: LanguageModel) -> None:
    suggestions = model.fill("the ___ opened", 10_000)
    assert len(suggestions.fillers) == len(model.learned.words) - 4
    assert sum(p for _, p in suggestions.fillers) == pytest.approx(1)
    assert sum(p for _, p in suggestions.before_alone) == pytest.approx(1)


def test_surprise_is_that_of_the_language_model(model: LanguageModel) -> None:
    suggestions = model.fill("the boy opened his ____ slowly")
    scored = model.score([" ".join(suggestions.words)])[0]
    assert suggestions.words == scored.tokens[:-1]
    assert suggestions.bits_before == pytest.approx(scored.bits[:-1], rel=1e-3)  # all but the end


def test_an_evaluation_says_how_well_words_are_filled_in(model: LanguageModel) -> None:
    others = model.evaluate(LINES).others
    assert others["top 5, both sides"] >= others["top 5, before alone"]
    assert others["perplexity, both sides"] < math.exp(1)
    assert (
        "top 5, both sides"
        not in LanguageModel({"min_count": 1}, {"family": "ngram", "order": 2})
        .fit(LINES, LINES)
        .evaluate(LINES)
        .others
    )


@pytest.mark.parametrize("text", ["the boy opened his book", "___ boy ___", ""])
def test_a_text_has_one_blank(model: LanguageModel, text: str) -> None:
    with pytest.raises(OptionError, match="fill: expected a text with one blank, ___, got"):
        model.fill(text)


def test_other_models_say_what_to_train() -> None:
    counted = LanguageModel({"min_count": 1}, {"family": "ngram", "order": 2}).fit(LINES, LINES)
    with pytest.raises(OptionError, match="train one with --set model"):
        counted.fill("the ___")
    letters = LanguageModel({"level": "characters", "min_count": 1}, SMALL, {"epochs": 1}).fit(
        LINES, LINES
    )
    with pytest.raises(OptionError, match="expected a model of words"):
        letters.fill("the ___")


def test_the_command(
    model: LanguageModel,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ensue = commands_in(tmp_path, capsys, monkeypatch)
    (tmp_path / "lines.txt").write_text("\n".join(LINES * 4))
    (tmp_path / "held.txt").write_text("\n".join(LINES))
    settings = [f"--set=model.{key}={value}" for key, value in SMALL.items()]
    words = ["--validation", "held.txt", "--task", "language", "--run", "run", "--epochs", "1"]
    assert ensue("train", "lines.txt", *words, *settings)[0] == 0
    blank = "the boy opened his ___ slowly"
    code, out, err = ensue("fill", "run", blank, "--count", "3")
    assert code == 0, err
    assert "both sides" in out
    assert "before alone" in out
    assert "\n 3  " in out
    code, out, _ = ensue("fill", "run", "--json", stdin=f"{blank}\nthe ___ opened\n".encode())
    answers = [json.loads(line) for line in out.splitlines()]
    assert [len(answer["fillers"]) for answer in answers] == [5, 5]
    assert "</s>" not in [word["word"] for word in answers[0]["words"]]
    code, _, err = ensue("fill", "run", "no blank")
    assert code == 2
    assert "expected a text with one blank" in err


@pytest.mark.parametrize("family", ["recurrent", "window"])
def test_a_forward_model_is_ranked_alike(family: str) -> None:
    """Its share of words among the first five is that of stepping through the text."""
    settings = {"family": family, "layers": 1, "hidden_size": 4, "embedding_size": 4, "columns": 2}
    forward = LanguageModel({"min_count": 1}, settings, {"epochs": 1}).fit(LINES, LINES)
    state, token = forward.begin(), forward.first
    hits = []
    for line in LINES:
        for number in [*forward.learned.words.ids(line.split()), END_NUMBER]:
            logs, state = forward.step(torch.tensor([token]), state)
            rank = int((logs[0] >= logs[0, number]).sum())
            hits += [rank <= 5] if number != END_NUMBER else []
            token = int(number)
    others = forward.evaluate(LINES).others
    assert others["top 5, before alone"] == pytest.approx(sum(hits) / len(hits), abs=0.01)
    assert "top 5, both sides" not in others
