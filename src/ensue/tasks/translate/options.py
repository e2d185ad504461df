"""The words of translation on the command line."""

from ensue.tasks.explaining.options import EXPLAINED
from ensue.tasks.options import Option
from ensue.tasks.seq2seq.options import SEARCH_OPTIONS

OPTIONS: tuple[Option, ...] = (*SEARCH_OPTIONS, EXPLAINED)
