"""What was found of an answer: how much of it each token counts for."""

from __future__ import annotations

from dataclasses import dataclass

from ensue.drawing.html import block, on_page
from ensue.tasks.explaining.attribution_picture import attribution_picture
from ensue.tasks.explaining.attribution_text import attribution_text


@dataclass(frozen=True)
class Attribution:
    """One answer. answer: a label, or a number; step: of a sequence, from 1 on, where each has an
    answer; probability: None of a number. output: what is explained, `Attributions.measure`;
    scores: what each token counts for. With a baseline of all tokens together, reference is its
    output and error |Σ scores − (output − reference)|."""

    answer: str
    step: int | None
    probability: float | None
    output: float
    scores: tuple[float, ...]
    reference: float | None = None
    error: float | None = None


@dataclass(frozen=True)
class Phrase:
    """What one of the linear model's features counts for: words or letters as they are spelled."""

    text: str
    score: float


@dataclass(frozen=True)
class LinearAttribution:
    """What the linear model says of an answer: output = bias + Σ scores, exactly. bias: what
    no token says, of columns beside the text too; tokens: as the linear model cuts them; phrases:
    the features that count most."""

    answer: str
    step: int | None
    output: float
    bias: float
    tokens: tuple[str, ...]
    scores: tuple[float, ...]
    phrases: tuple[Phrase, ...] = ()


@dataclass(frozen=True)
class Attributions:
    """tokens: of the input, of a pair both sides behind one another, `sides` saying how many each
    has. method, baseline: how it was found; measure: what the scores are parts of; of: whose
    output it is, all that answers or the networks alone; points: of the integral. linear: the
    linear model's own part, where it answers too and `of` leaves it out.

    >>> found = Attribution("good", None, 0.8, 1.4, (0.1, 1.2))
    >>> own = Attributions(("a", "fine"), (2,), "occlusion", "", "log-odds", "all", (found,))
    >>> own.strongest(1)
    [('fine', 1.2)]
    """

    tokens: tuple[str, ...]
    sides: tuple[int, ...]
    method: str
    baseline: str
    measure: str
    of: str
    answers: tuple[Attribution, ...]
    linear: tuple[LinearAttribution, ...] = ()
    linear_measure: str = ""
    points: int | None = None

    @property
    def found(self) -> Attributions:
        return self

    def strongest(self, count: int = 10, answer: int = 0) -> list[tuple[str, float]]:
        """The tokens that count most for an answer, or against it."""
        pairs = zip(self.tokens, self.answers[answer].scores, strict=True)
        return sorted(pairs, key=lambda own: -abs(own[1]))[:count]

    def as_text(self, width: int = 80, colour: bool = False) -> str:
        return attribution_text(self, width, colour)

    def as_svg(self) -> str:
        return attribution_picture(self)

    def _repr_html_(self) -> str:
        return block("Explanation", on_page(self.as_svg()))
