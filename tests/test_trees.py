"""Trees in brackets: read, generated, classified with all of their nodes, drawn."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from commands import commands_in

from ensue import TreeClassifier
from ensue.data.formats import trees
from ensue.data.formats.trees import recognised
from ensue.data.options import ReadOptions
from ensue.data.rows import Problem
from ensue.data.tasks.write import EXPRESSIONS, expressions
from ensue.data.trees.tree import Node, balance, looks_like_trees, read_tree
from ensue.data.values import Unfit
from ensue.errors import DataError, OptionError
from ensue.files.opening import TREE_DEPTH, TREE_LENGTH
from ensue.tasks.tree import TASK
from ensue.tasks.trees.content import labels_of, tokens_of, tree_of

SST = "(3 (2 It) (4 (2 's) (4 (3 really) good)))"
PARSE = "(S (NP (DT the) (NN cat)) (VP sat there))"

# --- brackets --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "same"),
    [
        (SST, SST),
        (PARSE, PARSE),
        ("( (S (NP  the\n cat) (VP sat)) )", "(S (NP the cat) (VP sat))"),
        ("((It) ((was) (good)))", "((It) ((was) (good)))"),
        ("(cat)", "(cat)"),
        ("(N cat)", "(N cat)"),
        ("(2 (1 1) - (4 4))", "(2 (1 1) - (4 4))"),
        ("(X (Y (Z w)))", "(X (Y (Z w)))"),
    ],
)
def test_a_tree_is_read_and_written(text: str, same: str) -> None:
    tree = read_tree(text)
    assert tree.as_text() == same
    assert read_tree(same).as_text() == same
    assert tree_of(tokens_of(tree, True)).words == tree.words


def test_labels_and_words() -> None:
    tree = read_tree(PARSE)
    assert tree.words == ["the", "cat", "sat", "there"]
    assert labels_of(tree) == ["S", "NP", "DT", "NN", "VP"]
    assert [node.bare for node in tree.nodes()] == [False] * 5 + [True] * 2
    assert tokens_of(tree, False).count("(+") == 5
    assert tokens_of(tree, True)[:3] == ["(", "(=NP", "(=DT"]


def test_a_deep_tree_is_no_recursion() -> None:
    depth = 20_000
    text = "(a " * depth + "word" + ")" * depth
    tree = Node("a", "word")
    for _ in range(depth - 1):
        tree = Node("a", children=[tree])
    assert tree.as_text() == text
    assert tree_of(tokens_of(tree, False), labels_of(tree) or []).as_text() == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a tree in brackets, got none"),
        ("(a (b c)", "1 closing bracket missing"),
        ("((a (b c", "3 closing brackets missing"),
        ("(a b))", "expected one tree, got ')' after its end, at character 6"),
        ("(a b) (c d)", "expected one tree, got '(' after its end"),
        ("a b", "expected a tree in brackets, (…), got 'a' at character 1"),
        (")", "expected an opening bracket, got ')' at character 1"),
        ("(a ())", "expected a word or a bracket inside of (), at character 5"),
    ],
)
def test_what_is_no_tree_is_told_with_its_place(text: str, message: str) -> None:
    with pytest.raises(Unfit) as wrong:
        read_tree(text)
    assert message in str(wrong.value)


def nested(depth: int) -> str:
    return "(T not " * (depth - 1) + "(T T)" + ")" * (depth - 1)


TOO_DEEP = f"expected brackets nested at most {TREE_DEPTH} deep, got {TREE_DEPTH + 1}; split the"


def test_a_tree_may_be_so_deep_and_so_long() -> None:
    assert read_tree(nested(TREE_DEPTH)).as_text() == nested(TREE_DEPTH)
    wide = f"(S {'(A a) ' * 2 * TREE_DEPTH})"  # many brackets, but not inside of each other
    assert len(read_tree(wide).children) == 2 * TREE_DEPTH
    for text in (nested(TREE_DEPTH + 1), "(T " * (TREE_DEPTH + 1)):  # with or without an end
        with pytest.raises(Unfit) as wrong:
            read_tree(text)
        assert TOO_DEEP in str(wrong.value)
    with pytest.raises(Unfit, match=f"at most {TREE_LENGTH:,} characters, got {TREE_LENGTH + 1:,}"):
        read_tree(f"(A {'a' * (TREE_LENGTH - 3)})")


def read_lines(place: Path, text: str) -> tuple[list[Any], list[Problem]]:
    problems: list[Problem] = []
    place.write_text(text)
    rows = trees.read(place, ReadOptions(), problems.append)
    return [(row.place.line, row.fields["tree"]) for row in rows], problems


def test_a_file_is_read_line_by_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Brackets are counted once in each line, however many lines a tree has."""
    counted: list[int] = []

    def counting(text: str) -> int:
        counted.append(len(text))
        return balance(text)

    monkeypatch.setattr(trees, "balance", counting)
    text = "(S\n" + " (A a)\n" * 1000 + " )\n(B b)\n\n(C\n\n(D d)\n"
    rows, (problem,) = read_lines(tmp_path / "a.trees", text)
    assert rows == [(1, f"(S {' '.join(['(A a)'] * 1000)})"), (1003, "(B b)"), (1007, "(D d)")]
    assert str(problem) == f"{tmp_path / 'a.trees'}:1005: expected a tree in brackets, got 1 " + (
        "closing bracket missing"
    )
    assert sum(counted) <= len(text)


