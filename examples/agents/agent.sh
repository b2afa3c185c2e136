#!/bin/sh
# Stands in for a coding agent: writes one section of the text. A call of the tool `agent` takes its place in a plan of yours.
set -eu
case $1 in
title) sed -i '1s/.*/# A better title/' README.md ;;
*) printf '## %s\n\nWritten by an agent.\n' "$1" > "$1.md" ;;
esac
if [ "$1" = intro ]; then sed -i '1s/.*/# Introduction/' README.md; fi
