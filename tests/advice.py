"""The table of advice: every message that names an option or a command, and what comes of it.

Each row provokes a message, takes the advice out of what was printed, follows it, and must get
further. `test_advice.py` runs them, and looks for messages that no row is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

ENSUE = r"`ensue ([^`]*)`"  # a command to be pasted
SMALL = "--epochs 1 --set model.hidden_size=4 --set model.embedding_size=4"
TINY = f"{SMALL} --set model.linear=alone"
DRY = "--dry-run"
# Every setting of tables that `select` searches.
GIVEN = (
    "--label y --epochs 1 --rate 0.01 --set model.hidden=[4] --set model.embedding_size=4 "
    "--set model.dropout_layers=0 --set model.batch_rows=8 --set train.schedule=constant "
    """--set train.weight_decay=0 --set train.averaging=off --set 'model.activations=["relu"]'"""
)
PAIRS = "source\ttarget\n" + "".join(
    f"the film number {k} was fine\tla pelicula numero {k} era buena\n" for k in range(40)
)
MANY = "".join(
    f'{{"plot": "a fine film about town {k}", "genres": ["{"ab"[k % 2]}", "{"cd"[k % 3 == 0]}"]}}\n'
    for k in range(40)
)
GENRES = f"train many.jsonl --task classify --text plot --label genres --run many {TINY}"
TAGGED = "train tagged.csv --label y --separator ; --run tagged --epochs 1"
SUMS = "--label y --run sums --epochs 1 --set model.target=number --set model.linear_share=fitted"
AHEAD = f"train sales.csv {DRY} --task forecast --target sales --horizon 2"
AGES = f"train ages.csv {DRY} --task regress --text letter --label age --set model.linear=mixed"
LATIN = "review,stars\n" + "un café très bien,good\nmal cuit,bad\n" * 12


@dataclass(frozen=True)
class Advice:
    """message: words of the message, as in the source; typed: the command that prints it; take: a
    pattern for the advice in the output; then: the command that follows the advice, with {0} for
    the match, {typed} for the first command and FILE as the advice has it; files: written before;
    code: exit code of the first command; slow: not in `make test`."""

    message: str
    typed: str
    take: str
    then: str = "{typed} {0}"
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    code: int = 2
    slow: bool = False

    def __str__(self) -> str:
        return self.message


def rows(count: int, between: str = ",") -> str:
    kinds = (("a fine film about town", "good"), ("a dull and long story", "bad"))
    return "".join(f"{t} {k}{between}{la}\n" for k in range(count) for t, la in kinds)


def days(count: int, step: str = "{:%Y-%m-%d}", more: str = "") -> str:
    from datetime import date, timedelta

    first = date(2021, 1, 1)
    return "".join(
        f"{step.format(first + timedelta(k))},{20 + k % 7}.5{more}\n" for k in range(count)
    )


TABLE = [
    # --- how a command is written ---------------------------------------------------------------
    Advice("did you mean `", "trian films.csv", ENSUE, "train films.csv --dry-run"),
    Advice("lists them all", "frobnicate", r"`ensue (--help)` lists", "{0}"),
    Advice("lists what it takes", "train films.csv --nosuch 1", ENSUE, "{0}"),
    Advice("did you mean --set", f"train films.csv {DRY} --weight-decay 0.1",
           r"did you mean (--set [\w.]+=)…", f"train films.csv {DRY} {{0}}0.1"),
    Advice("expected table.key=value, such as", f"train films.csv {DRY} --set rate",
           r"such as (\S+)", f"train films.csv {DRY} --set {{0}}"),
    Advice("two values for one setting; give one of them",
           f"train films.csv {DRY} --epochs 2 --set train.epochs=3", r"(--epochs) and",
           f"train films.csv {DRY} {{0}} 2"),
    Advice("comes closest: --set", "train churn.csv --label churn --hidden-size 8 --dry-run",
           r"closest: (--set \S+='[^']*')", "train churn.csv --label churn --dry-run {0}"),
    Advice("lists its settings", "train churn.csv --label churn --cell GRU --dry-run", ENSUE,
           "{0}"),
    Advice(" has no setting ", "settings classify nosuchthing", ENSUE, "{0}"),
    Advice("add --out answers.csv", "predict run films.csv --keep review",
           r"add (--out \S+)"),
    Advice("expected a file that ends in", "predict run films.csv --out a.txt", r"use (--out \S+)",
           "predict run films.csv {0}"),
    Advice("beam search does not sample; expected it without", "generate lm --beam 2 --top-k 3",
           r"expected it (without)", "generate lm --beam 2"),
    Advice("use --device cpu or auto", f"train films.csv --run gpu {TINY} --device cuda",
           r"use (--device cpu)"),
    Advice("which of the", "predict run films.csv --threshold 0.7", r"label, (\S+) or",
           "predict run films.csv --threshold {0}"),
    # --- how files are read ---------------------------------------------------------------------
    Advice("if that is right", f"train latin.csv {DRY}", r"use (--encoding \S+)",
           files={"latin.csv": LATIN.encode("latin-1")}),
    Advice("of {}, not of {}: use --encoding", f"train bom.csv {DRY}", r"use (--encoding \S+)",
           files={"bom.csv": LATIN.encode("utf-16")}),
    Advice("every other byte is NUL: the file is", f"train nul.csv {DRY}", r"use (--encoding \S+)",
           files={"nul.csv": ("review,stars\n" + rows(12)).encode("utf-16-le")}),
    Advice("does not begin with the byte order mark of", f"train nul.csv {DRY} --encoding utf-16",
           r"or (utf-16-le) if", f"train nul.csv {DRY} --encoding {{0}}",
           files={"nul.csv": ("review,stars\n" + rows(12)).encode("utf-16-le")}),
    Advice("if it is data, use --header", f"train bare.csv {DRY} --text review --label stars",
           r"use (--header) a,b", "{typed} {0} review,stars",
           {"bare.csv": "a fine film about the old town and its people,good\n" + rows(12)}),
    Advice("needs the names of its columns: --header", "predict run bare2.csv", r"(--header) a,b",
           "{typed} {0} review,stars", {"bare2.csv": rows(12)}),
    Advice("if it is data, use --header", f"train long.csv {DRY}", r"use (--header) a,b",
           "{typed} {0} review,stars",
           {"long.csv": "a fine film about the old town and its people,best\n" + rows(12)}, code=0),
    Advice("if it has their names, add --set data.header=[]", f"train twice.csv {DRY}",
           r"add (--set \S+)", files={"twice.csv": "a fine film about town 0,good\n" + rows(12)},
           code=0),
    Advice("--decimal {} ({})", f"train euro.csv --delimiter ; --task table --label stars {DRY}",
           r"add (--decimal \S+)", files={
               "euro.csv": "price;stars\n" + "".join(f"€1.{k};{k % 2}\n" for k in range(200, 240))
           }),
    Advice("learn from them, too, with --columns", f"train priced.csv {DRY}",
           r"with (--columns \S+)", files={
               "priced.csv": "review,price,stars\n" + "".join(
                   f"a {w} film about town {k},{k % 7}.5,{s}\n" for k in range(40)
                   for w, s in (("fine", "good"), ("dull", "bad"))
               )
           }, code=0),
    Advice("the file has a header line already", f"train films.csv {DRY} --header review,stars",
           r"leave (--header) out", f"train films.csv {DRY}"),
    Advice("really is one)", f"train semi.csv {DRY} --text review --label stars",
           r"use (--delimiter \S+)", files={"semi.csv": "review;stars\n" + rows(12, ";")}),
    Advice("if quotes have no meaning in this file, use", f"train quotes.csv {DRY}",
           r"use (--no-quote)",
           files={"quotes.csv": "review,stars\n" + rows(120).replace("a dull", '"a dull')}),
    Advice("Fix the lines, or use --skip-bad", f"train bad.csv {DRY}", r"use (--skip-bad)",
           files={"bad.csv": f"review,stars\n{rows(20)}x,x,x,x\n"}),
    Advice("use --format with one of", f"train films.dat {DRY}", r"with one of (?:.*)(csv)",
           "{typed} --format {0}", {"films.dat": "review,stars\n" + rows(20)}),
    Advice("if it is text, name its format with --format", f"train films.xlsx {DRY}",
           r"(--format), such as (csv)", "{typed} {0} {1}",
           {"films.xlsx": "review,stars\n" + rows(20)}),
    Advice("if the lines are texts alone, use --format text", "predict lab plain.txt",
           r"use (--format text)", files={"plain.txt": "the film was fine\nsome dull story\n"}),
    Advice("these look like numbers with a decimal comma", f"train comma.csv {DRY} --label b",
           r"(--decimal ,)", files={"comma.csv": "a,b\n" + '"1,5",x\n"2,5",y\n' * 12}),
    # --- which columns --------------------------------------------------------------------------
    Advice("Say which, with one of these", f"train tickets.csv {DRY}",
           r"ensue (train .* --task classify .*)", "{0}"),
    Advice("identifies each row and is not read", f"train orders.csv --label y {DRY}",
           r"\((--set model\.leave_out=\[\])", code=0,
           files={"orders.csv": "order_id,a,y\n"
                  + "".join(f"{7 * k},{k % 5},{'ab'[k % 2]}\n" for k in range(60))}),
    Advice("no column looks like a text among",
           f"train numbers.csv --task classify --label y {DRY}", r"with (--task table)",
           f"train numbers.csv --label y {DRY} {{0}}"),
    Advice("no column looks like a label among", "train one.csv --task classify --dry-run",
           r"with (--task language)", f"train one.csv {DRY} {{0}}",
           {"one.csv": "review\n" + rows(20, " ")}),
    Advice("to use one of them anyway, name it with", f"train ids.csv --label y {DRY}",
           r"with (--text)", "{typed} {0} order_id",
           {"ids.csv": "order_id,y\n" + "".join(f"A{k:04},{'ab'[k % 2]}\n" for k in range(30))}),
    # --- series -----------------------------------------------------------------------------------
    Advice("and no row tells which: add --dates", f"train dates.csv {DRY} --horizon 2",
           r"add (--dates \S+) or",
           files={"dates.csv": "day,sales\n" + "".join(f"{k:02}/{k:02}/2021,{k}.5\n"
                                                       for k in range(1, 13))}),
    Advice("tells several series apart with --group",
           f"train shops.csv {DRY} --time day --target sales --horizon 2",
           r"apart with (--group)", "{typed} {0} shop",
           {"shops.csv": "day,sales,shop\n" + days(30, more=",1.5") + days(30, more=",2.5")}),
    Advice("a static column is the same at all steps",
           f"train static.csv {DRY} --time day --target sales --horizon 2 --static k",
           r"name it with (--covariates)",
           f"train static.csv {DRY} --time day --target sales --horizon 2 {{0}} k",
           {"static.csv": "day,sales,k\n" + "".join(
               line + f",{k}\n" for k, line in enumerate(days(30).splitlines()))}),
    Advice("; give them with --future FILE", "predict promoted", r"with (--future) FILE",
           "predict promoted {0} future.csv",
           {"future.csv": "day,promo\n2021-03-02,1\n2021-03-03,2\n"}),
    # --- runs -------------------------------------------------------------------------------------
    Advice("there is no run here; train one", "evaluate nothing", ENSUE, f"{{0}} {TINY}"),
    Advice("there is no run here; name the files to train on", "train --run nowhere",
           r"ensue (train .*)", f"{{0}} {TINY}"),
    Advice("without files the run continues as", "train --run run --epochs 3", ENSUE, "{0}"),
    Advice("resumes it with its own settings", f"train films.csv --run run {TINY} --seed 5", ENSUE,
           "{0}"),
    Advice("for the new ones name another folder", f"train films.csv --run run {TINY} --seed 5",
           r"folder, (--run \S+), or", "{typed} {0}"),
    Advice("name another folder: --run", "train churn.csv --label churn --run run --epochs 1",
           r"folder: (--run \S+)", "train churn.csv --label churn --epochs 1 {0}"),
    Advice("to be split by their hash (equal ones stay in one part)",
           f"train same.csv --run same {TINY}", r"(--validation)", "{typed} {0} films.csv",
           {"same.csv": "review,stars\n" + "a film,good\nno film,bad\n" * 20}),
    Advice("this run has no test part; give a file with", "evaluate untested", r"with (--test)",
           "{typed} {0} films.csv"),
    Advice("give one to `ensue evaluate", f"train films.csv --validation more.csv {DRY}",
           r"`ensue (evaluate --test)`", "{0} films.csv untested", code=0),
    Advice("or add --allow data", f"train moved.csv --run moved {TINY}", r"add (--allow data)",
           files={"moved.csv": "review,stars,x\n" + rows(40).replace("\n", ",1\n")}),
    Advice("Undo them, name another run folder, or allow them by name",
           f"train changed.csv --run changed {TINY}", r"by name: (.*)",
           files={"changed.csv": "review,stars\n" + rows(40).replace("town 7,good", "town 7,bad")}),
    Advice("expected a language model, got a model of", "generate run", ENSUE, f"{{0}} {SMALL}"),
    Advice("a model that reads from both sides", "fill lm 'a ___ film'",
           r"(--set model\.family=both)",
           f"train films.csv --task language --text review --run both {SMALL} {{0}}"),
    Advice("more epochs may help", f"train films.csv --run longer {TINY} --epochs 2 --rate 0.01",
           r"may help \((.*)\)", "{typed} {0}", code=0),
    Advice("=recurrent trains one", "flow plain", r"(--set model\.\w+=recurrent)",
           f"train films.csv --run again {TINY} {{0}}"),
    Advice("  ensue evaluate ", "compare run plain", r"  ensue (.*)", "{0}"),
    Advice("evaluate both on one file that neither has learned from", "compare lab evaluated",
           r"ensue (evaluate \S+ --test) FILE", "{0} labelled.txt"),
    # --- choosing models ------------------------------------------------------------------------
    Advice("name the files to learn from", "select --run chosen", ENSUE,
           f"{{0}} --models gru,lstm {TINY}"),
    Advice("expected two models or more to select from", "select films.csv --run s0 --models gru",
           r"`ensue (train)`", "{0} films.csv --dry-run"),
    Advice("expected name:key=value,key=value, such as",
           "select films.csv --run s1 --models gru:5,lstm", r"such as (\S+), got",
           "select films.csv --run s1 --models {0},gru --epochs 1", slow=True),
    Advice("or their scores could not be compared",
           "select films.csv --run s2 --models gru:data.text=x,lstm",
           r"give it with (--set data\.text)=",
           f"select films.csv --run s2 --models gru,lstm {TINY} {{0}}=review", slow=True),
    Advice("this is the folder of one run; name another one with",
           f"select films.csv --run run --models gru,lstm {TINY}", r"with (--run)",
           f"select films.csv {{0}} s3 --models gru,lstm {TINY}", slow=True),
    Advice("trains every model that it names",
           f"select films.csv --run s4 --models gru,lstm --trials 2 {TINY}",
           r"(--models) and --trials", f"select films.csv --run s4 {{0}} gru,lstm {TINY}",
           slow=True),
    Advice("is given: nothing is left to search", f"select numbers.csv --run s5 {GIVEN}",
           r"with `ensue (train)`", f"{{0}} numbers.csv --run s5 {GIVEN}"),
    # --- a model to begin from ------------------------------------------------------------------
    Advice("this is not the base that the configuration names",
           "train films.csv --base lm --run digest --epochs 1 --set base.digest=abc",
           r"new one: (--set base\.digest=\S+)"),
    Advice("resumes the run with the base that it began from",
           "train films.csv --base lm --run based --epochs 1 --set base.digest=abc", ENSUE, "{0}"),
    Advice("name the cell for this training too", "train films.csv --base mine --run m1 --epochs 1",
           r"(--set model\.cell=)FILE:NAME", "{typed} {0}mine.py:Mine"),
    Advice("the base has a cell of its own",
           "train films.csv --base gone --run begun --epochs 1 --allow base.path",
           r"(--set model\.cell=)FILE(:\w+)", "{typed} {0}mine.py{1}"),
    Advice(", or resume with them: {}", "train films.csv --base gone --run based --epochs 1",
           r"resume with them: (--allow base\.path)"),
    Advice("for both directions name a forward and a backward language model",
           "train films.csv --base back --run m2 --epochs 1", r"model, (--base) A (--base) B",
           "train films.csv --run m2 --epochs 1 {0} lm {1} back"),
    Advice("expected a base as well, got none; name one",
           f"train films.csv --run m4 {DRY} --set base.recipe=frozen", r"name one, (--base) RUN",
           "{typed} {0} lm"),
    Advice("expected a run, a model or a file, got {}, which does not exist",
           f"train films.csv --base nosuch --run m5 {DRY}", ENSUE, "{0}"),
    Advice("expected the folder of a run or of a saved model, got one of neither",
           f"train films.csv --base . --run m7 {DRY}", ENSUE, "{0}"),
    Advice("a base is trained first, `ensue pretrain {} --run NAME`, and then named",
           f"train films.csv --base films.csv --run m6 {DRY}", r"`ensue (pretrain \S+ --run) NAME`",
           f"{{0}} base {DRY}"),
    Advice("this run has no base to compare with", "study labels run --labels 10",
           r"trained with (--base)", f"train films.csv {{0}} lm --run m3 {DRY}"),
    # --- many processes, other targets ----------------------------------------------------------
    Advice("expected several networks to share out", f"train films.csv --run shared {TINY} "
           "--workers 2", r"add (--members \d+)", slow=True),
    Advice("train with --set model.encoder=recurrent --set model.bidirectional=false",
           "export run run.js --streaming", r"train with (--set \S+ --set [\w.]+=\w+)",
           f"train films.csv --run ahead {TINY} {{0}}"),
    Advice("export it without --streaming", "export table table.js --unchecked --streaming",
           r"it (without) --streaming", "export table table.js --unchecked", slow=True),
    # --- settings by their names ----------------------------------------------------------------
    Advice("several, of texts model.several = true", f"{GENRES} --set model.several=false",
           r"of texts model\.several = (true)", f"{GENRES} --set model.several={{0}}",
           {"many.jsonl": MANY}),
    Advice("a linear model in the answer: expected model.distribution",
           f"train sums.csv {SUMS} --set model.distribution=mixture",
           r"expected (model\.distribution) = (gaussian)",
           f"train sums.csv {SUMS} --set {{0}}={{1}}",
           {"sums.csv": "a,b,y\n" + "".join(f"{k}.5,{k % 7},{k + k % 7}.25\n" for k in range(60))}),
    Advice("a linear model in the answer of trees", "export forest forest.js --unchecked",
           r"train with (--set model\.linear_share=0)", "train forest.trees --run bare {0} "
           "--epochs 1 --set model.hidden_size=4"),
    Advice("for several labels at once set model.target", f"{TAGGED} --set model.target=class",
           r"set model\.target = (several)", f"{TAGGED} --set model.target={{0}}",
           {"tagged.csv": "a,b,y\n" + "".join(f"{k}.5,{k % 7},{'p;q' if k % 2 else 'p'}\n"
                                              for k in range(60))}),
    Advice("or learn with gaps: model.missing", "train holes.csv --label y --run holes --epochs 1 "
           "--set model.missing=error", r"(model\.missing) = (indicator)",
           "train holes.csv --label y --run holes --epochs 1 --set {0}={1}",
           {"holes.csv": "a,b,y\n" + "".join(f"{k if k % 9 else ''},{k % 7},{'pq'[k % 2]}\n"
                                             for k in range(60))}),
    Advice("write a number, or leave the cell empty", "train odd.csv --label y --validation "
           "odd2.csv --run odd --epochs 1", r"write a number, or leave the (cell) empty",
           "train odd.csv --label y --validation numbers.csv --run odd --epochs 1",
           {"odd.csv": "a,b,y\n" + "".join(f"{k % 9},{k % 7},{k % 2}\n" for k in range(60)),
            "odd2.csv": "a,b,y\n1,2,0\nn.d.,3,1\n"}),
    Advice("leave it out (model.leave_out)", "train towns.csv --task table --label y --run towns "
           "--epochs 1", r"leave it out \((model\.leave_out)\)",
           "train towns.csv --task table --label y --run towns2 --epochs 1 --set '{0}=[\"town\"]'",
           {"towns.csv": "town,b,y\n" + "".join(f"{'abcdefgh'[k % 8]}{k}ville,{k % 7},"
                                                f"{'pq'[k % 2]}\n" for k in range(60))}, code=0),
    Advice("(model.columns), or give more text", "train few.txt --run few --epochs 1 "
           "--set model.columns=500", r"\((model\.columns)\)",
           f"train few.txt --run few {SMALL} --set {{0}}=2",
           {"few.txt": "".join(f"the film {k} was fine\n" for k in range(30))}),
    Advice("raise it, or leave it out", f"train pairs.tsv --run pairs {SMALL} "
           "--set text.max_length=2", r"than (text\.max_length), 2",
           f"train pairs.tsv --run pairs {SMALL} --set {{0}}=20", {"pairs.tsv": PAIRS}),
    Advice("or set a smaller model.horizon", "train sales.csv --horizon 25 --run far",
           r"a smaller (model\.horizon)", "train sales.csv --set {0}=2 --run near --epochs 1"),
    Advice("for fresh layers on top say base.added", "train films.csv --base lm --run added "
           "--epochs 1 --set base.layers=9", r"on top say (base\.added)",
           "train films.csv --base lm --run added --epochs 1 --set {0}=1"),
    Advice("ngram_share: expected model.ngrams ≥ 1 as well",
           f"train films.csv {DRY} --set model.ngram_share=0.5", r"expected (model\.ngrams) ≥ 1",
           "{typed} --set {0}=1"),
    Advice("linear: mixed has n-grams of its own",
           f"train films.csv {DRY} --set model.ngrams=1 --set model.linear=mixed",
           r"expected (model\.ngrams) = 0", f"train films.csv {DRY} --set model.linear=mixed "
           "--set {0}=0"),
    Advice("segment: expected a divisor of model.look_back", "train sales.csv --dry-run --set "
           "model.family=segment --set model.look_back=10 --set model.segment=3",
           r"(model\.look_back), 10", "train sales.csv --dry-run --set model.family=segment --set "
           "{0}=12 --set model.segment=3"),
    Advice("needs model.time, a column", f"{AHEAD} --time '' --set 'model.calendar=[\"weekday\"]'",
           r"needs (model\.time)", f"{AHEAD} --set 'model.calendar=[\"weekday\"]' --set {{0}}=day"),
    Advice("linear: only a gaussian can be mixed", f"{AGES} --set model.distribution=mixture",
           r"expected (model\.distribution) = (gaussian)",
           f"{AGES} --set {{0}}={{1}}", {"ages.csv": "letter,age\n" + "".join(
               f"a fine film about the town number {k},{k % 50}.5\n" for k in range(40))}),
    Advice("or set model.categorical if they are right",
           "train nearly.csv --task table --label y --run nearly --epochs 1",
           r"or set (model\.categorical)",
           "train nearly.csv --task table --label y --run nearly2 --epochs 1 --set '{0}=[\"a\"]'",
           {"nearly.csv": "a,b,y\n" + "".join(f"{k % 9 if k % 40 else 'n.d.'},{k % 7},"
                                              f"{'pq'[k % 2]}\n" for k in range(200))}, code=0),
    # --- advice that needs understanding ----------------------------------------------------------
    Advice("for other numbers choose --cost squares", "backprop --y 5", r"choose (--cost squares)"),
    Advice("for several independent labels choose --output logistic",
           "backprop --widths 2,2 --output softmax --y 1,1", r"choose (--output logistic)",
           "backprop --widths 2,2 --y 1,1 {0}"),
    Advice("expected a value of", "graph 'sum(W @ x)' --at x=[1,2]", r"(--at [^…]*)…",
           "graph 'sum(W @ x)' {0}[[1,2],[3,4]],x=[1,2]"),
    Advice("choose other values with --at", "graph log(x) --at x=0", r"with (--at)",
           "graph log(x) {0} x=1"),
    Advice("got {} and {} tokens; give --held-out FILE", "data ngrams short.txt",
           r"give (--held-out)", "data ngrams labelled.txt {0} labelled.txt", {"short.txt": "a\n"}),
    Advice("no case has all words of", "bench LSTM.GRU", r"(--list)", "bench {0}"),
    Advice("expected a run folder, or --cell such as", "flow", r"(--cell) such as (\w+)",
           "flow {0} {1} --hidden-size 2 --steps 3"),
    Advice("is a file that is read, and would be lost", "predict run films.csv --out films.csv",
           r"use (--out \S+)", "predict run films.csv {0}"),
    Advice("explain: expected one of {}, --file, got {}", "explain run", r" (--text) \(",
           "explain run {0} 'a fine film'"),
    Advice("which has no baseline, got {}",
           "explain run --text 'a fine film' --baseline padding --method gradient",
           r"with (--method) gradient", "explain run --text 'a fine film' --baseline padding {0} "
           "integrated"),
    Advice("--unfold: expected --picture FILE with it", "cell show GRU --unfold 3",
           r"expected (--picture) FILE", "{typed} {0} unfolded.svg"),
    Advice("--layers, --bidirectional: expected --unfold N with them", "cell show GRU --layers 2",
           r"expected (--unfold) N", "{typed} {0} 2 --picture layers.svg"),
]  # fmt: skip
# Runs that commands name, and what trains them.
RUNS = {
    "run": f"films.csv {TINY}",
    "moved": f"moved.csv {TINY}",
    "changed": f"changed.csv {TINY}",
    "evaluated": f"more.csv {TINY}",
    "untested": f"films.csv --validation more.csv {TINY}",
    "plain": f"films.csv {TINY} --set model.encoder=plain --set model.pooling=mean",
    "lab": f"labelled.txt --format labelled {TINY}",
    "lm": f"films.csv --task language --text review {SMALL}",
    "back": f"films.csv --task language --text review {SMALL} --set model.direction=backward",
    "based": "films.csv --base lm --epochs 1",
    "mine": f"films.csv --task language --text review {SMALL} --set model.cell=mine.py:Mine",
    "begun": "films.csv --base mine --epochs 1 --set model.cell=mine.py:Mine",
    "table": "numbers.csv --label y --epochs 1",
    "forest": "forest.trees --epochs 1 --set model.hidden_size=4 --set model.linear_share=fitted",
    "promoted": "promo.csv --time day --target sales --known promo --horizon 2 --epochs 1",
}
EVALUATED = ("lab", "evaluated")
