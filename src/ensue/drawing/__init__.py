"""Pictures: shapes, layout and charts as SVG, light and dark, and as files. Knows no equations."""

from ensue.drawing.formats import write
from ensue.drawing.theme import themed

__all__ = ["themed", "write"]
