"""`ensue predict --workers 8`: this process reads rows, other processes answer them, and answers
return in order. Only a few thousand rows wait at a time, however long the input."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ensue.data.rows import ProblemCallback
from ensue.data.settings import DataSettings
from ensue.errors import OptionError
from ensue.jobs import Job, Machines, ProgressCallback, in_order, work
from ensue.runs.load import LoadedRun, Loading, open_run
from ensue.runs.predict import Prediction, Reply, replies
from ensue.tasks.abilities import Deals, RequestOptions
from ensue.tasks.reader import QuestionFiles
from ensue.tasks.saved_cells import Trust
from ensue.training import RunFolder

WAITING = 1  # shares in the queue of each worker, in addition to the current one


@dataclass
class DealtPrediction:
    """A prediction by several processes. folder: the folder of the run, readable for every worker;
    how, loaded: how the model was loaded here; prediction: reads the questions and counts the
    answers."""

    folder: Path
    how: Loading
    loaded: LoadedRun
    prediction: Prediction
    on: Machines

    @property
    def _deals(self) -> Deals:
        model = self.loaded.model
        if (deals := model.abilities.deals) is None:
            raise OptionError(
                f"--workers: a run of task {model.task.name} answers in one process; leave it out"
            )
        return deals

    def files(
        self,
        paths: Sequence[str],
        data: DataSettings,
        form: str,
        on_bad_row: ProblemCallback | None = None,
    ) -> Iterator[Reply]:
        """Like `Prediction.files`; each answer is in a form of `FORMS`."""
        deals, counts = self._deals, self.prediction
        shares = deals.shares(self.loaded.model, QuestionFiles(paths, data, on_bad_row))
        jobs = (self._job(share, form) for share in shares)
        for result in in_order(jobs, self.on, queued=WAITING):
            result_lines, share = result.get(), result.job.arguments["share"]
            counts.answered += len(share)
            counts.abstained += result_lines["abstained"]
            yield from map(Reply, result_lines["values"], deals.names(share))

    def _job(self, share: list[Any], form: str) -> Job:
        model = {
            "folder": str(self.folder.resolve()),
            "trust": self.how.trust.files,
            "device": self.how.device,
            "best_so_far": self.how.best_so_far,
            "digest": self.loaded.digest,
        }
        options = dict(self.prediction.options)
        arguments = {"model": model, "options": options, "form": form, "share": share}
        return Job(f"rows from {self._deals.names(share[:1])[0]}", answer_share, arguments)


@work
def answer_share(
    tell: ProgressCallback,
    model: dict[str, Any],
    options: RequestOptions,
    form: str,
    share: list[Any],
) -> dict[str, Any]:
    """The answers to a share of the rows."""
    loaded = _loaded(json.dumps(model)).model
    deals = loaded.abilities.deals
    assert deals is not None
    prediction = Prediction(loaded, options)
    answers = prediction.about(deals.questions(loaded, share))
    values = [reply.value for reply in replies(answers, form)]
    return {"values": values, "abstained": prediction.abstained}


@lru_cache(maxsize=1)
def _loaded(model: str) -> LoadedRun:
    """The model, loaded once in each process."""
    facts = json.loads(model)
    trust = Trust(facts["trust"])
    how = Loading(trust, facts["device"], facts["best_so_far"], facts["digest"])
    return open_run(RunFolder(facts["folder"]), how)
