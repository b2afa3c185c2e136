"""Fails for words that are not in the list."""

import pathlib
import re
import sys

known = set(pathlib.Path(sys.argv[1]).read_text().split())
for page in sys.argv[2:]:
    text = re.sub(r"\]\([^)]*\)", "]", pathlib.Path(page).read_text())
    unknown = sorted({word for word in re.findall(r"[a-z]+", text.lower()) if word not in known})
    if unknown:
        sys.exit(f"{page}: {', '.join(unknown)}")
print(f"{len(sys.argv) - 2} pages are spelt right")