def test_a_tree_that_is_too_long_is_one_problem(tmp_path: Path) -> None:
    """Its lines are no trees of their own, and the next tree is read."""
    text = "(S\n" + f" {'a' * 1023}\n" * 1100 + " (A a)\n )\n(B b)\n"
    rows, (problem,) = read_lines(tmp_path / "a.trees", text)
    assert rows == [(1104, "(B b)")]
    assert (problem.place.line, problem.rejects) == (1, 1)
    assert problem.reason == (
        f"expected a tree of at most {TREE_LENGTH:,} characters, got {2 + 1100 * 1024 + 6 + 2:,}; "
        "split the tree, or leave it out"
    )


def test_texts_that_are_trees() -> None:
    assert looks_like_trees([SST, PARSE, ""])
    assert not looks_like_trees(["a (good) film", "(yes)", "(no)"])
    assert recognised([SST, PARSE])
    assert recognised(["(S", "  (NP the cat)", "  (VP sat))"])
    assert not recognised(["a line", "and (one) more"])
    assert not recognised([])


# --- generated -------------------------------------------------------------------------------


def value(text: str) -> str:
    """What an expression is, computed from its words alone."""
    node = read_tree(text)

    def of(node: Any) -> Any:
        if node.word:
            return {"T": True, "F": False}.get(node.word, node.word)
        inside = [of(child) for child in node.children]
        if inside[0] == "not":
            return not inside[1]
        a, sign, b = inside
        if sign in "+-":
            return str((int(a) + (1 if sign == "+" else -1) * int(b)) % 5)
        return {"and": a and b, "or": a or b, "implies": not a or b}[sign]

    result = of(node)
    return {True: "T", False: "F"}.get(result, result) if isinstance(result, bool) else result


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions_have_their_values_and_no_part_has_those_of_another(name: str) -> None:
    parts = {
        part: [line.strip() for line in expressions(name, 1, part, 120, 5)]
        for part in ("train", "validation", "test")
    }
    for rows in parts.values():
        for text in rows:
            for node in read_tree(text).nodes():
                if node.label:
                    assert node.label == value(node.as_text())
    assert not {*parts["train"]} & {*parts["validation"]}
    assert not {*parts["train"]} & {*parts["test"]}
    assert parts["train"] == [line.strip() for line in expressions(name, 1, "train", 120, 5)]
    depths = {text.count("(") > 30 for text in parts["train"]}
    assert depths == {False, True}


# --- the task --------------------------------------------------------------------------------


def rows_of(count: int, depth: int, part: str = "train") -> list[str]:
    return [line.strip() for line in expressions("logic", 1, part, count, depth)]


@pytest.fixture(name="model", scope="module")
def _model() -> TreeClassifier:
    return fitted("ordered")


