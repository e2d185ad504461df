"""The learning lab."""

from pathlib import Path
from typing import Annotated

from ensue.cli.app import Dark, Picture, answer, app, check_files, option, write_picture
from ensue.cli.study import write_json
from ensue.cli.understand.typed_numbers import numbers, positive_numbers

Seed = Annotated[int, option("--seed N", "Random seed.", min=0)]


@app.command()
def lab(
    rates: Annotated[
        str, option("--rates A,B", "Step sizes of the descent, comma-separated.")
    ] = "0.001,0.01,0.02,0.05",
    p: Annotated[str, option("--p A,B", "Instead: KL divergence of p, with --q.")] = "",
    q: Annotated[str, option("--q A,B", "From this distribution q.")] = "",
    seed: Seed = 1,
    json_file: Annotated[
        Path | None, option("--json FILE", "Write results and curves to a JSON file.")
    ] = None,
    picture: Picture = None,
    dark: Dark = False,
) -> None:
    """Run seven small experiments on learning, around sin 10x + x.

    Step sizes of gradient descent; expected and empirical cost; model families chosen by
    validation; random features and tuned layers; gradients through stochastic units; SGD beside
    gradient descent; early stopping. Takes some seconds. With --p and --q, the KL divergence.
    """
    from ensue.drawing.document import as_text
    from ensue.study.foundations.lab import run_lab
    from ensue.study.foundations.lab_report import as_json, document, draw

    check_files(json_file, picture)
    if p or q:
        return _diverge(p, q, json_file)
    found = run_lab(seed, tuple(positive_numbers("--rates", rates)))
    answer(as_text(document(found)))
    if json_file is not None:
        write_json(json_file, as_json(found))
    if picture is not None:
        write_picture(picture, draw(found), dark)


def _diverge(p: str, q: str, json_file: Path | None) -> None:
    from dataclasses import asdict

    from ensue.study.foundations.lab import divergence
    from ensue.study.foundations.lab_report import divergence_text

    found = divergence(numbers("--p", p), numbers("--q", q))
    answer(divergence_text(found))
    if json_file is not None:
        write_json(json_file, asdict(found))
