#!/bin/sh
# Installs taskpawl: downloads the archive of this platform, compares its checksum, and puts the program into a directory.
# Usage: install.sh [--to DIR] [--from URL]. It needs no root. DIR is ~/.local/bin by default.
set -eu

version='@VERSION@'
from='@FROM@'
to=${HOME:-}/.local/bin
fail() {
    echo "install.sh: $1" >&2
    exit 1
}
while [ $# -gt 0 ]; do
    case $1 in
        --to) to=${2:?--to needs a directory} && shift 2 ;;
        --from) from=${2:?--from needs an address} && shift 2 ;;
        *) fail "unknown argument \`$1\`; usage: install.sh [--to DIR] [--from URL]" ;;
    esac
done
[ -n "$from" ] || fail "this copy has no address to download from: use --from URL"

system=$(uname -s)-$(uname -m)
case $system in
    Linux-x86_64) target=x86_64-unknown-linux-gnu ;;
    Linux-aarch64) target=aarch64-unknown-linux-gnu ;;
    *) fail "there is no program for $system: taskpawl runs on Linux; elsewhere, use it in a Linux container or virtual machine" ;;
esac
name=taskpawl-$version-$target
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

download() {
    if command -v curl > /dev/null; then
        curl --fail --silent --show-error --location --output "$work/$1" "$from/$1"
    elif command -v wget > /dev/null; then
        wget --quiet --output-document "$work/$1" "$from/$1"
    else
        fail "neither curl nor wget is installed"
    fi
}
download SHA256SUMS || fail "cannot download $from/SHA256SUMS"
download "$name.tar.gz" || fail "cannot download $from/$name.tar.gz"
expected=$(sed -n "s/^\([0-9a-f]\{64\}\)  $name\.tar\.gz\$/\1/p" "$work/SHA256SUMS")
[ -n "$expected" ] || fail "SHA256SUMS does not list $name.tar.gz: nothing was installed"
found=$(sha256sum "$work/$name.tar.gz")
[ "${found%% *}" = "$expected" ] || fail "the checksum of $name.tar.gz is wrong: nothing was installed"

tar -xzf "$work/$name.tar.gz" -C "$work"
mkdir -p "$to"
# The new program replaces the old one at once: a running one keeps its file.
cp "$work/$name/taskpawl" "$to/.taskpawl.$$"
mv -f "$to/.taskpawl.$$" "$to/taskpawl"
echo "installed $("$to/taskpawl" --version) as $to/taskpawl"
case ":$PATH:" in *":$to:"*) ;; *) echo "add $to to your PATH" ;; esac
