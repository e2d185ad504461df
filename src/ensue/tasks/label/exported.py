"""The exported form of a labeller: from words or vectors to the scores of each step's labels. A
later step computes the best labels and their probabilities from the chain of these scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ensue.data.vocabulary import SPECIALS, Vocabulary
from ensue.metrics.spans import OUTSIDE
from ensue.tasks.any_model import AnyModel
from ensue.tasks.exported import (
    BATCH,
    LENGTHS,
    TIME,
    Exported,
    Graph,
    Input,
    Piecewise,
    Step,
    count_step,
    refuse,
    tokenise_step,
)
from ensue.tasks.label.linear_chain import ENDS, KIND_OF, OFFSETS, LinearChain
from ensue.tasks.label.mixture import ChainMixture
from ensue.tasks.label.outputs import CRF, Stepwise
from ensue.tasks.rows.batch import SequenceBatch
from ensue.tasks.rows.exported import ReadSteps, columns_of, read_steps
from ensue.tasks.settings import TextSettings

if TYPE_CHECKING:
    from ensue.tasks.label.learned import LearnedLabels
    from ensue.tasks.label.settings import LabellerSettings

PLAIN = {"characters_lengths": "characters.lengths", "characters_index": "characters.index"}
DISTINCT, LETTERS, ENTRIES = "distinct", "letters", "entries"


class StepScores(nn.Module):
    """The contribution of each label of a step to the score of its chain, by each network and the
    linear chain, weighted by the mixture; shape (members, time, batch, labels)."""

    def __init__(
        self,
        members: Sequence[nn.Module],
        names: Sequence[str],
        linear: LinearChain | None,
        mixture: ChainMixture | None,
    ) -> None:
        super().__init__()
        self.members, self.names, self.mixture = nn.ModuleList(members), list(names), mixture
        self.linear: nn.Parameter | None = None
        if linear is not None and mixture is not None:
            weights = linear.weights[_in_order(linear)]
            padded = np.pad(weights.T, ((0, 0), (1, 0)))  # 0 stands for no feature
            self.linear = nn.Parameter(torch.from_numpy(padded))  # (labels, features)

    def forward(self, *tensors: Tensor) -> Tensor:
        named = dict(zip(self.names, tensors, strict=True))
        lengths, columns = named.pop("lengths"), named.pop("chain_columns", None)
        inputs = {PLAIN.get(name, name): value for name, value in named.items()}
        batch = SequenceBatch(inputs, lengths)
        scores = torch.stack([self._scores(member, batch) for member in self.members])
        if self.linear is None or self.mixture is None or columns is None:
            return scores
        beside = columns_of(self.linear, columns).sum(-1).permute(1, 2, 0)
        return self.mixture.network * scores + self.mixture.linear * beside

    def _scores(self, network: Any, batch: SequenceBatch) -> Tensor:
        y, _ = network.encoder(network.embed(batch.inputs), batch.lengths)
        scores: Tensor = network.output.scores(y)
        return scores.log_softmax(-1) if isinstance(network.output, Stepwise) else scores


def exported(model: AnyModel) -> Exported:
    learned: LearnedLabels = model.learned
    if not all(isinstance(network.output, (Stepwise, CRF)) for network in model.networks):
        raise refuse("previous label", "label")
    if learned.context is not None:
        raise refuse("letter context", "label")
    if learned.inputs.words is None:
        read, linear = read_steps(learned.inputs, model.text), None
    else:
        read = _word_steps(learned, model.text, model.settings)
        linear = None if learned.mixture is None else learned.linear
    inputs, before = read
    if linear is not None:
        more = _chain_steps(linear)
        inputs, before = (*inputs, *more.inputs), (*before, *more.steps)
    names = [graph_input.name for graph_input in inputs]
    network = StepScores(list(model.networks), names, linear, learned.mixture)
    graph = Graph("model", network, inputs, ("scores",))
    after = (_chain_step(model, linear),)
    return Exported("label", (graph,), before, after, Piecewise(joined=graph.outputs))


def _word_steps(
    learned: LearnedLabels, text: TextSettings, settings: LabellerSettings
) -> ReadSteps:
    words, known = learned.inputs.words, learned.parts.known
    assert words is not None
    inputs = [Input("words", (TIME, BATCH), len(words))]
    if "letters" in known:
        inputs += [
            Input("characters", (LETTERS, DISTINCT), len(known["letters"])),
            Input("characters_lengths", (DISTINCT,), steps_of=LETTERS),
            Input("characters_index", (TIME, BATCH), DISTINCT),
        ]
    for part, name in (("prefixes", "prefix"), ("suffixes", "suffix")):
        if part in known:
            inputs.append(Input(name, (TIME, BATCH, settings.affixes), len(known[part])))
    if "shapes" in known:
        inputs.append(Input("shape", (TIME, BATCH), len(known["shapes"])))
    step: Step = {
        "step": "word parts",
        "from": "tokens",
        "lower": text.lower,
        "numbers": text.numbers,
        "words": list(words.tokens),
        **{name: list(vocabulary.tokens) for name, vocabulary in known.items()},
        "affixes": settings.affixes,
        "digits": other_digits(),
    }
    tokenise = tokenise_step(learned.tokenisers.input)
    return ReadSteps((*inputs, LENGTHS), (tokenise, step, count_step("tokens")))


def _sorted_tokens(vocabulary: Vocabulary) -> NDArray[np.int64]:
    """The indices of a vocabulary's tokens in alphabetical order, which compress to a third of the
    bytes; special tokens stay first."""
    special, tokens = len(SPECIALS), vocabulary.tokens
    order = sorted(range(special, len(tokens)), key=lambda number: tokens[number])
    return np.array([*range(special), *order], np.int64)


def _in_order(linear: LinearChain) -> NDArray[np.int64]:
    """The rows of weights, in the sorted order of each offset's features."""
    places, begin = list[NDArray[np.int64]](), 0
    for offset in OFFSETS:
        tokens = _sorted_tokens(linear.features.known[KIND_OF[offset]])
        ends = np.arange(len(tokens), len(tokens) + len(ENDS))
        places.append(begin + np.concatenate([tokens, ends]))
        begin += len(tokens) + len(ENDS)
    return np.concatenate(places)


