"""Perplexity while a network is trained."""

from __future__ import annotations

from collections.abc import Mapping

from ensue.data.fingerprint import fingerprint
from ensue.metrics.answers import TokenAnswers
from ensue.metrics.table import Metric, scores_of
from ensue.tasks.language.networks import LanguageNetwork
from ensue.tasks.language.streams import COLUMNS, STEPS, Tokens


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
