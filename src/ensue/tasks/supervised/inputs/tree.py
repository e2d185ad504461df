"""Trees in brackets: a cell goes from the leaves to the root. Labels belong to whole trees or to
nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from ensue.data.ragged import Ragged
from ensue.data.rows import Place
from ensue.data.settings import DataSettings
from ensue.data.tokenise import Tokeniser
from ensue.data.trees.tree import read_tree
from ensue.data.values import Unfit
from ensue.data.vocabulary import SPECIALS, Vocabulary
from ensue.errors import DataError, OptionError
from ensue.files.opening import TREE_DEPTH, TREE_LENGTH
from ensue.layers.recursive import PLACES
from ensue.settings import OFF, Size
from ensue.tasks.abilities import NOTHING, RequestOptions
from ensue.tasks.baselines.text_features import Texts
from ensue.tasks.baselines.text_linear import TextLinear, fit_text_linear, fit_text_ridge
from ensue.tasks.codec import unpacked
from ensue.tasks.declarations import NEXT_TO, Let, SavedAs, Words
from ensue.tasks.explaining.methods import NEVER_SEEN
from ensue.tasks.exported import BATCH, Exported, Graph, Step, refuse
from ensue.tasks.exported import Input as GraphInput
from ensue.tasks.rows.collect import IN_MEMORY, Content, Example
from ensue.tasks.rows.exported import linear_steps
from ensue.tasks.rows.inputs import vocabulary_of
from ensue.tasks.rows.labels import label_numbers
from ensue.tasks.rows.part import Part, Tokenisers, counts_of
from ensue.tasks.rows.reader import Rows
from ensue.tasks.saved import Saved
from ensue.tasks.supervised.input import Input, InputReader, ShareSettings
from ensue.tasks.supervised.inputs.tree_network import (
    CHILDREN,
    LABELS,
    NODE,
    WORDS,
    NodeStates,
    NodeStep,
    TreeEncoder,
    TreeReaderSettings,
    state_sizes,
    tree_encoders,
)
from ensue.tasks.supervised.learned import (
    FittedLinear,
    InputQuestion,
    LearnedInput,
    Linear,
    LinearQuestion,
    Occlusions,
    Share,
)
from ensue.tasks.supervised.network import NO_TARGET, Budget, SupervisedNetwork
from ensue.tasks.supervised.text_linears import TextScores
from ensue.tasks.targets.classes import ClassTarget
from ensue.tasks.targets.target import Target
from ensue.tasks.trees.content import (
    END,
    INPUT,
    LEARNED,
    PLAIN,
    Forest,
    TreeContent,
    labels_of,
    tokens_of,
    tree_of,
)

if TYPE_CHECKING:
    from ensue.tasks.any_model import ModelView

CLOSES, OPENS, OPENS_LEARNED = -1, -2, -3  # kinds of tokens; 0 for a word
LEAVES = "leaves"  # name of a tree's words in an export


class TreeInputSettings(TreeReaderSettings, ShareSettings):
    """The cell that goes up a tree, and how it combines the states of a node's children."""

    words: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "batch_size": ("batch_rows",),
        "dropout": ("dropout_input", "dropout_output"),
    }

    batch_nodes: Size = Field(8000, description="Maximum number of nodes in a batch.")
    batch_rows: Annotated[Size | None, OFF] = Field(
        32, description="Maximum number of trees in a batch."
    )


