// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace neurontrace {

// The kind of a verdict. The numbers are stored and sent: they are never used again for others.
enum class VerdictKind : uint8_t {
  kSlowCore = 1,
  kSlowHost = 2,
  kSlowProcess = 3,
  kInputStall = 4,
  kMemoryStall = 5,
  kHostCode = 6,
  kSlowCollective = 7,
  kUnevenRole = 8,  // names a role, never a rank
  kUnevenData = 9,  // names nobody
  kHangNotEntered = 10,
  kHangInside = 11,
  kDeadWorker = 12,
  kDeviceError = 13,
};

// Why a part of the window was not judged.
enum class RefusalReason : uint8_t {
  kLosses = 1,         // events were lost
  kFewPeers = 2,       // fewer than three with the same role
  kRoleUnknown = 3,    // no repeating sequence of executions
  kCoverage = 4,       // less than 90 % of the group is in the capture
  kContradiction = 5,  // ids contradict time
  kTwoCandidates = 6,  // two within 20 % of each other
  kUnexplained = 8,    // named increments add up to less than 80 % of the exposed wait
  kTooShort = 9,       // fewer executions than the rule needs
  kNoCanary = 10,      // silent, and not known to be alive
  kLimit = 11,         // a limit of this program was reached
};

// A segment of an execution. Own work is everything but kWait and kTransfer.
enum class InsightPhase : uint8_t { kSubmit = 0, kPre, kDevice, kWait, kTransfer, kPost, kGap };
inline constexpr size_t kInsightPhases = 7;

// "slow-core", "losses", "device", as in JSON, Parquet and metrics. Static.
const char* VerdictKindName(VerdictKind kind);
const char* RefusalReasonName(RefusalReason reason);
const char* InsightPhaseName(InsightPhase phase);

// Returns true for operations that do not end.
constexpr bool IsHang(VerdictKind kind) { return kind >= VerdictKind::kHangNotEntered; }

// A figure that excludes another cause.
struct RuledOut {
  std::string what;    // "host", "input", "link", "clock", "peers"
  double ratio = 0;    // to its peers or its history; 0: not a ratio, `figure` has the text
  std::string figure;  // "bound 9 us, lateness 118 ms"; empty with a ratio
};

// A model whose executions show a verdict, by themselves. A plain value.
struct VerdictModel {
  std::string role;  // as Verdict::role
  double ratio = 0;
  double z = 0;
  uint32_t executions = 0;  // in which this held …
  uint32_t judged = 0;      // … of so many
  uint64_t since_ns = 0;
  uint64_t until_ns = 0;
};

// One thing that is known about the window. A plain value. Times are host times of the first
// suspect's core; whoever has a clock maps them.
struct Verdict {
  VerdictKind kind = VerdictKind::kSlowCore;
  std::vector<uint32_t> suspects;  // cores, ascending; empty for kUnevenRole, kUnevenData
  InsightPhase phase = InsightPhase::kDevice;  // where the excess is
  // The model whose executions show it, "llama70b"; empty if the verdict concerns no role.
  std::string role;
  uint32_t peers = 0;       // with which the suspects were compared
  double ratio = 0;         // own work to that of the median peer; 0 for hangs
  double z = 0;             // noise-scaled; 0 for hangs
  uint32_t executions = 0;  // in which this held …
  uint32_t judged = 0;      // … of so many
  uint64_t since_ns = 0;  // start of the first execution in which it held, or of the open operation
  uint64_t until_ns = 0;  // end of the last
  uint64_t cost_ns = 0;   // exposed wait of the group per step that the excess explains
  uint64_t total_cost_ns = 0;  // … of all steps from since_ns to until_ns; 0: not summed
  uint64_t step_ns = 0;        // length of a step, median
  uint32_t waiting = 0;        // cores that waited for the suspects
  uint64_t group = 0;          // of the collective, as in InsightEvent
  uint64_t exec_id = 0;        // an execution that shows it; 0: none
  uint64_t op_id = 0;          // the collective that they wait in; 0: unknown or a barrier
  bool is_barrier = false;     // they wait in a barrier of the group, which has no op_id
  // The other models whose executions are slow by themselves; the one with the most comes first.
  // The excess of `role` is the largest of a step.
  std::vector<VerdictModel> also;
  std::vector<RuledOut> ruled_out;
};

// The order of a report: hangs first, then by cost, the most expensive first.
bool ComesBefore(const Verdict& a, const Verdict& b);

// The order of Verdict::also.
bool ComesBeforeModel(const VerdictModel& a, const VerdictModel& b);

// What was not judged, and why. Its cores are in no verdict as suspects.
struct Refusal {
  RefusalReason reason = RefusalReason::kLosses;
  std::vector<uint32_t> cores;  // ascending
  uint64_t begin_ns = 0;        // host time of the first of them; 0 and 0: the whole window
  uint64_t end_ns = 0;
  uint64_t refused_ns = 0;  // of the time between, so much was not judged; 0: all of it
  uint64_t judged_ns = 0;   // length of what was to be judged; 0: unknown
  uint64_t count = 0;       // of executions, lost events or absent ranks, by the reason
  std::string missing;      // what is missing and how to get it, one sentence
};

// The answer for one window. "Nothing to name" is an empty `verdicts` with judged cores.
struct InsightReport {
  std::vector<Verdict> verdicts;  // by cost, the most expensive first; hangs before all
  std::vector<Refusal> refusals;  // by number of cores
  uint32_t cores = 0;             // of the window
  uint32_t cores_judged = 0;
  uint64_t executions = 0;         // judged, over all cores
  uint64_t step_ns = 0;            // median over groups; 0: unknown
  uint64_t exposed_wait_ns = 0;    // per step, of the group that waits most
  uint64_t explained_wait_ns = 0;  // of it, by the verdicts
  bool is_below_cost = false;      // waits are too short to matter: nobody was looked for
};

// Adds the executions of a report to `sums`, and the step and waits of the group that waits most.
// Verdicts, refusals and cores are the caller's.
void AddSums(const InsightReport& report, InsightReport& sums);

}  // namespace neurontrace
