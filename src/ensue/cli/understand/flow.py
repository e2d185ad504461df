"""How gradients flow through time: flow."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ensue.cli.app import (
    AsJson,
    BestSoFar,
    Dark,
    Html,
    Picture,
    answer,
    app,
    argument,
    as_json_text,
    check_files,
    grouped,
    option,
    teller,
    write_file,
    write_picture,
)
from ensue.cli.trusting import TrustCell, trusted
from ensue.errors import OptionError

if TYPE_CHECKING:
    from ensue.diagnose import Flow, FlowSettings, FreshNetwork

FRESH = "Fresh cell"  # the heading of options that a run has no use for


@dataclass(frozen=True, kw_only=True)
class FlowOptions:
    run: Annotated[Path | None, argument("RUN", "Run folder; or name a cell with --cell.")] = None
    cell: Annotated[
        str,
        option(
            "--cell CELL",
            "A cell with fresh weights: a name, or a Python file such as mine.py:MyCell.",
        ),
    ] = ""
    steps: Annotated[
        int,
        option(
            "--steps N", "Number of steps. For a run: the last N steps of its sequences.", min=1
        ),
    ] = 100
    rows: Annotated[int, option("--rows N", "Number of sequences.", min=1)] = 3
    updates: Annotated[
        int,
        option(
            "--updates N",
            "Updates with the norm-preserving regulariser, on a copy of the network; 0: none.",
            min=0,
        ),
    ] = 10
    clip: Annotated[
        float | None, option("--clip X", "Maximum norm of the gradient. [1, or the run's]")
    ] = None
    data: Annotated[
        list[str] | None, option("--data FILE", "Files instead of the run's validation part.")
    ] = None
    hidden_size: Annotated[int, option("--hidden-size N", "Hidden size.", FRESH, min=1)] = 64
    input_size: Annotated[int, option("--input-size N", "Input size.", FRESH, min=1)] = 16
    layers: Annotated[int, option("--layers N", "Layers.", FRESH, min=1)] = 1
    bidirectional: Annotated[bool, option("--bidirectional", "Both directions.", FRESH)] = False
    activation: Annotated[
        str,
        option(
            "--activation NAME",
            "Activation of SimpleRNN: tanh, sigmoid, relu, linear, prelu, maxout.",
            FRESH,
        ),
    ] = ""
    gain: Annotated[float, option("--gain X", "Factor of recurrent matrices.", FRESH)] = 1.0
    scale: Annotated[float, option("--scale X", "Standard deviation of inputs.", FRESH)] = 1.0
    bias: Annotated[str, option("--bias G=X,…", "Offsets of the gate biases: f=2,i=-1.", FRESH)] = (
        ""
    )
    init: Annotated[
        str,
        option(
            "--init NAME",
            "Initial weights: standard, torch, glorot, he, identity, positive.",
            FRESH,
        ),
    ] = "standard"
    cost: Annotated[str, option("--cost NAME", "Steps with a cost: all, or last.", FRESH)] = "all"
    seed: Annotated[int, option("--seed N", "Random seed.", FRESH, min=0)] = 1
    html: Html = None
    picture: Picture = None
    dark: Dark = False
    trust_cell: TrustCell = ""
    best_so_far: BestSoFar = False
    as_json: AsJson = False


@app.command(
    examples="""
    ensue flow --cell GRU --hidden-size 64 --steps 100
    ensue flow --cell SimpleRNN --gain 1.5 --html flow.html  a cell made to explode
    ensue flow runs/reviews  a trained run, on its validation part
    """
)
@grouped
def flow(options: FlowOptions) -> None:
    """Show how gradients flow through time: vanish, explode, gates.

    For a trained run, or a cell with fresh weights: the derivative of late states by early ones
    over distance, and its bound; where the gradient of the cost arrives; gates over time; what each
    output depends on; the effect of clipping and a regulariser. Names problems and their causes.
    """
    from ensue.diagnose.flow_picture import draw
    from ensue.diagnose.flow_report import as_json, document
    from ensue.drawing.document import as_page, as_text

    check_files(options.html, options.picture)
    if (options.run is None) == (not options.cell):
        default = "both" if options.cell else "none"
        raise OptionError(f"flow: expected a run folder, or --cell such as GRU; got {default}")
    flow_result = _of_cell(options) if options.run is None else _of_run(options, options.run)
    answer(
        as_json_text(as_json(flow_result)) if options.as_json else as_text(document(flow_result))
    )
    if options.html is not None:
        write_file(options.html, as_page(document(flow_result)))
    if options.picture is not None:
        write_picture(options.picture, draw(flow_result), options.dark)


def _of_cell(options: FlowOptions) -> "Flow":
    from ensue.cells import SimpleRNN
    from ensue.cells.load import load_cell
    from ensue.diagnose import flow_of_cell

    if options.data:
        raise OptionError("--data: expected a run folder with it, got --cell")
    cell = load_cell(options.cell)
    if options.activation:
        if type(cell) is not SimpleRNN:
            raise OptionError(f"--activation: expected --cell SimpleRNN, got {options.cell}")
        cell = SimpleRNN(options.activation)
    return flow_of_cell(cell, _fresh(options), _settings(options, options.clip or 1.0))


def _fresh(options: FlowOptions) -> "FreshNetwork":
    from ensue.cli.understand.typed_numbers import assignments
    from ensue.diagnose import FreshNetwork

    return FreshNetwork(
        input_size=options.input_size,
        hidden_size=options.hidden_size,
        layers=options.layers,
        bidirectional=options.bidirectional,
        steps=options.steps,
        gain=options.gain,
        scale=options.scale,
        init=options.init,
        bias=assignments("--bias", options.bias) if options.bias else None,
        cost=options.cost,
        seed=options.seed,
    )


def _settings(options: FlowOptions, clip: float | None) -> "FlowSettings":
    from ensue.diagnose import FlowSettings

    return FlowSettings(rows=options.rows, steps=options.steps, clip=clip, updates=options.updates)


def _of_run(options: FlowOptions, run: Path) -> "Flow":
    from ensue.diagnose.trained import flow_of_run
    from ensue.runs.load import Loading
    from ensue.training import RunFolder

    how = Loading(trusted(options.trust_cell), "cpu", options.best_so_far)
    settings = _settings(options, options.clip)
    return flow_of_run(RunFolder(run), how, settings, options.data or (), teller())
