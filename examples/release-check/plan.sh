#!/bin/sh
# plan.sh [WORKSPACE]: prints a plan that checks a cargo workspace before a release, with one task for the tests of each crate.
set -eu
cd "${1:-.}"
crates=$(cargo tree --workspace --depth 0 --prefix none | awk 'NF { print $1 }' | sort -u)
if cargo metadata --no-deps --format-version 1 | grep -q '"crate_types":\["lib"\]'; then examples=examples; else examples=; fi
cat << 'PLAN'
# Made by `plan.sh`: checks a cargo workspace before a release. What the tests print is kept in `target/release-check/`.
version: 1
name: release-check
defaults: {timeout: 1h}
tasks:
  - id: format
    name: Check the format
    run: cargo fmt --all --check
  # Cargo locks the target directory: who would only wait for that takes turns instead, and its time does not run meanwhile.
  - id: lint
    name: Run the lints
    resources: [cargo]
    run: cargo clippy --workspace --all-targets --quiet -- -D warnings
  - id: docs
    name: Build the documentation
    resources: [cargo]
    call: {shell: {command: cargo doc --workspace --no-deps --quiet, env: {RUSTDOCFLAGS: -D warnings}}}
  # All at once: with `cargo test -p` each crate would have its own selection of features, and compile dependencies anew.
  - id: build
    name: Build the tests
    resources: [cargo]
    run: |
      set -e
      logs=${CARGO_TARGET_DIR:-target}/release-check && mkdir -p "$logs"
      cargo test --workspace --no-run --quiet --message-format json-render-diagnostics > "$logs/build.json"
      # What starts the test programs of each crate, as cargo does: in its directory.
      rm -f "$logs"/*.sh
      awk -v logs="$logs" '
        function field(name) {
          return match($0, "\"" name "\":\"[^\"]*\"") ? substr($0, RSTART + length(name) + 4, RLENGTH - length(name) - 5) : ""
        }
        /"reason":"compiler-artifact"/ && /"profile":[{][^}]*"test":true[}]/ && field("executable") != "" {
          directory = field("manifest_path"); sub("/Cargo.toml$", "", directory)
          crate = field("package_id"); sub(".*#", "", crate); sub("@.*", "", crate)
          if (crate ~ "^[0-9]") { crate = directory; sub(".*/", "", crate) }
          print "(cd \"" directory "\" && CARGO_MANIFEST_DIR=\"" directory "\" \"" field("executable") "\")" > (logs "/" crate ".sh")
        }' "$logs/build.json"
  - id: test
    name: Test every crate
    needs: [build]
    subtasks:
PLAN
for crate in $crates; do
    cat << PLAN
      - id: test-$crate
        name: Test $crate
        run: |
          logs=\${CARGO_TARGET_DIR:-target}/release-check && touch "\$logs/$crate.sh"
          sh -e "\$logs/$crate.sh" > "\$logs/$crate.log" 2>&1 || { cat "\$logs/$crate.log"; exit 1; }
PLAN
done
if [ "$examples" ]; then
    cat << 'PLAN'
      - id: test-examples
        name: Test the examples in the documentation
        resources: [cargo]
        run: |
          logs=${CARGO_TARGET_DIR:-target}/release-check
          cargo test --workspace --doc > "$logs/examples.log" 2>&1 || { cat "$logs/examples.log"; exit 1; }
PLAN
fi
cat << PLAN
  - id: summary
    name: Sum up
    needs: [format, lint, docs, test]
    run: |
      cd "\${CARGO_TARGET_DIR:-target}/release-check"
      for crate in $(echo $crates $examples); do
        awk -v crate="\$crate" '/^test result:/ { passed += \$4 } END { print crate ": " passed + 0 " tests passed" }' "\$crate.log"
      done | tee summary.txt
PLAN
