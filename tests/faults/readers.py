"""Every reader of files from outside, with small clean files of its kind.

A new format of `ensue.data.formats` is a reader here by itself; with clean files of its own in
`CLEAN` its mutations go deeper."""

from __future__ import annotations

import gzip
import io
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow
import pyarrow.parquet

from ensue.data.check import check
from ensue.data.formats import format_names
from ensue.data.options import ReadOptions
from ensue.data.pictures.images import encode_png, read_idx_pictures, read_image
from ensue.data.read import read, read_parallel, read_series
from ensue.data.rows import Problem, Row
from ensue.data.show import Preview
from ensue.data.vectors import read_vectors
from ensue.data.vocabulary import Vocabulary, count_tokens
from ensue.runs.config import RunConfig
from ensue.runs.infer import infer
from ensue.tasks.language.ngram.arpa import read_arpa
from faults.records import (
    Count,
    every_line,
    filled_lines,
    listed,
    quoted_lines,
    sentences,
    table_lines,
    uncounted,
    unpacked,
)

Clean = tuple[bytes, ...]

# --- clean files ---------------------------------------------------------------------------

CSV: Clean = (
    b'text,label,number\n"a, fine film",good,1.5\nso "so",bad,-2e3\n"two\nlines",good,0\n',
    "texte;étiquette\nça va;oui\nnaïve;non\n".encode("cp1252"),
    "month,sales,shop\n2024-01,10.5,a\n2024-02,11,a\n2024-03,9,b\n".encode("utf-16"),
    b"text,label\r\none,x\r\ntwo,y\r\n",
)
TSV: Clean = (b"text\tlabel\na fine film\tgood\nso so\tbad\n", b"a\tb\n1\t2\n3\t4\n")
JSONL: Clean = (
    b'{"text": "a \\u00e9", "label": 1, "tokens": ["b", "c"], "frames": [[1, 2.5], [3, 4]]}\n' * 2,
    b'{"text": "a", "label": "x", "n": null}\n{"text": "b", "label": "y", "n": 3}\n',
)
JSON: Clean = (
    b'[{"text": "a", "label": "x"},\n {"text": "b", "label": "y", "v": [1, 2]}]\n',
    b'{"rows": [{"text": "a"}]}',
)
CONLL: Clean = (
    b"# a remark\nAlice B-PER\nruns O\n\nBob B-PER\nsleeps O\n",
    b"-DOCSTART- -X- O O\n\nEU NNP B-NP B-ORG\nrejects VBZ B-VP O\n",
)
CONLLU: Clean = (
    b"# sent_id = 1\n# text = It ran\n1\tIt\tit\tPRON\tPRP\t_\t2\tnsubj\t_\t_\n"
    b"2-3\tran\t_\t_\t_\t_\t_\t_\t_\t_\n2\tran\trun\tVERB\tVBD\t_\t0\troot\t_\t_\n\n",
)
TEXT: Clean = (b"a line\nanother line\n\nthe last one", "日本\nna\u00efve \u2028 x\n".encode())
LABELLED: Clean = (b"__label__good a fine film\n__label__bad so so\n", b"good a film\nbad so\n")
VECTORS: Clean = (
    b"3 4\ngood 0.1 -2 3e-1 4\nbad 1 2 3 4\nfilm 0 0 0 1\n",
    b"good 0.25 1\nbad -1 2\n. . . 1 2\n",
)
ARPA: Clean = (
    b"\\data\\\nngram 1=3\nngram 2=2\n\n\\1-grams:\n-1.0\t<s>\t-0.5\n-0.5\t</s>\n-0.3\ta\t-0.2\n"
    b"\n\\2-grams:\n-0.2\t<s> a\n-0.4\ta </s>\n\n\\end\\\n",
)
TOML: Clean = (
    b'task = "classify"\nmembers = 1\n\n[data]\ntrain = ["a.csv"]\ntext = "text"\nlabel = "label"\n'
    b'\n[model]\ncell = "GRU"\nhidden_size = 8\n\n[train]\nepochs = 3\nrate = 0.02\n',
    b'task = "forecast"\n[data]\ntrain = ["a.csv"]\n[model]\ntargets = ["sales"]\nhorizon = 2\n',
)


