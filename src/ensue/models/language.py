"""`LanguageModel`: given words, what follows? By counting, from a window, from all before, by
looking back at it, or by convolutions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ensue.data.ragged import Ragged
from ensue.data.tokenise import Tokeniser
from ensue.data.vocabulary import END, PAD, START, UNKNOWN, Vocabulary
from ensue.errors import DataError, OptionError
from ensue.layers.sequence_convolution import field_of
from ensue.models.bootstrap import bootstrap
from ensue.models.collect import Collected, Numbers, collected, counts_of, renumbered
from ensue.models.convolution_language import ConvolutionLanguage
from ensue.models.evaluation import Error, Evaluation
from ensue.models.language_network import RecurrentLanguage, WindowLanguage
from ensue.models.ngram_lm import NgramModel, Symbols, arrays_of, model_of
from ensue.models.saved import Saved, network_files, networks_of
from ensue.models.scored_text import Scored
from ensue.models.settings import LanguageSettings, Table
from ensue.models.streams import Perplexity, StreamSource, Tokens, scores_of, stream_of
from ensue.models.task_model import IN_MEMORY, Fitting, TaskModel
from ensue.models.transformer_language import TransformerLanguage
from ensue.training import Outcome, RateCurve, Watcher, find_rate

SPECIALS = (PAD, UNKNOWN, START, END)
END_NUMBER = SPECIALS.index(END)
BASELINE = 3  # tokens of the n-grams that a network is compared with
SURPRISES = 10


class LanguageModel(TaskModel):
    """p(text) = Π p(token | tokens before), the end of the text included.

    model = LanguageModel(model={"family": "ngram", "order": 3}).fit(lines)
    model.perplexity(other_lines)
    """

    kind = "language"
    model_settings: ClassVar[type[Table]] = LanguageSettings
    text_defaults: ClassVar[Mapping[str, Any]] = {"level": "spaces", "lower": False, "min_count": 1}
    train_defaults: ClassVar[Mapping[str, Any]] = {"watch": "perplexity", "patience": 3}
    model: LanguageSettings

    words: Vocabulary
    ngrams: NgramModel  # the model itself, or what a network is compared with
    _fitted = False

    def fitted(self) -> bool:
        return self._fitted

    # ------------------------------------------------------------- learning
    def fit(
        self,
        train: Sequence[str],
        validation: Sequence[str] | None = None,
        *,
        folder: Path | str | None = None,
        watchers: Sequence[Watcher] = (),
    ) -> Self:
        """From texts. Without validation, a tenth of them is held out."""
        held = None if validation is None else _unlabelled(validation)
        return self._fit_rows(_unlabelled(train), held, folder, watchers)

    def learn(self, train: Collected, numbers: Numbers) -> Ragged:
        """The vocabulary, and the training rows in its numbers."""
        if train.inputs.values.ndim != 1 or not len(train.inputs.values):
            raise DataError("the training part: expected text, got none")
        counts = counts_of(train.inputs, numbers.tokens)
        least = min(self.text.min_count, max(counts.values()))
        counts[END] = len(train)
        self.words = Vocabulary.build(
            counts, min_count=least, max_size=self.text.max_words, specials=SPECIALS
        )
        return self._rows(train, numbers)

    def _rows(self, part: Collected, numbers: Numbers) -> Ragged:
        return renumbered(part.inputs, numbers.tokens, self.words.numbers)

    def fit_parts(
        self,
        train: Collected,
        validation: Collected,
        numbers: Numbers,
        how: Fitting = IN_MEMORY,
    ) -> list[Outcome]:
        own, rows = self.model, self.learn(train, numbers)
        held = self._rows(validation, numbers)
        counted = own.family == "ngram"
        if counted and self.members > 1:
            raise OptionError(
                f"members: expected 1 with model.family = ngram, whose counts have no seed, got "
                f"{self.members}"
            )
        self.ngrams = NgramModel.fit(
            rows,
            Symbols.of(self.words.tokens),
            order=own.order if counted else BASELINE,
            smoothing=own.ngram_smoothing if counted else "kneser-ney",
            k=own.add,
            held_out=held,
        )
        if counted:
            self._fitted = True
            scores = {"perplexity": self.ngrams.perplexity(held)}
            return [Outcome(0, 0, "counted", scores, None)]
        stream, other = stream_of(rows, END_NUMBER), stream_of(held, END_NUMBER)
        outcomes = self.fit_members(
            lambda seed: self._source(stream),
            lambda network: Perplexity(network, other),
            how,
        )
        self._fitted = True
        return outcomes

    def _source(self, stream: Tokens) -> StreamSource:
        own = self.model
        return StreamSource(stream, "the text", columns=own.columns, steps=own.steps)

    def find_rate(self, train: Collected, numbers: Numbers) -> RateCurve:
        if self.model.family == "ngram":
            raise OptionError("find-rate: an n-gram model is counted and has no learning rate")
        stream = stream_of(self.learn(train, numbers), END_NUMBER)
        return find_rate(self.fresh(self.train.seed), self._source(stream), self.train)

    def build(self) -> nn.Module:
        own = self.model
        if own.family == "window":
            return WindowLanguage(
                len(self.words),
                window=own.window,
                embedding_size=own.embedding_size,
                hidden_size=own.hidden_size,
                before=END_NUMBER,
                tied=own.tied and not own.one_hot,
                one_hot=own.one_hot,
                dropout_input=own.dropout_input,
                dropout_output=own.dropout_output,
            )
        if own.family == "transformer":
            return TransformerLanguage(
                len(self.words),
                width=own.hidden_size,
                embedding_size=own.embedding_size,
                heads=own.heads,
                layers=own.layers,
                context=own.context,
                inner=own.inner_size,
                norm=own.norm_place,
                tied=own.tied,
                dropout_word=own.dropout_word,
                dropout_input=own.dropout_input,
                dropout_layers=own.dropout_layers,
                dropout_attention=own.dropout_attention,
                dropout_output=own.dropout_output,
            )
        if own.family == "convolution":
            return self._convolutions()
        return RecurrentLanguage(
            len(self.words),
            cell=own.cell,
            embedding_size=own.embedding_size,
            hidden_size=own.hidden_size,
            layers=own.layers,
            tied=own.tied,
            dropout_word=own.dropout_word,
            dropout_input=own.dropout_input,
            dropout_layers=own.dropout_layers,
            dropout_recurrent=own.dropout_recurrent,
            dropout_output=own.dropout_output,
            init=own.init,
        )

    def _convolutions(self) -> ConvolutionLanguage:
        own = self.model
        return ConvolutionLanguage(
            len(self.words),
            width=own.hidden_size,
            embedding_size=own.embedding_size,
            layers=own.layers,
            size=own.filter_size,
            dilated=own.dilated,
            tied=own.tied,
            dropout_word=own.dropout_word,
            dropout_input=own.dropout_input,
            dropout_layers=own.dropout_layers,
            dropout_output=own.dropout_output,
        )

    # ------------------------------------------------------------- how likely
    def log_probabilities(self, rows: Ragged) -> Ragged:
        """log p of every token of rows, and of the end behind each row, in their order: a network
        reads them as one text."""
        starts = rows.starts + np.arange(len(rows) + 1)
        if self.model.family == "ngram":
            return Ragged(self.ngrams.score(rows).values, starts)
        found = [scores_of(network, stream_of(rows, END_NUMBER)) for network in self.networks]
        values = np.logaddexp.reduce(found) - math.log(len(found))
        return Ragged(values, starts)

    def perplexity(self, texts: Iterable[str]) -> float:
        """exp of the mean −log p over all tokens, the ends of the texts included."""
        self.must_be_fitted()
        numbers = Numbers()
        part = collected(_unlabelled(texts), numbers, self.tokeniser)
        return float(np.exp(-self.log_probabilities(self._rows(part, numbers)).values.mean()))

    def evaluate(self, texts: Iterable[str]) -> Evaluation:
        """Perplexity with its interval, baselines, and the greatest surprises."""
        self.must_be_fitted()
        numbers = Numbers()
        part = collected(_unlabelled(texts), numbers, self.tokeniser)
        if not len(part):
            raise DataError("evaluate: expected texts, got none")
        return self.judge(part, numbers)

    def score(self, texts: Iterable[str]) -> list[Scored]:
        """Each text by itself: how likely, and where the model is surprised."""
        self.must_be_fitted()
        numbers = Numbers()
        part = collected(_unlabelled(texts), numbers, self.tokeniser)
        return self.answers(part, numbers)

    def answers(self, part: Collected, numbers: Numbers) -> list[Scored]:
        rows, names = self._rows(part, numbers), list(numbers.tokens)
        found = []
        for k in range(len(rows)):
            alone = Ragged(rows.row(k), np.array([0, len(rows.row(k))]))
            logs = self.log_probabilities(alone).values
            tokens = (*(names[t] for t in part.inputs.row(k)), END)
            found.append(Scored(tokens, tuple((-logs / math.log(2)).tolist())))
        return found

    def judge(self, part: Collected, numbers: Numbers) -> Evaluation:
        rows = self._rows(part, numbers)
        logs = self.log_probabilities(rows)
        letters = self._letters(part, numbers)
        sums = np.stack([np.add.reduceat(-logs.values, logs.starts[:-1]), logs.lengths], 1)
        perplexity = bootstrap(sums, _perplexity, seed=self.train.seed)
        total = float(-logs.values.sum())
        baselines = {"unigrams": _unigram_perplexity(self.words, rows)}
        if self.model.family != "ngram":
            baselines[f"{BASELINE}-grams"] = self.ngrams.perplexity(rows)
        return Evaluation(
            rows=len(part),
            steps=len(logs.values),
            scores={"perplexity": perplexity},
            others={
                "bits a token": total / math.log(2) / len(logs.values),
                "bits a character": total / math.log(2) / letters,
                "unknown tokens": float((rows.values == 1).mean()) if len(rows.values) else 0.0,
            },
            baselines=baselines,
            classes=[],
            confusion=[],
            worst=self._surprises(part, numbers, logs),
            higher_is_better=False,
            notes=self._impossible(int(np.isneginf(logs.values).sum())),
        )

    def _impossible(self, count: int) -> list[str]:
        """What is to be said of tokens whose probability is 0."""
        if not count:
            return []
        many = "1 token has" if count == 1 else f"{count:,} tokens have"
        return [
            f"  {many} probability 0, which makes the whole text impossible: n-grams that were not "
            "seen need smoothing (--set model.ngram_smoothing=modified-kneser-ney)"
        ]

    def _letters(self, part: Collected, numbers: Numbers) -> float:
        """Characters of the text, with one for what stands between tokens and rows."""
        between = 0 if self.tokeniser.name == "characters" else 1
        lengths = np.array([len(token) for token in numbers.tokens], np.int64)
        own = int(lengths[part.inputs.values].sum())
        return own + between * (len(part.inputs.values) - len(part)) + len(part)

    def _surprises(self, part: Collected, numbers: Numbers, logs: Ragged) -> list[Error]:
        names, found = list(numbers.tokens), []
        for at in np.argsort(logs.values, kind="stable")[:SURPRISES]:
            row = int(np.searchsorted(logs.starts, at, side="right")) - 1
            step = int(at - logs.starts[row])
            tokens = [*(names[k] for k in part.inputs.row(row)), END]
            before = " ".join(tokens[max(0, step - 5) : step])
            p = float(np.exp(logs.values[at]))
            found.append(Error(part.names[row], f"{before} …", tokens[step], "", p))
        return found

    # ------------------------------------------------------------- what comes next
    def begin(self, batch: int = 1) -> Any:
        """Before a text: the state behind an end."""
        self.must_be_fitted()
        if self.model.family == "ngram":
            return self.ngrams.begin(batch)
        carried = [network.begin(batch) for network in self.networks]  # type: ignore[operator]
        return tuple(carried)

    @property
    def first(self) -> int:
        """The token before a text: its start for n-grams, the end of the one before for networks,
        which read all texts as one."""
        return SPECIALS.index(START) if self.model.family == "ngram" else END_NUMBER

    def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        """log p (batch, words) of what follows tokens (batch,), and the state behind them; a text
        begins with the token `first`."""
        if self.model.family == "ngram":
            return self.ngrams.step(tokens, state)
        found = [
            network.step(tokens, own)  # type: ignore[operator]
            for network, own in zip(self.networks, state, strict=True)
        ]
        logs = torch.stack([own for own, _ in found])
        mean = torch.logsumexp(logs, 0) - math.log(len(found))
        return mean, tuple(new for _, new in found)

    def reorder(self, state: Any, order: Tensor) -> Any:
        """The rows of a state in this order: what a search needs between its steps."""
        if self.model.family == "ngram":
            return state.index_select(0, order)
        axis = 1 if self.model.family == "window" else 0
        return tuple({n: t.index_select(axis, order) for n, t in own.items()} for own in state)

    # ------------------------------------------------------------- as files
    def state(self) -> Saved:
        arrays = {f"ngrams.{name}": v for name, v in arrays_of(self.ngrams).items()}
        known = {"words": self.words.to_dict()}
        facts = self.settings_facts()
        return Saved(self.kind, facts, known, arrays, network_files(self.networks))

    @classmethod
    def of_saved(cls, saved: Saved) -> Self:
        own = saved.facts
        found = cls(own["text"], own["model"], own["train"], members=own["members"])
        found.words = Vocabulary.from_dict(saved.vocabularies["words"])
        found.tokeniser = Tokeniser.from_dict(own["tokeniser"])
        found.ngrams = model_of(saved.part("ngrams"))
        found.networks = networks_of(saved, found.build)
        found._fitted = True
        return found

    def summary(self) -> str:
        own = self.model
        what = {
            "ngram": f"{own.order}-grams, {own.ngram_smoothing}",
            "window": f"window of {own.window} tokens, {own.hidden_size} hidden units",
            "recurrent": f"{own.layers} × {own.cell} of {own.hidden_size}",
            "transformer": f"{own.layers} × transformer of {own.hidden_size}, {own.heads} heads, "
            f"{own.context} tokens back",
            "convolution": f"{own.layers} × convolution of {own.hidden_size}, "
            f"{field_of(own.layers, own.filter_size, own.dilated)} tokens seen",
        }[own.family]
        lines = [f"{type(self).__name__}: {what}"]
        if self.networks:
            lines.append(self.size_line())
        if self._fitted:
            lines.append(f"  {len(self.words):,} tokens in the vocabulary")
        return "\n".join(lines)


def _unlabelled(texts: Iterable[str]) -> list[tuple[str, None]]:
    return [(text, None) for text in texts]


def _perplexity(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of sums (draws, 2): costs and tokens."""
    return np.asarray(np.exp(sums[:, 0] / sums[:, 1]))


def _unigram_perplexity(words: Vocabulary, rows: Ragged) -> float:
    """Of the tokens' shares in the training text, ends included, one added to each count."""
    predicted = ~np.isin(words.tokens, (PAD, START))
    counts = (np.array(words.counts, np.float64) + 1) * predicted
    costs = -np.log(counts / counts.sum(), where=predicted, out=np.zeros(len(counts)))
    total = costs[rows.values].sum() + len(rows) * costs[END_NUMBER]
    return float(np.exp(total / (len(rows.values) + len(rows))))
