"""The words of matching on the command line."""

from ensue.tasks.options import Option

OPTIONS: tuple[Option, ...] = (Option("--second", "data.second", "Column of the second text."),)
