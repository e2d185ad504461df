"""Commands that begin in a moment: a process that has imported torch and Ensue forks for each.

A new Python would import them for seconds. The server is two processes, which fork for each
request: one has imported torch and all of Ensue, the other one torch and other libraries only.

    warm.run([script, ...], ...)    a script, `-m module` or `-c code`, with Ensue imported
    warm.fresh([...], ...)          the same, which imports Ensue itself: from PYTHONPATH, say
    warm.folder                     holds an `ensue` to stand first on the PATH of commands

A client hands its words, streams, folder and environment over and ends as the command ends. All
workers of a session share one server, which ends with the session.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

HERE = Path(__file__)
STREAMS = (0, 1, 2)
LONGEST = 1 << 20  # bytes of a request
APART = ("ensue.__main__", "ensue.cli", "ensue.sklearn")
BEFORE = os.environ.get("PYTHONPATH", "").split(":")  # of the server itself
LIBRARIES = ("torch", "numpy", "pydantic", "safetensors.torch", "typer")
SELDOM = (20_000, 20, 50)  # thresholds of garbage collection
EXPORT = "torch._dynamo"  # 800 modules that exports need, and no training may
CLIENT = """#!/bin/sh
socket={socket}
[ "$PYTHONPATH" = "{path}" ] || socket={fresh}  # other code than what was imported
exec {python} -S -E {here} ask $socket ensue "$@"
"""


class Warm:
    """The client of a server in a folder, which the first client starts. owner: the number of the
    process that the server ends with."""

    def __init__(self, folder: Path, owner: int) -> None:
        self.folder, self._socket = folder, folder / "socket"
        self._fresh = _fresh_place(str(self._socket))
        folder.mkdir(exist_ok=True)
        with open(folder / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / "ready").exists():
                self._start(owner)
                (folder / "ready").touch()

    def _start(self, owner: int) -> None:
        shim, python = self.folder / "ensue", Path(sys.executable)
        path = os.environ.get("PYTHONPATH", "")
        places = {"socket": self._socket, "fresh": self._fresh, "path": path}
        shim.write_text(CLIENT.format(python=python, here=HERE, **places), "utf-8")
        shim.chmod(0o755)
        command = [sys.executable, str(HERE), "serve", str(self._socket), str(owner)]
        streams = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(self.folder / "log"), os.O_WRONLY | os.O_CREAT, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
        process = os.posix_spawn(command[0], command, os.environ, file_actions=streams)
        while not all(_is_listening(place) for place in (str(self._socket), self._fresh)):
            ended, status = os.waitpid(process, os.WNOHANG)
            assert not ended, f"{status}: {(self.folder / 'log').read_text('utf-8')}"
            time.sleep(0.02)

    def run(
        self, words: Sequence[object], folder: Path, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """A command with Ensue imported; environment: next to that of the tests."""
        return self._command(str(self._socket), words, folder, environment or {})

    def fresh(
        self, words: Sequence[object], folder: Path, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """A command that imports Ensue itself; environment: next to that of the tests."""
        return self._command(self._fresh, words, folder, environment or {})

    def _command(
        self, place: str, words: Sequence[object], folder: Path, environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        client = [sys.executable, "-S", "-E", str(HERE), "ask", place, *map(str, words)]
        return subprocess.run(
            client,
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
        )


def _fresh_place(place: str) -> str:
    """The socket of the process that has not imported Ensue."""
    return f"{place}-fresh"


def _is_listening(place: str) -> bool:
    with socket.socket(socket.AF_UNIX) as asking:
        return asking.connect_ex(place) == 0


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
    importlib.import_module(EXPORT)


def unsynced(handle: int) -> None:
    """os.fsync that does not wait for the disk: no test pulls the plug."""
    os.fstat(handle)


def serve(place: str, owner: int) -> NoReturn:
    """Two processes that answer, for as long as the owner lives."""
    gc.disable()
    for name in LIBRARIES:
        importlib.import_module(name)
    os.fsync = unsynced
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children that answer are not waited for
    if os.fork() == 0:
        place = _fresh_place(place)
    else:
        load_everything()
    gc.freeze()
    gc.set_threshold(*SELDOM)
    gc.enable()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(place)
    listening.listen()
    listening.settimeout(1)
    while _is_alive(owner):
        with contextlib.suppress(TimeoutError):
            request, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                _answer(request)
            request.close()
    os._exit(0)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def _answer(connection: socket.socket) -> NoReturn:
    """Forks again, waits, and reports how the child ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    request, streams = _received(connection)
    if not request:  # a client that only checked for a server
        os._exit(0)
    child = os.fork()
    if child == 0:
        connection.close()
        _become(request, streams)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(BrokenPipeError):
        connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _received(connection: socket.socket) -> tuple[dict[str, Any], array.array[int]]:
    streams: array.array[int] = array.array("i")
    text, space = b"", socket.CMSG_SPACE(len(STREAMS) * streams.itemsize)
    while not text.endswith(b"\n"):
        data, beside, _, _ = connection.recvmsg(LONGEST, space)
        if not data:
            return {}, streams
        for _, _, data_of_streams in beside:
            streams.frombytes(data_of_streams)
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
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    words = list(request["words"])
    _set_path(words[0], request["environment"].get("PYTHONPATH", ""))
    code: Any = 0
    try:
        _run(words)
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


def _set_path(word: str, named: str) -> None:
    """What a new Python would search: the script's folder, PYTHONPATH, what is installed."""
    programs = str(Path(sys.executable).parent)
    first = {"-c": "", "-m": os.getcwd(), "ensue": programs}.get(word, str(Path(word).parent))
    libraries = [path for path in sys.path[1:] if path not in BEFORE]
    sys.path[:] = [first, *filter(None, named.split(":")), *libraries]


def _run(words: list[str]) -> None:
    kind, *rest = words
    if kind == "ensue":
        from ensue.cli import main

        sys.argv = words
        main()
    elif kind == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.argv = ["-c", *rest[1:]]
        names = {"__name__": "__main__"}
        exec(compile(rest[0], "<string>", "exec"), names)
    else:
        sys.argv = words
        runpy.run_path(kind, run_name="__main__")


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2], int(sys.argv[3]))
    sys.exit(ask(sys.argv[2], sys.argv[3:]))
