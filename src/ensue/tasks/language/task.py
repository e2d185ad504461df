"""Language models: n-grams, windows, recurrent cells, Transformers and convolutions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, cast

import numpy as np
import torch
from torch import Tensor, nn

from ensue.data.fingerprint import fingerprint
from ensue.data.options import require
from ensue.data.ragged import Ragged
from ensue.data.recognise.columns import Kind
from ensue.data.vocabulary import END, END_NUMBER, PAD, START, Vocabulary
from ensue.errors import OptionError
from ensue.metrics.classes import TokenAnswers
from ensue.metrics.table import TOKEN_METRICS, Metric, scores_of
from ensue.tasks.abilities import NOTHING, Filled, RequestOptions
from ensue.tasks.evaluation.bootstrap import RowSums, intervals
from ensue.tasks.evaluation.report import Error, Evaluation
from ensue.tasks.explaining.heads import HeadMaps, Looking, head_maps
from ensue.tasks.explaining.options import EXPLAINED
from ensue.tasks.exported import Exported
from ensue.tasks.language.exported import exported
from ensue.tasks.language.families import FAMILIES, RANGES, AnyLanguageModel, ensemble_of
from ensue.tasks.language.fill import TOP, Filling, filling_scores
from ensue.tasks.language.generate import Writing
from ensue.tasks.language.learned import LearnedLanguage, vocabulary_of
from ensue.tasks.language.networks import LanguageNetwork
from ensue.tasks.language.ngram.study import Counting
from ensue.tasks.language.options import OPTIONS
from ensue.tasks.language.settings import LanguageSettings
from ensue.tasks.language.softmaxes import default_cuts
from ensue.tasks.language.streams import COLUMNS, STEPS, StreamSource, Tokens, read_from, stream_of
from ensue.tasks.language.surprisal import Scored
from ensue.tasks.language.transfers import LanguageTransfers
from ensue.tasks.model import Model
from ensue.tasks.rows.batch import UNKNOWN
from ensue.tasks.rows.collect import Example
from ensue.tasks.rows.part import Part
from ensue.tasks.rows.reader import RowReader
from ensue.tasks.rows.recognise import same_column
from ensue.tasks.rows.task import RowTask
from ensue.tasks.sample import Guess, Sample
from ensue.tasks.search.ranges import Space
from ensue.tasks.settings import TextSettings
from ensue.tasks.task import Recipe
from ensue.training.processes import device_of_weights


class StreamValidation:
    """The metrics of a network on a text, or on the beginning of it."""

    def __init__(
        self, network: LanguageNetwork, stream: Tokens, metrics: tuple[Metric, ...], watch: str
    ) -> None:
        self._network, self._stream = network, stream
        self._metrics, self._watch = metrics, watch
        self.fingerprint = fingerprint({"tokens": stream})

    def __call__(self) -> Mapping[str, float]:
        return self._on(self._stream)

    def sample(self) -> Mapping[str, float]:
        return self._on(self._stream[: COLUMNS * STEPS + 1])

    def _on(self, stream: Tokens) -> dict[str, float]:
        cost = float(-self._network.score_stream(stream).mean())
        return scores_of(self._metrics, TokenAnswers(cost), self._watch)


MANY = 20_000  # vocabulary from which clusters of words are several times as fast


def language_recipe(
    train: Part, text: TextSettings, settings: LanguageSettings, explicit: frozenset[str]
) -> Recipe:
    """The recipe: for a large vocabulary an adaptive softmax, whose cuts divide the words into
    clusters. explicit: the keys of [model] that the user gave. The cuts are stored in the
    configuration, so a saved model keeps them."""
    if not train.texts or not len(train.inputs.values):
        return Recipe()
    words = len(vocabulary_of(train, text))
    has_softmax = "softmax" in explicit
    if words < MANY if not has_softmax else settings.softmax != "adaptive":
        return Recipe()
    why = "" if has_softmax else f"model.softmax: adaptive ({words:,} words in the vocabulary)"
    cuts = [*default_cuts(words)]
    return Recipe({"model": {"softmax": "adaptive", "softmax_cuts": cuts}}, why)


class LanguageHeads:
    """Masked self-attention: every token attends to itself and earlier tokens within the context.
    The first token is the end of the previous text."""

    option = EXPLAINED

    def explain(
        self, model: AnyLanguageModel, inputs: Any, options: RequestOptions = NOTHING
    ) -> HeadMaps:
        """Explains the answer. options: layer."""
        model.must_be_fitted()
        part = model.reader.questions([inputs])
        if not len(part.inputs.values):
            raise OptionError("explain: expected a text with at least one token, got none")
        names = part.numbers.token_names
        tokens = (END, *(names[k] for k in part.inputs.row(0)))
        numbers = torch.from_numpy(model.learned.rows(part).row(0).astype("int64"))

        def run(network: nn.Module) -> object:
            language_network = cast(LanguageNetwork, network)
            read = torch.cat([torch.tensor([language_network.first]), numbers])[:, None]
            return language_network.run(
                read.to(device_of_weights(language_network)), language_network.begin(1)
            )

        looking = Looking("masked self-attention", lambda name: True, tokens, tokens)
        return head_maps(model, run, [looking], layer=options.get("layer"))


SURPRISES = 10  # that an evaluation shows
BEFORE = 5  # tokens shown before a surprise

# For transfer: words tokenised as in other tasks, much dropout, fresh states among the columns like
# the beginnings of texts, and averaged weights.
PRETRAIN: Mapping[str, Any] = {
    "text.level": "words",
    "text.lower": True,
    "text.min_count": 2,
    "model.softmax": "adaptive",
    "model.columns": 40,
    "model.steps": 70,
    "model.dropout_word": 0.1,
    "model.dropout_recurrent": 0.2,
    "model.dropout_carried": 0.05,
    "train.rate": 0.003,
    "train.averaging": 0.998,
}
READ = (Kind.TEXT, Kind.TOKENS, Kind.NAME, Kind.CATEGORY, Kind.CONSTANT)  # a text may repeat


class TextReader(RowReader[Part]):
    needs_labels = False
    new_labels = True

    def examples(self, rows: Any) -> Iterable[Example]:
        """Rows in memory: texts."""
        return self.unlabelled_examples(rows)


class Language(RowTask[LanguageSettings, LearnedLanguage]):
    """The probability of a text, token by token, and texts that go on from a prompt."""

    name = "language"
    compared_on = ("data", "text")  # a perplexity depends on the tokens
    settings = LanguageSettings
    learned_class = LearnedLanguage
    text_defaults: ClassVar[Mapping[str, Any]] = {"level": "spaces", "lower": False, "min_count": 1}
    train_defaults: ClassVar[Mapping[str, Any]] = {"patience": 3}
    metrics = TOKEN_METRICS
    families = FAMILIES
    options = OPTIONS
    ranges: ClassVar[Space] = RANGES
    columns: ClassVar[Mapping[str, str]] = {"text": "data.text"}
    more_recipes: ClassVar[Mapping[str, Mapping[str, Any]]] = {"pretrain": PRETRAIN}
    reader_class = TextReader
    heads = LanguageHeads()
    generates = Writing()
    fills = Filling()
    counts = Counting()
    transfers = LanguageTransfers()

    # ------------------------------------------------------------- recognised, read
    def recognise(self, sample: Sample) -> Guess | None:
        """Recognises data with only a text."""
        data, columns = sample.data, [*sample.kinds.values()]
        alone = len(columns) == 1 and columns[0].kind in READ
        return self.infer(sample) if alone and not data.label and not data.sequence else None

    def infer(self, sample: Sample) -> Guess:
        data = sample.data
        if data.sequence:
            raise OptionError(
                f"{sample.word('sequence')}: a language model learns from text; expected a column "
                f"of it, named with {sample.word('text')}, got a long table of numbers"
            )
        require([data.group] if data.group else [], sample.columns, sample.place)
        if data.text_column and data.text_column == data.label:
            raise same_column(sample)
        texts = sample.roles.texts or (sample.roles.text,)
        first, *others = (Guess("the text itself is learned", {"text": text}) for text in texts)
        return replace(first, others=tuple(others))

    # ------------------------------------------------------------- learned
    def fitted_settings(self, train: Part, model: AnyLanguageModel) -> Recipe:
        return language_recipe(train, model.text, model.settings, model.explicit["model"])

    def learn(self, train: Part, validation: Part, model: AnyLanguageModel) -> LearnedLanguage:
        design = FAMILIES[model.settings.family].ngrams(model.settings)
        return LearnedLanguage.learn(train, validation, model.text, design, model.pretrained)

    def source(self, train: Part, model: AnyLanguageModel, seed: int) -> StreamSource:
        stream = _stream(train, model)
        columns, steps = model.settings.columns, model.settings.steps
        ahead = steps if FAMILIES[model.settings.family].looks_ahead else 0
        return StreamSource(stream, "the text", columns=columns, steps=steps, ahead=ahead)

    def validation(
        self, network: nn.Module, part: Part, model: AnyLanguageModel
    ) -> StreamValidation:
        assert isinstance(network, LanguageNetwork)
        return StreamValidation(network, _stream(part, model), self.metrics, model.train.watch)

    # ------------------------------------------------------------- asked
    def answers(
        self, part: Part, model: AnyLanguageModel, options: RequestOptions = NOTHING
    ) -> list[Scored]:
        """The answers: each text separately."""
        rows, names = model.learned.rows(part), part.numbers.token_names
        ensemble, scored = ensemble_of(model), []
        for k in range(len(rows)):
            alone = Ragged(rows.row(k), np.array([0, len(rows.row(k))]))
            logs = ensemble.score(alone).values
            tokens = (*(names[number] for number in part.inputs.row(k)), END)
            scored.append(Scored(tokens, tuple((-logs / math.log(2)).tolist())))
        return scored

    def evaluate(
        self, part: Part, model: AnyLanguageModel, options: RequestOptions = NOTHING
    ) -> Evaluation:
        learned = model.learned
        rows = learned.rows(part)
        logs = ensemble_of(model).score(rows)
        costs = np.stack([np.add.reduceat(-logs.values, logs.starts[:-1]), logs.lengths], 1)
        sums = {"perplexity": RowSums("exp_ratio", costs)}
        bits = float(-logs.values.sum()) / math.log(2)
        unknown = float((rows.values == UNKNOWN).mean()) if len(rows.values) else 0.0
        return Evaluation(
            rows=len(part),
            steps=len(logs.values),
            scores=intervals(sums, model.train.seed),
            others={
                "bits a token": bits / len(logs.values),
                "bits a character": bits / _characters(part, learned),
                "unknown tokens": unknown,
                **_filling(rows, model),
            },
            baselines={
                "unigrams": _unigram_perplexity(learned.words, rows),
                **FAMILIES[model.settings.family].baselines(rows, model),
            },
            classes=[],
            confusion=[],
            worst=_surprises(part, logs, model.settings.direction),
            higher_is_better=False,
            notes=_impossible(int(np.isneginf(logs.values).sum())),
            sums=sums,
        )

    # ------------------------------------------------------------- kept, looked at
    def exported(self, model: AnyLanguageModel) -> Exported:
        return exported(model)

    def facts(self, model: AnyLanguageModel) -> list[str]:
        return [f"{len(model.learned.words):,} tokens in the vocabulary"]


TASK = Language()


class LanguageModel(Model[LanguageSettings, Part, LearnedLanguage, Scored]):
    """p(text) = Π p(token | tokens before), including the end of the text.

    >>> lines = [f"the {who} {does}" for who in ("cat", "dog") for does in ("sees", "runs")]
    >>> model = LanguageModel(model={"family": "ngram", "order": 2}).fit(lines, lines)
    >>> model.perplexity(["the dog runs"]) < model.perplexity(["runs dog the"])
    True
    """

    task = TASK

    def score(self, texts: Iterable[str]) -> list[Scored]:
        """The surprisal of each text and its tokens, each text separately."""
        return self.predict(texts)

    def perplexity(self, texts: Iterable[str]) -> float:
        """exp of the mean −log p over all tokens, including the ends of the texts."""
        self.must_be_fitted()
        rows = self.learned.rows(self.reader.questions(texts))
        return float(np.exp(-self.log_probabilities(rows).values.mean()))

    def log_probabilities(self, rows: Ragged) -> Ragged:
        """log p of every token of rows, and of the end after each row; a network reads the rows in
        order as one text."""
        return ensemble_of(self).score(rows)

    def fill(self, text: str, count: int = TOP) -> Filled:
        """Words for the blank of a text, "opened their ___ yesterday", from both sides of it; for
        models of the family `both`."""
        self.must_be_fitted()
        return Filling().fill(self, text, count)

    def attention(self, text: str, layer: int | None = None) -> HeadMaps:
        """The attention of every head of a Transformer, for each token of a text."""
        return LanguageHeads().explain(self, text, {"layer": layer})

    # ------------------------------------------------------------- what comes next
    @property
    def first(self) -> int:
        """The token before a text: its start for n-grams; for networks, which read all texts as
        one, the end of the previous text."""
        return ensemble_of(self).first

    def begin(self, batch: int = 1) -> tuple[Any, ...]:
        """The state before a text."""
        return ensemble_of(self).begin(batch)

    def step(self, tokens: Tensor, state: tuple[Any, ...]) -> tuple[Tensor, tuple[Any, ...]]:
        """log p (batch, words) of what follows tokens (batch,), and the state after them; a text
        begins with the token `first`."""
        return ensemble_of(self).step(tokens, state)

    def reorder(self, state: tuple[Any, ...], order: Tensor) -> tuple[Any, ...]:
        """The rows of a state in this order; for searches."""
        return ensemble_of(self).reorder(state, order)


def _stream(part: Part, model: AnyLanguageModel) -> Tokens:
    """The stream of a part, for the networks of the model."""
    stream = stream_of(model.learned.rows(part), END_NUMBER)
    return read_from(stream, model.settings.direction)


# --- of an evaluation --------------------------------------------------------------------------


def _filling(rows: Ragged, model: AnyLanguageModel) -> Mapping[str, float]:
    """The scores of filling in words, for networks."""
    networks = [network for network in model.networks if isinstance(network, LanguageNetwork)]
    if model.settings.direction == "backward":  # it does not read the words before a blank
        return {}
    return filling_scores(networks, stream_of(rows, END_NUMBER)) if networks else {}


def _unigram_perplexity(words: Vocabulary, rows: Ragged) -> float:
    """The perplexity of unigrams: shares of tokens in the training text, including ends, with one
    added to each count."""
    predicted = ~np.isin(words.tokens, (PAD, START))
    counts = (np.array(words.counts, np.float64) + 1) * predicted
    costs = -np.log(counts / counts.sum(), where=predicted, out=np.zeros(len(counts)))
    total = costs[rows.values].sum() + len(rows) * costs[END_NUMBER]
    return float(np.exp(total / (len(rows.values) + len(rows))))


def _characters(part: Part, learned: LearnedLanguage) -> int:
    """Number of characters of the text, with one for each separator of tokens and rows."""
    between = 0 if learned.tokeniser.name == "characters" else 1
    lengths = np.array([len(token) for token in part.numbers.tokens], np.int64)
    inside = int(lengths[part.inputs.values].sum())
    return inside + between * (len(part.inputs.values) - len(part)) + len(part)


def _surprises(part: Part, logs: Ragged, direction: str) -> list[Error]:
    """The least probable tokens, each with the tokens read just before it."""
    names, surprises = part.numbers.token_names, []
    for at in np.argsort(logs.values, kind="stable")[:SURPRISES]:
        row = int(np.searchsorted(logs.starts, at, side="right")) - 1
        step = int(at - logs.starts[row])
        tokens = [*(names[k] for k in part.inputs.row(row)), END]
        before = f"{' '.join(tokens[max(0, step - BEFORE) : step])} …"
        after = f"… {' '.join(tokens[step + 1 : step + 1 + BEFORE])}"
        p = float(np.exp(logs.values[at]))
        sides = after if direction == "backward" else before
        surprises.append(Error(part.names[row], sides, tokens[step], "", p))
    return surprises


def _impossible(count: int) -> list[str]:
    """A note on tokens whose probability is 0, if there are any."""
    if not count:
        return []
    many = "1 token has" if count == 1 else f"{count:,} tokens have"
    return [
        f"  {many} probability 0, which makes the whole text impossible: n-grams that were not "
        "seen need smoothing (--set model.ngram_smoothing=modified-kneser-ney)"
    ]
