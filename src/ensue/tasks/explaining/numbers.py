"""Numbers and tokens of explanations as words."""

from __future__ import annotations

from ensue.data.layout import cut
from ensue.escape import printable


def token_name(token: str, longest: int) -> str:
    """
    >>> token_name(" ", 9), token_name("a long word", 6)
    ('␣', 'a lon…')
    """
    return cut(printable(token), longest) if token.strip() else "␣"


def with_sign(value: float) -> str:
    """
    >>> with_sign(1.234), with_sign(-0.0512), with_sign(0.00012), with_sign(0)
    ('+1.23', '−0.051', '+0.00012', '0')
    """
    if not value:
        return "0"
    digits = 2 if abs(value) >= 0.1 else 3
    text = f"{value:+.{digits}f}" if abs(value) >= 0.001 else f"{value:+.2g}"
    return text.replace("-", "−")


def plain(value: float) -> str:
    """
    >>> plain(-1.23456), plain(0.0001)
    ('−1.235', '0.0001')
    """
    return f"{value:.4g}".replace("-", "−")


def small(value: float) -> str:
    """
    >>> small(0.00641), small(5.53e-14)
    ('0.0064', '5.5e−14')
    """
    return f"{value:.2g}".replace("-", "−")


def share(probability: float | None) -> str:
    """
    >>> share(0.914), share(0.9996), share(1.0), share(None)
    ('91 %', '99.96 %', '100 %', '')
    """
    if probability is None:
        return ""
    percent = 100 * probability
    plain_enough = 1 <= percent < 99 or percent > 99.995
    return f"{percent:.0f} %" if plain_enough else f"{percent:.2f} %"
