"""What a language model is asked for: generate and suggest."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ensue.cli.app import AsJson, app
from ensue.errors import OptionError, RunError

if TYPE_CHECKING:
    from ensue.models.language import LanguageModel

RunArgument = Annotated[Path, typer.Argument(help="The folder of a run of a language model.")]


def load_language(run: Path) -> "LanguageModel":
    from ensue.models.language import LanguageModel
    from ensue.runs.use import load_run
    from ensue.training import RunFolder

    _, model = load_run(RunFolder(run))
    if not isinstance(model, LanguageModel):
        raise RunError(f"{run}: expected a language model, got a model to {model.kind}")
    return model


@app.command()
def generate(
    run: RunArgument,
    prompt: Annotated[str, typer.Option("--prompt", help="What the text begins with.")] = "",
    count: Annotated[int, typer.Option("--count", min=1, help="How many texts.")] = 1,
    tokens: Annotated[int, typer.Option("--tokens", min=1, help="At most so many.")] = 100,
    temperature: Annotated[
        float, typer.Option("--temperature", min=0, help="0 takes the most probable token.")
    ] = 1.0,
    top_k: Annotated[
        int | None, typer.Option("--top-k", min=1, help="Of so many most probable tokens.")
    ] = None,
    top_p: Annotated[
        float | None, typer.Option("--top-p", min=0, max=1, help="Of those with this share.")
    ] = None,
    width: Annotated[
        int, typer.Option("--beam", min=1, help="Search for the most probable text, so wide.")
    ] = 1,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same one writes the same.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Write texts that go on from a prompt; one alone is shown while it is made."""
    from ensue.models.writing import Choice, Writer

    if width > 1 and (temperature != 1.0 or top_k or top_p):
        raise OptionError(
            "--beam searches and draws nothing: expected it without --temperature, --top-k and "
            "--top-p"
        )
    choice = Choice(temperature, top_k, top_p, width, seed, tokens)
    writer = Writer(load_language(run), prompt)
    if as_json:
        print(json.dumps({"prompt": prompt, "texts": writer.texts(choice, count)}))
    elif count == 1 and width == 1:
        print(writer.model.tokeniser.text_of(writer.tokens), end="", flush=True)
        for piece in writer.pieces(choice):
            print(piece, end="", flush=True)
        print()
    else:
        print("\n".join(writer.texts(choice, count)))


@app.command()
def suggest(
    run: RunArgument,
    count: Annotated[int, typer.Option("--count", min=1, help="How many suggestions.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Suggest the next words while you type; Tab takes the first, Enter ends.

    Where the input is no terminal, every line of it gets its suggestions.
    """
    from ensue.models.writing import Writer

    model = load_language(run)
    if sys.stdin.isatty() and sys.stdout.isatty() and not as_json:
        from ensue.cli.typing import type_with_suggestions

        print(type_with_suggestions(model, count))
        return
    for line in sys.stdin:
        text = line.rstrip("\n")
        found = Writer(model, text, whole=text.endswith(" ") or not text).suggestions(count)
        if as_json:
            pairs = {own.token: own.probability for own in found}
            print(json.dumps({"text": text, "suggestions": pairs}, ensure_ascii=False), flush=True)
        else:
            print("\t".join(f"{own.token} {own.probability:.3f}" for own in found), flush=True)
