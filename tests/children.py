"""Processes that tests start."""

from __future__ import annotations

import signal


def usual_signals() -> None:
    """Before a child begins (preexec_fn): who runs the tests may ignore signals, as nohup and a
    shell's background jobs do, and children would too."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
