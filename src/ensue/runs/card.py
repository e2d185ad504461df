"""card.md: what a model is, what it was made of, and how good it is, for a person to read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ensue.errors import RunError
from ensue.escape import in_markdown
from ensue.files.disk import write_whole
from ensue.files.run_folder import RunFolder
from ensue.runs.evaluations import Evaluated, current_evaluations

if TYPE_CHECKING:
    from ensue.runs.train import Trained

EVALUATION = "## Evaluation"


def write_card(folder: RunFolder, trained: Trained) -> None:
    """Of a model that has just been trained, with the evaluations that it has already."""
    write_whole(folder.card, (_training(folder, trained) + _evaluations(folder)).encode())


def add_evaluations(folder: RunFolder) -> None:
    """The section on evaluations in the card of a run that is finished, in the place of the one
    that is there."""
    try:
        text = folder.card.read_text("utf-8")
    except FileNotFoundError:
        return  # the run is not finished
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"{folder.card}: cannot be read: {error}; remove it") from None
    training = text.partition(f"\n{EVALUATION}\n")[0]
    new = training + _evaluations(folder)
    if new != text:
        write_whole(folder.card, new.encode())


def _training(folder: RunFolder, trained: Trained) -> str:
    config, rows = trained.config, trained.rows
    many = f"{rows['train']:,} rows to train, {rows['validation']:,} to validate"
    lines = [
        f"# {in_markdown(folder.path.name)}",
        "",
        "\n".join(map(in_markdown, trained.model.summary().split("\n"))),
        "",
        f"- task: {config.task}",
        f"- data: {', '.join(map(in_markdown, config.data.train))} ({many})",
    ]
    for number, own in enumerate(trained.outcomes, 1):
        lines.append(
            f"- network {number}: {own.updates:,} updates in {own.epochs} epochs, stopped by "
            f"{own.reason}; best on validation: {_listed(own.scores or {})}"
        )
    lines.append("- the whole configuration: config.toml")
    return "\n".join(lines) + "\n"


def _evaluations(folder: RunFolder) -> str:
    """The section; "" where there is no evaluation."""
    found = [_section(own) for own in current_evaluations(folder)]
    return f"\n{EVALUATION}\n\n" + "\n".join(found) if found else ""


def _section(kept: Evaluated) -> str:
    found = kept.evaluation
    files = ", ".join(in_markdown(Path(own.path).name) for own in kept.files)
    lines = [
        f"{kept.part} part of {files}: {found.rows:,} rows, {kept.when[:10]}",
        "",
        "| score | value | 95 % interval |",
        "|---|---|---|",
    ]
    for name, own in found.scores.items():
        lines.append(f"| {in_markdown(name)} | {own.value:.4f} | {own.low:.4f} … {own.high:.4f} |")
    lines += [f"| {in_markdown(name)} | {value:.4f} | |" for name, value in found.others.items()]
    if found.baselines:
        lines += ["", f"for comparison, {found.main}: {_listed(found.baselines)}"]
    return "\n".join(lines) + "\n"


def _listed(scores: Mapping[str, float]) -> str:
    return ", ".join(f"{in_markdown(name)} {value:.4f}" for name, value in scores.items())