def _pictures() -> tuple[Clean, Clean]:
    """PNG of every kind of pixel and filter that is read, PGM and PPM."""
    draw = np.random.default_rng(1)
    pictures = [encode_png(draw.integers(0, 256, (5, 4, c)).astype(np.uint8)) for c in (1, 2, 3, 4)]
    plain = (
        b"P5 4 3 255\n" + bytes(range(12)),
        b"P6\n# by hand\n2 2\n15\n" + bytes(range(12)),
    )
    return tuple(pictures), plain


def _idx() -> tuple[Clean, Clean]:
    pictures = struct.pack(">IIII", 0x803, 3, 2, 2) + bytes(range(12))
    return (pictures,), (struct.pack(">II", 0x801, 3) + bytes(3),)


def _columnar() -> tuple[Clean, Clean]:
    """Parquet, and Arrow's own files."""
    table = pyarrow.table(
        {"text": ["a", "b", None, "日本"], "label": [1, 2, 3, 4], "v": [[1.0], [2.0], [], [3.0]]}
    )
    parquets = []
    for compression in ("none", "gzip"):
        out = io.BytesIO()
        pyarrow.parquet.write_table(table, out, compression=compression)
        parquets.append(out.getvalue())
    out = io.BytesIO()
    with pyarrow.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)
    return tuple(parquets), (out.getvalue(),)


TREES: Clean = (b"(3 (2 It) (4 (2 is) (3 good)))\n(1 (0 no)\n  (1 way))\n",)
CLEAN: dict[str, Clean] = {
    "csv": CSV,
    "tsv": TSV,
    "jsonl": JSONL,
    "json": JSON,
    "conll": CONLL,
    "conllu": CONLLU,
    "text": TEXT,
    "whole": TEXT,
    "labelled": LABELLED,
    "fasttext": LABELLED,
    "trees": TREES,
}

COUNTS: dict[str, Count] = {
    "csv": quoted_lines(),
    "tsv": table_lines,
    "jsonl": filled_lines,
    "json": listed,
    "conll": sentences,
    "conllu": sentences,
    "text": every_line,
    "labelled": filled_lines,
    "fasttext": filled_lines,
}

# --- reading all of a file -----------------------------------------------------------------

NAMED = {"conllu": "u.conllu", "fasttext": "a.txt", "labelled": "a.txt", "whole": "a.txt"}
SHOWN = 20  # problems that are written out


class Counted(NamedTuple):
    """Rows that a reader gave and rejected; ended: whether it read the file to its end."""

    accepted: int
    rejected: int
    ended: bool


def _read_all(rows: Iterable[Row], problems: list[Problem]) -> Counted:
    """Goes through the rows, and words the problems as a message does."""
    accepted = sum(1 for _ in rows)
    for problem in problems[:SHOWN]:
        str(problem)
    rejected = sum(problem.rejects for problem in problems)
    whole = not any(problem.rejects == 0 for problem in problems)
    return Counted(accepted, rejected, whole)


def _read(path: Path, options: ReadOptions) -> Counted:
    problems: list[Problem] = []
    return _read_all(read(path, options, problems.append), problems)


def _series(path: Path) -> Counted:
    problems: list[Problem] = []
    return _read_all(read_series(path, problems.append, time="month"), problems)


def _long_table(path: Path) -> None:  # its rows are sequences of lines
    _read(path, ReadOptions(sequence="shop", numbers=("sales",), time="month"))


def _parallel(path: Path) -> None:
    problems: list[Problem] = []
    path.with_name("other").write_bytes(TEXT[0])
    pairs = read_parallel(path, path.with_name("other"), ReadOptions(), problems.append)
    _read_all(pairs, problems)


def _check(path: Path) -> None:
    check({"train": [path]}, ReadOptions()).as_text()


