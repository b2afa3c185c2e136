#!/bin/sh
# plan.sh [WORKSPACE]: prints a plan that checks a cargo workspace before a release, with one task for the tests of each crate.
set -eu
cd "${1:-.}"
crates=$(cargo tree --workspace --depth 0 --prefix none | awk 'NF { print $1 }' | sort -u)
cat << 'PLAN'
# Made by `plan.sh`: checks a cargo workspace before a release. What the tests print is kept in `target/release-check/`.
version: 1
name: release-check
defaults: {timeout: 30m}
tasks:
  - id: format
    name: Check the format
    run: cargo fmt --all --check
  - id: lint
    name: Run the lints
    run: cargo clippy --workspace --all-targets --quiet -- -D warnings
  - id: docs
    name: Build the documentation
    call: {shell: {command: cargo doc --workspace --no-deps --quiet, env: {RUSTDOCFLAGS: -D warnings}}}
  - id: test
    name: Test every crate
    subtasks:
PLAN
for crate in $crates; do
    cat << PLAN
      - id: test-$crate
        name: Test $crate
        run: |
          logs=\${CARGO_TARGET_DIR:-target}/release-check && mkdir -p "\$logs"
          cargo test -p $crate > "\$logs/$crate.log" 2>&1 || { cat "\$logs/$crate.log"; exit 1; }
PLAN
done
cat << PLAN
  - id: summary
    name: Sum up
    needs: [format, lint, docs, test]
    run: |
      cd "\${CARGO_TARGET_DIR:-target}/release-check"
      for crate in $(echo $crates); do
        awk -v crate="\$crate" '/^test result:/ { passed += \$4 } END { print crate ": " passed + 0 " tests passed" }' "\$crate.log"
      done | tee summary.txt
PLAN
