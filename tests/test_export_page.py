"""Models as pages that run them, in headless Chromium; tokenisers and operators in Node."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from browser import browser
from export_questions import MARKUP, STRANGE, TEXTS
from exports import ROWS, as_json, check_answer, made
from test_export_models import needs_node, no_node

from ensue.export.grid import ExportMismatch
from ensue.export.languages import JavaScript
from ensue.export.model import page_of, write_traced
from ensue.export.module import PATTERNS
from ensue.export.programs import node_program

pytestmark = pytest.mark.skipif(no_node(), reason="no Node.js")
needs_chromium = pytest.mark.skipif(shutil.which("chromium") is None, reason="no Chromium")
PAGES = [
    pytest.param(name, marks=[] if name == "classify" else [pytest.mark.slow]) for name in ROWS
]


@needs_node
def test_every_tokeniser_is_the_same(tmp_path: Path) -> None:
    from ensue.data.tokenise import Tokeniser

    script = (
        'import { readFileSync } from "node:fs";'
        'const [patterns, texts] = JSON.parse(readFileSync(0, "utf8"));'
        "process.stdout.write(JSON.stringify(patterns.map(([p, f]) =>"
        "texts.map((s) => s.normalize('NFC').match(new RegExp(p, f)) || []))));"
    )
    (tmp_path / "a.mjs").write_text(script)
    texts = [*TEXTS, *STRANGE]
    done = subprocess.run(
        [node_program(), str(tmp_path / "a.mjs")],
        input=json.dumps([list(PATTERNS.values()), texts]),
        capture_output=True,
        text=True,
        check=True,
    )
    for name, answers in zip(PATTERNS, json.loads(done.stdout), strict=True):
        assert answers == [Tokeniser(name)(text) for text in texts], name


def opened(page: Path, question: str) -> Any:
    """The answer of the page, and the whole page as it is shown; it may write nothing to the
    console."""
    words = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    address = f"file://{page}#{quote(question)}"
    done = subprocess.run(
        [*words, f"--user-data-dir={page.parent}/profile", "--dump-dom", address],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "CONSOLE" not in done.stderr, done.stderr
    (answer,) = re.findall(r'data-answer="([^"]*)"', done.stdout)
    return json.loads(html.unescape(answer)), done.stdout


def typed(question: Any) -> Any:
    """What can be typed: words are a text."""
    return " ".join(question) if isinstance(question, list) else question


def in_address(question: Any) -> str:
    """A question as the part after # in the address of a page."""
    if isinstance(question, str):
        return question
    if not isinstance(question, np.ndarray):
        return json.dumps(question)
    if question.dtype == np.uint8:
        return json.dumps(question.tolist())
    return "\n".join(" ".join(map(str, step)) for step in question.tolist())


def by_place(expected: dict[str, Any], labels: list[str]) -> dict[str, Any]:
    """As a page gives it: the probabilities of classes in their order."""
    if not labels:
        return expected
    return {**expected, "probabilities": [expected["probabilities"][label] for label in labels]}


# Each question is put after # in turn; what is in the page that only markup of a question can be?
ASK_ALL = """(async () => {
    const answers = [];
    for (const question of %s) {
        const heard = new Promise((done) => addEventListener("hashchange", done, { once: true }));
        const before = location.hash;
        location.hash = encodeURIComponent(question);
        if (location.hash === before) dispatchEvent(new HashChangeEvent("hashchange"));
        await heard;
        const foreign = document.querySelectorAll("main script, main b, main img").length;
        const written = [...document.querySelectorAll("main textarea, main select, main input")];
        const shown = written.map((node) => node.value).join(" ");
        answers.push([document.documentElement.dataset.answer, foreign, shown]);
    }
    return answers;
})()"""


@needs_chromium
@pytest.mark.parametrize("name", PAGES)
def test_a_page_answers_in_a_browser(name: str, tmp_path: Path) -> None:
    """A hundred questions, one page: it writes nothing to the console, requests nothing, and typed
    text is not markup."""
    row, export, page = ROWS[name], made(name), tmp_path / "page.html"
    questions = [typed(question) for question in row.question_set.many(100)]
    write_traced(export.traced, page)
    text = page.read_text()
    assert not re.search(r"(src|href)\s*=|https?://|import\s*\(|fetch\(", text)
    assert "default-src 'none'" in text
    assert text.count("</script>") == 1
    with browser(tmp_path / "profile") as chromium:
        chromium.open(page)
        answers = chromium.value(ASK_ALL % json.dumps([*map(in_address, questions)]))
    assert chromium.messages == []
    assert [address.split("#")[0] for address in chromium.requests] == [page.as_uri()]
    (after,) = export.traced.exported.after
    labels = after["labels"] if after["step"] == "labels" else []
    largest = 0.0
    for question, (answer, foreign, shown_tokens), expected in zip(
        questions, answers, row.expected_answers(export.model, questions), strict=True
    ):
        largest = max(largest, check_answer(json.loads(answer), by_place(expected, labels)))
        assert foreign == 0
        assert MARKUP not in in_address(question) or MARKUP in shown_tokens
    print(f"{name}: page: {len(answers)} answers, largest difference {largest:.1e}")