# --- learned -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LearnedTree(LearnedInput):
    """The learned part of trees. words: the vocabulary; inner: labels of nodes that are inputs, if
    the label of a whole tree is learned; lower: whether words are converted to lower case."""

    cut: Annotated[Tokenisers, NEXT_TO]
    words: Words
    inner: Words | None
    lower: bool

    @property
    def tokenisers(self) -> Tokenisers:
        return self.cut

    @property
    def whole(self) -> bool:
        """Whether the label of the whole tree is learned, not the labels of its nodes."""
        return self.inner is not None

    def encode(self, part: Part, model: ModelView) -> Forest:
        return self.forest(part)

    def forest(self, part: Part) -> Forest:
        """A part, encoded for the networks."""
        kinds, words, inner = self._tables(part)
        kind = kinds[part.inputs.values] if len(kinds) else part.inputs.values
        opens = kind < CLOSES
        starts = np.concatenate([[0], np.cumsum(opens)])[part.inputs.starts]
        nodes = np.cumsum(opens) - 1  # the node that a token opens or belongs to
        parents = _parents(kind, part.inputs.starts)
        word = np.zeros(int(starts[-1]), np.int64)
        # a word directly follows its bracket
        is_word = kind == 0
        word[nodes[is_word]] = words[part.inputs.values[is_word]]
        label = inner[part.inputs.values[opens]] if len(inner) else np.zeros(0, np.int64)
        return Forest(starts, word, label, parents)

    def _tables(self, part: Part) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Three arrays over tokens: kind, index of the word, index of the inner label."""
        names = part.numbers.token_names
        fold = str.lower if self.lower else str
        kinds, words, inner = (np.zeros(len(names), np.int64) for _ in range(3))
        for k, name in enumerate(names):
            if name == END:
                kinds[k] = CLOSES
            elif name.startswith(PLAIN):
                kinds[k] = OPENS_LEARNED if name == LEARNED else OPENS
                if name.startswith(INPUT) and self.inner is not None:
                    inner[k] = self.inner.numbers[name.removeprefix(INPUT)]
            else:
                words[k] = self.words.numbers[fold(name)]
        return kinds, words, inner

    # ------------------------------------------------------------- labels
    def labelled(self, part: Part) -> Part:
        """A part with one label for each row, the label of the root."""
        if part.labels is None:
            return part
        learned = part.numbers.tokens.get(LEARNED, -1)
        count = int((part.inputs.values == learned).sum())
        if count != (0 if self.whole else len(part.labels.values)):
            raise self._other_labels(part)
        if self.whole:
            return part
        first = part.labels.values[part.labels.starts[:-1]]
        return replace(part, labels=Ragged(first, np.arange(len(part) + 1)))

    def unit_targets(self, part: Part, target: Target) -> Ragged | None:
        if self.whole:
            return None
        if not isinstance(target, ClassTarget):
            raise OptionError(
                "model.target: labels at the nodes of trees are classes, one each; expected class, "
                f"got {target.kind}. For a number or several labels of a whole tree, put them "
                "next to it, in a separate column"
            )
        return self.node_targets(part, target.labels.tokens)

    def node_targets(self, part: Part, labels: Sequence[str]) -> Ragged:
        """The index of each node's label, NO_TARGET if it has none."""
        kinds, _, _ = self._tables(part)
        kind = kinds[part.inputs.values]
        opens = kind < CLOSES
        starts = np.concatenate([[0], np.cumsum(opens)])[part.inputs.starts]
        places = (kind[opens] == OPENS_LEARNED).nonzero()[0]
        numbers = label_numbers(part, labels)
        if len(places) != len(numbers):
            raise self._other_labels(part)
        targets = np.full(int(starts[-1]), NO_TARGET, np.int64)
        targets[places] = numbers
        return Ragged(targets, starts)

    def _other_labels(self, part: Part) -> DataError:
        inside, beside = "labels at the nodes of the trees", "one label next to each tree"
        expected, got = (beside, inside) if self.whole else (inside, beside)
        return DataError(f"{part.names[0]}: expected {expected}, as in training, got {got}")

    # ------------------------------------------------------------- network and linear model
    def encoder(self, model: ModelView) -> TreeEncoder:
        inner = 0 if self.inner is None else len(self.inner)
        return TreeEncoder(len(self.words), model.settings, inner, units=not self.whole)

    def row_texts(self, part: Part) -> Callable[[int], tuple[str, str]]:
        names = part.numbers.token_names

        def row_text(row: int) -> tuple[str, str]:
            tree = tree_of([names[k] for k in part.inputs.row(row)])
            return part.names[row], " ".join(tree.words)

        return row_text

    def linear(
        self, train: Part, validation: Part, target: Target, model: ModelView
    ) -> FittedLinear:
        first, second = tree_texts(train), tree_texts(validation)
        words = first.words if len(first.words) > len(second.words) else second.words
        first, second = Texts(words, first.rows), Texts(words, second.rows)
        both = (self.labelled(train), self.labelled(validation))
        y = np.concatenate([target.encode(part) for part in both])
        if target.numeric:
            fitted = fit_text_ridge(first, second, y[:, 0])
        else:
            fitted = fit_text_linear(first, second, y, target.width)
        return FittedLinear(TreeLinear(fitted.model), fitted.out_of_sample)

    # ------------------------------------------------------------- explained
    def occlusions(self, part: Part, model: ModelView) -> Occlusions:
        """A row for each node, in which its word is replaced by an unknown one."""
        tokens, names = part.inputs.row(0), part.numbers.token_names
        places = [k for k, token in enumerate(tokens) if not names[token].startswith((PLAIN, END))]
        units, rows = [names[tokens[k]] for k in places], []
        never_seen = part.numbers.tokens[NEVER_SEEN]
        for place in places:
            other = tokens.copy()
            other[place] = never_seen
            rows.append(other)
        again = part.take(np.zeros(len(rows), np.int64))
        inputs = Ragged.of(rows, np.int32)
        how = "the word of each node replaced by one that training never saw"
        return Occlusions(tuple(units), how, replace(again, inputs=inputs, labels=None))

    # ------------------------------------------------------------- exported, kept
    def question(self, model: Any) -> InputQuestion:
        """The question, for one of several inputs: the root's vectors, which `climb` computes with
        the graph of `vectors_graph`."""
        encoders = tree_encoders(model.encoders)
        names = [f"vector_{number}" for number in range(len(encoders))]
        inputs = tuple(
            GraphInput(name, (BATCH, encoder.width))
            for name, encoder in zip(names, encoders, strict=True)
        )
        climb = {"step": "climb", "graph": NODE, "vectors": names, "words": LEAVES}
        return InputQuestion(inputs, (self._brackets(encoders), climb), lambda named: named)

    def vectors_graph(self, model: Any) -> Graph:
        """The graph of one node, which computes the node's vector and state from its word and its
        children's states."""
        encoders = tree_encoders(model.encoders)
        inputs, states = self._node_inputs(encoders, model.settings.combine)
        outputs = [f"vector_{number}" for number in range(len(encoders))]
        nodes = NodeStates(encoders, [one.name for one in inputs])
        return Graph(NODE, nodes, inputs, (*outputs, *states))

    def _node_inputs(
        self, encoders: Sequence[TreeEncoder], combine: str
    ) -> tuple[tuple[GraphInput, ...], tuple[str, ...]]:
        """The inputs of a node's graph, and the names of the states that it returns."""
        inputs = [GraphInput(WORDS, (BATCH,), len(self.words))]
        if self.inner is not None:
            inputs.append(GraphInput(LABELS, (BATCH,), len(self.inner)))
        if combine == "mean":
            inputs.append(GraphInput(CHILDREN, (BATCH, 1)))
        below = state_sizes(encoders)
        inputs += [GraphInput(name, (BATCH, len(PLACES), size)) for name, size in below.items()]
        return tuple(inputs), tuple(name.replace("below", "state") for name in below)

    def _brackets(self, encoders: Sequence[TreeEncoder]) -> Step:
        return {
            "step": "brackets",
            "from": "question",
            "words": list(self.words.tokens),
            "lower": self.lower,
            "inner": None if self.inner is None else list(self.inner.tokens),
            "states": state_sizes(encoders),
            "longest": TREE_LENGTH,
            "deepest": TREE_DEPTH,
        }

    def exported(self, model: ModelView) -> Exported:
        """The export: a graph for one node, from its word and its children's states to its answer
        and state. A later step walks from the leaves to the root."""
        target = model.learned.target
        if model.learned.mixture is not None:
            raise refuse("linear of trees", "tree")
        answers = target.answering()
        members = [net for net in model.networks if isinstance(net, SupervisedNetwork)]
        encoders = tree_encoders([network.reader for network in members])
        inputs, states = self._node_inputs(encoders, model.settings.combine)
        outputs = (*answers.outputs, *states)
        names = [one.name for one in inputs]
        node = NodeStep(members, names, model.learned.temperature, answers.answers)
        step = self._brackets(encoders)
        graph = Graph(NODE, node, inputs, outputs)
        if isinstance(target, ClassTarget):
            classes = {"step": "nodes", "labels": list(target.labels.tokens)}
            return Exported("tree", (graph,), (step,), (classes,))
        climb: Step = {"step": "nodes", "labels": None}
        return Exported("tree", (graph,), (step,), (climb, *answers.after))


