"""The command: make faults, make faults-full ARGS="--only flips --seed 2 --workers 1".

Ends with 1 if a promise was broken, with 143 if it was stopped; it then continues when it is
started again."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import Any

from faults import learned, material, scenes
from faults.campaign import FINE, Campaign, Outcome
from faults.journal import Journal, code_digest, summary
from faults.table import CAMPAIGNS
from faults.workers import outcomes, tried

SHOWN = 20  # broken cases that are listed for each campaign
EVERY = 15.0  # seconds between two lines of progress


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make faults", description=__doc__)
    parser.add_argument("--share", type=float, default=0.1, help="of the cases of each campaign")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="names of campaigns, with commas between them")
    parser.add_argument("--case", type=int, help="try one case of the campaign --only")
    parser.add_argument("--cases", type=int, help="number of cases, instead of --share")
    parser.add_argument("--first", action="store_true", help="end after the first broken promise")
    parser.add_argument("--subjects", default="", help="only runs with one of these in their name")
    parser.add_argument("--work", type=Path, default=Path(".faults"), help="folder of the work")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    return parser.parse_args(words)


def chosen(only: str) -> list[Campaign]:
    names = only.split(",") if only else [*CAMPAIGNS]
    if unknown := [name for name in names if name not in CAMPAIGNS]:
        sys.exit(f"unknown campaign {unknown[0]!r}: expected {', '.join(CAMPAIGNS)}")
    return [CAMPAIGNS[name] for name in names]


class Stopped(BaseException):
    """SIGTERM, SIGHUP or Ctrl-C."""


def _stop(number: int, frame: FrameType | None) -> None:
    raise Stopped


def go_through(campaign: Campaign, journal: Journal, work: Path, how: argparse.Namespace) -> None:
    """Tries what the journal has not, and writes it down."""
    count = how.cases or max(1, round(campaign.cases * how.share))
    left = journal.missing(range(count))
    shown_at = begun = time.monotonic()
    with closing(outcomes(campaign, work, how.seed, left, how.workers)) as results:
        for done, (number, outcome) in enumerate(results, 1):
            journal.add(number, outcome)
            if outcome.kind != FINE:
                print(f"  {campaign.name} {number}: {outcome.kind}: {outcome.what}", flush=True)
                if how.first:
                    return
            if time.monotonic() - shown_at > EVERY:
                shown_at = time.monotonic()
                rest = (shown_at - begun) / done * (len(left) - done)
                print(
                    f"  {campaign.name}: {len(journal.outcomes):,} of {count:,}, "
                    f"{rest / 60:.0f} min",
                    file=sys.stderr,
                    flush=True,
                )


def limit_subjects(text: str) -> None:
    """Tries faults on these runs, models and scenes alone. text: parts of names, with commas."""
    parts = text.split(",")

    def some(every: Sequence[object]) -> list[Any]:
        return [one for one in every if any(part in str(one) for part in parts)]

    learned.MODELS = some(learned.MODELS) or learned.MODELS
    if limited := some(scenes.FURTHER):
        scenes.FURTHER, material.SUBJECTS = tuple(limited), some(material.SUBJECTS)
    else:
        material.SUBJECTS = some(material.SUBJECTS) or material.SUBJECTS


def prepare(work: Path) -> None:
    """The folder of the work, and the settings that every process has: kernels are compiled
    quickly, into the work folder, and torch runs one thread."""
    work.mkdir(parents=True, exist_ok=True)
    for old in work.glob("worker-*"):
        shutil.rmtree(old, ignore_errors=True)
    (work / "cache").mkdir(exist_ok=True)
    os.environ |= {
        "XDG_CACHE_HOME": str(work / "cache"),
        "TORCHINDUCTOR_CACHE_DIR": str(work / "cache" / "torch"),
        "OMP_NUM_THREADS": "1",
        "ENSUE_OPTIMISE": "1",
    }


def one_case(campaign: Campaign, work: Path, how: argparse.Namespace) -> Outcome:
    """A single case, in this process."""
    place = work / "worker-one"
    place.mkdir(exist_ok=True)
    return tried(campaign.begin(work, place), campaign, how.seed, how.case)


def main(words: list[str] | None = None) -> int:
    how = arguments(words)
    work = how.work.resolve()
    campaigns = chosen(how.only)
    prepare(work)
    if how.subjects:
        limit_subjects(how.subjects)
    if how.case is not None:
        outcome = one_case(campaigns[0], work, how)
        print(f"{outcome.kind}: {outcome.what}")
        return int(outcome.kind != FINE)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _stop)
    code, journals, stopped = code_digest("src", "tests/faults"), dict[str, Journal](), False
    try:
        for campaign in campaigns:
            path = work / f"{campaign.name}.jsonl"
            journal = journals[campaign.name] = Journal(path, code, how.seed)
            if journal.anew:
                print(f"  {campaign.name}: starts from scratch: another code or seed")
            go_through(campaign, journal, work, how)
    except Stopped:
        stopped = True
    table, passed = summary(journals)
    print(table)
    return 143 if stopped else int(not passed)


if __name__ == "__main__":
    sys.exit(main())
