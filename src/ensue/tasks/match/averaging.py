"""The mean answer of several matchers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from torch import Tensor

from ensue.tasks.match.learned import LearnedMatch
from ensue.tasks.match.network import network_outputs
from ensue.tasks.match.settings import MatcherSettings
from ensue.tasks.model import Model
from ensue.tasks.rows.part import Part
from ensue.tasks.rows.shown import shown_of
from ensue.tasks.targets.averaging import TargetAverages

MatcherModel = Model[MatcherSettings, Part, LearnedMatch]


class PairAverages(TargetAverages):
    """Outputs are z (rows, width) of each network."""

    def of_networks(self, part: Part, model: MatcherModel) -> list[Tensor]:
        """Labels of the part may be ones that no answer can be."""
        columns = model.learned.columns(replace(part, labels=None), model.text)
        budget = model.model.batch_tokens
        return [network_outputs(network, columns, budget) for network in model.networks]

    def baselines(self, part: Part, model: MatcherModel) -> dict[str, Tensor]:
        return model.learned.baselines(part)

    def shown(self, part: Part) -> Callable[[int], tuple[str, str]]:
        return shown_of(part)
