"""Usage: totals.py FILE... Prints the cups of each shop as CSV. Counts repeated rows once."""

import csv
import sys

rows = set()
for path in sys.argv[1:]:
    with open(path, newline="") as file:
        rows.update((row["day"], row["shop"], int(row["cups"])) for row in csv.DictReader(file, delimiter=";"))
print("shop;cups")
for shop in sorted({shop for _, shop, _ in rows}):
    print(f"{shop};{sum(cups for _, other, cups in rows if other == shop)}")
