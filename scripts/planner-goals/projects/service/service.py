"""A service that counts visits."""

import json
import pathlib


def settings(path):
    """Returns the settings in a rendered file."""
    return json.loads(pathlib.Path(path).read_text())


def visit(counts, page):
    """Counts a visit of a page."""
    return counts | {page: counts.get(page, 0) + 1}
