"""Commands as a user types them."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from ensue import cli

Ensue = Callable[..., tuple[int, str, str]]


def commands_in(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ensue:
    """Runs a command in a folder; gives exit code, standard output and error."""
    monkeypatch.chdir(folder)

    def run(*arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as ending:
            cli.main(arguments)
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return int(ending.value.code or 0), out, err

    return run
