"""The words of captioning on the command line."""

from ensue.tasks.explaining.options import EXPLAINED_PICTURE
from ensue.tasks.options import Option
from ensue.tasks.seq2seq.options import SEARCH_OPTIONS

OPTIONS: tuple[Option, ...] = (*SEARCH_OPTIONS, EXPLAINED_PICTURE)
