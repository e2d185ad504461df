"""The demo's report: one page of HTML that needs no other file and no network."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ensue import __version__
from ensue.demo.trial import DemoTrial, Share, lengths_beside
from ensue.drawing.chart import Axis, Panel, colour_of
from ensue.drawing.svg import INK, QUIET, RULE, Drawing
from ensue.drawing.theme import PAPER, css_variables

if TYPE_CHECKING:
    from ensue.tasks.model import Model

EXAMPLES = ("Mittwoch, der 24. Oktober 2012", "Fri., Aug. 7, 1981", "el cinco de mayo de 1997")
MISTAKES = 12
WIDE, HIGH = 640.0, 280.0  # the learning curve, in pixels

COLOURS = css_variables(
    ink=INK, quiet=QUIET, line=RULE, paper=PAPER, back="#f8fafc", blue="#1e40af", wrong="#b91c1c",
    bar=colour_of(0), other=colour_of(1),
)  # fmt: skip
STYLE = """
* { box-sizing: border-box } svg { display: block; max-width: 100%; height: auto }
.sheet svg { max-width: max(100%, 36rem) }
body { margin: 0; color: var(--ink); background: var(--back);
  font: 16px/1.55 system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', Arial, sans-serif }
main { max-width: 980px; margin: 0 auto; padding: 40px 24px 80px }
h1 { font-size: 30px; margin: 0 0 4px } h2 { font-size: 20px; margin: 44px 0 12px }
p { max-width: 70ch } .quiet { color: var(--quiet) }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(200px, 1fr)); gap: 14px }
.card, .sheet { background: var(--paper); border: 1px solid var(--line); border-radius: 10px }
.card { padding: 16px 18px } .sheet { padding: 14px 18px; overflow-x: auto; margin-bottom: 14px }
.card b { display: block; font-size: 28px; color: var(--blue) }
.card span { color: var(--quiet); font-size: 14px }
table { border-collapse: collapse; width: 100%; font-size: 15px }
th { text-align: left; color: var(--quiet); font-weight: 600 }
td, th { padding: 5px 14px 5px 0; border-bottom: 1px solid var(--line) }
tr:last-child td { border-bottom: 0 }
.number { text-align: right; font-variant-numeric: tabular-nums }
.bar { display: inline-block; height: 9px; border-radius: 3px; background: var(--bar) }
.bar.other { background: var(--other) } .wrong { color: var(--wrong) } code { font-size: 14px }
"""


def page(
    model: Model[Any, Any, Any], trials: Sequence[DemoTrial], beside: DemoTrial, run: Path
) -> str:
    """Scores, the learning curve, where it looks, every format, mistakes. run: of the model."""
    plain, explains = trials[0], model.task.explains
    assert explains is not None
    sections = [
        _cards(trials, beside),
        "<h2>Learning</h2>",
        f'<div class="sheet">{_curve(run)}</div>',
        "<h2>Where it looks</h2>",
        '<p class="quiet">Each row is a letter that it writes, with its probability; the stronger '
        "the colour of a square, the more it looked at the letter above. Nobody told it which "
        "belong together.</p>",
        *(
            f'<div class="sheet">{explains.explain(model, text).as_svg()}</div>'
            for text in EXAMPLES
        ),
        "<h2>With attention and without, by length</h2>",
        _lengths(plain, beside),
        "<h2>Mistakes</h2>",
        _mistakes(trials),
        "<h2>Every format</h2>",
        _formats(sorted(plain.by_format(), key=lambda own: (own.share, own.name))),
        f'<p class="quiet">Ensue {__version__}; one seed, the test opened once. '
        f"<code>{escape(str(run))}</code> is the run.</p>",
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Ensue: dates</title><style>{COLOURS}{STYLE}</style></head><body><main>"
        "<h1>Dates as people write them</h1>"
        f'<p class="quiet">{escape(model.summary().splitlines()[0])}</p>'
        + "\n".join(sections)
        + "</main></body></html>\n"
    )


def _cards(trials: Sequence[DemoTrial], beside: DemoTrial) -> str:
    shares = [(own.exact, own.name, len(own.dates)) for own in trials]
    rows = [*shares, (beside.exact, f"{trials[0].name}, without attention", len(beside.dates))]
    cards = [
        f'<div class="card"><b>{share:.2%}</b>{escape(name)}<br><span>of {count:,} dates exactly '
        "right</span></div>"
        for share, name, count in rows
    ]
    return f'<div class="cards">{"".join(cards)}</div>'


def _bar(share: float, kind: str = "") -> str:
    return f'<span class="bar {kind}" style="width:{max(2, round(160 * share))}px"></span>'


def _lengths(ours: DemoTrial, theirs: DemoTrial) -> str:
    rows = [
        f'<tr><td>{name} characters</td><td class="number">{count:,}</td>'
        f"<td>{_bar(own)} {own:.1%}</td><td>{_bar(other, 'other')} {other:.1%}</td></tr>"
        for name, count, own, other in lengths_beside(ours, theirs)
    ]
    head = '<tr><th>length</th><th class="number">dates</th><th>with</th><th>without</th></tr>'
    return f'<div class="sheet"><table>{head}{"".join(rows)}</table></div>'


def _mistakes(trials: Sequence[DemoTrial]) -> str:
    rows = [
        f'<tr><td>{escape(one.text)}</td><td class="wrong">{escape(said)}</td><td>{one.iso}</td>'
        f'<td class="quiet">{escape(own.name)}</td></tr>'
        for own in trials
        for one, said in own.mistakes()[:MISTAKES]
    ]
    head = "<tr><th>written</th><th>it says</th><th>it is</th><th>what kind</th></tr>"
    return f'<div class="sheet"><table>{head}{"".join(rows)}</table></div>'


def _formats(shares: Sequence[Share]) -> str:
    rows = [
        f'<tr><td>{escape(own.name)}</td><td class="number">{own.count}</td>'
        f"<td>{_bar(own.share)} {own.share:.1%}</td></tr>"
        for own in shares
    ]
    head = '<tr><th>format</th><th class="number">dates</th><th>exactly right</th></tr>'
    return f'<div class="sheet"><table>{head}{"".join(rows)}</table></div>'


# --- the learning curve ----------------------------------------------------------------------


def _curve(run: Path) -> str:
    """The share of validation dates that are exactly right, against updates."""
    lines = (run / "history.jsonl").read_text("utf-8").splitlines()
    found = [own for own in map(json.loads, lines) if own["row"] == "evaluation"]
    points = [(0, 0.0), *((own["update"], 100 * own["scores"]["exact"]) for own in found)]
    x = Axis(0, max(points[-1][0], 1), 52, WIDE - 24)
    panel = Panel(Drawing(), x, Axis(0, 100, HIGH - 52, 40))
    best = max(share for _, share in points)
    panel.axes("updates", f"validation dates exactly right, %; the best {best:.1f}")
    panel.curve(points, colour_of(0), 2.4)
    return panel.drawing.svg(WIDE, HIGH, "Learning curve")
