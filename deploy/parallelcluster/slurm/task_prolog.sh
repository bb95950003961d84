#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Slurm's TaskProlog: gives the task the tap, and has the job's request for a capture looked at once a job.
#
# It runs as the job's user before every task. Lines that begin with "export" change the task's environment, those that
# begin with "print" go to its output; nothing else may come to standard output. Slurm ends a task whose prolog fails, so
# this one exits with 0 whatever happens, and nothing that it calls may take longer than a few seconds.
trap 'exit 0' EXIT

here=${BASH_SOURCE[0]%/*}
tap=
socket=/run/neurontrace/agent.sock
slurm_bin=/opt/slurm/bin
kineto=
traces=
while IFS='=' read -r key value; do
  case $key in
    TAP) tap=$value ;;
    SOCKET) socket=$value ;;
    SLURM_BIN) slurm_bin=$value ;;
    KINETO_DIR) kineto=${value//%n/${SLURMD_NODENAME:-}} ;;
    FRAMEWORK_DIR) traces=${value//%n/${SLURMD_NODENAME:-}} ;;
  esac
done 2>/dev/null <"$here/neurontrace.conf"

[[ ${NEURONTRACE:-on} != off ]] || exit 0

# The loader complains in every process about a library that it cannot open.
[[ -n $tap && -r $tap ]] || exit 0

# A step has the environment of the batch script, which has the tap already.
case :${LD_PRELOAD:-}: in
  *[:\ ]"$tap"[:\ ]*) ;;
  # In front: behind a runtime that the job preloads itself it would see nothing.
  *) echo "export LD_PRELOAD=$tap${LD_PRELOAD:+:$LD_PRELOAD}" ;;
esac
# Annotations, unless the job names another tool of NVTX.
annotate=${tap%/*}/libneurontrace_annotate.so
if [[ -z ${NVTX_INJECTION64_PATH:-} && -r $annotate ]]; then echo "export NVTX_INJECTION64_PATH=$annotate"; fi
# Always, as the batch script may have run on another node.
echo "export NEURONTRACE_AGENT_SOCKET=${socket//%n/${SLURMD_NODENAME:-}}"

# Only with a directory that the task's user can use: without one PyTorch listens to everybody on the node.
if [[ -n $kineto && -n $traces && -w $kineto && -x $kineto ]]; then
  echo "export KINETO_USE_DAEMON=1"
  echo "export KINETO_IPC_SOCKET_DIR=$kineto"
  echo "export KINETO_ONDEMAND_TRACE_DIR=$traces"
fi

# The tap reads Slurm's variables itself: job, rank, node. Labels say what people look for, in characters that labels can
# have.
labels=${NEURONTRACE_LABELS:-}
if [[ ,$labels != *,slurm_user=* ]]; then
  user=${SLURM_JOB_USER:-$(id -un)}
  name=${SLURM_JOB_NAME:-}
  echo "export NEURONTRACE_LABELS=${labels:+$labels,}slurm_user=${user//[!A-Za-z0-9._-]/_},slurm_name=${name//[!A-Za-z0-9._-]/_}"
fi

# Once a job: in its batch script, or in the first task of its first step where it has none.
if [[ ${SLURM_PROCID:-} == 0 && ${SLURM_STEP_ID:-0} == 0 && ${NEURONTRACE_ASKED:-} != "${SLURM_JOB_ID:-}" ]]; then
  echo "export NEURONTRACE_ASKED=$SLURM_JOB_ID"
  LD_PRELOAD='' timeout --kill-after=2 20 python3 -I "$here/neurontrace_slurm.py" --slurm-bin "$slurm_bin" ask \
    2>/dev/null </dev/null
fi
