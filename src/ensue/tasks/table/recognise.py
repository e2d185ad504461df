"""Whether data are a table, and which of its columns may be the one to predict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ensue.data.recognise.columns import Kind
from ensue.data.roles import LABELS, TARGETS
from ensue.data.series import number_of
from ensue.tasks.sample import Guess, NumberKind, Sample

Read = Callable[[Sample, str], Guess]


def table_guess(sample: Sample, read: Read) -> Guess | None:
    """A column is to be predicted from others that are no texts. Where nobody said which one, all
    that may be meant are readings, unless one is called a label."""
    data = sample.data
    if data.sequence or data.text or data.second:
        return None
    if not data.label:
        return _unnamed(sample, read)
    if data.label not in sample.columns:
        return None
    texts = [name for name in sample.roles.texts if name != data.label]
    beside = any(sample.table_instead(name) for name in texts)
    if (texts and not beside) or not sample.features({data.label}):
        return None
    return replace(read(sample, data.label), sure=not beside and not _in_time(sample, data.label))


def _unnamed(sample: Sample, read: Read) -> Guess | None:
    texts = sample.roles.texts
    if texts and not all(map(sample.table_instead, texts)):
        return None
    found = _targets(sample)
    if not found:
        return None
    first, *others = (read(sample, name) for name in found)
    sure = not others and not texts and not any(_in_time(sample, name) for name in found)
    return replace(first, sure=sure, others=tuple(others))


def targets_of(sample: Sample) -> list[str]:
    """The columns that may be meant; an error where there is none."""
    found = _targets(sample)
    if not found:
        raise sample.no_label()
    return found


def _targets(sample: Sample) -> list[str]:
    """One that is called a label, or all that can be predicted from others: those of two values
    first, then the last of the table."""
    usable = sample.features()
    if len(usable) < 2:
        return []
    named = [name for name in usable if name.lower() in (*LABELS, *TARGETS)]
    if len(named) == 1:
        return named
    return sorted(named or reversed(usable), key=lambda name: sample.kinds[name].different != 2)


def _in_time(sample: Sample, label: str) -> bool:
    """Whether the rows may be steps of a series of this column: numbers beside dates that rise."""
    dates = [own.name for own in sample.kinds.values() if own.kind is Kind.DATE]
    if sample.number_kind(label) is NumberKind.CLASSES and not _numbers(sample, label):
        return False
    return any(_rising(sample, name) for name in dates)


def _numbers(sample: Sample, label: str) -> bool:
    return all(number_of(value) is not None for value in sample.values(label))


def _rising(sample: Sample, name: str) -> bool:
    """Whether no two dates are the same, and they are in order as they are written."""
    values = [str(value) for value in sample.values(name)]
    return len({*values}) == len(values) and values in (sorted(values), sorted(values)[::-1])
