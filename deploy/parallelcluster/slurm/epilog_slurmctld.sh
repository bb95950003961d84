#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Slurm's EpilogSlurmctld: has neurontrace-slurm look at once which job has ended, so that its capture ends with it.
#
# It runs as Slurm's user on the head node whenever a job ends. It gives no order, has no certificate and names no job:
# the service asks Slurm, whoever woke it. A job is completing until this ends, so it ends at once and with 0, whatever
# happens: where nobody reads, or nobody reads fast enough, the service's next look finds the same.
trap 'exit 0' EXIT
PATH=/usr/bin:/bin

wake=/run/neurontrace-slurm/job-ended
while IFS='=' read -r key value; do
  case $key in
    WAKE) wake=$value ;;
  esac
done 2>/dev/null <"${BASH_SOURCE[0]%/*}/neurontrace.conf"

# Neither opening nor writing waits for a reader.
[[ ! -p $wake ]] || timeout --kill-after=1 2 dd of="$wake" oflag=nonblock conv=nocreat,notrunc status=none \
  <<<"${SLURM_JOB_ID:-}" 2>/dev/null
