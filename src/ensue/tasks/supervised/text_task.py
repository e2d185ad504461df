"""`TextTask`: one answer to a text, tokens or a sequence of vectors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from ensue.tasks.any_model import AnyModel
from ensue.tasks.explaining.heads import EncoderHeads
from ensue.tasks.rows.recipe import text_recipe
from ensue.tasks.rows.recognise import RowRoles, as_guess, recognised, row_roles
from ensue.tasks.rows.task import RowTask
from ensue.tasks.sample import Guess, Sample
from ensue.tasks.search.ranges import Space
from ensue.tasks.search.usual import DROPPED_OUT, LEVEL, MIN_COUNT
from ensue.tasks.supervised.explain import ExplainSteps
from ensue.tasks.supervised.inputs.joined import JoinsInputs, joined_recipe
from ensue.tasks.supervised.inputs.joined_learned import JoinedPart
from ensue.tasks.supervised.inputs.text import Text
from ensue.tasks.supervised.task import Supervised, run_network
from ensue.tasks.task import Recipe, S


class TextTask(Supervised[S]):
    """A task whose input is a text, tokens or vectors, alone or together with columns, a picture or
    a tree."""

    input = Text()
    joins = JoinsInputs()
    text_defaults: ClassVar[Mapping[str, Any]] = {"max_length": 20_000, "level": "auto"}
    ranges: ClassVar[Space] = {"text.level": LEVEL, "text.min_count": MIN_COUNT}
    favourites = (DROPPED_OUT,)
    columns: ClassVar[Mapping[str, str]] = {
        **RowTask.columns,
        "columns": "data.columns",
        "image": "data.image",
        "tree": "data.tree",
    }
    adapts = True
    explains = ExplainSteps()
    heads = EncoderHeads(run_network)

    @abstractmethod
    def wants(self, sample: Sample, roles: RowRoles) -> bool:
        """Whether the label suits this task."""

    @abstractmethod
    def guess(self, sample: Sample, roles: RowRoles) -> Guess:
        """The settings that follow from these columns."""

    @abstractmethod
    def mixes(self, model: AnyModel) -> bool:
        """Whether a linear model is mixed with the network by default."""

    def recognise(self, sample: Sample) -> Guess | None:
        return recognised(sample, partial(self.wants, sample), partial(self.guess, sample))

    def infer(self, sample: Sample) -> Guess:
        return as_guess(row_roles(sample).readings, partial(self.guess, sample))

    def fitted_settings(self, train: Any, model: AnyModel) -> Recipe:
        mixed = self.mixes(model)
        if isinstance(train, JoinedPart):
            return joined_recipe(train, model, self.target_kind(train, model.settings), mixed)
        return text_recipe(train, model, mixed)
