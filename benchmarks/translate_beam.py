"""Translating with a beam: Ensue against plain torch, the same trained model, the same sentences.

    python benchmarks/translate_beam.py RUN SENTENCES [--sentences 1000] [--beam 5] [--threads 2]

RUN is the folder of a translator with GRU cells, one layer and additive attention, as
`ensue train … --task translate` makes one; SENTENCES a file of source sentences, one a line, may
be gzipped. The other side has the same weights in torch.nn.GRU and GRUCell, packed sequences for
the encoder, and a beam as a good user writes it: all sentences of a batch and all hypotheses in
one step, the memory repeated for each hypothesis, finished ones kept aside, and the batch ends
when nothing in it can still win. Both get the same batches, in turn, and both rank by the same
rule, so that the translations can be compared.
"""

from __future__ import annotations

import argparse
import gzip
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from ensue import Translator
from ensue.data.batches import evaluation_batches
from ensue.data.ragged import Ragged
from ensue.data.vocabulary import END_NUMBER, START_NUMBER
from ensue.runs.load import load_run
from ensue.tasks.seq2seq.network import RecurrentPairs
from ensue.tasks.seq2seq.pairs import pair_networks
from ensue.tasks.seq2seq.search import HYPOTHESES, NEVER, SOURCE_TOKENS, Search, searched
from ensue.training import RunFolder


