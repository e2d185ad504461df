"""Texts that go on from a prompt, and words for a blank: generate, suggest, fill."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ensue.cli.app import (
    AsJson,
    Device,
    answer,
    app,
    argument,
    as_json_text,
    grouped,
    option,
    teller,
)
from ensue.cli.learning import TrainOptions, run_training
from ensue.cli.request import FurtherOptions, requested
from ensue.cli.streams import input_lines, nobody_reads
from ensue.cli.trusting import TrustCell, trusted
from ensue.errors import OptionError, RunError
from ensue.escape import in_shell, printable

if TYPE_CHECKING:
    from ensue.tasks.abilities import Filled, Generates, Suggestion
    from ensue.tasks.any_model import AnyModel

MOST_TOKENS = 100  # of a line
RunArgument = Annotated[Path, argument("RUN", "Run folder of a language model.")]


def load_generating(run: Path, device: str, trust_cell: str) -> "tuple[AnyModel, Generates]":
    """The model of a run, and its ability to continue a prompt."""
    from ensue.runs.load import load_run
    from ensue.training import RunFolder

    _, model = load_run(RunFolder(run), trusted(trust_cell), device, teller())
    generates = model.abilities.generates
    if generates is None:
        raise RunError(
            f"{run}: expected a language model, got a model of task {model.task.name}; train one: "
            f"`ensue train FILE --task language --run {in_shell(f'{run}-language')}`"
        )
    return model, generates


@dataclass(frozen=True, kw_only=True)
class GenerateOptions:
    run: RunArgument
    prompt: Annotated[str, option("--prompt TEXT", "Beginning of the text.")] = ""
    count: Annotated[int, option("--count N", "Number of texts.", min=1)] = 1
    tokens: Annotated[
        int | None,
        option(
            "--tokens N",
            "Number of tokens of a text, over line ends too. Without this option, a text ends "
            f"with its line, or after {MOST_TOKENS} tokens.",
            min=1,
        ),
    ] = None
    temperature: Annotated[
        float, option("--temperature X", "Sampling temperature; 0 is greedy.", min=0)
    ] = 1.0
    top_k: Annotated[
        int | None, option("--top-k N", "Sample from the k most probable tokens.", min=1)
    ] = None
    top_p: Annotated[
        float | None,
        option(
            "--top-p X", "Sample from the fewest tokens with this total probability.", min=0, max=1
        ),
    ] = None
    width: Annotated[
        int, option("--beam N", "Beam width for beam search; 1 samples instead.", min=1)
    ] = 1
    seed: Annotated[int, option("--seed N", "Random seed of the samples.", min=0)] = 1
    device: Device = "auto"
    trust_cell: TrustCell = ""
    as_json: AsJson = False


@app.command()
@grouped
def generate(options: GenerateOptions) -> None:
    """Continue a prompt with a language model.

    A single text is printed as it is generated.
    """
    from ensue.tasks.abilities import Choice

    if options.width > 1 and (options.temperature != 1.0 or options.top_k or options.top_p):
        raise OptionError(
            "--beam: beam search does not sample; expected it without --temperature, --top-k "
            "and --top-p"
        )
    choice = Choice(
        options.temperature,
        options.top_k,
        options.top_p,
        options.width,
        options.seed,
        options.tokens or MOST_TOKENS,
        on=options.tokens is not None,
    )
    model, generates = load_generating(options.run, options.device, options.trust_cell)
    writer = generates.writer(model, options.prompt)
    if options.as_json:
        texts = writer.texts(choice, options.count)
        answer(as_json_text({"prompt": options.prompt, "texts": texts}))
    elif options.count == 1 and options.width == 1:
        for piece in chain([writer.prompt], writer.pieces(choice)):
            answer(piece, end="")
            sys.stdout.flush()
            if nobody_reads():
                return
        answer("")
    else:
        answer("\n".join(writer.texts(choice, options.count)))


@app.command()
def suggest(
    run: RunArgument,
    count: Annotated[int, option("--count N", "Number of suggestions.", min=1)] = 5,
    device: Device = "auto",
    trust_cell: TrustCell = "",
    as_json: AsJson = False,
) -> None:
    """Suggest the next words while you type, with a language model.

    Tab accepts the first, Enter ends. If standard input is not a terminal, prints suggestions for
    each of its lines.
    """
    model, generates = load_generating(run, device, trust_cell)

    def suggestions(text: str) -> "Sequence[Suggestion]":
        whole = text.endswith(" ") or not text
        return generates.writer(model, text, whole=whole).suggestions(count)

    if sys.stdin.isatty() and sys.stdout.isatty() and not as_json:
        from ensue.cli.typing import type_with_suggestions

        answer(type_with_suggestions(suggestions))
        return
    for text in input_lines():
        likely = suggestions(text)
        if as_json:
            answer(as_json_text({"text": text, "suggestions": dict(likely)}))
        else:
            answer("\t".join(f"{printable(token)} {p:.3f}" for token, p in likely))
        sys.stdout.flush()
        if nobody_reads():
            return


@app.command()
def fill(
    run: RunArgument,
    text: Annotated[
        str | None,
        argument("TEXT", "A text with one blank, ___; without it, lines of standard input."),
    ] = None,
    count: Annotated[int, option("--count N", "Number of fillers.", min=1)] = 5,
    device: Device = "auto",
    trust_cell: TrustCell = "",
    as_json: AsJson = False,
) -> None:
    """Fill a blank, ___, from the text on both sides of it.

    Ranks words by the text on both sides and, for comparison, by the text before the blank alone;
    then prints the surprisal of each word. For language models with model.family = both.
    """
    from ensue.runs.load import load_run
    from ensue.training import RunFolder

    _, model = load_run(RunFolder(run), trusted(trust_cell), device, teller())
    fills = model.abilities.fills
    if fills is None:
        raise RunError(
            f"{run}: expected a language model, got a model of task {model.task.name}; train one: "
            f"`ensue train FILE --task language --run {in_shell(f'{run}-language')}`"
        )
    for line in input_lines() if text is None else [text]:
        filled = fills.fill(model, line, count)
        if as_json:
            answer(as_json_text(_as_json(filled)))
        else:
            answer(filled.as_text())
        if nobody_reads():
            return


def _as_json(filled: "Filled") -> dict[str, Any]:
    words = zip(filled.words, filled.bits, filled.bits_before, strict=True)
    return {
        "text": filled.text,
        "fillers": dict(filled.fillers),
        "before_alone": dict(filled.before_alone),
        "words": [{"word": w, "bits": b, "bits_before": alone} for w, b, alone in words],
    }


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
def pretrain(options: PretrainOptions, further: FurtherOptions) -> None:
    """Train a language model that other models start from.

    The same as `ensue train --task language`, with settings that make a good base: words in small
    letters, dropout in every place, averaged weights. Texts may have labels or none; `ensue train
    FILES --base RUN` begins from the model.
    """
    named = bool(options.files) and not options.task
    run_training(replace(options, task=LANGUAGE) if named else options, further)
