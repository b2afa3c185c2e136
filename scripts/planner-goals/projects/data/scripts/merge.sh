#!/bin/sh
# Usage: merge.sh FILE... Prints the rows of clean files below one header.
set -eu
head -n 1 "$1"
for file; do tail -n +2 "$file"; done | LC_ALL=C sort
