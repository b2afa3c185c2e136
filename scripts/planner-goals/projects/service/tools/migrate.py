"""Usage: migrate.py VERSION. Brings db/service.db to this version, one migration after the other."""

import pathlib
import sqlite3
import sys

pathlib.Path("db").mkdir(exist_ok=True)
database = sqlite3.connect("db/service.db")
current = database.execute("PRAGMA user_version").fetchone()[0]
for version in range(current + 1, int(sys.argv[1]) + 1):
    database.executescript(pathlib.Path(f"migrations/{version}.sql").read_text())
    database.execute(f"PRAGMA user_version = {version}")
database.commit()
print(f"migrated from {current} to {sys.argv[1]}")
