"""Runs every command of a table with every standard stream lost in every way, a process each, and
prints the exit codes and messages as JSON. torch is loaded once, and the processes are forked.

    python lost_streams.py FOLDER"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from warm import load_everything, unsynced

from ensue import cli

FAST = ("--epochs", "1", "--hidden-size", "4", "--set", "model.embedding_size=4")
TRAIN = ("train", "reviews.csv", "--label", "label", *FAST, "--run")
MODELS = {
    "trained": (*TRAIN, "trained"),
    "other": (*TRAIN, "other", "--seed", "2"),
    "language": (
        "train", "lines.txt", "--task", "language", "--set", "model.family=ngram", "--run",
        "language",
    ),
}  # fmt: skip
# Reports about files are not answers: if one is lost, nothing is missing.
REPORTING = {
    "train": (*TRAIN, "{}"),
    "init": ("init", "reviews.csv", "--label", "label", "--run", "init-{}"),
    "data make": ("data", "make", "copy", "{}.jsonl", "--rows", "2"),
}
ANSWERING = {
    "--help": ("--help",),
    "--version": ("--version",),
    "settings": ("settings", "classify"),
    "cell list": ("cell", "list"),
    "cell show": ("cell", "show", "GRU"),
    "graph": ("graph", "x*y"),
    "flow": ("flow", "--cell", "GRU", "--hidden-size", "2", "--steps", "3", "--updates", "0"),
    "doctor": ("doctor",),
    "data check": ("data", "check", "reviews.csv"),
    "data show": ("data", "show", "reviews.csv"),
    "train --dry-run": (*TRAIN, "{}", "--dry-run"),
    "runs": ("runs", "trained"),
    "evaluate": ("evaluate", "trained", "--validation"),
    "compare": ("compare", "trained", "other", "--validation"),
    "predict": ("predict", "trained", "reviews.csv"),
    "generate": ("generate", "language", "--tokens", "3"),
}
TYPED = {
    "predict lines": ("predict", "trained"),
    "suggest": ("suggest", "language"),
}
FAILING = {
    "unknown": ("train", "none.csv"),
    "no run": ("predict", "none"),
}
STREAMS = {"stdin": 0, "stdout": 1, "stderr": 2}


def close(stream: int) -> None:
    os.close(stream)
    name = list(STREAMS)[stream]
    setattr(sys, name, None)
    setattr(sys, f"__{name}__", None)


def fill(stream: int) -> None:
    os.dup2(os.open("/dev/full", os.O_RDWR), stream)


def leave(stream: int) -> None:
    reader, writer = os.pipe()
    os.dup2(writer, stream)
    os.close(reader)


WAYS: dict[str, Callable[[int], None]] = {"closed": close, "full": fill, "left": leave}


EVERY = [("stdin", "closed"), *((name, way) for name in ("stdout", "stderr") for way in WAYS)]
SOME = [("stdin", "closed"), ("stdout", "full"), ("stderr", "left")]
THOROUGH = ("train", "predict", "predict lines", "--help", "unknown")  # the others share their way


def run(words: tuple[str, ...], stream: int | None = None, way: str = "closed") -> tuple[int, str]:
    """The exit code of a command in a process of its own, and what it says."""
    child = os.fork()
    if not child:
        os.dup2(os.open("typed.txt", os.O_RDONLY), STREAMS["stdin"])
        os.dup2(os.open(os.devnull, os.O_WRONLY), STREAMS["stdout"])
        file = os.open("said.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, STREAMS["stderr"])
        code = 1
        try:
            if stream is not None:
                WAYS[way](stream)
            cli.main(words)
        except SystemExit as ending:
            code = int(ending.code or 0)
        except BaseException as problem:
            os.write(file, f"Traceback: {problem!r}".encode())
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), Path("said.txt").read_text("utf-8")


def main(folder: str) -> None:
    load_everything()
    os.fsync = unsynced
    os.chdir(folder)
    rows = [f"a {'good' if k % 2 else 'bad'} film {k},{k % 2}" for k in range(40)]
    Path("reviews.csv").write_text("\n".join(["text,label", *rows, ""]))
    Path("lines.txt").write_text("the dog runs\nthe cat sleeps\n" * 20)
    Path("typed.txt").write_text("a good film\na bad film\n")
    for words in MODELS.values():
        code, output = run(words)
        assert code == 0, output
    results = []
    for verb, words in {**REPORTING, **ANSWERING, **TYPED, **FAILING}.items():
        for name, way in EVERY if verb in THOROUGH else SOME:
            filled = tuple(word.replace("{}", f"{name}-{way}") for word in words)
            code, output = run(filled, STREAMS[name], way)
            results.append([verb, name, way, code, output])
    print(json.dumps(results))


if __name__ == "__main__":
    main(sys.argv[1])
