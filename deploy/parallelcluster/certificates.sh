#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The cluster's own certificates: made on the head node, taken by the compute nodes, renewed by a timer.
set -euo pipefail
umask 077

usage() {
  cat <<'USAGE'
usage: certificates.sh head ADDRESS | node | issue NAME ROLE DIRECTORY

  head ADDRESS   on the head node: create the certificate authority if there is none, and the certificates of the
                 aggregator (at ADDRESS), the agents and neurontrace-slurm if they are missing or expire within 30 days.
                 If /etc/neurontrace/authority/external exists, create nothing: check the certificates of the external
                 authority, and exit 1 if one is missing, not signed by it, expired or expires within 30 days
  node           on a compute node: copy the agents' certificate from the shared directory if it has changed
  issue NAME ROLE DIRECTORY
                 on the head node: issue a certificate for a person or a program, with the role viewer, operator or
                 admin, as DIRECTORY/NAME.pem and DIRECTORY/NAME.key, with the authority's certificate beside them

NT_ROOT is a prefix for every path, for a trial run. Running programs load a changed certificate by themselves.
USAGE
}

root=${NT_ROOT:-}
authority=$root/etc/neurontrace/authority            # of the head node's own disk, for root alone
own=$root/etc/neurontrace/tls                        # what the programs of this node read
shared=$root/opt/slurm/etc/neurontrace/tls           # on the file system that all nodes have; for root alone
days=90
renew_seconds=$((30 * 24 * 3600))

fail() { echo "certificates: $*" >&2; exit 1; }

# Numbers, as the names are those of the system below NT_ROOT.
owner() { awk -F: '$1 == "neurontrace" {print $3 ":" $4}' "$root/etc/passwd"; }

# put SOURCE TARGET: in one step, with the owner and the mode of what is read by neurontrace's programs.
put() {
  ! cmp -s "$1" "$2" || return 0
  cp "$1" "$2.new"
  chown "$(owner)" "$2.new"
  chmod 0400 "$2.new"
  mv "$2.new" "$2"
  echo "certificates: $2"
}

make_authority() {
  mkdir -p "$authority"
  [[ ! -s $authority/ca.pem || ! -s $authority/ca.key ]] || return 0
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj "/CN=neurontrace authority" \
    -addext "basicConstraints=critical,CA:TRUE,pathlen:0" -addext "keyUsage=critical,keyCertSign,cRLSign" \
    -keyout "$authority/ca.key.new" -out "$authority/ca.pem.new" 2>/dev/null
  mv "$authority/ca.key.new" "$authority/ca.key"
  mv "$authority/ca.pem.new" "$authority/ca.pem"
}

# fresh FILE SAN: is there such a certificate, of this authority and these names, that does not end soon?
fresh() {
  [[ -s $1.pem && -s $1.key && -s $1.names ]] || return 1
  [[ $(<"$1.names") == "$2" ]] || return 1
  openssl x509 -in "$1.pem" -noout -checkend "$renew_seconds" >/dev/null || return 1
  openssl verify -CAfile "$authority/ca.pem" "$1.pem" >/dev/null 2>&1
}

# make FILE COMMON_NAME USAGE SAN
make() {
  ! fresh "$1" "$4" || return 0
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$2" \
    -keyout "$1.key.new" -out "$1.csr" 2>/dev/null
  openssl x509 -req -in "$1.csr" -CA "$authority/ca.pem" -CAkey "$authority/ca.key" -days "$days" \
    -set_serial "0x$(openssl rand -hex 16)" -out "$1.pem.new" -extfile <(
      echo "basicConstraints=critical,CA:FALSE"
      echo "keyUsage=critical,digitalSignature"
      echo "extendedKeyUsage=$3"
      echo "subjectAltName=$4") 2>/dev/null
  mv "$1.key.new" "$1.key"
  mv "$1.pem.new" "$1.pem"
  echo "$4" >"$1.names"
  rm -f "$1.csr"
}

