"""What an exported file has next to the weights: vocabularies and n-grams, in few bytes."""

from __future__ import annotations

import base64
import json
import subprocess
import zlib
from hashlib import md5
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_export_models import needs_node

from ensue.data.vocabulary import Vocabulary
from ensue.export.module import RUNTIME, packed
from ensue.export.programs import node_program
from ensue.tasks.label.exported import _sorted_tokens
from ensue.tasks.rows.exported import _hash_table, _idf_table

LONG = [f"wörd {k % 97} “{k}”\n\ud800" for k in range(400)]


def loaded(pieces: str) -> dict[str, Any]:
    """What predict.py is made of, as far as these pieces go."""
    folder, names = Path(__file__).parent.parent / "src/ensue/export/example", dict[str, Any]()
    for piece in pieces.split():
        exec((folder / f"{piece}.py.txt").read_text(), names)
    return names


def test_long_lists_are_packed_and_come_back() -> None:
    pytest.importorskip("onnxruntime")
    about = {"labels": ["a", "b"], "steps": [{"vocabulary": LONG, "numbers": [1.5] * 300}]}
    small = json.dumps(packed(about))
    assert json.loads(small, object_hook=loaded("core")["unpacked"]) == about
    assert len(small) < len(json.dumps(about)) / 2
    assert '"labels": ["a", "b"]' in small  # what is short can be read


@needs_node
def test_javascript_unpacks_what_zlib_packed(tmp_path: Path) -> None:
    """Blocks that are stored, of the fixed code and of codes of their own; matches near and far."""
    random = np.random.default_rng(1)
    noise = random.bytes(70_000)
    texts = [b"", b"a", b"ab" * 40_000, noise, noise[:300] * 200, json.dumps(LONG).encode()]
    texts.append(bytes(random.geometric(0.3, 200_000).clip(0, 255).astype(np.uint8)))
    made = [zlib.compress(text, level) for text in texts for level in (0, 1, 9)]
    fixed = zlib.compressobj(9, strategy=zlib.Z_FIXED)
    made.append(fixed.compress(texts[5]) + fixed.flush())
    script = (RUNTIME / "packing.js").read_text() + (
        'import { readFileSync } from "node:fs"; import { createHash } from "node:crypto";'
        'const job = JSON.parse(readFileSync(0, "utf8"));'
        "const digest = (text) => createHash('md5').update(inflated(bytesOf(text))).digest('hex');"
        "process.stdout.write(JSON.stringify([job[0].map(digest), unpacked(job[1])]));"
    )
    (tmp_path / "a.mjs").write_text(script)
    job = [
        [base64.b64encode(packed_bytes).decode() for packed_bytes in made],
        packed({"v": LONG, "n": [1, None]}),
    ]
    done = subprocess.run(
        [node_program(), str(tmp_path / "a.mjs")],
        input=json.dumps(job),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    digests, lists = json.loads(done.stdout)
    assert digests == [md5(zlib.decompress(packed_bytes)).hexdigest() for packed_bytes in made]
    assert lists == {"v": LONG, "n": [1, None]}


@pytest.mark.parametrize("count", [0, 1, 5, 3000])
def test_a_table_of_hashes_knows_those_and_hardly_others(count: int) -> None:
    pytest.importorskip("onnxruntime")
    random = np.random.default_rng(count)
    every = np.unique(random.integers(0, 1 << 64, 2 * count, np.uint64))
    hashes, idf = every[::2], random.choice([1.0, 2.5, 7.25], len(every[::2])).astype(np.float32)
    block = {**_hash_table(hashes), **_idf_table(idf)}
    left_out, known, weights = loaded("core ngrams")["table_of"](block)
    assert (known == hashes >> left_out).all()
    assert (weights == idf).all()
    assert not np.isin(every[1::2] >> left_out, known).any()
    bytes_each = sum(len(block[key]) for key in ("buckets", "rests", "codes", "idf")) * 3 / 4
    assert bytes_each < 150 + 4.2 * count  # of 12 that a hash and an idf have


def test_two_hashes_that_begin_alike_are_kept_apart() -> None:
    near = np.array([1 << 63, (1 << 63) + (1 << 33), (1 << 63) + (1 << 50)], np.uint64)
    assert _hash_table(near)["bytes"] == 4
    assert _hash_table(near[[0, 2]])["bytes"] == 3


def test_features_are_sorted_behind_the_special_ones() -> None:
    tokens = ("<pad>", "<unk>", "z", "a", "m")
    vocabulary = Vocabulary.build({"z": 3, "a": 2, "m": 1})
    assert vocabulary.tokens == tokens
    assert [vocabulary.tokens[k] for k in _sorted_tokens(vocabulary)] == [
        "<pad>",
        "<unk>",
        "a",
        "m",
        "z",
    ]
