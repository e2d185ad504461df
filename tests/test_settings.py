"""Settings say what they are: the tables are the one place, and help, pages and messages follow."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pytest
from commands import Ensue, commands_in
from pydantic import Field
from task_laws import FILED

from ensue import Classifier
from ensue.errors import ConfigError, OptionError
from ensue.runs import settings_reference
from ensue.runs.config import TABLES, RunConfig, tables_of
from ensue.runs.known_settings import FILE, Setting, by_task, known_settings, shown_value
from ensue.runs.settings_reference import as_markdown, describe
from ensue.setting_words import WORDS
from ensue.settings import (
    MOST_LISTED,
    OFF,
    Expected,
    NoneWord,
    OneOf,
    Rate,
    Size,
    Table,
    expected_of,
)
from ensue.tasks import ROOMS, TASKS
from ensue.tasks.language.settings import LanguageSettings
from ensue.tasks.transfer.settings import BaseSettings
from ensue.training import TrainSettings

pytestmark = pytest.mark.usefixtures("ninth_task")
NAMES = sorted({row.task for row in FILED})  # every room, and a task from outside
every_name = pytest.mark.parametrize("name", NAMES)
PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "settings.md"
DUE = "a table of settings has changed: `make settings` rewrites this file"


@pytest.fixture
def ensue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ensue:
    return commands_in(tmp_path, capsys, monkeypatch)


# --- the tables --------------------------------------------------------------------------------


@every_name
def test_every_setting_says_its_meaning(name: str) -> None:
    for table, (kind, _) in tables_of(TASKS[name]).items():
        for key, field in kind.model_fields.items():
            meaning = field.description or ""
            assert meaning.endswith("."), f"{table}.{key}: expected a sentence, got {meaning!r}"


@every_name
def test_defaults_are_those_of_a_run(name: str) -> None:
    tables = {"task": name, "data": {"train": ["a.csv"]}}
    run = RunConfig.of({**tables, "base": {"path": ["lm"]}})
    defaults = {key: setting.default for key, setting in describe(TASKS[name])}
    flat = run.flat()
    alone = RunConfig.of(tables).flat()
    assert alone == {key: value for key, value in flat.items() if not key.startswith("base.")}
    del flat["task"], defaults["data.train"], flat["data.train"]
    del defaults["base.path"], flat["base.path"]
    chosen = {key for key in defaults if defaults[key] == "auto"}  # settled by other settings
    assert {**defaults, **{key: flat[key] for key in chosen}} == flat


@every_name
def test_the_words_of_a_task_stand_for_settings_that_it_has(name: str) -> None:
    known = describe(TASKS[name])
    keys = dict(known)
    assert {"epochs", "rate", "seed", "patience", "members", "batch_size"} <= known.words.keys()
    assert not known.words.keys() & known.instead.keys()
    for setting_key in (
        *(key for keys in known.words.values() for key in keys),
        *known.instead.values(),
    ):
        assert setting_key in keys


class Colours(Table):
    """What is painted. More of it."""

    kind: Literal["oil", "ink"] = Field("oil", description="Kind of colour.")
    name: Annotated[str, OneOf(lambda: ["red", "blue"])] = Field("red", description="Its name.")
    most: Annotated[Size | None, OFF] = None
    every: Annotated[Rate | None, NoneWord("never")] = None
    share: Annotated[float, Field(ge=0, le=1)] = 0.5
    sizes: list[Size] = Field([])
    groups: dict[str, list[str]] = Field({})
    either: int | Literal["all"] = 1
    strange: Annotated[str, Expected("a name of a colour")] = ""
    plain: bool = False
    object: ClassVar[int] = 3


class Painted(Colours):
    kind: Literal["oil", "ink"] = "ink"
    name: str = Field("red", description="Another name.")


def test_what_is_expected_follows_from_the_type() -> None:
    assert {key: expected_of(field) for key, field in Colours.model_fields.items()} == {
        "kind": "oil, ink",
        "name": "red, blue",
        "most": "a whole number ≥ 1, or off",
        "every": "a number ≥ 0 and < 1, or never",
        "share": "a number from 0 to 1",
        "sizes": "a list of whole numbers ≥ 1",
        "groups": "a table of lists of texts",
        "either": "a whole number or all",
        "strange": "a name of a colour",
        "plain": "true or false",
    }


def test_a_key_with_another_default_keeps_its_meaning() -> None:
    fields = Painted.model_fields
    assert fields["kind"].description == "Kind of colour."
    assert fields["name"].description == "Another name."
    assert fields["most"].description is None


def test_words_for_nothing_and_names_of_tables_are_checked() -> None:
    colours = Colours.of({"most": "off", "every": "never"}, "colours")
    assert (colours.most, colours.every) == (None, None)
    assert (colours.table()["most"], colours.table()["every"]) == ("off", "never")
    assert Colours.of(colours.table(), "colours") == colours
    with pytest.raises(ConfigError) as error:
        Colours.of({"name": "bleu", "most": "never"}, "colours")
    assert str(error.value) == (
        "2 problems in the settings\n"
        "  colours.name: expected one of red, blue, got 'bleu', did you mean 'blue'?\n"
        "  colours.most: expected a whole number, got 'never'"
    )


def test_known_keys_stand_once_after_the_unknown_ones() -> None:
    with pytest.raises(ConfigError) as error:
        Painted.of({"nmae": "red", "xyz": 1}, "colours")
    known = ", ".join(Painted.model_fields)
    assert str(error.value) == (
        "2 problems in the settings\n"
        "  colours.nmae: unknown key, did you mean name?\n"
        f"  colours.xyz: unknown key. Known: {known}"
    )


def test_a_key_of_another_table_is_told_where_it_belongs() -> None:
    with pytest.raises(ConfigError) as error:
        RunConfig.of({"task": "table", "data": {"train": []}, "model": {"epochs": 3, "members": 2}})
    assert str(error.value) == (
        "2 problems\n"
        "  model.epochs: a setting of the table train: train.epochs=…\n"
        "  model.members: stands in no table: members=…"
    )


# --- what is written down ----------------------------------------------------------------------


def test_the_file_that_help_reads_is_not_out_of_date() -> None:
    assert (
        FILE.read_text("utf-8") == settings_reference.as_text(settings_reference.facts()) + "\n"
    ), DUE


def test_the_page_is_not_out_of_date() -> None:
    assert PAGE.read_text("utf-8") == as_markdown(), DUE


@every_name
def test_what_was_written_down_is_what_the_tables_say(name: str) -> None:
    described, read = describe(TASKS[name]), known_settings(name)
    assert json.dumps(asdict(read)) == json.dumps(asdict(described))
    assert [*dict(read)] == [*dict(described)]


def test_tables_are_in_the_order_of_the_configuration() -> None:
    for name in ROOMS:
        assert [*known_settings(name).tables] == ["", *TABLES]


def test_a_task_that_there_is_not() -> None:
    with pytest.raises(OptionError, match="unknown task 'tabel': did you mean 'table'"):
        known_settings("tabel")


def test_values_are_shown_as_they_are_typed() -> None:
    values: list[Any] = ["a", "", 3, 0.5, 0.0, True, [1, 2], None]
    assert [shown_value(value) for value in values] == [
        "a",
        '""',
        "3",
        "0.5",
        "0",
        "true",
        "[1, 2]",
        "",
    ]


def test_values_by_task() -> None:
    assert by_task({"a": "1", "b": "1", "c": "1"}) == "1"
    assert by_task({"a": "1", "b": "2", "c": "1"}) == "1; 2 for b"
    assert by_task({"a": "1", "b": "2"}) == "1 for a; 2 for b"


# --- `ensue settings` --------------------------------------------------------------------------


def test_tasks_are_listed_with_their_sentences(ensue: Ensue) -> None:
    code, out, _ = ensue("settings")
    assert code == 0
    for name in TASKS:
        assert f"\n  {name} " in out
    assert json.loads(ensue("settings", "--json")[1]) == {
        name: known_settings(name).sentence for name in TASKS
    }


@every_name
def test_all_settings_are_printed(ensue: Ensue, name: str) -> None:
    code, out, _ = ensue("settings", name)
    assert code == 0
    flat = " ".join(out.split())
    for setting in dict(known_settings(name)).values():
        assert f"\n  {setting.key}" in out
        assert " ".join(setting.meaning.split()) in flat
    facts = json.loads(ensue("settings", name, "--json")[1])
    assert {key: Setting(key.rpartition(".")[2], **entry) for key, entry in facts.items()} == dict(
        known_settings(name)
    )


def test_settings_are_chosen_by_table_key_or_a_part_of_it(ensue: Ensue) -> None:
    def chosen(key: str) -> list[str]:
        return list(json.loads(ensue("settings", "classify", key, "--json")[1]))

    keys = list(dict(known_settings("classify")))
    assert chosen("train") == [key for key in keys if key.startswith("train.")]
    assert chosen("train.rate") == chosen("rate") == ["train.rate"]
    assert chosen("dropout") == [key for key in keys if "dropout" in key]
    code, out, err = ensue("settings", "classify", "rat")
    assert (code, err) == (0, "")
    assert "rate = 0.001" in out
    code, out, err = ensue("settings", "classify", "hiden_size")
    assert (code, out) == (2, "")
    assert err == (
        "OptionError: classify has no setting 'hiden_size': did you mean hidden_size? "
        "`ensue settings classify` lists them\n"
    )


def test_one_setting_with_the_ways_to_change_it(ensue: Ensue) -> None:
    code, out, _ = ensue("settings", "forecast", "batch_windows")
    assert code == 0
    flat = " ".join(out.split())
    for text in ("model.batch_windows of forecast", "Batch size, in windows.", "default 32",
                 "--batch-size … or --set model.batch_windows=…", "under [model]"):  # fmt: skip
        assert text in flat
    assert "above all tables" in ensue("settings", "forecast", "members")[1]


def test_a_long_list_of_known_keys_is_shortened() -> None:
    model = TASKS["translate"].settings
    known = list(model.model_fields)
    assert len(known) > MOST_LISTED
    with pytest.raises(ConfigError) as error:
        model.of({"zzz": 1}, "model")
    listed = ", ".join(known[:MOST_LISTED])
    more = f"and {len(known) - MOST_LISTED} more, which `ensue settings` lists"
    assert str(error.value) == f"model.zzz: unknown key. Known: {listed} {more}"


# --- settings next to their tables --------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 3}, "epochs is a setting of train; say Classifier(train={'epochs': 3})"),
        ({"lr": 0.1}, "lr is a setting of train; say Classifier(train={'rate': 0.1})"),
        (
            {"batch_size": 8},
            "batch_size is a setting of model; say Classifier(model={'batch_rows': 8})",
        ),
        ({"level": "words"}, "say Classifier(text={'level': 'words'})"),
        ({"label": "stars"}, "label is a role of a column; say fit(data, label='stars')"),
        ({"epoch": 3}, "epoch: unknown setting, did you mean epochs? `ensue settings classify`"),
        ({"zzz": 3}, "zzz: unknown setting. `ensue settings classify` lists all"),
    ],
)
def test_a_setting_beside_its_table_is_told_where_it_belongs(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(OptionError) as caught:
        Classifier(**settings)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("600,6000", "expected a list of whole numbers ≥ 1, got '600,6000'; write [600,6000]"),
        ("", "expected a list of whole numbers ≥ 1, got ''; write []"),
        ("0,5", "expected a list of whole numbers ≥ 1, got '0,5'"),
        ("600,a", "expected a list of whole numbers ≥ 1, got '600,a'"),
        ("[30,", "expected a list of whole numbers ≥ 1, got '[30,'"),
    ],
)
def test_a_list_without_brackets_is_told_how_to_write_it(value: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        LanguageSettings.of({"softmax_cuts": value}, "model")
    assert str(caught.value) == f"model.softmax_cuts: {message}"


def test_other_lists_are_told_in_their_own_words() -> None:
    with pytest.raises(ConfigError) as caught:
        TrainSettings.of({"betas": "0.9,0.99"}, "train")
    assert str(caught.value) == (
        "train.betas: expected two numbers, each ≥ 0 and < 1, got '0.9,0.99'; write [0.9,0.99]"
    )
    with pytest.raises(ConfigError) as header:
        BaseSettings.of({"path": "lm,back"}, "base")
    assert str(header.value) == (
        'base.path: expected a list of texts, got \'lm,back\'; write ["lm","back"]'
    )


def test_every_word_is_understood_by_every_model() -> None:
    for task in TASKS.values():
        for word in WORDS.values():
            if word.name != "members" and word.name in known_settings(task.name).words:
                with pytest.raises(OptionError, match="is a setting of"):
                    task.model_class(**{word.name: 1})
