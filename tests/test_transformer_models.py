"""Task models made of a Transformer: what the tables of laws over all models do not say."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.testing import assert_close

from ensue import Classifier, Labeller, LanguageModel
from ensue.errors import ConfigError
from ensue.layers.transformer import sinusoids
from ensue.tasks.abilities import Choice
from ensue.tasks.blocks.encoders import TransformerEncoder
from ensue.tasks.language.families import TransformerLanguage
from ensue.tasks.language.generate import Writer
from ensue.tasks.language.streams import StreamBatch

LINES = [f"{who} {does} the {what}" for who in "abcd" for does in ("has", "eats") for what in "xyz"]
SMALL: dict[str, Any] = {
    "family": "transformer",
    "hidden_size": 8,
    "embedding_size": 8,
    "heads": 2,
    "layers": 1,
    "columns": 2,
    "steps": 7,
}


def orders(count: int) -> list[tuple[str, str]]:
    """Texts of the same words, whose class is which of two words comes first."""
    random = torch.Generator().manual_seed(count)
    rows = []
    for k in range(count):
        words = ["left", "right"] if k % 2 else ["right", "left"]
        for _ in range(4):
            at = int(torch.randint(len(words) + 1, (1,), generator=random))
            words.insert(at, "and")
        rows.append((" ".join(words), words[words.index("left") :].count("right") * "yes" or "no"))
    return rows


def test_a_classifier_sees_the_order_of_words() -> None:
    settings = {"encoder": "transformer", "hidden_size": 16, "heads": 2, "dropout_input": 0.0}
    model = Classifier(model=settings, train={"epochs": 15, "rate": 0.01, "patience": 15})
    model.fit(orders(160), orders(20))
    assert model.evaluate(orders(40)).scores["accuracy"].value > 0.85
    assert model.summary().startswith("Classifier: 1 × transformer of 16, 2 heads, together with")


def test_features_of_any_scale_enter_alike() -> None:
    """Ten times the features, with a tenth of the weights: as before; and places matter."""
    torch.manual_seed(1)
    encoder = TransformerEncoder(3, width=8, heads=2, num_layers=2).double().eval()
    x, lengths = torch.randn(5, 2, 3, dtype=torch.float64), torch.tensor([5, 3])
    y, final = encoder(x, lengths)
    assert_close(final, torch.stack([y[4, 0], y[2, 1]]))
    with torch.no_grad():
        encoder.enter.weight.div_(10)
    assert_close(encoder(10 * x, lengths)[0], y)
    with torch.no_grad():
        encoder.enter.weight.mul_(100)
        encoder.enter.bias.mul_(10)
    assert_close(encoder(x, lengths)[0], y, rtol=0, atol=1e-3)
    backwards = encoder(x.flip(0), torch.tensor([5, 5]))[0].flip(0)
    assert not torch.allclose(backwards[:, 0], y[:, 0])


def test_a_language_network_is_the_transformer_of_torch() -> None:
    """Embeddings times √width, positions, torch.nn.TransformerEncoder with its causal mask."""
    torch.manual_seed(1)
    ours = TransformerLanguage(
        11, width=8, embedding_size=8, heads=2, layers=2, context=20, inner=5
    ).double()
    layer = nn.TransformerEncoderLayer(8, 2, 5, 0.0, norm_first=True)
    norm = nn.LayerNorm(8)
    theirs = nn.TransformerEncoder(layer, 2, norm, enable_nested_tensor=False).double().eval()
    theirs.load_state_dict(ours.blocks.state_dict())
    tokens = torch.randint(11, (8, 3))
    places = sinusoids(torch.arange(7), 8, torch.float64)[:, None]
    hidden = torch.ones(7, 7, dtype=torch.bool).triu(1)
    y = theirs(8**0.5 * ours.table(tokens[:-1]) + places, hidden)
    scores = y @ ours.output.weight.t() + ours.output.bias
    expected = cross_entropy(scores.transpose(1, 2), tokens[1:], reduction="none")
    costs, _ = ours.eval().costs(StreamBatch(tokens[:-1], tokens[1:]), {})
    assert_close(costs, expected.detach())


def test_texts_may_be_longer_than_the_context() -> None:
    model = LanguageModel(model={**SMALL, "context": 5}, train={"epochs": 1}).fit(LINES, LINES)
    long = " ".join(LINES)
    (scored,) = model.score([long])
    assert len(scored.bits) == len(long.split()) + 1
    assert all(0 < b < 20 for b in scored.bits)
    writer = Writer(model, long)
    (text,) = writer.texts(Choice(width=2, most_tokens=9))
    assert text.startswith(long)
    assert model.summary().startswith(
        "LanguageModel: 1 × transformer of 8, 2 heads, 5 tokens back\n"
    )


@pytest.mark.parametrize(
    ("kind", "chosen"),
    [
        (Classifier, {"encoder": "transformer"}),
        (Labeller, {"encoder": "transformer"}),
        (LanguageModel, {"family": "transformer"}),
    ],
)
def test_heads_that_do_not_share_the_width_equally(kind: Any, chosen: dict[str, str]) -> None:
    settings = {"hidden_size": 10, "heads": 4}
    kind(model=settings)  # nothing of it is used
    with pytest.raises(ConfigError) as error:
        kind(model={**chosen, **settings})
    assert str(error.value).splitlines()[-1].strip() == (
        "model: heads: expected a divisor of model.hidden_size, the width of a transformer, 10; "
        "got 4"
    )
