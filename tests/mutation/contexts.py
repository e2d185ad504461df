"""A pytest plugin: which test runs which line, and how long each test takes.

Each process that runs tests measures its own coverage and names the test as the context, or the
file of tests while that is being imported. The programs that tests start measure theirs through
COVERAGE_PROCESS_START, under the same name."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest

SETTINGS = "MUTANTS_COVERAGE"  # the environment: coverage's settings file
OUTCOMES = "MUTANTS_OUTCOMES"  # the environment: the file that outcomes are appended to
CONTEXT = "MUTANTS_CONTEXT"  # the environment of programs that tests start: the test

SETTINGS_TEXT = """[run]
core = ctrace
data_file = {data}
source = {source}
parallel = true
context = ${{MUTANTS_CONTEXT-}}
disable_warnings = no-data-collected, module-not-imported, module-not-measured,
    already-imported, couldnt-parse, trace-changed, context-conflict, dynamic-conflict
"""


class Contexts:
    """Coverage of this process, one context per test."""

    def __init__(self, settings: str) -> None:
        self.settings = settings
        self.coverage = coverage.Coverage(config_file=settings)
        self.coverage.start()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.coverage.switch_context(item.nodeid)
        os.environ[CONTEXT] = item.nodeid
        os.environ["COVERAGE_PROCESS_START"] = self.settings
        try:
            return (yield)
        finally:
            del os.environ["COVERAGE_PROCESS_START"]
            self.coverage.switch_context("")

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Iterator[pytest.CollectReport]:
        if isinstance(collector, pytest.Module):
            self.coverage.switch_context(collector.nodeid)
        try:
            return (yield)
        finally:
            self.coverage.switch_context("")

    def pytest_unconfigure(self) -> None:
        self.coverage.stop()
        self.coverage.save()


class Outcomes:
    """Writes the outcome and the seconds of every phase of every test."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        line = {"test": report.nodeid, "outcome": report.outcome, "seconds": report.duration}
        with self.file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(line) + "\n")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    works_for_another = hasattr(config, "workerinput")  # pytest-xdist
    if works_for_another or not config.getoption("numprocesses", None):
        config.pluginmanager.register(Contexts(os.environ[SETTINGS]))
    if not works_for_another:
        config.pluginmanager.register(Outcomes(Path(os.environ[OUTCOMES])))
