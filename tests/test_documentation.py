"""Documentation runs: every fenced block of README.md, CONTRIBUTING.md and docs/ is executed.

    python              run, in one namespace for each file, in order
    console             lines after `$ ` are commands, the lines below each are its output
    bash, sh            every line is a command
    text, output        directly after one of these: what that block printed
    json, jsonl, toml   parsed

`...` in an output stands for the rest of a line, alone on a line for any lines. A block
marked `long` (```` ```console long ````) is checked as far as that goes without running it.
`ensue` is run, `make` dry-run, `pip`, `git` and `cd` only parsed; a program or an info
string that is not known fails, so that nothing is skipped in silence.

Each document runs in a process of its own and a copy of the repository; this file is that
process too: `python tests/test_documentation.py README.md` runs one document right here.
README.md has the installed `ensue`; the others have one that is warm (see warm.py).
"""

import ast
import contextlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
import tomllib
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from warm import Warm

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [
    *(path for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md") if path.exists()),
    *sorted((ROOT / "docs").rglob("*.md")),
]

SHOWN_ONLY = {"cpp", "csv", "diff", "html", "latex", "mermaid", "tsv"}
# No `head`: it closes the pipe early, and whether the writer notices is a matter of luck.
EXECUTED = {"head", "ensue", "python", "cat", "echo", "grep", "ls", "printf", "sort", "tail", "wc"}
PARSED = {"pip", "git", "cd", "cc", "example", "torchrun"}
LONGEST = 300  # seconds for one command
WARM = "WARM_COMMANDS"  # a folder that stands before the others on the PATH of commands


class Wrong(Exception):
    """What a document says is not what happens."""


# --- reading --------------------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    """A fenced block; `line` is that of its fence, `adjoins` says that a block ends just above."""

    line: int
    language: str
    long: bool
    text: str
    adjoins: bool


def blocks(document: str) -> Iterator[Block]:
    """The fenced blocks of a Markdown text, in order."""
    lines = enumerate(document.splitlines(), start=1)
    adjoins = False
    for number, line in lines:
        opening = re.fullmatch(r"( *)(`{3,}|~{3,})([^`]*)", line)
        if opening is None:
            if "```" in line:
                raise Wrong(f"line {number}: a fence is read only where it begins the line")
            adjoins = adjoins and not line.strip()
            continue
        indent, fence, info = opening.groups()
        closing = re.compile(rf" *{fence[0]}{{{len(fence)},}} *")
        body: list[str] = []
        for _, inside in lines:
            if closing.fullmatch(inside):
                break
            body.append(inside.removeprefix(indent))
        else:
            raise Wrong(f"line {number}: this fence is never closed")
        language, *marks = info.split() or [""]
        if set(marks) - {"long"}:
            raise Wrong(f"line {number}: {marks} is not known; the only mark is `long`")
        yield Block(number, language, "long" in marks, "\n".join(body), adjoins)
        adjoins = True


@dataclass(frozen=True)
class Command:
    line: int
    text: str
    output: str


def commands(block: Block) -> Iterator[Command]:
    """The commands of a shell block with the output shown for each, empty where none is."""
    lines = list(enumerate(block.text.splitlines(), start=block.line + 1))
    prompt = "$ " if block.language == "console" else ""
    while lines:
        number, text = lines.pop(0)
        if not text.startswith(prompt):
            raise Wrong(f"line {number}: in a console block a command begins with `$ `")
        text = text.removeprefix(prompt)
        while text.endswith("\\") and lines:
            text = text[:-1] + lines.pop(0)[1].removeprefix("> ")
        output = []
        while prompt and lines and not lines[0][1].startswith(prompt):
            output.append(lines.pop(0)[1])
        if text.strip() and not text.startswith("#"):
            yield Command(number, text, "\n".join(output))


def matches(expected: str, printed: str) -> bool:
    """Whether an output is the one shown, `...` standing for anything.

    Spaces at the end of a line and empty lines at the end do not count.
    """
    pattern = ""
    for line in expected.rstrip().splitlines():
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(map(re.escape, line.rstrip().split("..."))) + r"\n"
    lines = printed.rstrip().splitlines()
    return re.fullmatch(pattern, "".join(line.rstrip() + "\n" for line in lines)) is not None


def compare(line: int, expected: str, printed: str) -> None:
    if not matches(expected, printed):
        raise Wrong(
            f"line {line}: the document shows\n{expected}\nbut this was printed:\n{printed}"
        )


# --- running --------------------------------------------------------------------------


def run_python(block: Block, name: str, module: types.ModuleType) -> str:
    """What the block prints; blank lines before it keep the document's line numbers."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            exec(compile("\n" * block.line + block.text, name, "exec"), module.__dict__)
        except (Exception, SystemExit) as problem:  # leaving early would skip the rest
            kind = type(problem).__name__
            raise Wrong(f"line {block.line}: the block raises {kind}: {problem}") from problem
    return printed.getvalue()


def simple_commands(text: str) -> list[list[str]]:
    """The words of each command that a line joins by `|`, `&&`, `;`; redirections cut off.

    `A=1 ensue demo | tail -3 > x` → `[["ensue", "demo"], ["tail", "-3"]]`
    """
    reader = shlex.shlex(text, posix=True, punctuation_chars=True)
    reader.whitespace_split = True
    commands_found: list[list[str]] = [[]]
    cut = False
    for word in reader:
        if set(word) <= set("|&;()"):
            commands_found.append([])
            cut = False
        elif set(word) <= set("<>&"):
            cut = True
        elif not cut and (commands_found[-1] or not re.match(r"\w+=", word)):
            commands_found[-1].append(word)
    return [words for words in commands_found if words]


def shell(script: str) -> str:
    """Run a script with this Python's programs first on the path; its stdout."""
    programs = [os.environ.get(WARM, ""), os.path.dirname(sys.executable), os.environ["PATH"]]
    path = ":".join(filter(None, programs))
    run = subprocess.run(
        ["bash", "-c", script],
        env=os.environ | {"PATH": path, "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )
    if run.returncode:
        raise Wrong(f"`{script}` ends with {run.returncode}:\n{run.stdout}{run.stderr}")
    return run.stdout


def rehearse(words: list[str]) -> None:
    """Check a command without doing what it does."""
    program = os.path.basename(words[0])
    if program == "make":
        shell(shlex.join(["make", "--dry-run", *words[1:]]))
    elif program == "ensue":  # an unknown word or option fails before the help is printed
        shell(shlex.join([*words, "--help"]))
    elif program == "torchrun":  # starts what stands after its own words
        rehearse(words[words.index("--") + 1 :])


def run_command(command: Command, long: bool) -> str | None:
    """What a command prints, or None where it was only rehearsed."""
    shell(f"set -n\n{command.text}")
    parts = simple_commands(command.text)
    programs = {os.path.basename(words[0]) for words in parts}
    unknown = programs - EXECUTED - PARSED - {"make"}
    if unknown:
        raise Wrong(f"this test does not know what to do with {sorted(unknown)}")
    if programs <= EXECUTED and not long:
        return shell(f"set -o pipefail\n{command.text}")
    if programs & EXECUTED and not long:
        raise Wrong(f"{sorted(programs)} stand in one line: some to be run, some not; divide it")
    for words in parts:
        rehearse(words)
    return None


def run_shell(block: Block) -> str | None:
    """What all commands of a block print, or None where one was only rehearsed."""
    whole: str | None = ""
    for command in commands(block):
        try:
            printed = run_command(command, block.long)
        except (Wrong, ValueError, subprocess.TimeoutExpired) as problem:
            raise Wrong(f"line {command.line}: {problem}") from problem
        if printed is not None and command.output.strip():
            compare(command.line, command.output, printed)
        whole = None if whole is None or printed is None else whole + printed
    return whole


def parse(block: Block) -> None:
    """Check the form of a block that is data or is marked long."""
    try:
        if block.language == "python":
            ast.parse(block.text)
        elif block.language == "json":
            json.loads(block.text)
        elif block.language == "jsonl":
            for line in block.text.splitlines():
                json.loads(line)
        elif block.language == "toml":
            tomllib.loads(block.text)
    except (SyntaxError, ValueError) as problem:
        raise Wrong(f"line {block.line}: not {block.language}: {problem}") from problem


def run_document(path: Path) -> None:
    """Execute every block of a document, in the current folder; `Wrong` at the first untruth."""
    module = types.ModuleType("document")
    sys.modules[module.__name__] = module
    printed: str | None = None  # by the block before, None where it was not run
    can_print = False
    for block in blocks(path.read_text(encoding="utf-8")):
        follows = block.adjoins and can_print
        can_print = block.language in {"python", "console", "bash", "sh"}
        if block.language == "python" and not block.long:
            printed = run_python(block, path.name, module)
        elif block.language in {"console", "bash", "sh"}:
            printed = run_shell(block)
        elif block.language in {"python", "json", "jsonl", "toml"}:
            parse(block)
            printed = None
        elif block.language in {"text", "output"}:
            if follows and printed is not None:
                compare(block.line, block.text, printed)
            elif block.language == "output" and not follows:
                raise Wrong(f"line {block.line}: no block comes before this output")
        elif block.language not in SHOWN_ONLY:
            raise Wrong(f"line {block.line}: the language {block.language!r} is not known")


LEFT_OUT = (
    ".git",
    ".venv",
    ".venv-peers",
    ".faults",
    ".mutants",
    ".*_cache",
    ".hypothesis",
    "__pycache__",
    "build",
    "dist",
    "tests",
)


def copy_repository(path: Path, place: Path) -> None:
    """Copy what the blocks of a document may use. Most of the files are those of src, which few
    documents name: the others run without it."""
    named = any("src/" in block.text for block in blocks(path.read_text(encoding="utf-8")))
    left = LEFT_OUT if named else (*LEFT_OUT, "src")
    shutil.copytree(ROOT, place, ignore=shutil.ignore_patterns(*left))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_document_is_true(path: Path, tmp_path: Path, warm: Warm) -> None:
    place = tmp_path / "ensue"
    copy_repository(path, place)
    (place / ".venv").symlink_to(sys.prefix)
    command = [__file__, str(path)]
    if path.name == "README.md":
        words = [sys.executable, *command]
        run = subprocess.run(words, cwd=place, capture_output=True, text=True)
    else:
        run = warm.run(command, place, {WARM: str(warm.folder)})
    assert run.returncode == 0, f"{path.relative_to(ROOT)}: {run.stderr}"


# --- the runner itself ----------------------------------------------------------------

TRUE = """
# Made up

```python
x = 6
print("one", x)
print("two")
```

```text
one ...
two
```

```python
print(x * 7)  # the same namespace
```
```output
42
```

  - indented
    ```python
    from dataclasses import dataclass
    @dataclass
    class A:
        a: "int" = x
    print(A())
    ```

Prose.

```text
A picture, no output: prose comes before it
```

````console
$ ensue --version   # with a comment
ensue ...
$ echo a; echo b; \\
>     echo c | cat
a
...
c
$ make help test ARGS="-k x"
never compared
$ git clone somewhere && cd ensue
$ ensue doctor --json | wc -l
1
````

```bash
# a comment

X=1 ensue --help > help.txt
.venv/bin/python -c 'print("via the link")'
```

```console long
$ ensue doctor --json
never compared
$ make test
```

```python long
raise SystemExit("never run")
```

```output
never compared
```

```json
{"a": [1]}
```

```jsonl
{"a": 1}
{"a": 2}
```

```toml
a = 1
```

```latex
\\sigma
```
"""


def document(folder: Path, text: str) -> Path:
    (folder / ".venv").symlink_to(sys.prefix)
    (folder / "Makefile").write_text("help test:\n\t@exit 3\n")
    path = folder / "made-up.md"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


def test_a_true_document_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warm: Warm
) -> None:
    monkeypatch.setenv(WARM, str(warm.folder))
    monkeypatch.chdir(tmp_path)
    run_document(document(tmp_path, TRUE))
    assert "Usage: ensue" in (tmp_path / "help.txt").read_text()


@pytest.mark.parametrize(
    ("block", "complaint"),
    [
        ("```python\nprint(1)\n```\n```text\n2\n```", "shows\n2\nbut this was printed:\n1"),
        ("```python\nprint(1)\n```\n\n```output\n1\n2\n```", "shows\n1\n2"),
        ("```python\nprint(1)\nprint(2)\n```\n```text\n1\n```", "shows\n1\n"),
        ("```python\nprint('a.b')\n```\n```text\na+b\n```", "shows"),
        ("```python\nx = 1\n\nx.y\n```", "AttributeError"),
        ("```python\nimport warnings\nwarnings.warn('old')\n```", "UserWarning: old"),
        ("```python\nraise SystemExit\n```", "SystemExit"),
        ("```python\n1 +\n```", "SyntaxError"),
        ("```python\nprint(undefined)\n```", "NameError"),
        ("```python long\nthis is no python\n```", "not python"),
        ("```console\n$ ensue --version\nensue 99\n```", "shows\nensue 99"),
        ("```console\nensue --version\n```", "begins with `$ `"),
        ("```bash\nensue --versoin\n```", "ends with 2"),
        ("```sh\nensue --version\n```\n```text\nensue 99\n```", "shows\nensue 99"),
        ("```bash\nensue nonsense | cat\n```", "ends with 2"),
        ("```bash long\nensue doctor --jsn\n```", "ends with 2"),
        ("```bash long\nensue nonsense\n```", "ends with 2"),
        ("```bash\nmake nonsense\n```", "ends with 2"),
        ("```bash\ngit clone 'somewhere\n```", "line 2"),
        ("```bash\npip install x &&\n```", "line 2"),
        ("```bash\nfrobnicate\n```", "frobnicate"),
        ("```bash\nmake help && ensue --version\n```", "divide it"),
        ("```json\n{'a': 1}\n```", "not json"),
        ("```jsonl\n{}\n{\n```", "not jsonl"),
        ("```toml\na = \n```", "not toml"),
        ("```pythn\n1\n```", "'pythn' is not known"),
        ("```\n1\n```", "'' is not known"),
        ("```python skip\n1\n```", "the only mark is `long`"),
        ("```output\n1\n```", "no block comes before"),
        ("```python\n1\n```\nProse.\n```output\n1\n```", "no block comes before"),
        ("```python\n1", "never closed"),
        ("> ```python\n> 1\n> ```", "begins the line"),
    ],
)
def test_an_untrue_document_fails(
    block: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = document(tmp_path, block)
    with pytest.raises(Wrong) as problem:
        run_document(path)
    assert complaint in str(problem.value)
    assert re.match(r"line \d", str(problem.value))


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("a\nb", "a  \nb\n\n", True),
        ("a\n...\nd", "a\nb\nc\nd\n", True),
        ("a\n...\nd", "a\nd\n", True),
        ("loss ... after 3 s", "loss 0.25 after 3 s", True),
        ("loss ... after 3 s", "loss 0.25 after\n3 s", False),
        ("a\n...\nd", "a\nb\n", False),
        ("...", "", True),
        ("a", "a\nb", False),
        ("", "", True),
    ],
)
def test_dots_stand_for_anything(expected: str, printed: str, same: bool) -> None:
    assert matches(expected, printed) == same


if __name__ == "__main__":
    sys.path.append("")  # a Python that is started in the clone finds benchmarks/ there
    run_document(Path(sys.argv[1]))
