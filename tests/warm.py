"""Commands that begin in a moment: a process that has imported torch and Ensue forks for each.

A command of its own would import them for seconds. `Warm` is that process; `folder` holds an
`ensue` to stand first on the PATH, which hands its words, streams, folder and environment over
and ends as the command ends. What it runs is the command's own `main`.
"""

from __future__ import annotations

import array
import contextlib
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn, Self

HERE = Path(__file__)
STREAMS = (0, 1, 2)
LONGEST = 1 << 20  # bytes of a request
APART = ("ensue.__main__", "ensue.cli", "ensue.sklearn")
CLIENT = """#!/bin/sh
[ "$PYTHONPATH" = "{path}" ] || exec {installed} "$@"  # other code than what was imported
exec {python} -S -E {here} ask {socket} ensue "$@"
"""


class Warm:
    """with Warm(folder) as warm: warm.run([script, …]), or commands with warm.folder on PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._socket = folder, folder / "socket"
        self._server: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        shim = self.folder / "ensue"
        python = Path(sys.executable)
        installed = python.with_name("ensue")
        words = {"installed": installed, "python": python, "here": HERE, "socket": self._socket}
        path = os.environ.get("PYTHONPATH", "")
        shim.write_text(CLIENT.format(path=path, **words), "utf-8")
        shim.chmod(0o755)
        command = [sys.executable, str(HERE), "serve", str(self._socket)]
        self._server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        assert self._server.stdout is not None
        assert self._server.stdout.readline() == b"ready\n"
        return self

    def __exit__(self, *error: object) -> None:
        assert self._server is not None
        assert self._server.stdout is not None
        self._server.kill()
        self._server.wait()
        self._server.stdout.close()

    def run(
        self, words: list[str], folder: Path, environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """A Python file with its arguments, in a folder; environment: beside that of the tests."""
        client = [sys.executable, "-S", "-E", str(HERE), "ask", str(self._socket), *words]
        whole = {**os.environ, **environment}
        return subprocess.run(client, cwd=folder, env=whole, capture_output=True, text=True)


# --- who asks ------------------------------------------------------------------------------------


def ask(place: str, words: list[str]) -> int:
    """The exit code of a command that the server runs with our streams, here."""
    request = {"words": words, "folder": os.getcwd(), "environment": dict(os.environ)}
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(place)
        streams = array.array("i", STREAMS)
        sent = [json.dumps(request).encode() + b"\n"]
        asking.sendmsg(sent, [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
        answer = asking.makefile("rb").readline()
    return int(answer or -1)


# --- who answers ---------------------------------------------------------------------------------


def load_everything() -> None:
    """Imports what commands import, so that a forked process need not. The commands themselves
    are left out: in the help they stand in the order in which they were loaded."""
    import ensue

    for module in pkgutil.walk_packages(ensue.__path__, "ensue."):
        if not module.name.startswith(APART):
            importlib.import_module(module.name)


def unsynced(handle: int) -> None:
    """os.fsync that does not wait for the disk: no test pulls the plug."""
    os.fstat(handle)


def serve(place: str) -> NoReturn:
    load_everything()
    os.fsync = unsynced
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(place)
    listening.listen()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that answer
    print("ready", flush=True)
    while True:
        asked, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            _answer(asked)
        asked.close()


def _answer(asked: socket.socket) -> NoReturn:
    """Forks once more, waits, and tells how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    request, streams = _received(asked)
    child = os.fork()
    if child == 0:
        asked.close()
        _become(request, streams)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(BrokenPipeError):
        asked.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _received(asked: socket.socket) -> tuple[dict[str, Any], array.array[int]]:
    streams: array.array[int] = array.array("i")
    text, space = b"", socket.CMSG_SPACE(len(STREAMS) * streams.itemsize)
    while not text.endswith(b"\n"):
        data, beside, _, _ = asked.recvmsg(LONGEST, space)
        for _, _, own in beside:
            streams.frombytes(own)
        text += data
    return json.loads(text), streams


def _become(request: dict[str, Any], streams: array.array[int]) -> NoReturn:
    """The command, in this process."""
    for number, stream in zip(STREAMS, streams, strict=True):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = request["words"]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    code: Any = 0
    try:
        if sys.argv[0] == "ensue":
            from ensue.cli import main

            main()
        else:
            runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as ending:
        code = ending.code
    except BaseException as problem:
        sys.excepthook(type(problem), problem, problem.__traceback__)
        code = 1
    if isinstance(code, str):
        print(code, file=sys.stderr)
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code or 0)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    sys.exit(ask(sys.argv[2], sys.argv[3:]))