def fitted(combine: str) -> TreeClassifier:
    settings = {
        "combine": combine,
        "hidden_size": 24,
        "embedding_size": 16,
        "dropout_input": 0.0,
        "dropout_output": 0.0,
        "batch_rows": 16,
    }
    train = {"epochs": 6, "rate": 0.02, "patience": None}
    rows, validation = rows_of(250, 3), rows_of(60, 3, "validation")
    return TreeClassifier(model=settings, train=train).fit(rows, validation)


def test_ordered_children_solve_what_summed_ones_cannot(model: TreeClassifier) -> None:
    """Deeper than what was trained on; summed children say the same of a pair and its mirror."""
    test = rows_of(200, 4, "test")
    assert model.evaluate(test).scores["accuracy"].value > 0.95
    summed = fitted("sum")
    one, mirrored = summed.predict(["((T) implies (F))", "((F) implies (T))"])
    assert one.probabilities == pytest.approx(mirrored.probabilities, abs=1e-6)
    assert summed.evaluate(test).scores["accuracy"].value < 0.9
    one, mirrored = model.predict(["((T) implies (F))", "((F) implies (T))"])
    assert (one.label, mirrored.label) == ("F", "T")


def test_every_node_has_an_answer(model: TreeClassifier) -> None:
    answer = model.predict(["(((T) and (F)) implies (? not (T)))"])[0]
    assert answer.tree == "(T (F (T T) and (F F)) implies (F not (T T)))"
    assert answer.labels == ("T", "F", "T", "", "F", "", "F", "", "T")
    assert len(answer.node_probabilities) == 9
    assert sum(answer.probabilities.values()) == pytest.approx(1)
    assert answer.as_line("") == f"T\t{answer.probability:.4f}\t{answer.tree}"


def test_an_evaluation_counts_nodes_and_heights(model: TreeClassifier) -> None:
    test = rows_of(60, 3, "test")
    evaluation = model.evaluate(test)
    right = total = 0
    for text, answer in zip(test, model.predict(test), strict=True):
        nodes = [*read_tree(text).nodes()]
        pairs = [
            (n.label, predicted)
            for n, predicted in zip(nodes, answer.labels, strict=True)
            if n.label
        ]
        right += sum(a == b for a, b in pairs)
        total += len(pairs)
    assert evaluation.others["accuracy of nodes"] == pytest.approx(right / total)
    assert evaluation.notes[0] == "nodes by height"
    assert (
        sum(int(line.rpartition(" ")[2].replace(",", "")) for line in evaluation.notes[1:4])
        <= total
    )


def test_a_label_beside_the_tree_makes_the_inner_ones_inputs() -> None:
    """Who did it? The role, an inner label, tells; the order of the words does not."""
    draw, rows = random.Random(1), []
    for _ in range(120):
        a, b = draw.sample(["ann", "bob"], 2)
        roles = draw.sample(["AGENT", "PATIENT"], 2)
        rows.append((f"(S ({roles[0]} {a}) ({roles[1]} {b}))", a if roles[0] == "AGENT" else b))
    model = TreeClassifier(
        model={"hidden_size": 12, "embedding_size": 8, "batch_rows": 16},
        train={"epochs": 10, "rate": 0.03},
    ).fit(rows)
    agent, patient = model.predict(
        ["(S (AGENT ann) (PATIENT bob))", "(X (PATIENT ann) (AGENT bob))"]
    )
    assert (agent.label, patient.label) == ("ann", "bob")
    assert agent.labels == ()
    assert agent.tree == "((AGENT ann) (PATIENT bob))"


def test_batches_of_many_trees_are_the_trees_alone(model: TreeClassifier) -> None:
    rows = rows_of(30, 4, "test")
    together = model.predict(rows)
    for text, answer in zip(rows, together, strict=True):
        alone = model.predict([text])[0]
        assert alone.tree == answer.tree
        assert alone.node_probabilities == pytest.approx(answer.node_probabilities, abs=1e-5)


