"""A classifier as a module and as a page that runs it, in Node and in headless Chromium."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from test_export_models import TEXTS, classifier

from ensue.errors import OptionError
from ensue.export.grid import ExportMismatch
from ensue.export.languages import JavaScript
from ensue.export.model import write_model
from ensue.export.page import classifier as in_javascript
from ensue.export.programs import NoProgram, node_program

STRANGE = [
    "",
    "It's 3.50, isn't it? 1,000.5 l’été naïve",
    "<script>alert(1)</script> </script> <b>bold</b>",
    "日本語 のテキスト snake_case ½ ²",
    "a\u0301e\u0301 combined \u0915\u094d\u0937",
    "tabs\tand\nlines   spaces",
]
ANSWERS = """
import { readFileSync } from "node:fs";
const { answer } = await import(process.argv[2]);
const texts = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(texts.map((text) => {
    const { tokens, label, probabilities } = answer(text);
    return [tokens, label, probabilities];
})));
"""


def no_node() -> bool:
    try:
        node_program()
    except NoProgram:
        return True
    return False


pytestmark = pytest.mark.skipif(no_node(), reason="no Node.js")


@pytest.fixture(scope="module")
def model() -> Any:
    return classifier(pooling="mean+last+attention", members=2, cell="GRU")


@pytest.fixture(scope="module")
def folder(model: Any, tmp_path_factory: Any) -> Path:
    own = tmp_path_factory.mktemp("page")
    assert write_model(model, own / "model.js").difference < 1e-5
    write_model(model, own / "page.html", weights="int8")
    return own


def test_the_module_cuts_and_answers_as_python_does(model: Any, folder: Path) -> None:
    asked = [*TEXTS, *STRANGE]
    (folder / "main.mjs").write_text(ANSWERS)
    shutil.copy(folder / "model.js", folder / "model.mjs")
    done = subprocess.run(
        [node_program(), str(folder / "main.mjs"), str(folder / "model.mjs")],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=True,
    )
    tokeniser = model.learned.inputs.tokenisers.input
    rows = zip(asked, json.loads(done.stdout), model.predict(asked), strict=True)
    for text, (tokens, label, every), wanted in rows:
        assert tokens == tokeniser(text)
        assert label == wanted.label
        names = model.learned.labels.tokens
        assert dict(zip(names, every, strict=True)) == pytest.approx(wanted.probabilities, abs=1e-4)


@pytest.mark.parametrize("name", ["words", "pieces", "spaces", "characters"])
def test_every_tokeniser_is_the_same(name: str, tmp_path: Path) -> None:
    from ensue.data.tokenise import Tokeniser

    own = Tokeniser(name)
    pattern, flags = in_javascript.PATTERNS[name]
    script = (
        'import { readFileSync } from "node:fs";'
        f"const r = new RegExp({json.dumps(pattern)}, {json.dumps(flags)});"
        'const t = JSON.parse(readFileSync(0, "utf8"));'
        "process.stdout.write(JSON.stringify(t.map((s) => s.normalize('NFC').match(r) || [])));"
    )
    (tmp_path / "a.mjs").write_text(script)
    asked = [*TEXTS, *STRANGE]
    done = subprocess.run(
        [node_program(), str(tmp_path / "a.mjs")],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == [own(text) for text in asked]


def test_the_page_is_one_file_that_asks_for_nothing(folder: Path) -> None:
    page = (folder / "page.html").read_text()
    assert not re.search(r"(src|href)\s*=|https?://|import\s*\(|fetch\(", page)
    assert "default-src 'none'" in page
    assert page.count("</script>") == 1
    assert len(page) < 300_000  # the weights of this model are small


@pytest.mark.skipif(shutil.which("chromium") is None, reason="no Chromium")
def test_the_page_answers_in_a_browser(folder: Path) -> None:
    text = "a fine film <script>alert(1)</script> & <img src=x onerror=alert(1)>"
    address = f"file://{folder}/page.html#{quote(text)}"
    words = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    done = subprocess.run(
        [*words, f"--user-data-dir={folder}/profile", "--dump-dom", address],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "CONSOLE" not in done.stderr, done.stderr
    (found,) = re.findall(r'data-answer="([^"]*)"', done.stdout)
    answer = json.loads(html.unescape(found))
    assert sum(answer["probabilities"]) == pytest.approx(1, abs=1e-6)
    shown = done.stdout.split('id="tokens"')[1].split("</div>")[0]
    assert "&lt;" in shown
    assert "<script" not in shown
    assert "<img" not in shown


def test_a_sabotaged_module_leaves_no_file(model: Any, tmp_path: Path, monkeypatch: Any) -> None:
    changed = {**JavaScript.spelling.calls, "tanh": "Math.atan"}
    monkeypatch.setattr(JavaScript, "spelling", type(JavaScript.spelling)(changed))
    for name in ("model.js", "page.html"):
        with pytest.raises(ExportMismatch, match="JavaScript: not exported"):
            write_model(model, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_what_javascript_cannot_express_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="an encoder that is not recurrent as JavaScript"):
        write_model(classifier(encoder="plain", pooling="mean"), tmp_path / "model.js")
