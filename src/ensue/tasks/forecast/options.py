"""The command-line options of forecasting."""

from ensue.tasks.options import PREDICT, Option

OPTIONS: tuple[Option, ...] = (
    Option("--horizon", "model.horizon", "Number of steps to forecast.", "number"),
    Option("--time", "model.time", "Column of the time; found in the data if not given."),
    Option("--dates", "model.dates", "How 01/02/2021 is read: day-first or month-first."),
    Option(
        "--static",
        "model.static",
        "Columns that are the same at all steps of a series: a,b.",
        "names",
    ),
    Option(
        "--covariates", "model.covariates", "Covariates known only up to the present: a,b.", "names"
    ),
    Option("--known", "model.known", "Covariates also known for future steps: a,b.", "names"),
    Option(
        "--future",
        "future",
        "Files with the known covariates of future steps.",
        "files",
        verbs=(PREDICT,),
    ),
)