def _show(path: Path) -> None:
    preview = Preview.of(path, ReadOptions())
    preview.as_text()
    preview.tokens()


def _infer(path: Path) -> None:
    infer({"train": [str(path)]}, None, [])


@cache
def _vocabulary() -> Vocabulary:
    return Vocabulary.build(count_tokens([["good", "bad", "film", "."]]))


def _vectors(path: Path) -> None:
    read_vectors(path, _vocabulary())


def _labelled_pictures(path: Path) -> None:
    labels = path.with_name(path.name.replace("images", "labels").replace("idx3", "idx1"))
    labels = labels.with_suffix("") if labels.suffix == ".gz" else labels
    labels.write_bytes(_idx()[1][0])
    for _ in read_idx_pictures(path):
        pass


# --- the table -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Reader:
    """file: the name that the data are written under; packed: they are mutated within gzip as well
    as around it; clean: what is mutated; read: goes through all of a file; count: its rows, counted
    otherwise."""

    name: str
    file: str
    clean: Clean
    read: Callable[[Path], Any]
    packed: bool = False
    count: Count = uncounted


def _format(name: str) -> Reader:
    every = tuple(content for clean in CLEAN.values() for content in clean)
    clean = CLEAN.get(name) or every
    ending = NAMED.get(name, f"a.{name}")
    read = partial(_read, options=ReadOptions(format=name))
    return Reader(name, ending, clean, read, count=COUNTS.get(name, uncounted))


@cache
def readers() -> Sequence[Reader]:
    """All of them; a folder of texts is read file by file as "whole"."""
    png, netpbm = _pictures()
    idx, _ = _idx()
    parquet, arrow = _columnar()
    tables = CSV + JSONL + TSV
    CLEAN["parquet"] = parquet
    by_name = partial(_read, options=ReadOptions())
    return [
        *(_format(name) for name in format_names() if name != "folder"),
        Reader("csv by its name", "a.csv", CSV, by_name, count=quoted_lines()),
        Reader("csv in cp1252", "a.csv", CSV,
               partial(_read, options=ReadOptions(encoding="cp1252", delimiter=";")),
               count=quoted_lines(";", "cp1252")),
        Reader("csv in utf-16", "a.csv", CSV,
               partial(_read, options=ReadOptions(encoding="utf-16"))),
        Reader("csv.gz", "a.csv.gz", CSV, by_name, True, unpacked(quoted_lines())),
        Reader("jsonl.gz", "a.jsonl.gz", JSONL, by_name, True, unpacked(filled_lines)),
        Reader("a name that says nothing", "a.data", tables + LABELLED, by_name),
        Reader("xlsx", "book.xlsx", (b"PK\x03\x04" + bytes(60), *tables), by_name),
        Reader("arrow", "a.arrow", arrow, by_name),
        Reader("series", "a.csv", CSV[2:3] + CSV, _series),
        Reader("long table", "a.csv", CSV[2:3], _long_table),
        Reader("parallel", "a.en", TEXT, _parallel),
        Reader("data check", "a.csv", CSV, _check),
        Reader("data check of JSON lines", "a.jsonl", JSONL, _check),
        Reader("data show", "a.jsonl", JSONL, _show),
        Reader("infer", "a.csv", CSV + TSV, _infer),
        Reader("vectors", "v.txt", VECTORS, _vectors),
        Reader("vectors.gz", "v.txt.gz", VECTORS, _vectors, packed=True),
        Reader("png", "a.png", png, read_image),
        Reader("pgm and ppm", "a.pgm", netpbm, read_image),
        Reader("idx", "x-images-idx3-ubyte", idx, _labelled_pictures),
        Reader("idx.gz", "x-images-idx3-ubyte.gz", idx, _labelled_pictures, packed=True),
        Reader("arpa", "a.arpa", ARPA, read_arpa),
        Reader("config.toml", "config.toml", TOML, RunConfig.read),
    ]  # fmt: skip


def packed(data: bytes) -> bytes:
    return gzip.compress(data, 1, mtime=0)
