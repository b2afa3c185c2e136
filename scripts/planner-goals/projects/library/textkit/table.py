"""Tables of plain text."""


def table(rows):
    """Returns rows with columns of equal width."""
    widths = [max(len(str(cell)) for cell in column) for column in zip(*rows)]
    lines = ["  ".join(str(cell).ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    return "\n".join(lines)
