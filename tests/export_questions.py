"""Questions to exported models: some that are strange, and as many others as are wanted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator


@dataclass(frozen=True)
class Questions:
    """chosen: questions of many kinds; drawn: another one by chance."""

    chosen: Sequence[Any]
    drawn: Callable[[Generator], Any]

    def many(self, count: int) -> list[Any]:
        """The chosen ones, and others up to that many."""
        random = np.random.default_rng(21)
        return [*self.chosen, *(self.drawn(random) for _ in range(count - len(self.chosen)))]


def _some(random: Generator, words: Sequence[str], most: int) -> list[str]:
    return [str(word) for word in random.choice(list(words), random.integers(0, most + 1))]


TEXTS = [
    "a fine, fine film",
    "dull & long",
    "great fun!",
    "boring",
    "the new one: 3.50",
    "naïve <b>",
]
MARKUP = "<script>alert(1)</script> </script> <b>bold</b> <img/src='x'onerror='alert(1)'>"
STRANGE = [
    "",
    "unknown words only",
    "It's 3.50, isn't it? 1,000.5 l’été naïve",
    MARKUP,
    "日本語 のテキスト snake_case ½ ²",
    "a\u0301e\u0301 combined \u0915\u094d\u0937",
    "tabs\tand\nlines   spaces",
    "fine " * 60,
]


def _text(random: Generator) -> str:
    known = " ".join([*TEXTS, *STRANGE[:6]]).split()
    return " ".join(_some(random, known, 25))


WORDS = Questions([*TEXTS, *STRANGE], _text)

PAIRS = [
    (f"{a} {b} {c}", f"{c.upper()} {a.upper()}") for a in "xyz" for b in "pq" for c in "klm"
] * 2
SIDES = [(("it rains", "it is wet"), "yes"), (("it rains now", "it is dry"), "no")] * 10
LINES = [f"the {who} {does}" for who in ("cat", "dog", "old cat") for does in ("sees", "runs")]
SAID = Questions(
    [*(source for source, _ in PAIRS[:8]), "", "x", "k k k k unknown q", MARKUP],
    lambda random: " ".join(_some(random, [*"xyzpqklm", "unknown"], 6)),
)


def _two_texts(random: Generator) -> tuple[str, str]:
    known = ["it", "rains", "now", "is", "wet", "dry", "?", "<b>", "unknown"]
    return " ".join(_some(random, known, 8)), " ".join(_some(random, known, 8))


MATCHED = Questions(
    [("it rains", "is it dry?"), ("", "rains"), ("wet it is", ""), (MARKUP, MARKUP)], _two_texts
)
SPOKEN = Questions(
    ["the dog runs", "", "cat the old unknown", MARKUP],
    lambda random: " ".join(
        _some(random, ["the", "cat", "dog", "old", "sees", "runs", "unknown"], 15)
    ),
)


def _sentences() -> list[tuple[list[str], list[str]]]:
    random = np.random.default_rng(1)
    known = {"The": "O", "dog": "B-X", "barks": "O", "USA": "B-Y", "2026": "O", "l’été": "I-Y"}
    known |= {"naïve": "O", "McDonald's": "B-X", "x²": "O", "CAT": "I-X", "A": "O"}
    sentences = []
    for _ in range(40):
        words = [str(word) for word in random.choice(list(known), random.integers(1, 7))]
        labels = [known[word] for word in words]
        legal = [
            label if label[0] != "I" or (k and labels[k - 1][1:] == label[1:]) else "B" + label[1:]
            for k, label in enumerate(labels)
        ]
        sentences.append((words, legal))
    return sentences


SENTENCES = _sentences()
STRANGE_WORDS = ["unknown", "ǅ", "Ⅷ", "ﬁn", *MARKUP.split()]


def _sentence(random: Generator) -> list[str]:
    return _some(random, [*(word for words, _ in SENTENCES for word in words), *STRANGE_WORDS], 30)


ASKED = Questions([*(words for words, _ in SENTENCES[:12]), [], STRANGE_WORDS], _sentence)


def _vectors() -> list[tuple[Any, str]]:
    random = np.random.default_rng(0)
    sizes = [int(n) for n in random.integers(1, 6, 30)]
    return [
        (random.normal(size=(n, 3)).astype(np.float32), "ab"[k % 2]) for k, n in enumerate(sizes)
    ]


VECTORS = _vectors()


def _steps(random: Generator) -> Any:
    return random.normal(size=(random.integers(1, 20), 3)).astype(np.float32)


STEPS = Questions([word for word, _ in VECTORS[:5]], _steps)


def _row(random: Generator) -> dict[str, Any]:
    area, town = random.uniform(30, 110), random.choice(["Delft", "Gouda", "Leiden", "Rome", ""])
    return {"area": "" if random.random() < 0.1 else float(area), "town": str(town)}


TABLE = Questions(
    [
        {"area": 50.0, "town": "Delft"},
        {"area": "", "town": "Rome"},
        {"area": "93", "town": ""},
        {"area": 70.0, "town": MARKUP},
    ],
    _row,
)


TREES = ["(1 (0 not) (0 bad))", "(0 (0 very) (0 bad))", "(1 (0 so) (0 very) (1 good) (0 !))"]


def _brackets(random: Generator, depth: int = 4) -> str:
    if not depth or random.random() < 0.3:
        return str(random.choice(["not", "(bad)", "very", "(0 good)", "unknown", "(1 so)"]))
    below = [_brackets(random, depth - 1) for _ in range(random.integers(1, 5))]
    return f"({random.choice(['', '0 ', '1 '])}{' '.join(below)})"


FOREST = Questions(
    [*TREES, "((not) (bad))", "(good)", "((0 not (1 (0 so) bad)))", "(0 <b> (1 <script>))"],
    lambda random: f"(1 {_brackets(random)} {_brackets(random)})",
)
SOLD = ("2021-01-31", "3 Mar 2022", "2020-02-29T23:30", "2021-06-30T23:30+05:00", "31.12.2019")


def _sale(random: Generator) -> dict[str, Any]:
    day = np.datetime64("2019-01-01") + int(random.integers(0, 1500))
    return {**_row(random), "sold": "" if random.random() < 0.1 else str(day)}


SALE = Questions(
    [
        *({"area": 60.0, "town": "Gouda", "sold": sold} for sold in SOLD),
        {**TABLE.chosen[1], "sold": ""},
    ],
    _sale,
)


def _review(random: Generator) -> dict[str, Any]:
    price = "" if random.random() < 0.1 else float(random.uniform(1, 40))
    country = str(random.choice(["nl", "fr", "de", "no", ""]))
    return {"review": _text(random), "price": price, "country": country}


REVIEWS = Questions(
    [{"review": text, "price": 12.5, "country": "nl"} for text in (*TEXTS[:2], "", MARKUP)],
    _review,
)


def _pictures() -> list[tuple[Any, str]]:
    random = np.random.default_rng(0)
    return [
        (random.integers(0, 255 if k % 2 else 90, (8, 8), np.uint8), ["dark", "bright one"][k % 2])
        for k in range(24)
    ]


PICTURES = _pictures()


def _picture(random: Generator) -> Any:
    size = (8, 8) if random.random() < 0.5 else tuple(random.integers(3, 20, 2))
    return random.integers(0, random.integers(2, 256), size, np.uint8)


SHOWN = Questions(
    [*(pixels for pixels, _ in PICTURES[:3]), np.full((3, 13, 9), 77, np.uint8)], _picture
)
SALES = [10 + 3 * np.sin(t / 3) + 0.05 * t + t * 7919 % 13 / 20 for t in range(150)]


def _series(random: Generator) -> dict[str, list[float]]:
    steps = random.integers(40, 151)
    wave = random.uniform(5, 15) + random.uniform(0, 3) * np.sin(np.arange(steps) / 3)
    return {"sales": [float(v) for v in wave + random.normal(0, 0.5, steps)]}


SERIES = Questions([{"sales": [float(v) for v in SALES[:n]]} for n in (40, 150)], _series)


# --- series with times, and a panel --------------------------------------------------------------

MONTHS = [f"{1990 + t // 12}-{t % 12 + 1:02}" for t in range(150)]


def dated(values: Sequence[Any], random: Generator | None = None) -> dict[str, list[Any]]:
    """By month; some rows and some numbers are missing where there is chance."""
    rows = [(month, float(value)) for month, value in zip(MONTHS, values, strict=False)]
    if random is not None:
        rows = [
            row for k, row in enumerate(rows) if k in (0, len(rows) - 1) or random.random() > 0.05
        ]
    lost = [
        random is not None and 1 < k < len(rows) - 1 and random.random() < 0.03
        for k in range(len(rows))
    ]
    return {
        "month": [m for m, _ in rows],
        "sales": [None if gone else v for (_, v), gone in zip(rows, lost, strict=True)],
    }


DATED = Questions(
    [dated(SALES[:n]) for n in (150, 40, 3, 2)],
    lambda random: dated(_series(random)["sales"], random),
)


def _days(first: int, count: int) -> list[str]:
    return [str(np.datetime64("2024-02-26") + first + k) for k in range(count)]


SHOPS = {"a": ("north", 3.0), "b": ("south", 5.0), "c": ("south", 9.0)}
AHEAD = 4  # steps of a panel that are forecast


def shop(name: str, steps: int, random: Generator, first: int = 0) -> dict[str, Any]:
    """One series of a panel, with what is known of the steps ahead."""
    region, size = SHOPS.get(name, ("west", 4.0))
    offers, visits = random.integers(0, 2, steps + AHEAD), random.normal(10, 2, steps)
    wave = 10 + 3 * np.sin((first + np.arange(steps)) * 2 * np.pi / 7)
    sales = size * (wave + 2 * offers[:steps] + 0.3 * visits + random.normal(0, 0.5, steps))
    return {
        "shop": name,
        "day": _days(first, steps + AHEAD),
        "sales": sales.tolist(),
        "offer": offers.tolist(),
        "visits": visits.tolist(),
        "region": region,
        "size": size,
    }


def shop_rows() -> dict[str, list[Any]]:
    """The panel that is learned from."""
    random, columns = np.random.default_rng(3), dict[str, list[Any]]()
    for name in SHOPS:
        series = shop(name, 70, random)
        for key, value in series.items():
            columns.setdefault(key, []).extend(
                value[:70] if isinstance(value, list) else [value] * 70
            )
    return columns


def _shop(random: Generator) -> dict[str, Any]:
    columns = shop(
        str(random.choice([*SHOPS, "new"])),
        int(random.integers(20, 60)),
        random,
        int(random.integers(0, 300)),
    )
    columns["sales"] = [
        None if 2 < k < 15 and random.random() < 0.1 else v for k, v in enumerate(columns["sales"])
    ]
    return columns


PANEL = Questions([shop("a", 30, np.random.default_rng(9))], _shop)
