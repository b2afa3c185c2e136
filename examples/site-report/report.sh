#!/bin/sh
# report.sh DIRECTORY: joins what the other tasks left in DIRECTORY into one report.
set -eu
cd "$1"
{
    cat heading.md
    echo "## Words"
    echo
    echo "| words | page |"
    echo "| ---: | --- |"
    while read -r words page; do echo "| $words | $page |"; done < words.txt
    echo
    echo "## Dead links"
    echo
    if [ -s dead-links.txt ]; then sed 's/^/- /' dead-links.txt; else echo "None."; fi
} > report.md
cat report.md
