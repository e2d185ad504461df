"""card.md: a readable card with a model's kind, data, settings and scores."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ensue.errors import RunError
from ensue.escape import in_markdown
from ensue.files.atomic_folder import digest
from ensue.files.disk import write_whole
from ensue.files.opening import read_plain
from ensue.files.run_folder import RunFolder
from ensue.runs.evaluations import Evaluated, current_evaluations
from ensue.runs.messages import Message, MessageCallback, nobody
from ensue.tasks.evaluation.summary import difference_text

if TYPE_CHECKING:
    from ensue.runs.train import Trained

EVALUATION = "## Evaluation"
SEAL = "<!-- sha256 {} -->"


def write_card(folder: RunFolder, trained: Trained, say: MessageCallback = nobody) -> None:
    """Writes the card of a newly trained model, with its evaluations so far."""
    _, edited = _read(folder)
    if edited:
        say(Message(f"{folder.card}: edited since it was written; overwritten", warning=True))
    _write(folder, _training(folder, trained) + _evaluations(folder))


def add_evaluations(folder: RunFolder, say: MessageCallback = nobody) -> None:
    """Replaces the section on evaluations in the card of a finished run. Text that a person wrote
    before it stays."""
    text, edited = _read(folder)
    if text is None:
        return  # the run is not finished
    if edited:
        message = f"edited since it was written; what stands before {EVALUATION!r} is kept"
        say(Message(f"{folder.card}: {message}", warning=True))
    training = text.partition(f"\n{EVALUATION}\n")[0]
    _write(folder, training + _evaluations(folder))


def _write(folder: RunFolder, text: str) -> None:
    """Writes the card, followed by the digest of its text as a comment, which is invisible where
    Markdown is displayed."""
    data = f"{text}\n{SEAL.format(digest(text.encode()))}\n".encode()
    if not folder.card.is_file() or read_plain(folder.card) != data:
        write_whole(folder.card, data)


def _read(folder: RunFolder) -> tuple[str | None, bool]:
    """The card's text without its digest (None if there is no card), and whether it was edited."""
    try:
        text = read_plain(folder.card).decode()
    except FileNotFoundError:
        return None, False
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"{folder.card}: cannot be read: {error}; remove it") from None
    text_before, begin, end = text.rpartition(f"\n{SEAL.partition('{')[0]}")
    if not begin:
        return text, True
    return text_before, begin.lstrip("\n") + end != SEAL.format(digest(text_before.encode())) + "\n"


def _training(folder: RunFolder, trained: Trained) -> str:
    config, rows = trained.config, trained.rows
    many = f"{rows['train']:,} rows to train, {rows['validation']:,} to validate"
    many += f", {rows['unlabelled']:,} without labels" if "unlabelled" in rows else ""
    lines = [
        f"# {in_markdown(folder.path.name)}",
        "",
        "\n".join(map(in_markdown, trained.model.summary().split("\n"))),
        "",
        f"- task: {config.task}",
        f"- data: {', '.join(map(in_markdown, config.data.train))} ({many})",
    ]
    for number, outcome in enumerate(trained.outcomes, 1):
        lines.append(
            f"- network {number}: {outcome.updates:,} updates in {outcome.epochs} epochs, "
            f"stopped by {outcome.reason}; validation: {_listed(outcome.scores or {})}"
        )
    if trained.answer:
        lines.append(f"- validation, combined model: {_listed(trained.answer)}")
    lines.append("- configuration: config.toml")
    return "\n".join([*lines, *_validation(trained)]) + "\n"


def _validation(trained: Trained) -> list[str]:
    """A table of the main score and the strongest baseline; empty if they are not known."""
    summary = trained.summary
    if summary is None:
        return []
    value, low, high = summary.score
    rows = [f"| {in_markdown(summary.name)} | {value:.4f} | 95 % interval {low:.4f} … {high:.4f} |"]
    if summary.baseline:
        against = difference_text(summary.difference)
        name, score = in_markdown(summary.baseline), summary.baseline_score
        rows.append(f"| {name} | {score:.4f} | {against} |")
    return ["", "| validation | score | |", "|---|---|---|", *rows]


def _evaluations(folder: RunFolder) -> str:
    """The section on evaluations; "" if there are none."""
    sections = [_section(evaluation) for evaluation in current_evaluations(folder)]
    return f"\n{EVALUATION}\n\n" + "\n".join(sections) if sections else ""


def _section(evaluated: Evaluated) -> str:
    evaluation = evaluated.evaluation
    files = ", ".join(in_markdown(Path(file.path).name) for file in evaluated.files)
    lines = [
        f"{evaluated.part} part of {files}: {evaluation.rows:,} rows, {evaluated.when[:10]}",
        "",
        "| score | value | 95 % interval |",
        "|---|---|---|",
    ]
    for name, score in evaluation.scores.items():
        lines.append(
            f"| {in_markdown(name)} | {score.value:.4f} | {score.low:.4f} … {score.high:.4f} |"
        )
    lines += [
        f"| {in_markdown(name)} | {value:.4f} | |" for name, value in evaluation.others.items()
    ]
    if evaluation.baselines:
        lines += ["", f"| baseline | {in_markdown(evaluation.main)} |", "|---|---|"]
        lines += [
            f"| {in_markdown(name)} | {value:.4f} |" for name, value in evaluation.baselines.items()
        ]
    return "\n".join(lines) + "\n"


def _listed(scores: Mapping[str, float]) -> str:
    return ", ".join(f"{in_markdown(name)} {value:.4f}" for name, value in scores.items())