def test_the_cost_is_that_of_each_node_by_hand(model: TreeClassifier) -> None:
    part = model.reader.labelled(rows_of(5, 3, "test"))
    rows = TASK.labelled_rows(part, model)
    forest, network, labelled = rows.inputs, model.networks[0], rows.batch(range(5))
    batch = labelled.inputs
    logs = network.scores(batch).detach().double().log_softmax(-1)
    expected = -sum(float(logs[n, t]) for n, t in enumerate(labelled.targets.tolist()) if t >= 0)
    assert float(network(labelled, {})[0].detach()) == pytest.approx(expected, rel=1e-4)
    assert forest.take([3]).words.tolist() == forest.batch([3]).words.tolist()
    assert np.array_equal(forest.take([1, 0]).lengths, forest.lengths[[1, 0]])
    assert torch.equal(batch.parents[batch.roots], torch.full((5,), -1))


def test_mistakes_are_named() -> None:
    model = TreeClassifier()
    with pytest.raises(DataError, match=r"row:2: expected a tree in brackets, got 1 closing"):
        model.fit([SST, "(3 (2 a)"])
    with pytest.raises(DataError, match="row:1: expected a label at the root of the tree too"):
        model.fit(["((2 a) (3 b))"])
    with pytest.raises(DataError, match=r"row:1: expected a tree in brackets, .* got int"):
        model.fit([3])
    fitted = TreeClassifier(train={"epochs": 1}).fit([SST, "(2 (2 a) (3 b))"] * 10)
    with pytest.raises(OptionError, match="expected a list of trees"):
        fitted.predict(SST)
    with pytest.raises(DataError, match="row:1: expected one tree"):
        fitted.predict(["(a b) (c d)"])
    with pytest.raises(DataError, match=f"row:2: {TOO_DEEP}"):
        model.fit([SST, nested(TREE_DEPTH + 1)])
    with pytest.raises(DataError, match=f"row:2: {TOO_DEEP}"):
        fitted.predict([SST, nested(TREE_DEPTH + 1)])


def test_labels_stand_where_they_did_in_training(model: TreeClassifier) -> None:
    with pytest.raises(DataError, match="expected labels at the nodes of the trees, as in train"):
        model.evaluate([("((T) and (F))", "F")])
    validation = [*rows_of(20, 2, "validation"), "(maybe (T T) and (F F))"]
    messages: list[str] = []
    TreeClassifier(train={"epochs": 1}).fit(
        rows_of(40, 2),
        validation,
        watchers=[lambda event: messages.append(getattr(event, "text", ""))],
    )
    assert any("1 row of the validation part left out" in text for text in messages)


def test_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ensue = commands_in(tmp_path, capsys, monkeypatch)
    for part, rows in (("train", 60), ("validation", 20)):
        words = ["--rows", str(rows), "--part", part, "--depth", "3"]
        code, out, err = ensue("data", "make", "arithmetic", f"{part}.trees", *words)
        assert code == 0, err
    small = ["--hidden-size", "8", "--epochs", "1", "--run", "run"]
    code, _, err = ensue("train", "train.trees", "--validation", "validation.trees", *small)
    assert code == 0, err
    assert "trees in brackets" in err or "tree" in err
    code, out, _ = ensue("predict", "run", stdin=b"((1) - (4))\n")
    assert out.count("\t") == 2
    code, out, err = ensue("explain", "run", "--tree", "((1) - (4))", "--picture", "t.svg")
    assert code == 0, err
    assert out.splitlines()[1].startswith("  ")
    assert "orange below" in "".join(ElementTree.parse(tmp_path / "t.svg").getroot().itertext())
    code, out, _ = ensue("explain", "run", "--tree", "((1) - (4))", "--json")
    assert len(json.loads(out)["states"]) == 4
    code, _, err = ensue("explain", "run", "--tree", "((1) - (4)")
    assert code == 2
    assert "1 closing bracket missing" in err
    code, _, err = ensue("explain", "run", "--tree", nested(TREE_DEPTH + 1))
    assert (code, f"row:1: {TOO_DEEP}" in err) == (2, True)
    code, _, err = ensue("predict", "run", stdin=f"((1) - (4))\n{nested(501)}\n".encode())
    assert (code, f"row:2: {TOO_DEEP}" in err) == (2, True)
    (tmp_path / "table.csv").write_text(f"tree\n((1) - (4))\n{nested(501)}\n")
    code, _, err = ensue("predict", "run", "table.csv")
    assert (code, f"table.csv:3: tree: {TOO_DEEP}" in err) == (2, True)
