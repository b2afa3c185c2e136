"""Names for addresses."""

import re


def slug(text):
    """Returns the text as a part of an address."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
