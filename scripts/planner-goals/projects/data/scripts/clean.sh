#!/bin/sh
# Usage: clean.sh IN OUT. Removes empty and repeated lines.
set -eu
mkdir -p "$(dirname "$2")"
awk 'NF && !seen[$0]++' "$1" > "$2"
