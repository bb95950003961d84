# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What setup_helm and setup_kubernetes have in common; both source it. They build programs of tests/deploy/kubernetes/go.mod:
# that one file pins all of them to one Kubernetes, so that a package that several of them have is compiled once.

BUILD_SECONDS_MAX=3600
GO_MINOR_MIN=26  # that Kubernetes 1.36 asks for
CERT_MANAGER=v1.21.2
PROMETHEUS_OPERATOR=v0.85.0

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
programs=$root/tests/deploy/kubernetes
KUBERNETES=$(sed -n "s|^\tk8s.io/kubernetes \(v[0-9.]*\).*|\1|p" "$programs/go.mod")
cache=${XDG_CACHE_HOME:-$HOME/.cache}/neurontrace
script=$(basename "$0")
export GOTOOLCHAIN=local

fail() { echo "$script: $*" >&2; exit 1; }

# The first Go that is new enough, of those that are usual places. Never one that Go itself would download.
find_go() {
  local go minor found=
  for go in "$(command -v go || true)" /usr/local/go/bin/go /usr/lib/go-1.*/bin/go "$HOME"/sdk/go*/bin/go; do
    [[ -x $go && $found != *" in $go"* ]] || continue
    minor=$("$go" env GOVERSION 2>/dev/null | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
    [[ -n $minor ]] || continue
    if ((minor >= GO_MINOR_MIN)); then
      echo "$go"
      return
    fi
    found+="${found:+, }1.$minor in $go"
  done
  fail "the build requires Go 1.$GO_MINOR_MIN or newer; this machine has ${found:-no Go}.
Debian 12 has 1.19, and 1.23 in its backports; unpack a newer version from https://go.dev/dl into /usr/local/go"
}

# sources_of FILE...: what is built of this repository is part of the name of its result.
sources_of() {
  cat "$programs"/go.{mod,sum} "${BASH_SOURCE[0]}" "$@" | sha256sum | cut -c1-12
}

# The folder of a module's files, which Go compares with its database of checksums.
module() {
  timeout "$BUILD_SECONDS_MAX" "$go" mod download -json "$1" >"$building/module.json" || return 1
  sed -n 's/^\t"Dir": "\(.*\)",$/\1/p' "$building/module.json"
  rm -f "$building/module.json"
}

# go_build FLAGS PACKAGE...: programs of the one go.mod, with these flags for the linker, into $building. The same flags for
# the compiler everywhere: Go keeps what is compiled by them.
go_build() {
  local flags=$1
  shift
  CGO_ENABLED=0 timeout "$BUILD_SECONDS_MAX" \
    "$go" -C "$programs" build -trimpath -buildvcs=false -mod=readonly -ldflags="$flags" -o "$building/" "$@"
}

# provide TARGET WHAT [--built]: prints the folder TARGET, which the function `build` fills where it is not there yet.
provide() {
  local target=$1 what=$2
  if [[ ! -d $target ]]; then
    if [[ ${3:-} == --built ]]; then
      fail "$target does not exist; run ./scripts/$script to build $what"
    fi
    go=$(find_go)
    mkdir -p "$cache"
    # Beside its place, so that it comes there whole, whoever else builds it meanwhile.
    building=$(mktemp -d "$target.XXXXXX")
    trap 'rm -rf "$building"' EXIT
    echo "$script: building $(basename "$target"), which takes some minutes" >&2
    (cd / && build) >&2 || fail "the build failed (see above); check that a Go module proxy can be reached (go env GOPROXY)"
    chmod 755 "$building"
    mv -T "$building" "$target" 2>/dev/null || [[ -d $target ]] || fail "cannot create $target"
  fi
  echo "$target"
}
