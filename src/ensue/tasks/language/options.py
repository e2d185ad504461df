"""The words of language models on the command line."""

from ensue.tasks.explaining.options import EXPLAINED
from ensue.tasks.options import Option

OPTIONS: tuple[Option, ...] = (EXPLAINED,)