class Plain(nn.Module):
    """The same model of torch.nn's parts."""

    def __init__(self, model: RecurrentPairs) -> None:
        super().__init__()
        decoder, score = model.decoder, model.decoder.attention.score
        hidden = decoder.recurrent.hidden_size
        self.source, self.target = model.table, decoder.table
        self.encoder = nn.GRU(model.table.embedding_dim, hidden, bidirectional=True)
        self.cell = nn.GRUCell(decoder.recurrent.input_size, hidden)
        ways = model.encoder.ways
        for suffix, way in (("", ways[0]), ("_reverse", ways[1])):
            _copy(self.encoder, f"_l0{suffix}", way.way().parameters)
        _copy(self.cell, "", decoder.recurrent.ways[0].way().parameters)
        self.bridge = model.bridge.maps[0]
        self.of_query, self.of_memory, self.v = score.of_query, score.of_memory, score.v
        self.readout, self.output = decoder.readout, nn.Linear(1, 1)
        self.output.weight, self.output.bias = decoder.output.weight, decoder.output.bias

    def encode(self, source: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Memory (rows, time, width), what is real of it, and the decoder's first state."""
        packed = pack_padded_sequence(self.source(source), lengths, enforce_sorted=False)
        memory, ends = self.encoder(packed)
        memory = pad_packed_sequence(memory)[0].transpose(0, 1).contiguous()
        real = torch.arange(memory.shape[1]) < lengths[:, None]
        return memory, real, self.bridge(torch.cat([ends[0], ends[1]], -1))

    def step(
        self, tokens: Tensor, h: Tensor, memory: Tensor, keys: Tensor, real: Tensor
    ) -> tuple[Tensor, Tensor]:
        e = self.target(tokens)
        scores = torch.tanh(self.of_query(h)[:, None] + keys) @ self.v
        alpha = scores.masked_fill(~real, -torch.inf).softmax(-1)
        context = (alpha[:, None] @ memory)[:, 0]
        h = self.cell(torch.cat([e, context], -1), h)
        logs = self.output(self.readout(torch.cat([h, context, e], -1))).log_softmax(-1)
        logs[:, NEVER] = -torch.inf
        return logs, h


@torch.no_grad()
def _copy(module: nn.Module, suffix: str, weights: dict[str, Tensor]) -> None:
    hidden = len(weights["d"])
    getattr(module, f"weight_ih{suffix}").copy_(weights["W"])
    getattr(module, f"weight_hh{suffix}").copy_(weights["U"])
    getattr(module, f"bias_ih{suffix}").copy_(weights["b"])
    getattr(module, f"bias_hh{suffix}").zero_()[2 * hidden :] = weights["d"]


@torch.no_grad()
def plain_beam(model: Plain, source: Tensor, lengths: Tensor, how: Search) -> list[list[int]]:
    """The best translation of each column of source (time, rows)."""
    rows, width = len(lengths), how.width
    memory, real, h = model.encode(source, lengths)
    memory, real, h = (tensor.repeat_interleave(width, 0) for tensor in (memory, real, h))
    keys = model.of_memory(memory)
    limits = how.most_steps(lengths)
    tokens = torch.full((rows * width,), START_NUMBER)
    scores = torch.full((rows, width), -torch.inf, dtype=torch.float64)
    scores[:, 0] = 0
    prefixes = torch.zeros(rows, width, 0, dtype=torch.int64)
    best = torch.full((rows,), -torch.inf, dtype=torch.float64)
    hypotheses: list[list[int]] = [[] for _ in range(rows)]
    for number in range(1, int(limits.max()) + 1):
        logs, h = model.step(tokens, h, memory, keys, real)
        totals = (scores[:, :, None] + logs.double().view(rows, width, -1)).flatten(1)
        words = logs.shape[1]
        totals, order = totals.topk(2 * width)
        parents, chosen = order // words, order % words
        over = (chosen == END_NUMBER) | (limits == number)[:, None]
        ranked = (totals / how_long(number, how.alpha)).masked_fill(~over, -torch.inf)
        value, place = ranked[:, :width].max(1)
        for row in ((value > best) & (number <= limits)).nonzero()[:, 0].tolist():
            parent, word = parents[row, place[row]], int(chosen[row, place[row]])
            hypotheses[row] = [
                *prefixes[row, parent].tolist(),
                *([word] if word != END_NUMBER else []),
            ]
        best = torch.maximum(best, value.masked_fill(number > limits, -torch.inf))
        going = over.to(torch.uint8).sort(dim=1, stable=True).indices[:, :width]
        scores = totals.masked_fill(over, -torch.inf).gather(1, going)
        parents, chosen = parents.gather(1, going), chosen.gather(1, going)
        prefixes = prefixes.gather(1, parents[..., None].expand(-1, -1, number - 1))
        prefixes = torch.cat([prefixes, chosen[..., None]], 2)
        at = (parents + width * torch.arange(rows)[:, None]).flatten()
        tokens, h = chosen.flatten(), h[at]
        bound = scores.amax(1) / how_long(limits.double(), how.alpha)
        if not bool((best < bound).any()):
            break
    return hypotheses


def how_long(words: Tensor | int, alpha: float) -> Tensor | float:
    return ((5 + words) / 6) ** alpha


def sentences_of(path: Path, count: int) -> list[str]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        return [line.strip() for _, line in zip(range(count), file, strict=False) if line.strip()]


def network_of(model: Translator) -> RecurrentPairs:
    network = pair_networks(model)[0]
    assert isinstance(network, RecurrentPairs), "a recurrent translator is expected"
    settings = model.settings
    built = (settings.cell, settings.layers, settings.attention)
    assert built == ("GRU", 1, "additive"), "see --help"
    return network


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    model = load_run(RunFolder(options.run))[1]
    assert isinstance(model, Translator)
    network, how = network_of(model), Search(width=options.beam, alpha=model.settings.alpha)
    part = model.reader.questions(sentences_of(options.source, options.sentences))
    rows = model.learned.source.encode(part)
    plain = Plain(network).eval()
    batches = evaluation_batches(
        rows.lengths, SOURCE_TOKENS // how.width, most_rows=HYPOTHESES // how.width
    )
    seconds: dict[str, list[float]] = {"ensue": [], "torch": []}
    equal = 0
    for number, indices in enumerate([batches[0], *batches]):  # the first one warms up
        lengths = torch.from_numpy(rows.lengths[indices])
        source = torch.from_numpy(rows.padded(indices).astype(np.int64))
        answers = {}
        for name in ("ensue", "torch") if number % 2 else ("torch", "ensue"):
            began = time.perf_counter()
            if name == "ensue":
                some = Ragged.of([rows.row(int(k)) for k in indices], np.int32)
                answers[name] = [list(h[0].content) for h in searched([network], some, how)]
            else:
                answers[name] = plain_beam(plain, source, lengths, how)
            if number:
                seconds[name].append(time.perf_counter() - began)
        if number:
            equal += sum(a == b for a, b in zip(answers["ensue"], answers["torch"], strict=True))
    ours, theirs = (sum(seconds[name]) for name in ("ensue", "torch"))
    ratios = [b / a for a, b in zip(seconds["ensue"], seconds["torch"], strict=True)]
    print(
        f"{len(rows):,} sentences, beam {how.width}, {options.threads} threads\n"
        f"ensue      {ours:7.2f} s  {len(rows) / ours:7.1f} sentences/s\n"
        f"plain torch{theirs:7.2f} s  {len(rows) / theirs:7.1f} sentences/s\n"
        f"ratio      {theirs / ours:7.2f}, of the batches {min(ratios):.2f} to {max(ratios):.2f}, "
        f"median {float(np.median(ratios)):.2f}\n"
        f"the same translation for {equal:,} of {len(rows):,}"
    )


if __name__ == "__main__":
    main()
