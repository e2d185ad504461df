"""The words of captioning on the command line."""

from ensue.tasks.options import EXPLAIN, Option
from ensue.tasks.seq2seq.options import SEARCH_OPTIONS

EXPLAINED = Option(
    "--image", "image", "Picture whose caption is explained.", verbs=(EXPLAIN,), subject=True
)

OPTIONS: tuple[Option, ...] = (*SEARCH_OPTIONS, EXPLAINED)
