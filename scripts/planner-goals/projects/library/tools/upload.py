"""Uploads everything in dist to the package index, which is the directory `index` here."""

import pathlib
import shutil
import sys

packed = sorted(pathlib.Path("dist").glob("*.zip"))
if not packed:
    sys.exit("dist is empty")
pathlib.Path("index").mkdir(exist_ok=True)
for file in packed:
    shutil.copy(file, "index")
    print(f"uploaded {file.name}")
