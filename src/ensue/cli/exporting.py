"""`ensue export`: a trained model in another language."""

from pathlib import Path
from typing import Annotated

from ensue.cli.app import AsJson, Run, answer, app, argument, as_json_text, option, report, teller
from ensue.cli.trusting import TrustCell, trusted


@app.command(
    examples="ensue export runs/reviews reviews.onnx  ONNX, with pre- and postprocessing\n"
    "ensue export runs/reviews reviews.html  a page that runs the model itself\n"
    "ensue export runs/tags tags.c --weights int8  a folder of C99\n"
    "ensue export runs/reviews live.js --streaming  an answer after each word"
)
def export(
    run: Run,
    file: Annotated[
        Path,
        argument("FILE", "Output file: model.onnx, model.js, page.html, or a folder model.c."),
    ],
    weights: Annotated[
        str, option("--weights KIND", "Number format of stored matrices: float32, bf16, int8.")
    ] = "float32",
    streaming: Annotated[
        bool,
        option(
            "--streaming", "Read a stream piece by piece, keeping the state (one direction only)."
        ),
    ] = False,
    unchecked: Annotated[bool, option("--unchecked", "Skip the comparison with Python.")] = False,
    trust_cell: TrustCell = "",
    as_json: AsJson = False,
) -> None:
    """Write a trained model as a file that runs without Ensue.

    Compares the export with the model first, over 24 combinations of rows, steps and padding.
    Writes no file on a mismatch.
    """
    from ensue.export.model import change_of_scores, refuse_path, write_model
    from ensue.runs.load import load_run
    from ensue.training import RunFolder

    refuse_path(file)
    config, model = load_run(RunFolder(run), trusted(trust_cell), "cpu", teller())
    changes = {} if weights == "float32" else change_of_scores(config.data, model, weights)
    written = write_model(
        model,
        file,
        weights=weights,
        unchecked=unchecked,
        streaming=streaming,
        title=run.resolve().name,
    )
    if as_json:
        validation = {k: list(v) for k, v in changes.items()}
        answer(as_json_text({**written.as_json(), "validation": validation}))
        return
    for line in written.lines():
        report(line)
    for name, (before, after) in changes.items():
        report(f"validation {name}: {before:.4f} → {after:.4f} with {weights} weights")
    if changes and (what := model.knows_validation()):
        report(
            f"These rows are not test data: {what} also learned from them at the end of training."
        )
