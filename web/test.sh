#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Type-checks the page and runs the tests of its pure modules: web/test.sh. Needs Debian's esbuild, tsc and node 18.
set -euo pipefail

cd "$(dirname "$0")"
for program in esbuild tsc node; do
  command -v "$program" > /dev/null || { echo "skipped: $program is not installed"; exit 0; }
done
tsc --noEmit -p .
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
esbuild */*.test.ts --bundle --platform=node --target=node18 --format=cjs --outdir="$out" --log-level=warning
node --test "$out"
