"""Fails for links between pages that lead nowhere."""

import pathlib
import re
import sys

site = pathlib.Path(sys.argv[1])
pages = sorted(site.glob("*.html"))
if not pages:
    sys.exit(f"{site} has no pages")
count = 0
for page in pages:
    for target in re.findall(r'href="([^"]*)"', page.read_text()):
        count += 1
        if not (site / target).is_file():
            sys.exit(f"{page}: there is no {target}")
print(f"{len(pages)} pages, {count} links")
