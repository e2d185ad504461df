"""A flow as one HTML file, which needs nothing beside it; and for notebooks."""

from __future__ import annotations

from html import escape

from ensue.diagnose.flow import Flow, TrackFlow
from ensue.diagnose.flow_picture import SAID, draw
from ensue.diagnose.flow_text import as_text, number, reaches, verdict
from ensue.drawing.html import block, lines, on_page
from ensue.drawing.svg import INK, QUIET, RULE
from ensue.drawing.theme import PAPER, css_variables

COLOURS = css_variables(
    ink=INK, quiet=QUIET, rule=RULE, paper=PAPER, pale="#f8fafc", gates="#6d28d9", **SAID
)
STYLE = """
* { box-sizing: border-box; }
body { margin: 0; background: var(--pale); color: var(--ink);
  font: 15px/1.55 system-ui, -apple-system, "Segoe UI", "Liberation Sans", Arial, sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 40px 24px 64px; }
h1 { font-size: 26px; margin: 0 0 4px; }
h2 { font-size: 19px; margin: 40px 0 8px; }
p { margin: 6px 0; }
.quiet { color: var(--quiet); }
figure { margin: 24px 0; background: var(--paper); border: 1px solid var(--rule);
  border-radius: 10px; overflow-x: auto; text-align: center; }
figure svg { max-width: 100%; height: auto; }
section { background: var(--paper); border: 1px solid var(--rule); border-radius: 10px;
  padding: 14px 22px 20px; margin: 14px 0; overflow-x: auto; }
section h3 { font-size: 16px; margin: 4px 0 8px; }
.finding b { text-transform: uppercase; font-size: 13px; letter-spacing: .04em; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 6px 0 10px; }
th { text-align: right; font-weight: 600; color: var(--quiet); font-size: 13px; }
td, th { padding: 3px 14px; border-bottom: 1px solid var(--rule); text-align: right; }
td:first-child, th:first-child { text-align: left; padding-left: 0; color: var(--quiet); }
"""


def as_page(flow: Flow) -> str:
    """The whole page."""
    parts = [
        f"<h1>Gradient flow</h1><p class='quiet'>{escape(flow.title)}</p>",
        f"<section>{_findings(flow)}</section>",
        f"<figure>{draw(flow, titled=False)}</figure>",
        *(_track(track) for track in flow.tracks),
        _remedies(flow),
        "<p class='quiet'>h stands for the whole state, all its parts. Norms are spectral for "
        "matrices, Euclidean for vectors; everything is computed in float64.</p>",
    ]
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>Gradient flow</title><style>{COLOURS}{STYLE}</style></head>\n<body><main>\n"
        + "\n".join(part for part in parts if part)
        + "\n</main></body></html>\n"
    )


def notebook(flow: Flow) -> str:
    """For a notebook: the picture above the numbers."""
    return block("Gradient flow", on_page(draw(flow)), lines(as_text(flow).splitlines()))


def _findings(flow: Flow) -> str:
    found = []
    for own in flow.findings:
        colour = f"var(--{own.name if own.name in SAID else 'gates'})"
        where = f" ({own.where})" if len(flow.tracks) > 1 else ""
        name = f"<b style='color:{colour}'>{escape(own.name + where)}</b>"
        found.append(f"<p class='finding'>{name} &nbsp;{escape(own.why.replace('e-', 'e−'))}</p>")
    return "".join(found)


def _table(head: list[str], rows: list[list[str]]) -> str:
    def line(kind: str, cells: list[str]) -> str:
        return "<tr>" + "".join(f"<{kind}>{escape(own)}</{kind}>" for own in cells) + "</tr>"

    return f"<table>{line('th', head)}{''.join(line('td', row) for row in rows)}</table>"


def _track(track: TrackFlow) -> str:
    facts = f"{track.cell} of {track.hidden_size}; reach {track.reach} of {track.steps} steps"
    parts = [f"<h3>{escape(track.name)}</h3><p>{escape(facts)}, ×{number(track.rate)} a step</p>"]
    if track.spectra:
        rows = [
            [own.name, f"{own.singular:.4g}", "" if own.radius is None else f"{own.radius:.4g}"]
            for own in track.spectra
        ]
        parts.append(_table(["recurrent matrix", "σ_max", "spectral radius"], rows))
    parts.append(f"<p class='quiet'>{escape(verdict(track))}</p>")
    if track.gates:
        rows = [
            [g.name, f"{sum(g.mean) / len(g.mean):.3f}", f"{g.shut:.1%}", f"{g.open:.1%}"]
            for g in track.gates
        ]
        head = ["gate", "mean", "below 0.001", "above 0.999"]
        parts.append(_table(head, rows))
    return f"<section>{''.join(parts)}</section>"


def _remedies(flow: Flow) -> str:
    rows = []
    if flow.clipping is not None:
        own = flow.clipping
        name = f"‖∇‖, clipped at {own.threshold:g}"
        rows.append([name, number(own.before), number(own.after)])
    if flow.regularised is not None:
        done = flow.regularised
        name = f"Ω, {done.updates} updates by it alone, δ and states held constant"
        rows.append([name, number(done.before), number(done.after)])
        for track, (before, after) in zip(flow.tracks, reaches(flow, done), strict=True):
            rows.append([f"reach of {track.name} with Ω", f"{before} steps", f"{after} steps"])
    if not rows:
        return ""
    return f"<h2>Remedies</h2><section>{_table(['', 'before', 'after'], rows)}</section>"
