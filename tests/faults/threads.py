"""Sixteen threads that predict with one model: each gets what it would get alone."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

import ensue
from faults import material
from faults.campaign import FINE, SILENT, Campaign, Case, Outcome
from faults.material import Material, make_ready

THREADS = 16


def begin(work: Path, place: Path) -> Case:
    make_ready()
    # in a forked process torch replaces its pool of threads when a new thread first asks for it:
    # two that ask at the same moment fail with "Invalid thread pool"
    torch.set_num_threads(torch.get_num_threads())

    def case(draw: random.Random) -> Outcome:
        subject = material.chosen(draw)
        model: Any = ensue.load(Material(work, subject).place / "run", trust=True)
        rows = subject.row.questions()
        shares = [rows[: draw.randint(1, len(rows))] for _ in range(THREADS)]
        if subject.row.task == "forecast":  # a question is one series
            shares = [rows] * THREADS
        alone = [str(model.predict(share)) for share in shares]
        with ThreadPoolExecutor(THREADS) as pool:
            together = list(pool.map(lambda share: str(model.predict(share)), shares))
        wrong = sum(a != b for a, b in zip(alone, together, strict=True))
        what = f"{subject}: {wrong} of {THREADS} threads differ"
        return Outcome(SILENT if wrong else FINE, what, THREADS)

    return case


SIXTEEN = Campaign("threads", 60, 120.0, begin)
