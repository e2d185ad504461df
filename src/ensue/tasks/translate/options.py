"""The words of translation on the command line."""

from ensue.tasks.options import EXPLAIN, Option
from ensue.tasks.seq2seq.options import SEARCH_OPTIONS

EXPLAINED = Option("--text", "text", "Text whose translation is explained.", verbs=(EXPLAIN,))

OPTIONS: tuple[Option, ...] = (*SEARCH_OPTIONS, EXPLAINED)
