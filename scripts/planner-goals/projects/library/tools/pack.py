"""Packs the package into dist/textkit-VERSION.zip. Fails if CHANGES.md does not have the version."""

import pathlib
import re
import sys
import zipfile

version = re.search(r'__version__ = "(.*)"', pathlib.Path("textkit/__init__.py").read_text())[1]
if f"## {version}\n" not in pathlib.Path("CHANGES.md").read_text():
    sys.exit(f"CHANGES.md does not have {version}")
pathlib.Path("dist").mkdir(exist_ok=True)
with zipfile.ZipFile(f"dist/textkit-{version}.zip", "w") as archive:
    for path in [pathlib.Path("CHANGES.md"), *sorted(pathlib.Path("textkit").glob("*.py"))]:
        archive.write(path)
