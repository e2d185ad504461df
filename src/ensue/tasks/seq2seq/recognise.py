"""Which columns of rows are the source and the target."""

from __future__ import annotations

from ensue.data.options import require
from ensue.data.parallel import PAIR
from ensue.errors import DataError
from ensue.tasks.sample import Sample


def source_and_target(sample: Sample) -> dict[str, str]:
    """As keys of [data], text and label: the columns that were named, or are called source and
    target, or the only ones that are left; an error names what is missing."""
    given, names, place = sample.data, sample.columns, sample.place
    require([name for name in (given.group, given.text, given.label) if name], names, place)
    left = [name for name in names if name not in (given.text, given.label, given.group)]
    source = given.text or (PAIR[0] if PAIR[0] in left else "")
    target = given.label or (PAIR[1] if PAIR[1] in left else "")
    left = [name for name in left if name not in (source, target)]
    if not source and len(left) == 2 - bool(target):
        source = left.pop(0)
    if source and not target and len(left) == 1:
        target = left.pop()
    if not source or not target:
        sides = {"source": source, "target": target}
        missing = " and ".join(sample.word(side) for side, name in sides.items() if not name)
        raise DataError(
            f"{place}: which columns are the text and what it is to become? Name them with "
            f"{missing}. Columns: {', '.join(names)}"
        )
    if source == target:
        raise DataError(
            f"{place}: {sample.word('source')} and {sample.word('target')}: expected two columns, "
            f"got {source!r} twice"
        )
    return {"text": source, "label": target}
