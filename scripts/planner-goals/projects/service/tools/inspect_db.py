"""Usage: inspect_db.py FILE. Prints the version and the tables of a database."""

import pathlib
import sqlite3
import sys

if not pathlib.Path(sys.argv[1]).is_file():
    sys.exit(f"there is no {sys.argv[1]}")
database = sqlite3.connect(sys.argv[1])
print("version", database.execute("PRAGMA user_version").fetchone()[0])
for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"):
    print("table", name)