# pair DIRECTORY NAME: a certificate of the authority beside it, and its key.
pair() {
  local at=$1/$2
  if [[ ! -s $1/ca.pem || ! -s $at.pem || ! -s $at.key ]]; then
    echo "certificates: $1 needs ca.pem, $2.pem and $2.key"
  elif ! openssl verify -CAfile "$1/ca.pem" -untrusted "$at.pem" "$at.pem" >/dev/null 2>&1; then
    echo "certificates: $at.pem is not signed by $1/ca.pem, or has expired"
  elif ! openssl x509 -in "$at.pem" -noout -checkend "$renew_seconds" >/dev/null; then
    echo "certificates: $at.pem expires within 30 days: $(openssl x509 -in "$at.pem" -noout -enddate)"
  elif [[ $(openssl x509 -in "$at.pem" -noout -pubkey) != "$(openssl pkey -in "$at.key" -pubout 2>/dev/null)" ]]; then
    echo "certificates: $at.key is not the key of $at.pem"
  fi
}

check_external() {
  local wrong
  wrong=$(pair "$own" aggregator; pair "$own" slurm; pair "$shared" agent)
  [[ -z $wrong ]] || fail "the certificates of the external authority have problems:
$wrong"
}

# What somebody put there is not written over.
refuse_foreign() {
  local file
  for file in "$own/ca.pem" "$shared/ca.pem"; do
    [[ ! -e $file ]] || cmp -s "$file" "$authority/ca.pem" ||
      fail "$file does not belong to the authority in $authority.
If an external authority issues this cluster's certificates: touch $authority/external
Otherwise remove $file and run this again"
  done
}

head_node() {
  local address=$1 name
  if [[ -e $authority/external ]]; then
    check_external
    return
  fi
  refuse_foreign
  make_authority
  mkdir -p "$own" "$shared"
  chmod 0755 "$own"
  make "$authority/aggregator" neurontrace-aggregator serverAuth "DNS:neurontrace-aggregator,DNS:localhost,IP:$address"
  make "$authority/agent" neurontrace-agent clientAuth "URI:neurontrace:agent"
  make "$authority/slurm" neurontrace-slurm clientAuth "URI:neurontrace:operator"
  put "$authority/ca.pem" "$own/ca.pem"
  chmod 0444 "$own/ca.pem"
  for name in aggregator slurm; do
    put "$authority/$name.key" "$own/$name.key"
    put "$authority/$name.pem" "$own/$name.pem"
  done
  for name in ca.pem agent.key agent.pem; do
    cmp -s "$authority/$name" "$shared/$name" || {
      cp "$authority/$name" "$shared/$name.new"
      mv "$shared/$name.new" "$shared/$name"
      echo "certificates: $shared/$name"
    }
  done
}

compute_node() {
  local name
  [[ -s $shared/agent.pem && -s $shared/agent.key && -s $shared/ca.pem ]] ||
    fail "$shared has no certificates; run on_node_configured.sh on the head node first"
  mkdir -p "$own"
  chmod 0755 "$own"
  for name in ca.pem agent.key agent.pem; do put "$shared/$name" "$own/$name"; done
  chmod 0444 "$own/ca.pem"
}

issue() {
  local name=$1 role=$2 directory=$3
  [[ $name =~ ^[A-Za-z0-9._-]+$ ]] ||
    fail "'$name' is not a valid name; use letters, digits, dots, underscores and hyphens"
  case $role in
    viewer | operator | admin) ;;
    *) fail "unknown role '$role'; the roles are viewer, operator and admin" ;;
  esac
  [[ ! -e $authority/external ]] ||
    fail "an external authority issues this cluster's certificates ($authority/external)"
  [[ -s $authority/ca.key ]] || fail "$authority/ca.key is missing; run this on the head node as root"
  mkdir -p "$directory"
  make "$directory/$name" "$name" clientAuth "URI:neurontrace:$role"
  rm -f "$directory/$name.names"
  cp "$authority/ca.pem" "$directory/ca.pem"
  chmod 0644 "$directory/ca.pem"
}

case "${1:-}:$#" in
  head:2) head_node "$2" ;;
  node:1) compute_node ;;
  issue:4) issue "$2" "$3" "$4" ;;
  --help:1 | -h:1) usage ;;
  *) usage >&2; exit 2 ;;
esac
