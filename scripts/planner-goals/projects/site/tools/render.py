"""Writes an HTML page for each Markdown page: headings, paragraphs and links."""

import html
import pathlib
import re
import sys

pages, template, target = map(pathlib.Path, sys.argv[1:])
target.mkdir(exist_ok=True)
for page in sorted(pages.glob("*.md")):
    title, blocks = "", []
    for block in page.read_text().strip().split("\n\n"):
        text = re.sub(r"\[([^]]*)\]\(([^)]*)\)", r'<a href="\2">\1</a>', html.escape(block, quote=False))
        if text.startswith("# "):
            title = text[2:]
            blocks.append(f"<h1>{title}</h1>")
        else:
            blocks.append(f"<p>{text}</p>")
    written = template.read_text().replace("{title}", title).replace("{body}", "\n".join(blocks))
    (target / f"{page.stem}.html").write_text(written)
