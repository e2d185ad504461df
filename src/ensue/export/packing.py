"""Long lists of texts made small: a vocabulary is no weight, but it stands in the same file."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

FEW = 200  # texts that stand as they are, to be read
PACKED = "packed"


def packed(own: Any) -> Any:
    """The same values, but for each long list of texts {"packed": base64 of zlib of its JSON}.

    >>> packed({"labels": ["bad", "good"]})
    {'labels': ['bad', 'good']}
    >>> list(packed({"vocabulary": ["word"] * 300})["vocabulary"])
    ['packed']
    """
    if isinstance(own, dict):
        return {name: packed(value) for name, value in own.items()}
    if not isinstance(own, (list, tuple)):
        return own
    if len(own) > FEW and all(isinstance(text, str) for text in own):
        small = zlib.compress(json.dumps(own, separators=(",", ":")).encode(), 9)
        return {PACKED: base64.b64encode(small).decode()}
    return [packed(value) for value in own]
