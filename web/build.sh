#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Bundles the page into a folder, with nothing but Debian's esbuild: web/build.sh OUT
# Fails if a browser would load more than kShellBytesMax before the first answer of the API.
set -euo pipefail

readonly kShellBytesMax=100000  # gzip, of all files
out=$(mkdir -p "${1:?usage: web/build.sh OUT}" && cd "$1" && pwd)
cd "$(dirname "$0")"
esbuild main.ts --bundle --minify --target=es2021 --format=iife --charset=utf8 --log-level=warning --outfile="$out/page.js"
esbuild style.css --minify --log-level=warning --outfile="$out/style.css"
cp index.html "$out/"
for file in page.js style.css index.html; do gzip -9 -n -k -f "$out/$file"; done
wc -c "$out"/*
bytes=$(cat "$out"/{page.js,style.css,index.html}.gz | wc -c)
if ((bytes > kShellBytesMax)); then
  echo "web/build.sh: the page has $bytes bytes, more than $kShellBytesMax: remove code, or load it later" >&2
  exit 1
fi
