// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/trace/ids.h"
#include "lib/trace/loss.h"
#include "lib/trace/rank_evidence.h"
#include "lib/trace/remark.h"
#include "lib/trace/worker_info.h"

// What a capture holds and what it lacks. Plain values; proto/neurontrace/v1/certificate.proto has
// the same fields and says what each means. Values of enums equal those of neurontrace.v1.
namespace neurontrace {

enum class Conservation : uint8_t { kUnspecified = 0, kYes = 1, kNo = 2, kCannotSay = 3 };

enum class WorkerPart : uint8_t {
  kUnspecified = 0,
  kRecorded = 1,
  kIdle = 2,
  kDataLost = 3,
  kNever = 4,
  kVanished = 5,
};

enum class WorkerAbsence : uint8_t {
  kNone = 0,
  kRefused = 1,
  kBusyOtherProfiler = 2,
  kNoRuntime = 3,
  kNotSelected = 4,
  kAgentAway = 5,
  kNotReported = 6,
};

enum class AgentPart : uint8_t {
  kUnspecified = 0,
  kRecording = 1,
  kFinished = 2,
  kAwaited = 3,
  kGivenUp = 4,
};

struct ClockQuality {
  bool aligned = false;
  uint64_t bound_ns = 0;
  uint64_t likely_bound_ns = 0;
  std::string words = "not aligned";
};

// One stream, or the sum of several.
struct EventAccount {
  uint64_t expected = 0;
  uint64_t captured = 0;
  uint64_t stored = 0;
  uint64_t lost = 0;
  bool lost_unknown = false;
  uint64_t expired = 0;          // were stored, and went with the capture's retention
  uint64_t expired_last_ns = 0;  // the latest of these, raw
  std::vector<Loss> losses;      // by place and reason; what has expired among them
  Conservation conserved = Conservation::kYes;

  bool whole() const { return lost == 0 && !lost_unknown && conserved == Conservation::kYes; }
  void Add(const EventAccount& more);
};

struct Gap {
  StreamIdentity stream;
  Loss loss;
};

struct StreamCertificate {
  StreamIdentity identity;
  uint32_t number = 0;
  int64_t worker_gid = -1;
  std::vector<RankEvidence> evidence;  // behind worker_gid, best first
  EventAccount account;
  bool ended = false;
  uint64_t gaps = 0;
  uint64_t gaps_sum_ns = 0;
  std::vector<Remark> remarks;
  bool own_time = false;  // its times count from a moment that is not known
};

struct WorkerCertificate {
  WorkerIdentity worker;
  bool framework = false;
  std::string agent_id;
  std::string job;  // empty: not known
  WorkerPart part = WorkerPart::kUnspecified;
  WorkerAbsence absence = WorkerAbsence::kNone;
  CaptureObstacle obstacle = CaptureObstacle::kNone;  // why it was refused, where its agent says so
  std::string detail;
  std::vector<int64_t> worker_gids;  // ascending
  EventAccount account;
  uint64_t events_read = 0;
  bool events_read_differs = false;
  ClockQuality clock;
  std::optional<Loss> left_out;   // for the capture's budget: from when to when, in words; no loss
  std::vector<Loss> gave_way;     // to other captures: from when to when, in words; no loss
  std::vector<Gap> longest_gaps;  // longest first
  uint64_t gaps = 0;
  uint64_t gaps_sum_ns = 0;
  std::vector<StreamCertificate> streams;
  std::vector<Remark> remarks;  // of its streams, and of what has no stream, added up by kind
};

// The samples of one host's processors and memory.
struct HostCertificate {
  StreamIdentity stream;
  uint32_t number = 0;
  EventAccount account;
  bool ended = false;
  bool cut_short = false;  // it should have come to its end here, and has not
  uint64_t gaps = 0;
  uint64_t gaps_sum_ns = 0;
  uint64_t gaps_without_end = 0;  // not among them: only when they began is known
  std::vector<Remark> remarks;
};

struct AgentCertificate {
  std::string agent_id;
  std::string instance_id;
  AgentPart part = AgentPart::kUnspecified;
  bool connected = false;
  uint64_t away_since_realtime_ns = 0;
  uint64_t awaited_until_realtime_ns = 0;
};

struct RankRange {
  int64_t first = 0;
  int64_t last = 0;
};

// A core that claims a rank.
struct RankClaimant {
  WorkerIdentity worker;
  uint32_t nc_idx = 0;
  std::string job;  // its job key; may differ within one communicator
  RankEvidence evidence;
};

// A rank that several cores of one job claim at the same time.
struct RankDispute {
  int64_t worker_gid = 0;
  std::vector<RankClaimant> claimants;  // at most limits::kRankClaimantsNamedMax
  uint64_t claimants_count = 0;
};

struct WorldSizeClaim {
  int64_t world_size = 0;
  uint64_t cores = 0;  // that name it
  // A core of each worker, at most limits::kRankClaimantsNamedMax.
  std::vector<RankClaimant> claimants = {};
};

// The ranks of one job, compared over all its workers.
struct JobRanks {
  std::string job;                       // its key; empty: its workers name none
  std::vector<std::string> other_names;  // job keys of other workers of the same communicator
  uint64_t workers = 0;
  uint64_t cores = 0;
  int64_t world_size = 0;  // the largest that a worker names; 0: none does
  std::vector<WorldSizeClaim> world_sizes;
  int64_t ranks_seen = 0;  // different ones, below world_size where that is known
  int64_t ranks_beyond_world = 0;
  uint64_t cores_without_rank = 0;
  uint64_t cores_guessed = 0;         // whose rank rests on something that nobody stated
  uint64_t cores_contradicted = 0;    // whose evidence names several ranks; the best counts
  std::vector<RankRange> never_seen;  // at most limits::kCertificateRankRangesMax
  int64_t never_seen_count = 0;
  std::vector<RankDispute> disputes;  // at most limits::kRankDisputesNamedMax
  uint64_t disputes_count = 0;
  EventAccount account;  // of a capture
  // Cores whose worker the inventory has forgotten, and with it its job: they may be of several.
  uint64_t cores_forgotten = 0;

  // Whether its ranks cannot be those of one job.
  bool is_contradictory() const {
    return disputes_count > 0 || world_sizes.size() > 1 || ranks_beyond_world > 0;
  }
  // Whether it is one job, and its ranks cannot be relied on.
  bool has_conflict() const { return cores_forgotten == 0 && is_contradictory(); }
};

struct MissingRanks {
  std::string job;
  int64_t world_size = 0;
  int64_t seen = 0;
  std::vector<RankRange> never_seen;  // at most limits::kCertificateRankRangesMax
  int64_t never_seen_count = 0;
  bool disputed = false;
};

struct Certificate {
  CaptureId capture_id;
  bool provisional = true;
  bool complete = false;
  std::string verdict;
  EventAccount account;
  std::vector<WorkerCertificate> workers;  // worst first
  std::vector<HostCertificate> hosts;      // by name; their samples are in no other account
  std::vector<AgentCertificate> agents;
  std::vector<JobRanks> jobs;       // that took part, by name
  std::vector<MissingRanks> ranks;  // of those, with some missing
  std::vector<std::string> findings;
  std::vector<std::string> notes;
};

}  // namespace neurontrace
