"""A language model for others to begin from: pretrain."""

from dataclasses import dataclass, replace

from ensue.cli.app import app
from ensue.cli.learning import TrainOptions, run_training
from ensue.cli.request import Said, requested

LANGUAGE = "language"  # the task of pretraining


@dataclass(frozen=True, kw_only=True)
class PretrainOptions(TrainOptions):
    @property
    def recipe(self) -> str:
        return "pretrain" if self.files else super().recipe


@app.command(
    examples="""
    ensue pretrain reviews.csv more.csv --text review --run lm
    ensue train reviews.csv --base lm --run r1  begin from it
    """
)
@requested
def pretrain(wanted: PretrainOptions, said: Said) -> None:
    """Train a language model for others to begin from.

    The same as `ensue train --task language`, with settings that make a good base: words in small
    letters, dropout in every place, averaged weights. Texts may have labels or none; `ensue train
    FILES --base RUN` begins from the model.
    """
    named = bool(wanted.files) and not wanted.task
    run_training(replace(wanted, task=LANGUAGE) if named else wanted, said)
