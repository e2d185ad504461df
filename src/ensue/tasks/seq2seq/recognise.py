"""Recognition of pairs: the columns of source and target."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ensue.data.options import require
from ensue.data.parallel import PAIR, parallel
from ensue.data.pictures.endings import is_image
from ensue.data.recognise.columns import Kind
from ensue.data.series import number_of
from ensue.errors import DataError
from ensue.tasks.sample import CAPTION, Guess, Sample


def source_and_target(sample: Sample) -> dict[str, str]:
    """The keys of [data] for source and target, text and label: named columns, or those called
    source and target, or the only ones left; an error says what is missing."""
    data, names, place = sample.data, sample.columns, sample.place
    require([name for name in (data.group, data.text_column, data.label) if name], names, place)
    left = [name for name in names if name not in (data.text_column, data.label, data.group)]
    source = data.text_column or (PAIR[0] if PAIR[0] in left else "")
    target = data.label or (PAIR[1] if PAIR[1] in left else "")
    left = [name for name in left if name not in (source, target)]
    if not source and len(left) == 2 - bool(target):
        source = left.pop(0)
    if source and not target and len(left) == 1:
        target = left.pop()
    if not source or not target:
        sides = {"source": source, "target": target}
        missing = " and ".join(sample.word(side) for side, name in sides.items() if not name)
        raise DataError(
            f"{place}: which columns are the source and the target? Name them with {missing}. "
            f"Columns: {', '.join(names)}"
        )
    if source == target:
        raise DataError(
            f"{place}: {sample.word('source')} and {sample.word('target')}: expected two columns, "
            f"got {source!r} twice"
        )
    return {"text": source, "label": target}


# --- pictures and what they show -----------------------------------------------------------


def recognised_captions(sample: Sample) -> Guess | None:
    """The reading as captions: one column names pictures, and another is called "caption"."""
    if sample.data.sequence or CAPTION not in sample.columns:
        return None
    others = (sample.values(name) for name in sample.columns if name != CAPTION)
    pictures = any(all(is_image(Path(str(value))) for value in values) for values in others)
    return captions_guess(sample) if pictures else None


def captions_guess(sample: Sample) -> Guess:
    return Guess("pictures with captions", source_and_target(sample))


# --- texts, or vectors, and the text that each becomes ----------------------------------------


def recognised_pairs(sample: Sample) -> Guess | None:
    """The reading as pairs: two parallel files, or two texts with such names; a target that repeats
    is a class. For two other texts without further columns, either may be the source."""
    data = sample.data
    if data.sequence:
        return None
    if parallel(data.train) or _two_texts(sample) or _steps_and_text(sample):
        return pairs_guess(sample)
    both = [column.name for column in sample.kinds.values() if column.kind is Kind.TEXT]
    if data.text_column or data.label or len(both) != 2 or sample.features():
        return None
    forward, back = (Guess("pairs of texts", _sides(*sides)) for sides in (both, both[::-1]))
    return replace(forward, sure=False, others=(back,))


def pairs_guess(sample: Sample) -> Guess:
    if _steps_and_text(sample):
        kinds = {column.kind: name for name, column in sample.kinds.items()}
        if not (sample.data.text_column or sample.data.label):
            return Guess("words for vectors", _sides(kinds[Kind.STEPS], kinds[Kind.TEXT]))
    return Guess("pairs of texts", source_and_target(sample))


def _steps_and_text(sample: Sample) -> bool:
    """Whether the columns are vectors over time and a text."""
    kinds = {name: column.kind for name, column in sample.kinds.items()}
    text, label = sample.data.text_column, sample.data.label
    if text or label:
        return kinds.get(text) is Kind.STEPS and kinds.get(label) is Kind.TEXT
    return sorted(kinds.values()) == sorted([Kind.STEPS, Kind.TEXT])


def _sides(source: str, target: str) -> dict[str, str]:
    return {"text": source, "label": target}


def _two_texts(sample: Sample) -> bool:
    """Whether the named columns, or those called source and target, have texts, of which the second
    rarely repeats."""
    data = sample.data
    if data.separator:
        return False
    source, target = data.text_column or PAIR[0], data.label or PAIR[1]
    sources, targets = sample.values(source), sample.values(target)
    if not all(isinstance(v, str) and number_of(v) is None for v in (*sources, *targets)):
        return False
    return len(set(targets)) > max(2, len(targets) // 2)
