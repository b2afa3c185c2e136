#!/bin/sh
# dead-links.sh PAGES OUT: writes a line for each relative link in the pages that are listed in PAGES whose file does not exist.
set -eu
while read -r page; do
    awk '{
        line = $0
        while (match(line, /\]\([^)]*\)/)) {
            print substr(line, RSTART + 2, RLENGTH - 3)
            line = substr(line, RSTART + RLENGTH)
        }
    }' "$page" | while read -r target; do
        case $target in
        *://* | mailto:* | '#'*) continue ;;
        esac
        [ -e "$(dirname "$page")/${target%%#*}" ] || echo "$page: $target"
    done
done < "$1" > "$2"
echo "$(($(wc -l < "$2"))) dead links"