def _chain_steps(linear: LinearChain) -> ReadSteps:
    """The rows of weights that a step sums over, as index + 1; 0 means none."""
    features = linear.features
    step: Step = {
        "step": "chain features",
        "from": "tokens",
        "to": "chain_columns",
        "known": {
            name: [part.tokens[k] for k in _sorted_tokens(part)]
            for name, part in features.known.items()
        },
        "offsets": list(OFFSETS),
        "kinds": [KIND_OF[offset] for offset in OFFSETS],
        "digits": other_digits(),
    }
    chain_input = Input("chain_columns", (TIME, BATCH, ENTRIES), features.rows + 1)
    return ReadSteps((chain_input,), (step,))


def _chain_step(model: AnyModel, linear: LinearChain | None) -> Step:
    """The step `chain` of an export, with the scores `first`, `follow` and `last` of every member.
    outside: a number that is subtracted from the score of O when labels are chosen. marginals:
    whether probabilities come from the chain, or from each step."""
    names, mixture = list(model.learned.labels.tokens), model.learned.mixture
    mixed = linear is not None and mixture is not None
    chains = [
        _links(network.output, linear, mixture if mixed else None) for network in model.networks
    ]
    outside = mixture.outside if mixed and mixture is not None else 0.0
    crf = isinstance(model.networks[0].output, CRF)
    return {
        "step": "chain",
        "labels": names,
        "chains": chains,
        "marginals": mixed or crf,
        "outside": [names.index(OUTSIDE), outside] if outside else None,
    }


def _links(
    output: Any, linear: LinearChain | None, mixture: ChainMixture | None
) -> dict[str, list[Any]]:
    links = {}
    for name in ("first", "follow", "last"):
        array = getattr(output.constraint, name)
        if isinstance(output, CRF):
            array = array + getattr(output, name)
        values = array.detach().double().numpy()
        if linear is not None and mixture is not None:
            values = mixture.network * values + mixture.linear * getattr(linear, name)
        links[name] = values.tolist()
    return links


def other_digits() -> str:
    """Digits that are not decimal (², ①), which other languages do not count as digits."""
    signs = map(chr, range(0x20000))
    return "".join(sign for sign in signs if sign.isdigit() and not sign.isdecimal())
