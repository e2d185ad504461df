"""The reader of a command's output may leave, and any stream may be closed or full: work continues
to its end, and the exit code is true."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import lost_streams
import pytest
from warm import Warm

from ensue import cli
from ensue.cli import streams
from ensue.cli.app import answer, report
from ensue.cli.streams import Output, exit_code, nobody_reads


class Ended(NamedTuple):
    verb: str
    stream: str
    way: str
    code: int
    errors: str


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("streams")


@pytest.fixture(scope="module")
def ended(folder: Path, warm: Warm) -> list[Ended]:
    """Every command with every stream lost in every way."""
    command = [lost_streams.__file__, folder]
    process = warm.run(command, folder, {"OMP_NUM_THREADS": "1"})
    assert process.returncode == 0, process.stderr
    return [Ended(*fields) for fields in json.loads(process.stdout)]


def expected(verb: str, stream: str, way: str) -> int:
    """The exit code: a failure stays one, and an answer that cannot be written is a failure.
    Messages may be lost, a reader may leave, and results in files need no reader."""
    unread = stream == "stdin" and verb in lost_streams.TYPED
    unwritten = stream == "stdout" and way != "left" and verb not in lost_streams.REPORTING
    return 2 if verb in lost_streams.FAILING or unread or unwritten else 0


def test_the_exit_code_is_true_whatever_stream_is_lost(ended: list[Ended]) -> None:
    assert len(ended) > 80
    wrong = [end for end in ended if end.code != expected(*end[:3])]
    assert wrong == []


def test_no_lost_stream_gives_a_traceback(ended: list[Ended]) -> None:
    assert [end for end in ended if "Traceback" in end.errors] == []


def test_a_lost_stream_is_told_where_it_matters(ended: list[Ended]) -> None:
    answering = {*lost_streams.ANSWERING, *lost_streams.TYPED}
    for end in ended:
        if end.verb in answering and end.stream == "stdout" and end.way != "left":
            assert "standard output: cannot be written to (" in end.errors
        if end.verb in lost_streams.TYPED and end.stream == "stdin":
            assert "DataError: standard input: cannot be read (" in end.errors


def test_training_goes_on_to_its_end(ended: list[Ended], folder: Path) -> None:
    for stream, way in lost_streams.EVERY:
        assert (folder / f"{stream}-{way}" / "model" / "manifest.json").exists()


def test_a_whole_process_ends_in_order(folder: Path) -> None:
    """With what the interpreter does when it ends."""
    command = f"{sys.executable} -m ensue --help"
    for rest, code in {">/dev/full": 2, ">&-": 2, "2>&- | true; exit ${PIPESTATUS[0]}": 0}.items():
        ended = subprocess.run(["bash", "-c", f"{command} {rest}"], capture_output=True, text=True)
        assert (ended.returncode, "Exception" in ended.stderr) == (code, False)


# --- the parts -----------------------------------------------------------------------------------


def test_a_report_may_be_lost_and_an_answer_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = Output(os.open("/dev/full", os.O_WRONLY))
    with monkeypatch.context() as patched:
        patched.setattr("sys.stdout", streams._text(out, None))
        report("wrote it")
        assert not nobody_reads()
        assert exit_code(0, out) == 0
        answer("42")
        assert exit_code(0, out) == 2
        assert nobody_reads()
        assert exit_code(130, out) == 130
    assert "No space left on device" in capsys.readouterr().err


def test_a_pipe_that_does_not_wait_is_waited_for() -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    out, data = Output(writer), bytes(1 << 20)
    child = os.fork()
    if not child:
        os.close(writer)
        count = 0
        while piece := os.read(reader, 1 << 16):
            count += len(piece)
        os._exit(0 if count == len(data) else 1)
    os.close(reader)
    written = 0
    while written < len(data):
        written += out.write(data[written:])
    os.close(writer)
    assert os.waitpid(child, 0)[1] == 0
    assert out.lost is None


@pytest.mark.parametrize("moment", ["load_commands", "task_options"])
def test_ctrl_c_while_a_command_is_loaded_is_no_traceback(
    moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*words: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, moment, interrupt)
    with pytest.raises(SystemExit) as ending:
        cli.main(["--help"])
    assert ending.value.code == 130