@dataclass(frozen=True)
class TreeLinear(Linear):
    """TF-IDF of the words of a tree, in order, and of their letters."""

    knows_validation: ClassVar[bool] = True

    model: Annotated[
        TextLinear, SavedAs("", arrays="linear"), Let(extra=0, outputs="target.linear_width")
    ]

    @property
    def name(self) -> str:
        return "linear n-grams"

    def scores(self, part: Part) -> Tensor:
        return self.model.scores(tree_texts(part))

    def question(self, model: ModelView) -> LinearQuestion:
        """The question, for one of several inputs: the words that `climb` provides."""
        read = linear_steps(self.model.features, model.learned.tokenisers.input)
        steps = tuple({**step, "from": LEAVES} for step in read.steps)
        return LinearQuestion(read.inputs, steps, TextScores(self.model, None))


def tree_texts(part: Part) -> Texts:
    """The words of each tree, without its brackets."""
    names = part.numbers.token_names
    is_word = np.array([not name.startswith((PLAIN, END)) for name in names], bool)
    here = is_word[part.inputs.values] if len(names) else np.zeros(0, bool)
    starts = np.concatenate([[0], np.cumsum(here)])[part.inputs.starts]
    return Texts(list(names), Ragged(part.inputs.values[here], starts))


def _parents(kind: NDArray[Any], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The parent of each node, as an index in its tree; −1 for roots."""
    parents: list[int] = []
    kinds = kind.tolist()
    for row in range(len(starts) - 1):
        above, count = [-1], 0
        for node_kind in kinds[starts[row] : starts[row + 1]]:
            if node_kind == CLOSES:
                above.pop()
            elif node_kind < CLOSES:
                parents.append(above[-1])
                above.append(count)
                count += 1
    return np.array(parents, np.int64)


# --- the input -----------------------------------------------------------------------------------


class TreeReader(InputReader[Part]):
    content = TreeContent()

    def examples(self, rows: Any) -> Iterable[Example]:
        """Rows in memory: trees with labels at their nodes, or pairs of a tree and its label."""
        return [_example(row, line) for line, row in enumerate(rows, 1)]

    def tokenisers(self, rows: Rows) -> Tokenisers:
        """Tokenisers that split at brackets and spaces."""
        return Tokenisers(Tokeniser("spaces"))

    def questions(self, inputs: Any, options: RequestOptions = NOTHING) -> Part:
        if isinstance(inputs, str):
            raise OptionError("predict: expected a list of trees, got one text; write [text]")
        whole = self.model.learned.input.whole
        trees = [_tree(value, line) for line, value in enumerate(inputs, 1)]
        rows = [
            Example(tokens_of(tree, whole), None, Place(IN_MEMORY, line))
            for line, tree in enumerate(trees, 1)
        ]
        part: Part = self.collected(lambda: rows)
        return part

    def question_lines(self, lines: Sequence[str]) -> Part:
        return self.questions(list(lines))

    def question_content(self, data: DataSettings) -> Content:
        return TreeContent(self.model.learned.input.whole)

    def shown_input(self, example: Example) -> Any:
        return tree_of(example.value).as_text()


class Tree(Input):
    """A tree in brackets, with a label next to it or labels at its nodes."""

    name = "tree"
    learned_class = LearnedTree
    reader_class = TreeReader

    def learn(self, train: Part, model: ModelView) -> LearnedTree:
        text, words, inner = model.text, dict[str, int](), dict[str, int]()
        counts = counts_of(train.inputs, train.numbers.tokens)
        for token, count in counts.items():
            if token.startswith(INPUT):
                inner[token.removeprefix(INPUT)] = count
            elif not token.startswith((PLAIN, END)):
                word = token.lower() if text.lower else token
                words[word] = words.get(word, 0) + count
        labels = None
        if LEARNED not in counts:  # trees without labels at nodes have only specials
            labels = (
                Vocabulary.build(inner) if inner else Vocabulary(SPECIALS, (0,) * len(SPECIALS))
            )
        return LearnedTree(train.tokenisers, vocabulary_of(words, text), labels, text.lower)

    def unpack_linear(
        self, saved: Saved, learned: LearnedTree, target: Target, model: ModelView
    ) -> TreeLinear:
        return unpacked(TreeLinear, saved, target=target)

    def share(self, settings: TreeInputSettings, target: Target) -> Share:
        return settings.linear_share or None

    def budget(self, settings: TreeInputSettings) -> Budget:
        return Budget(settings.batch_nodes, settings.batch_rows)

    def describe(self, settings: TreeInputSettings) -> str:
        children = {"ordered": "ordered", "sum": "summed", "mean": "averaged"}[settings.combine]
        return f"{settings.cell} of {settings.hidden_size} over trees, {children} children"


def _tree(value: Any, line: int) -> Any:
    if not isinstance(value, str):
        raise DataError(
            f"{IN_MEMORY}:{line}: expected a tree in brackets, (…), got {type(value).__name__}"
        )
    try:
        return read_tree(value)
    except Unfit as unfit:
        raise DataError(f"{IN_MEMORY}:{line}: {unfit}") from None


def _example(row: Any, line: int) -> Example:
    place = Place(IN_MEMORY, line)
    if isinstance(row, tuple | list) and len(row) == 2:
        return Example(tokens_of(_tree(row[0], line), True), row[1], place)
    tree = _tree(row, line)
    try:
        return Example(tokens_of(tree, False), labels_of(tree), place)
    except Unfit as unfit:
        raise DataError(f"{place}: {unfit}") from None
