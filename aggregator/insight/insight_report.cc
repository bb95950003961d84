// SPDX-License-Identifier: Apache-2.0
#include "aggregator/insight/insight_report.h"

namespace neurontrace {

bool ComesBefore(const Verdict& a, const Verdict& b) {
  if (IsHang(a.kind) != IsHang(b.kind)) return IsHang(a.kind);
  if (a.total_cost_ns != b.total_cost_ns) return a.total_cost_ns > b.total_cost_ns;
  if (a.cost_ns != b.cost_ns) return a.cost_ns > b.cost_ns;
  if (a.kind != b.kind) return a.kind < b.kind;
  return a.suspects < b.suspects;
}

bool ComesBeforeModel(const VerdictModel& a, const VerdictModel& b) {
  if (a.executions != b.executions) return a.executions > b.executions;
  return a.role < b.role;
}

const char* VerdictKindName(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::kSlowCore:
      return "slow-core";
    case VerdictKind::kSlowHost:
      return "slow-host";
    case VerdictKind::kSlowProcess:
      return "slow-process";
    case VerdictKind::kInputStall:
      return "input-stall";
    case VerdictKind::kMemoryStall:
      return "memory-stall";
    case VerdictKind::kHostCode:
      return "host-code";
    case VerdictKind::kSlowCollective:
      return "slow-collective";
    case VerdictKind::kUnevenRole:
      return "uneven-role";
    case VerdictKind::kUnevenData:
      return "uneven-data";
    case VerdictKind::kHangNotEntered:
      return "hang-not-entered";
    case VerdictKind::kHangInside:
      return "hang-inside";
    case VerdictKind::kDeadWorker:
      return "dead-worker";
    case VerdictKind::kDeviceError:
      return "device-error";
  }
  return "unknown";  // a stored number of a later version
}

const char* RefusalReasonName(RefusalReason reason) {
  switch (reason) {
    case RefusalReason::kLosses:
      return "losses";
    case RefusalReason::kFewPeers:
      return "few-peers";
    case RefusalReason::kRoleUnknown:
      return "role-unknown";
    case RefusalReason::kCoverage:
      return "coverage";
    case RefusalReason::kContradiction:
      return "contradiction";
    case RefusalReason::kTwoCandidates:
      return "two-candidates";
    case RefusalReason::kUnexplained:
      return "unexplained";
    case RefusalReason::kTooShort:
      return "too-short";
    case RefusalReason::kNoCanary:
      return "no-canary";
    case RefusalReason::kLimit:
      return "limit";
  }
  return "unknown";
}

const char* InsightPhaseName(InsightPhase phase) {
  switch (phase) {
    case InsightPhase::kSubmit:
      return "submit";
    case InsightPhase::kPre:
      return "pre";
    case InsightPhase::kDevice:
      return "device";
    case InsightPhase::kWait:
      return "wait";
    case InsightPhase::kTransfer:
      return "transfer";
    case InsightPhase::kPost:
      return "post";
    case InsightPhase::kGap:
      return "gap";
  }
  return "unknown";
}

void AddSums(const InsightReport& report, InsightReport& sums) {
  sums.executions += report.executions;
  sums.is_below_cost &= report.is_below_cost;
  if (sums.step_ns != 0 && report.exposed_wait_ns <= sums.exposed_wait_ns) return;
  sums.step_ns = report.step_ns;
  sums.exposed_wait_ns = report.exposed_wait_ns;
  sums.explained_wait_ns = report.explained_wait_ns;
}

}  // namespace neurontrace
