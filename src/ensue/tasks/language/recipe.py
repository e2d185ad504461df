"""Defaults of a language model for a training part: by the size of its vocabulary."""

from __future__ import annotations

from ensue.tasks.language.learned import vocabulary_of
from ensue.tasks.language.settings import LanguageSettings
from ensue.tasks.language.softmaxes import default_cuts
from ensue.tasks.rows.part import Part
from ensue.tasks.settings import TextSettings
from ensue.tasks.task import Recipe

MANY = 20_000  # words, from which on clusters of them are several times as fast


def language_recipe(
    train: Part, text: TextSettings, settings: LanguageSettings, told: frozenset[str]
) -> Recipe:
    """Clusters of words, where the vocabulary is large. told: the keys of [model] that a person
    gave. The cuts stand in the configuration: a saved model keeps its own."""
    if not train.texts or not len(train.inputs.values):
        return Recipe()
    words = len(vocabulary_of(train, text))
    given = "softmax" in told
    if words < MANY if not given else settings.softmax != "adaptive":
        return Recipe()
    why = "" if given else f"model.softmax: adaptive ({words:,} words in the vocabulary)"
    cuts = [*default_cuts(words)]
    return Recipe({"model": {"softmax": "adaptive", "softmax_cuts": cuts}}, why)
