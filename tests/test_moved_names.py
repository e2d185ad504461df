"""Imports that the documents of version 0.1.0 showed still work, and say where the name is now."""

from importlib import import_module

import pytest

# Module and name, as documented in 0.1.0, and the module that has it now.
MOVED = [
    ("ensue.models", "Captioner", "ensue"),
    ("ensue.models", "Classifier", "ensue"),
    ("ensue.models", "LanguageModel", "ensue"),
    ("ensue.models", "Translator", "ensue"),
    ("ensue.models", "TableSettings", "ensue"),
    ("ensue.models.distributions", "Mixture", "ensue.tasks.blocks.distributions"),
    ("ensue.models.features", "Polynomial", "ensue.tasks.baselines.features"),
    ("ensue.models.forecaster", "Forecaster", "ensue"),
    ("ensue.models.image_model", "ImageModel", "ensue"),
    ("ensue.models.language", "LanguageModel", "ensue"),
    ("ensue.models.regression", "DESCENT", "ensue.tasks.baselines.regression"),
    ("ensue.models.regression", "Regression", "ensue.tasks.baselines.regression"),
    ("ensue.models.table_model", "TableModel", "ensue"),
    ("ensue.models.writing", "Choice", "ensue.tasks.generation"),
    ("ensue.models.writing", "Writer", "ensue.tasks.language.generate"),
    ("ensue.data.images", "write_image", "ensue.data.pictures.images"),
    ("ensue.study.memory", "study_memory", "ensue.study.memory.study"),
    ("ensue.study.memory_budget", "Budget", "ensue.study.memory.budget"),
    ("ensue.study.memory_picture", "draw", "ensue.study.memory.picture"),
]


@pytest.mark.parametrize(("module", "name", "now"), MOVED)
def test_a_moved_name_warns_and_is_the_same(module: str, name: str, now: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{name} has moved: write `from {now} import"):
        found = getattr(import_module(module), name)
    assert found is getattr(import_module(now), name)


def test_a_name_that_never_was_is_an_error() -> None:
    with pytest.raises(AttributeError, match="Clasifier: not found in ensue"):
        import_module("ensue.models").Clasifier  # noqa: B018
