"""The command-line options of language models."""

from ensue.tasks.explaining.options import EXPLAINED
from ensue.tasks.options import Option

OPTIONS: tuple[Option, ...] = (EXPLAINED,)