# The last word is pressed, and another typed in its place.
TRY = """(() => {
    location.hash = encodeURIComponent(%s);
    dispatchEvent(new HashChangeEvent("hashchange"));
    const all = document.querySelectorAll("#tokens .token"), last = all[all.length - 1];
    last.click();
    const field = document.querySelector("#swap input");
    field.value = "fine";
    field.dispatchEvent(new Event("input"));
    const probability = document.querySelector("#swap .found").textContent;
    return [all.length, probability, document.activeElement === field, last.ariaExpanded];
})()"""
# By how much the page is wider than its window.
WIDER = """(() => {
    location.hash = encodeURIComponent(%s);
    dispatchEvent(new HashChangeEvent("hashchange"));
    const { scrollWidth, clientWidth } = document.documentElement;
    return scrollWidth - clientWidth;
})()"""
# The last point is dragged, and then moved with a key.
MOVE = """(() => {
    const last = () => [...document.querySelectorAll(".point")].pop(), answers = [];
    const kept = () => answers.push(document.documentElement.dataset.answer);
    kept();
    const { x, y } = last().getBoundingClientRect(), options = { bubbles: true, cancelable: true };
    last().dispatchEvent(new PointerEvent("pointerdown", { clientX: x, clientY: y, ...options }));
    dispatchEvent(new PointerEvent("pointermove", { clientX: x, clientY: y - 60 }));
    dispatchEvent(new PointerEvent("pointerup"));
    kept();
    last().focus();
    last().dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowUp", ...options }));
    kept();
    return [answers, document.activeElement.classList.contains("point")];
})()"""


@needs_chromium
@pytest.mark.slow
def test_another_word_is_tried_and_points_are_moved(tmp_path: Path) -> None:
    questions = {"classify": "a film", "match": '["it rains", "dry"]', "language": "the cat"}
    for name in (*questions, "forecast, dates"):
        write_traced(made(name).traced, tmp_path / f"{name}.html", unchecked=True)
    with browser(tmp_path / "profile") as chromium:
        for name, question in questions.items():
            chromium.session = ""
            chromium.open(tmp_path / f"{name}.html")
            count, text, typing, pressed = chromium.value(TRY % json.dumps(question))
            assert (count, typing, pressed) == (3 if name == "match" else 2, True, "true")
            assert "%" in text
            assert chromium.value(WIDER % json.dumps(question.replace("a", "a" * 2000))) <= 0
        chromium.session = ""
        chromium.open(tmp_path / "forecast, dates.html")
        answers, focused = chromium.value(MOVE)
        assert len({*answers}) == 3
        assert focused
    assert chromium.messages == []


@needs_chromium
def test_markup_is_shown_as_text(tmp_path: Path) -> None:
    write_traced(made("classify").traced, tmp_path / "page.html", "int8")
    text = "a fine film <script>alert(1)</script> & <img src=x onerror=alert(1)>"
    answer, dom = opened(tmp_path / "page.html", text)
    assert sum(answer["probabilities"]) == pytest.approx(1, abs=1e-6)
    tokens = dom.split('id="tokens"')[1].split("</div>")[0]
    assert "&lt;" in tokens
    assert "<script" not in tokens
    assert "<img" not in tokens
    assert len((tmp_path / "page.html").read_text()) < 300_000  # the weights are small


# What is seen before anything is asked: the placeholder, the hints, and whether there is an answer.
OPENED = """(() => {
    const { placeholder, value } = document.querySelector("main textarea");
    const hints = [...document.querySelectorAll("main .hint")].filter((hint) => hint.offsetParent);
    const answered = document.getElementById("answered").offsetParent !== null;
    const title = document.getElementById("title").textContent;
    return [title, placeholder, value !== "", hints.map((hint) => hint.textContent), answered];
})()"""
NOTHING_ASKED = {  # placeholder, whether something is written, whether it is answered
    "tree": ("A tree in brackets: (S (NP the cat) (VP sat))", False, False),
    "classify, vectors": ("The numbers of a step in each line: 0.5 -1.2 3", False, False),
    "label": ("Type or paste a text…", False, False),
    "forecast": ("The series, one step a line", True, True),
}


@needs_chromium
@pytest.mark.slow
def test_a_page_says_what_is_asked_before_it_answers(tmp_path: Path) -> None:
    with browser(tmp_path / "profile") as chromium:
        for name, (placeholder_expected, filled, answered) in NOTHING_ASKED.items():
            traced = replace(made(name).traced, title=f"my {name}")
            write_traced(traced, tmp_path / f"{name}.html", unchecked=True)
            chromium.session = ""
            chromium.open(tmp_path / f"{name}.html")
            title, placeholder, written, hints, answer = chromium.value(OPENED)
            assert (title, placeholder) == (f"my {name}", placeholder_expected)
            assert (written, answer) == (filled, answered), name
            assert any("is an example" in hint for hint in hints) == filled
            assert not any("expected" in hint for hint in hints)
    assert chromium.messages == []


def test_a_page_is_called_as_its_run_or_its_file(tmp_path: Path) -> None:
    traced = made("classify").traced
    for title, expected in (("reviews & more", "reviews &amp; more"), ("", "page")):
        write_traced(replace(traced, title=title), tmp_path / "page.html", unchecked=True)
        assert f"<title>{expected}</title>" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("name", ["@SCRIPT@", "@TITLE@@POLICY@", "a @SCRIPT@ b"])
def test_a_name_like_a_placeholder_is_shown_as_it_is(name: str) -> None:
    page = page_of("export const AFTER = {};", name)
    assert f"<title>{name}</title>" in page
    assert page.count("export const AFTER") == 0
    assert page.count("const AFTER = {};") == 1


def test_a_sabotaged_module_leaves_no_file(tmp_path: Path, monkeypatch: Any) -> None:
    changed = {**JavaScript.spelling.calls, "tanh": "Math.atan"}
    monkeypatch.setattr(JavaScript, "spelling", type(JavaScript.spelling)(changed))
    with pytest.raises(ExportMismatch, match=r"JavaScript: .*not exported"):
        write_traced(made("classify").traced, tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []


def test_questions_as_json_keep_their_shape() -> None:
    (picture,) = json.loads(as_json([np.zeros((2, 3), np.uint8)]))
    assert picture == {"shape": [2, 3], "data": [0] * 6}
