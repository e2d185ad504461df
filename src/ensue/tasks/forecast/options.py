"""The words of forecasting on the command line."""

from ensue.tasks.options import PREDICT, Option

OPTIONS: tuple[Option, ...] = (
    Option("--horizon", "model.horizon", "Number of steps to forecast.", "number"),
    Option("--time", "model.time", "Column of the time; found in the data if not given."),
    Option("--covariates", "model.covariates", "Columns known up to now: a,b.", "names"),
    Option("--known", "model.known", "Columns known for the steps ahead as well: a,b.", "names"),
    Option("--future", "future", "Files with the columns known ahead.", "files", verbs=(PREDICT,)),
)
