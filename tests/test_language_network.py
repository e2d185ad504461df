"""Networks that say what comes next: pieces equal the whole, stepping equals scoring."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from ensue.cells import CELLS, RecurrentDropout
from ensue.data.ragged import Ragged
from ensue.data.vocabulary import END_NUMBER
from ensue.errors import OptionError, ShapeError
from ensue.layers.recurrent import Recurrent
from ensue.tasks.language.families import ConvolutionLanguage, TransformerLanguage, WindowLanguage
from ensue.tasks.language.networks import NO_DROPOUT, DropoutRates
from ensue.tasks.language.recurrent import RecurrentLanguage
from ensue.tasks.language.softmaxes import AdaptiveSoftmax
from ensue.tasks.language.streams import StreamBatch

WORDS = 30
CLUSTERS = AdaptiveSoftmax((4, 12))
DROPPED = DropoutRates(word=0.2, input=0.2, layers=0.2, recurrent=0.2, attention=0.2, output=0.2)


def layers(cell: str = "LSTM", hidden_size: int = 6, rates: DropoutRates = NO_DROPOUT) -> Recurrent:
    dropped = RecurrentDropout(CELLS[cell](), rates.recurrent)
    return Recurrent(dropped, 6, hidden_size, 2, dropout=rates.layers)


def recurrent(
    cell: str = "LSTM", hidden_size: int = 6, tied: bool = True, rates: DropoutRates = NO_DROPOUT
) -> RecurrentLanguage:
    return RecurrentLanguage(WORDS, layers(cell, hidden_size, rates), tied=tied, rates=rates)


def window(**overrides: Any) -> WindowLanguage:
    settings = {"window": 3, "embedding_size": 6, "hidden_size": 8, "before": 1, **overrides}
    return WindowLanguage(WORDS, **settings)


def transformer(**overrides: Any) -> TransformerLanguage:
    settings = {
        "width": 6,
        "embedding_size": 6,
        "heads": 2,
        "layers": 2,
        "context": 50,
        **overrides,
    }
    return TransformerLanguage(WORDS, **settings)


def convolution(**overrides: Any) -> ConvolutionLanguage:
    settings = {"width": 6, "embedding_size": 6, "layers": 3, "size": 2, **overrides}
    return ConvolutionLanguage(WORDS, **settings)


MODELS: dict[str, Callable[[], torch.nn.Module]] = {
    "tied LSTM": recurrent,
    "wider GRU, tied": lambda: recurrent(cell="GRU", hidden_size=9),
    "simple RNN, not tied": lambda: recurrent(cell="SimpleRNN", hidden_size=9, tied=False),
    "all dropouts": lambda: recurrent(rates=DROPPED),
    "window": window,
    "window of one": lambda: window(window=1),
    "window, tied": lambda: window(tied=True),
    "window, one-hot": lambda: window(one_hot=True),
    "transformer": transformer,
    "transformer, norm after, not tied": lambda: transformer(norm="after", tied=False),
    "transformer of narrow words": lambda: transformer(embedding_size=4),
    "transformer, text beyond its context": lambda: transformer(context=4),
    "convolution": convolution,
    "convolution, plain, not tied": lambda: convolution(dilated=False, size=4, tied=False),
    "convolution of narrow words": lambda: convolution(embedding_size=4, size=1),
    "convolution, all dropouts": lambda: convolution(rates=DROPPED),
    "clusters of words": lambda: transformer(softmax=CLUSTERS),
    "clusters of words, not tied": lambda: window(softmax=CLUSTERS),
    "clusters of words, all dropouts": lambda: convolution(rates=DROPPED, softmax=CLUSTERS),
    "transformer, all dropouts": lambda: transformer(rates=DROPPED),
}


@pytest.fixture(params=MODELS, name="model")
def _model(request: pytest.FixtureRequest) -> Any:
    torch.manual_seed(3)
    return MODELS[request.param]().double().eval()


def stream(steps: int = 11, batch: int = 3) -> StreamBatch:
    tokens = torch.randint(WORDS, (steps + 1, batch), generator=torch.Generator().manual_seed(5))
    return StreamBatch(tokens[:-1], tokens[1:])


def gradients(cost: Tensor, model: torch.nn.Module) -> list[Tensor]:
    return list(torch.autograd.grad(cost, list(model.parameters())))


def test_the_cost_is_the_sum_of_the_costs(model: Any) -> None:
    costs, _ = model.costs(stream(), {})
    assert costs.shape == (11, 3)
    assert_close(model(stream(), {})[0], costs.sum())


def test_pieces_with_what_is_carried_equal_the_whole(model: Any) -> None:
    whole = stream()
    for size in (1, 4, 11, 50):  # 11 and 50: truncated BPTT that truncates nothing
        carried, cost = {}, torch.zeros((), dtype=torch.float64)
        for at in range(0, 11, size):
            batch = StreamBatch(whole.tokens[at : at + size], whole.targets[at : at + size])
            piece, carried = model(batch, carried)
            cost = cost + piece
        expected, _ = model(whole, {})
        assert_close(cost, expected)
        assert_close(gradients(cost, model), gradients(expected, model))


def test_stepping_equals_scoring(model: Any) -> None:
    whole = stream()
    costs, _ = model.costs(whole, {})
    carried, log_probabilities = model.begin(3), []
    for tokens, targets in zip(whole.tokens, whole.targets, strict=True):
        logs, carried = model.step(tokens, carried)
        assert_close(logs.exp().sum(1), torch.ones(3, dtype=torch.float64))
        log_probabilities.append(-logs.gather(1, targets[:, None])[:, 0])
    assert_close(torch.stack(log_probabilities), costs)


def test_the_future_cannot_change_the_past(model: Any) -> None:
    one = stream()
    tokens = one.tokens.clone()
    tokens[7:] = (tokens[7:] + 1) % WORDS
    before, _ = model.costs(one, {})
    after, _ = model.costs(StreamBatch(tokens, one.targets), {})
    assert_close(before[:7], after[:7])
    assert not torch.equal(before[7:], after[7:])


def test_columns_do_not_meet(model: Any) -> None:
    whole = stream()
    alone = StreamBatch(whole.tokens[:, 1:2], whole.targets[:, 1:2])
    assert_close(model.costs(alone, {})[0], model.costs(whole, {})[0][:, 1:2])


def test_targets_that_do_not_count(model: Any) -> None:
    whole = stream()
    real = torch.rand(whole.targets.shape, generator=torch.Generator().manual_seed(1)) < 0.5
    cost, _ = model(StreamBatch(whole.tokens, whole.targets, real), {})
    assert_close(cost, model.costs(whole, {})[0][real].sum())


def test_reordered_hypotheses(model: Any) -> None:
    """What is carried follows its row, which is what a beam needs."""
    order = torch.tensor([2, 0, 1])
    tokens = stream().tokens
    _, carried = model.step(tokens[0], model.begin(3))
    logs, _ = model.step(tokens[1][order], model.reorder(carried, order))
    assert_close(logs, model.step(tokens[1], carried)[0][order])


@pytest.mark.parametrize(
    "name", ["all dropouts", "transformer, all dropouts", "convolution, all dropouts"]
)
def test_dropout_in_training_only(name: str) -> None:
    torch.manual_seed(3)
    model = MODELS[name]()
    model.train()
    assert not torch.equal(model(stream(), {})[0], model(stream(), {})[0])
    model.eval()
    assert torch.equal(model(stream(), {})[0], model(stream(), {})[0])


def test_tied_weights_are_one() -> None:
    model = recurrent()
    assert model.output.weight is model.table.weight
    assert sum(p.numel() for p in model.parameters()) < sum(
        p.numel() for p in recurrent(tied=False).parameters()
    )


@pytest.mark.parametrize(
    ("cell", "start"), [*((name, "zero") for name in CELLS), ("LSTM", "learned")]
)
def test_some_columns_begin_a_piece_anew_in_training_and_none_otherwise(
    cell: str, start: str
) -> None:
    cells = Recurrent(CELLS[cell](), 6, 6, 2, initial=start)
    model = RecurrentLanguage(WORDS, cells, rates=DropoutRates(carried=0.5))
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0, 0.5)
    tokens = torch.randint(4, WORDS, (5, 40))
    begun = model.begin(40)
    _, carried = model.eval().run(tokens, begun)
    fresh, went_on = model.run(tokens, begun)[0], model.run(tokens, carried)[0]
    y = model.train().run(tokens, carried)[0]
    anew = (y - fresh).abs().amax((0, 2)) < 1e-6
    assert 8 < anew.sum() < 32
    assert torch.allclose(y[:, ~anew], went_on[:, ~anew], atol=1e-6)
    assert not torch.allclose(fresh, went_on, atol=1e-3)
    again = model.run(tokens, carried)[0]
    assert not torch.equal(anew, (again - fresh).abs().amax((0, 2)) < 1e-6)


def test_a_rate_that_is_no_probability_is_refused() -> None:
    with pytest.raises(OptionError) as wrong:
        DropoutRates(word=1.0, attention=-0.5)
    assert str(wrong.value) == (
        "dropout_word: expected 0 ≤ rate < 1, got 1.0; "
        "dropout_attention: expected 0 ≤ rate < 1, got -0.5"
    )


def test_messages() -> None:
    with pytest.raises(OptionError) as wrong:
        window(window=0)
    assert str(wrong.value) == "window: expected a number of words ≥ 1, got 0"
    with pytest.raises(OptionError) as both:
        window(one_hot=True, tied=True)
    assert str(both.value).startswith("tied: expected false with one_hot")
    with pytest.raises(ShapeError) as columns:
        window()(stream(), window().begin(2))
    assert str(columns.value) == "carried: expected 3 columns, got 2"
    with pytest.raises(ShapeError) as past:
        convolution()(stream(), convolution().begin(2))
    assert str(past.value) == "carried: expected 3 columns, got 2"
    with pytest.raises(ShapeError) as rows:
        transformer()(stream(), transformer().begin(2))
    assert str(rows.value) == "carried: expected 3 columns, got 2"


def test_a_context_that_holds_the_text_is_all_before() -> None:
    """Nothing is cut and no position comes twice: any longer context gives the same."""
    torch.manual_seed(3)
    model, longer = transformer(context=11).double().eval(), transformer(context=400).double()
    longer.load_state_dict(model.state_dict())
    assert_close(model.costs(stream(), {})[0], longer.eval().costs(stream(), {})[0])
    shorter = transformer(context=10).double().eval()
    shorter.load_state_dict(model.state_dict())
    differences = shorter.costs(stream(), {})[0] - model.costs(stream(), {})[0]
    assert_close(differences[:10], torch.zeros(10, 3, dtype=torch.float64))
    assert differences[10].all()


def test_a_long_text_by_itself_is_scored_as_a_whole(model: Any) -> None:
    """Texts of a thousand tokens and more were cut into ten columns, each with a new start: a
    tenth of the tokens was scored without the text before it."""
    numbers = torch.randint(4, WORDS, (1500,), generator=torch.Generator().manual_seed(1))
    text = numbers.numpy().astype("int32")
    scored = model.score(Ragged(text, np.array([0, len(text)]))).values
    read = torch.cat([torch.tensor([END_NUMBER]), numbers])[:, None]
    follows = torch.cat([numbers, torch.tensor([END_NUMBER])])[:, None]
    expected, _ = model.costs(StreamBatch(read, follows), {})
    np.testing.assert_allclose(scored, -expected[:, 0].numpy(), atol=1e-9)
