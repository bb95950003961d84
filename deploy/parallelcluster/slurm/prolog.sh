#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Slurm's Prolog: has the node's agent there before the first task of a job.
#
# It runs as root on every node of a job. Slurm drains a node whose prolog fails and holds or requeues the job, so this
# one exits with 0 whatever happens: a job without a trace is better than no job. What is wrong goes to the system's log.
trap 'exit 0' EXIT
PATH=/usr/sbin:/usr/bin:/sbin:/bin

# It is a link to this file that Slurm runs.
here=$(readlink -f -- "${BASH_SOURCE[0]}")
socket=/run/neurontrace/agent.sock
start_agent=
while IFS='=' read -r key value; do
  case $key in
    SOCKET) socket=$value ;;
    START_AGENT) start_agent=$value ;;
  esac
done 2>/dev/null <"${here%/*}/neurontrace.conf"
socket=${socket//%n/${SLURMD_NODENAME:-}}

complain() {
  logger -t neurontrace -p user.warning -- "job ${SLURM_JOB_ID:-} runs, but may not be recorded: $1" 2>/dev/null
}

if [[ -n $start_agent ]]; then
  # Words, not a shell's line: the file names a command and its arguments.
  read -ra command <<<"${start_agent//%n/${SLURMD_NODENAME:-}}"
  timeout --kill-after=1 10 "${command[@]}" </dev/null >/dev/null 2>&1 ||
    complain "the agent did not start ($start_agent)"
  # systemctl comes back before the agent listens.
  for _ in {1..30}; do [[ ! -S $socket ]] || break; sleep 0.1; done
fi
[[ -S $socket ]] || complain "no agent at $socket"
