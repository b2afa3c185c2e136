"""Small tools for texts."""

from textkit.slug import slug
from textkit.table import table
from textkit.wrap import wrap

__version__ = "1.4.0"
__all__ = ["slug", "table", "wrap"]
