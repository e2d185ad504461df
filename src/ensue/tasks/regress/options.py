"""The words of regression on the command line."""

from ensue.tasks.options import Option

OPTIONS: tuple[Option, ...] = ()
