"""The words of trees on the command line."""

from ensue.tasks.options import EXPLAIN, Option

EXPLAINED = Option(
    "--tree",
    "tree",
    "Tree in brackets that is explained, (S (NP the cat) sat).",
    verbs=(EXPLAIN,),
    subject=True,
)
OPTIONS: tuple[Option, ...] = (EXPLAINED,)
