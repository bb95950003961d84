#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ParallelCluster's OnNodeConfigured action for head and compute nodes: installs neurontrace, its certificates and its
# units. Running it again changes nothing, or brings the node up to what it is given then.
set -euo pipefail
umask 022

usage() {
  cat <<'USAGE'
usage: on_node_configured.sh [PACKAGE [SHA256]]

  PACKAGE   neurontrace's tar file, s3://BUCKET/KEY or a path; needed only on the head node, which copies it to the
            directory that all nodes share (/opt/slurm/etc/neurontrace)
  SHA256    expected checksum of PACKAGE

The type of the node is read from /etc/parallelcluster/cfnconfig. A failure on the head node makes the creation of the
cluster fail. A compute node starts without neurontrace in that case, and the system's log has the reason.
NT_ROOT is a prefix for every path, for a trial run: then units are started only by the program NT_SYSTEMCTL, if set.
USAGE
}

root=${NT_ROOT:-}
etc=$root/etc/neurontrace
shared=$root/opt/slurm/etc/neurontrace
programs=$root/opt/neurontrace
cfnconfig=$root/etc/parallelcluster/cfnconfig
changed=()
external=$etc/authority/external  # there where another authority gives the certificates
restart_due=$etc/restart-due  # there from before a change until all units run with it, also where a run ends in between

log() { echo "neurontrace: $*"; }
fail() { echo "neurontrace: $*" >&2; exit 1; }

# setting NAME: of ParallelCluster's description of the node, which is read and not executed.
setting() { sed -n "s/^$1=//p" "$cfnconfig" | tail -n 1 | tr -d "\"'"; }

# changes FILE: said before it is changed.
changes() {
  touch "$restart_due"
  changed+=("${1#"$root"}")
}

# put MODE SOURCE TARGET: TARGET becomes what SOURCE is, in one step.
put() {
  if ! cmp -s "$2" "$3"; then
    cp "$2" "$3.new"
    chmod "$1" "$3.new"
    changes "$3"
    mv "$3.new" "$3"
  fi
  chmod "$1" "$3"
}

# keep MODE SOURCE TARGET: the same, unless somebody has one there.
keep() { [[ -e $3 ]] || put "$@"; }

# render HOW ADDRESS SOURCE TARGET [PROGRAM]: puts, or keeps, a file in which the head node's address stands; if PROGRAM
# takes it for its options.
render() {
  local file=$4.rendered
  sed "s/@AGGREGATOR@/$2/g" "$3" >"$file"
  [[ -z ${5:-} ]] || check_options "$5" "$file" "$3"
  "$1" 0644 "$file" "$4"
  rm -f "$file"
}

# check_options PROGRAM FILE NAME: with the files that it names, as certificates, and without this shell's variables.
check_options() {
  local words
  words=$(env -i "$programs/bin/$1" --config "$2" --validate-config 2>&1) ||
    fail "$1 rejects the options in $3 and keeps its previous ones: $words"
}

make_user() {
  grep -q '^neurontrace:' "$root/etc/passwd" && return
  useradd ${root:+--prefix "$root"} --system --user-group --no-create-home --home-dir /var/lib/neurontrace \
    --shell /usr/sbin/nologin neurontrace
}

