"""Fine points that larger tests pass over; each was seen to fail with a fault planted in it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
import torch
from commands import commands_in
from torch import Tensor
from torch.nn.utils.rnn import pack_sequence

from ensue import Matcher, TableModel
from ensue.cells import GRU
from ensue.cells.reference import HIDDEN, INPUT
from ensue.data.batches import NOISE, batches
from ensue.data.check import MOST_LABELS_SHOWN, check
from ensue.data.options import ReadOptions
from ensue.data.read import read
from ensue.data.rows import Place
from ensue.data.tasks.shapes import shapes
from ensue.data.tasks.write import write_task
from ensue.data.time.axis import Spacing
from ensue.decoding import exact
from ensue.errors import DataError, ShapeError
from ensue.layers import Recurrent
from ensue.runs.infer import infer
from ensue.tasks.abilities import Filled, Suggestion
from ensue.tasks.baselines.linear import LinearModel
from ensue.tasks.blocks.encoders import TransformerEncoder
from ensue.tasks.columns.learned import NumberColumn, TableColumns
from ensue.tasks.forecast.tables.recipe import calendar_of
from ensue.tasks.language.families import ConvolutionLanguage
from ensue.tasks.pictures.part import PictureCollector
from ensue.tasks.pictures.settings import PictureSettings
from ensue.tasks.rows.collect import Example
from ensue.tasks.rows.part import Numbers
from ensue.tasks.supervised.inputs.pair import OverlapLinear


def test_rows_meet_whose_lengths_differ_by_almost_the_noise() -> None:
    short, long = 999, round(1000 * (1 + 0.8 * NOISE)) - 1
    batch_list = [
        batch for k in range(400) for batch in batches([short] * 2 + [long] * 2, 2 * long, 1, k)
    ]
    assert any(min(batch) < 2 <= max(batch) for batch in batch_list)


def test_a_column_that_tells_the_target_is_told_and_another_is_not() -> None:
    target = np.random.default_rng(1).normal(size=50)
    numbers = np.stack([0.01 * target, np.random.default_rng(2).normal(size=50)], 1)
    names = [NumberColumn(name, 0.0, 1.0, False) for name in ("leak", "other")]
    arrays = {"numbers": numbers, "categories": np.zeros((50, 0), np.int64)}
    remarks = TableColumns(tuple(names), ()).remarks(arrays, target)
    assert [line.split(" predicts")[0] for line in remarks] == ["column 'leak'"]


def test_a_table_without_header_and_with_another_delimiter_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("1;2\n3;4\n")
    with pytest.raises(DataError) as error:
        list(read(path, ReadOptions(header=("x", "y")), print))
    assert str(error.value).startswith(f"{path}:1: with a comma as the delimiter there is one")


def test_a_transformer_has_one_block_unless_more_are_asked_for() -> None:
    one = TransformerEncoder(4, width=8, heads=2)
    two = TransformerEncoder(4, width=8, heads=2, num_layers=2)
    block = sum(p.numel() for p in two.parameters()) - sum(p.numel() for p in one.parameters())
    inside = sum(p.numel() for n, p in one.named_parameters() if n.startswith("blocks"))
    assert block <= inside < 2 * block


def test_a_group_of_commands_alone_shows_its_help(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, out, err = commands_in(tmp_path, capsys, monkeypatch)("data")
    assert "Usage: ensue data" in out + err
    assert "check" in out + err


def test_steps_of_a_data_set_are_those_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = commands_in(tmp_path, capsys, monkeypatch)
    assert run("data", "make", "parity", "p.jsonl", "--rows", "2", "--steps", "7")[0] == 0
    assert run("data", "make", "parity", "q.jsonl", "--rows", "2", "--steps", "30")[0] == 0
    sizes = [max(line.count("[") for line in (tmp_path / f).read_text().splitlines())
             for f in ("p.jsonl", "q.jsonl")]  # fmt: skip
    assert sizes[0] < sizes[1]


def test_one_row_is_enough_to_see_what_is_labelled(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text('{"text": "a b", "labels": ["X", "Y"]}\n')
    inferred = infer({"train": [str(path)], "text": "text", "label": "labels"}, "label", [])
    assert inferred.config.text.level == "spaces"


def test_a_label_of_a_picture_that_is_none_names_its_place() -> None:
    collector = PictureCollector(PictureSettings(), Numbers())
    picture = np.zeros((1, 2, 2), np.uint8)
    with pytest.raises(DataError, match=r"^a.png:3: label: expected a text"):
        collector.add(Example(picture, {"x": 1}, Place("a.png", 3)))


def test_many_labels_are_counted_in_a_table_that_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "many.tsv"
    rows = [f"text {k} of many\tlabel{k % 15}" for k in range(60)]
    path.write_text("\n".join(["text\tlabel", *rows]) + "\n")
    text = check({"train": [path], "test": [path]}, ReadOptions()).as_text()
    assert f"and {15 - MOST_LABELS_SHOWN} more" in text


def test_the_baseline_of_pairs_reads_words_and_pairs_of_words() -> None:
    rows = [((f"a b c d {k % 2}", "e f g h"), str(k % 2)) for k in range(20)]
    model = Matcher(model={"hidden_size": 2, "embedding_size": 2}, train={"epochs": 1})
    linear = model.fit(rows, rows).learned.linear
    assert isinstance(linear, OverlapLinear)
    assert isinstance(linear.model, LinearModel)
    assert linear.model.ngrams.longest == 2


def test_one_expansion_is_a_number_of_expansions() -> None:
    def step(tokens: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        return torch.tensor([[0.0, -50.0]]).expand(len(tokens), 2).log_softmax(1), state

    start, state = torch.zeros(1, dtype=torch.long), torch.zeros(1, 1)
    hypotheses = exact(step, start, state, end=0, most_steps=3, most_expansions=1)
    assert list(hypotheses[0].tokens) == [0]


def test_paper_is_tinted_one_way_as_often_as_the_other() -> None:
    corners = np.array([scene.picture[:, 0, 0] for scene in shapes(1, "train", 300)], float)
    assert abs(corners.mean() - 238) < 2


def test_cells_are_compared_at_two_sizes_that_differ() -> None:
    assert INPUT != HIDDEN


def test_embeddings_begin_with_vectors_of_length_one() -> None:
    network = ConvolutionLanguage(500, width=8, embedding_size=64, layers=1)
    lengths = network.table.weight.norm(dim=1)
    assert abs(float(lengths.mean().detach()) - 1) < 0.1


@pytest.mark.parametrize("exists", [False, True])
def test_shapes_are_written_below_folders_that_are_made_and_into_empty_ones(
    tmp_path: Path, exists: bool
) -> None:
    place = tmp_path / "new" / "shapes"
    if exists:
        place.mkdir(parents=True)
    write_task("shapes", place, rows=1)
    assert (place / "captions.tsv").exists()


def test_variables_without_a_value_are_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = commands_in(tmp_path, capsys, monkeypatch)
    assert run("graph", "x*y", "--at", "x=1.5", "--json")[1].count('"value": 1.5')
    assert "a power is x**2" in run("graph", "x^2")[2]


def test_a_packed_sequence_is_told_how_lengths_are_given() -> None:
    layer = Recurrent(GRU(), 3, 4)
    with pytest.raises(ShapeError, match="got PackedSequence: unpack it, and give its lengths"):
        layer(pack_sequence([torch.zeros(2, 3)]))  # type: ignore[call-overload]
    with pytest.raises(ShapeError, match=r"the last with 3 features, got \(2, 1, 4\)$"):
        layer(torch.zeros(2, 1, 4))


def test_another_label_is_another_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [f"text {k % 7} here,{'ab'[k % 2]},{'xy'[k % 3 == 0]}" for k in range(80)]
    (tmp_path / "t.csv").write_text("\n".join(["text,one,two", *rows]) + "\n")
    run = commands_in(tmp_path, capsys, monkeypatch)
    small = ("--epochs", "1", "--hidden-size", "4")
    assert run("train", "t.csv", "--text", "text", "--label", "one", *small)[0] == 0
    code, _, err = run("train", "t.csv", "--text", "text", "--label", "two", *small)
    assert code == 2
    assert err.rstrip().endswith("for the new ones name another folder, --run run-2")
    again = ("--allow", "data.label", "--allow", "data", "--allow", "validation")
    code, _, err = run("train", "t.csv", "--text", "text", "--label", "two", *small, *again)
    assert code == 2
    assert "data.label: was 'one', now 'two'" in err


def two_texts(path: Path, labels: list[str]) -> dict[str, list[str]]:
    lines = [f"an offer of {k},a fine thing {k},{label}" for k, label in enumerate(labels)]
    path.write_text("\n".join(["title,story,score", *lines]) + "\n")
    return {"train": [str(path)], "text": ["title", "story"]}


def test_the_label_of_several_inputs_decides_between_class_and_number(tmp_path: Path) -> None:
    numbers = two_texts(tmp_path / "numbers.csv", [f"{k / 7:.3f}" for k in range(60)])
    classes = two_texts(tmp_path / "classes.csv", ["good" if k % 2 else "bad" for k in range(60)])
    assert infer({**numbers, "label": "score"}, None, []).config.task == "regress"
    assert infer({**classes, "label": "score"}, None, []).config.task == "classify"


def test_an_hourly_series_has_the_hour_where_two_days_were_seen() -> None:
    hourly, daily = Spacing(span=timedelta(hours=1)), Spacing(span=timedelta(days=1))
    assert calendar_of(hourly, 24 * 40) == ["hour", "weekday"]
    assert calendar_of(hourly, 47) == []
    assert "hour" not in calendar_of(daily, 800)


def test_a_filled_text_marks_the_blank() -> None:
    suggestions = (Suggestion("b", 0.5),)
    filled = Filled("a b c", suggestions, suggestions, ("a", "b", "c"), 1, (1.0,) * 3, (2.0,) * 3)
    marked = [line for line in filled.as_text().splitlines() if "→" in line]
    assert len(marked) == 1
    assert marked[0].split()[1] == "b"


def test_an_explanation_names_the_linear_model_where_it_answers() -> None:
    sizes = np.random.default_rng(1).normal(size=60).tolist()
    rows = [{"size": x, "kind": "ab"[int(x > 0)], "big": "yes" if x > 0 else "no"} for x in sizes]
    for share, is_named in (("fitted", True), (0.0, False)):
        model = TableModel(
            model={"hidden": [4], "linear_share": share}, train={"epochs": 2, "seed": 1}
        ).fit(rows, target="big")
        text = model.explain({"size": 1.0, "kind": "b"}).as_text(80, False)
        assert ("network and linear model" in text) == is_named, text
