"""What a word is made of: letters, beginnings, endings, shape — for words never seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ensue.data.ragged import Ragged
from ensue.data.vocabulary import Vocabulary
from ensue.tasks.blocks.embeddings import Characters, Feature, Symbols
from ensue.tasks.label.settings import LabellerSettings
from ensue.tasks.rows.surfaces import (
    SurfaceTable,
    ends_of,
    part_counts,
    shape_of,
    starts_of,
    surface_table,
)

RARE = 2  # a letter, an affix or a shape seen less often is unknown
NARROWEST = 4  # width of the vector of an affix or a shape


@dataclass(frozen=True)
class WordParts:
    """known: the vocabularies of "letters", "prefixes", "suffixes" and "shapes", those in use."""

    known: Mapping[str, Vocabulary]

    @classmethod
    def learn(cls, counts: Mapping[str, int], settings: LabellerSettings) -> WordParts:
        """counts: how often each word occurs, as it is written."""
        longest = settings.affixes
        wanted: dict[str, tuple[bool, Callable[[str], Iterable[str]]]] = {
            "letters": (settings.character_size > 0, list),
            "prefixes": (longest > 0, lambda word: starts_of(word, longest)),
            "suffixes": (longest > 0, lambda word: ends_of(word, longest)),
            "shapes": (settings.shapes, lambda word: [shape_of(word)]),
        }
        found = {}
        for name, (used, parts_of) in wanted.items():
            if used:
                seen = part_counts(counts, parts_of)
                least = min(RARE, max(seen.values(), default=1))
                found[name] = Vocabulary.build(seen, min_count=least)
        return cls(found)

    def table(
        self,
        surfaces: Iterable[str],
        words: Vocabulary,
        fold: Callable[[str], str],
        affixes: int,
        spelling: Ragged | None = None,
    ) -> SurfaceTable:
        """What is known of each surface, with padding before the first. spelling: as of
        SurfaceTable."""
        known = self.known
        return surface_table(
            ["", *surfaces],
            words,
            fold=fold,
            characters=known.get("letters"),
            prefixes=(known["prefixes"], affixes) if "prefixes" in known else None,
            suffixes=(known["suffixes"], affixes) if "suffixes" in known else None,
            shapes=known.get("shapes"),
            spelling=spelling,
        )

    def features(self, settings: LabellerSettings) -> list[Feature]:
        """One for each kind of part, with fresh weights."""
        known, found = self.known, list[Feature]()
        width = max(NARROWEST, settings.embedding_size // 4)
        if "letters" in known:
            size, hidden = settings.character_size, settings.character_hidden
            found.append(Characters(len(known["letters"]), size, settings.cell, hidden))
        if "prefixes" in known:
            found.append(Symbols("prefix", len(known["prefixes"]), width, settings.affixes))
            found.append(Symbols("suffix", len(known["suffixes"]), width, settings.affixes))
        if "shapes" in known:
            found.append(Symbols("shape", len(known["shapes"]), width))
        return found