# Where the aggregator is. Not from the host's name: on instances with several network cards ParallelCluster's line of
# /etc/hosts for the node itself can name an address that nobody else reaches.
head_address() {
  local address token
  address=$(setting cfn_head_node_private_ip)
  if [[ -z $address && $node_type == HeadNode && -z $root ]]; then
    token=$(curl -sf -m 5 -X PUT -H "X-aws-ec2-metadata-token-ttl-seconds: 60" http://169.254.169.254/latest/api/token)
    address=$(curl -sf -m 5 -H "X-aws-ec2-metadata-token: $token" http://169.254.169.254/latest/meta-data/local-ipv4)
  fi
  [[ $address =~ ^[0-9]+(\.[0-9]+){3}$ ]] ||
    fail "$cfnconfig has no address of the head node (cfn_head_node_private_ip)"
  echo "$address"
}

# fetch PACKAGE SHA256: into the shared directory.
fetch() {
  local file
  file=$(mktemp "$shared/package.XXXXXX")
  # shellcheck disable=SC2064
  trap "rm -f '$file'" EXIT
  case $1 in
    s3://*) aws s3 cp --only-show-errors "$1" "$file" ;;
    *) cp "$1" "$file" ;;
  esac
  if [[ -n $2 ]]; then
    echo "$2  $file" | sha256sum --check --quiet || fail "the checksum of $1 differs from $2"
  fi
  put 0644 "$file" "$shared/neurontrace.tar.gz"
  rm -f "$file"
  trap - EXIT
}

# The programs of the shared directory's package, in a directory of their own. The link moves in one step: what runs
# continues with what it has.
install_programs() {
  local package=$shared/neurontrace.tar.gz version directory old
  [[ -s $package ]] || fail "$package does not exist; pass PACKAGE on the head node"
  version=$(sha256sum "$package" | cut -c1-12)
  directory=$programs-$version
  if [[ ! -e $directory ]]; then
    rm -rf "$directory.new"
    mkdir -p "$directory.new"
    tar -xzf "$package" -C "$directory.new" --strip-components=1 --no-same-owner
    [[ -x $directory.new/bin/neurontrace-agent && -r $directory.new/lib/libneurontrace_tap.so ]] ||
      fail "$package lacks bin/neurontrace-agent or lib/libneurontrace_tap.so"
    chmod -R go=rX "$directory.new"
    mv "$directory.new" "$directory"
  fi
  [[ $(readlink "$programs" || true) != "neurontrace-$version" ]] || return 0
  old=$(readlink "$programs" || true)
  ln -sfn "neurontrace-$version" "$programs.new"
  changes "$programs"
  mv -T "$programs.new" "$programs"
  # The one before stays, for jobs that started with its tap.
  for directory in "$programs"-*; do
    case ${directory##*/} in "neurontrace-$version" | "${old:-none}") ;; *) rm -rf "$directory" ;; esac
  done
}

# Files of this folder: in the package, or beside this script.
own_files() {
  local here
  here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
  for here in "$programs/share/neurontrace/parallelcluster" "$here"; do
    [[ ! -r $here/neurontrace-agent.service ]] || { echo "$here"; return; }
  done
  fail "the package has no share/neurontrace/parallelcluster"
}

# Where paths are others, there is no systemd to tell, unless somebody gives one.
control() {
  if [[ -n ${NT_SYSTEMCTL:-} ]]; then "$NT_SYSTEMCTL" "$@"; elif [[ -z $root ]]; then systemctl "$@"; fi
}

# units UNIT[:static]...: puts them, and has those that are not static started now and at each start of the node; those
# that run, again where anything changed since all of them were started. A daemon that cannot continue ends within moments of
# its start.
units() {
  local unit
  for unit in "$@"; do put 0644 "$files/${unit%%:*}" "$root/etc/systemd/system/${unit%%:*}"; done
  control daemon-reload
  for unit in "$@"; do
    [[ $unit != *:static ]] || continue
    systemctl ${root:+--root="$root"} --quiet enable "$unit"
    if [[ -e $restart_due ]]; then control restart "$unit"; else control start "$unit"; fi
  done
  [[ -n $root ]] || sleep 2
  for unit in "$@"; do
    [[ $unit == *:static ]] || control --quiet is-active "$unit" ||
      fail "$unit stopped after its start; see journalctl -u $unit"
  done
  rm -f "$restart_due"
}

# certificates ARGUMENT...: made or taken now, and by a timer every day. What another authority gave is looked at, and where
# it is not good that is said, and keeps nothing else from being done.
certificates() {
  if [[ -e $external ]]; then
    NT_ROOT=$root bash "$files/certificates.sh" "$@" ||
      log "the certificates need to be renewed; running programs continue with the current ones"
  else
    NT_ROOT=$root bash "$files/certificates.sh" "$@"
  fi
  echo "CERTIFICATES=$*" >"$etc/certificates.args"
}

head_node() {
  local address name timer=neurontrace-certificates.timer
  address=$(head_address)
  mkdir -p "$shared"
  if [[ -n $1 ]]; then fetch "$1" "$2"; fi
  install_programs
  files=$(own_files)
  put 0644 "$files/slurm/capture_stops.py" "$shared/capture_stops.py"
  # slurmctld passes over an epilog that is not there when it starts.
  [[ -e $shared/epilog_slurmctld.sh ]] || touch "$etc/slurmctld-restart-due"
  for name in task_prolog.sh prolog.sh epilog_slurmctld.sh neurontrace_slurm.py; do
    put 0755 "$files/slurm/$name" "$shared/$name"
  done
  keep 0644 "$files/slurm/neurontrace.conf" "$shared/neurontrace.conf"
  keep 0644 "$files/agent.toml" "$shared/agent.toml"
  put 0755 "${BASH_SOURCE[0]}" "$shared/on_node_configured.sh"
  # Slurm runs every file there. What ParallelCluster has there itself is left alone.
  mkdir -p "$root/opt/slurm/etc/scripts/prolog.d"
  ln -sfn /opt/slurm/etc/neurontrace/prolog.sh "$root/opt/slurm/etc/scripts/prolog.d/50_neurontrace"
  render keep "$address" "$files/aggregator.toml" "$etc/aggregator.toml"
  render put "$address" "$files/slurm.env" "$etc/slurm.env"
  certificates head "$address"
  check_options neurontrace-aggregator "$etc/aggregator.toml" "$etc/aggregator.toml"
  # Whoever gives the certificates says whether the timer runs.
  if [[ -e $external ]]; then timer=neurontrace-certificates.timer:static; fi
  units neurontrace-aggregator.service neurontrace-slurm.service neurontrace-certificates.service:static "$timer"
  restart_slurmctld
}

# Once, where its configuration names the epilog and it has not seen it: jobs continue meanwhile, and new ones wait a moment.
restart_slurmctld() {
  [[ -e $etc/slurmctld-restart-due ]] || return 0
  if grep -riqs --include='*.conf' "^ *EpilogSlurmctld *= *[^ ]*/neurontrace/" "$root/opt/slurm/etc"; then
    control try-restart slurmctld.service
  fi
  rm -f "$etc/slurmctld-restart-due"
}

compute_node() {
  local address
  address=$(head_address)
  install_programs
  files=$(own_files)
  certificates node
  render put "$address" "$shared/agent.toml" "$etc/agent.toml" neurontrace-agent
  units neurontrace-agent.service neurontrace-certificates.service:static neurontrace-certificates.timer
}

main() {
  case "${1:-}" in --help | -h) usage; return ;; esac
  [[ $# -le 2 ]] || { usage >&2; exit 2; }
  [[ -r $cfnconfig ]] || fail "$cfnconfig does not exist; this is not a ParallelCluster node"
  node_type=$(setting cfn_node_type)
  case $node_type in
    HeadNode | ComputeFleet) ;;
    *) log "nothing to do on a node of type '$node_type'"; return ;;
  esac
  make_user
  mkdir -p "$etc" "$root/etc/systemd/system"
  case $node_type in
    HeadNode) head_node "${1:-}" "${2:-}" ;;
    ComputeFleet) compute_node ;;
  esac
  if [[ ${#changed[@]} -gt 0 ]]; then log "$node_type: changed ${changed[*]}"; else log "$node_type: nothing changed"; fi
}

# A compute node that fails here would be replaced, again and again.
if [[ -r $cfnconfig && $(setting cfn_node_type) == ComputeFleet && -z ${NT_STRICT:-} ]]; then
  NT_STRICT=1 bash "${BASH_SOURCE[0]}" "$@" || {
    log "the installation failed; this node continues without neurontrace"
    logger -t neurontrace -p user.err "on_node_configured.sh failed; this node is not recorded" 2>/dev/null || true
  }
else
  main "$@"
fi
