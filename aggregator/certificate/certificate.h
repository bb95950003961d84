// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/number_ranges.h"
#include "lib/trace/ids.h"
#include "lib/trace/loss.h"
#include "lib/trace/rank_evidence.h"
#include "lib/trace/remark.h"
#include "lib/trace/suspension.h"
#include "lib/trace/worker_info.h"

// What a capture holds and what it lacks. Plain values; proto/neurontrace/v1/certificate.proto has
// the same fields and says what each means. Values of enums equal those of neurontrace.v1.
namespace neurontrace {

// Whether what was captured equals what is stored, lost or expired. kNo is a defect of neurontrace;
// kUndetermined means that something was lost that nobody could count.
enum class Conservation : uint8_t { kUnspecified = 0, kYes = 1, kNo = 2, kUndetermined = 3 };

// The outcome of one worker, or of the framework files of one instance.
enum class WorkerPart : uint8_t {
  kUnspecified = 0,
  kRecorded = 1,
  // Took part, and there was nothing to record.
  kIdle = 2,
  // Took part, but nothing that it produced is stored.
  kDataLost = 3,
  // Did not take part: WorkerAbsence has the reason.
  kNever = 4,
  // The worker or its agent disappeared while it recorded, or one of its streams never came to its
  // end in the store.
  kVanished = 5,
};

// Why a worker never took part.
enum class WorkerAbsence : uint8_t {
  kNone = 0,
  kRefused = 1,
  kBusyOtherProfiler = 2,
  // Its runtime is too old, not initialised, or closed.
  kNoRuntime = 3,
  // The capture was not meant to record it.
  kNotSelected = 4,
  kAgentAway = 5,
  // Its agent never reported an outcome.
  kNotReported = 6,
};

// How far one agent's part of the capture has arrived.
enum class AgentPart : uint8_t {
  kUnspecified = 0,
  kRecording = 1,
  // Everything that it had is stored.
  kFinished = 2,
  // The capture has ended without it, but still accepts what it brings.
  kAwaited = 3,
  // Nobody waits for it any longer.
  kGivenUp = 4,
};

// How the times of a worker relate to those of others. Bounds are half-widths in nanoseconds and 0
// if the clock is not aligned: an aligned time is guaranteed within bound_ns, and within
// likely_bound_ns if packets take equally long in both directions.
struct ClockQuality {
  bool aligned = false;
  uint64_t bound_ns = 0;
  uint64_t likely_bound_ns = 0;
  std::string words = "not aligned";
};

// Events counted on one stream, or the sums of several streams.
struct EventAccount {
  // What the runtime produced: events captured, and events lost before they were.
  uint64_t expected = 0;
  // Events that an agent put into chunks.
  uint64_t captured = 0;
  uint64_t stored = 0;
  // Lost at all places together; lost_unknown adds events that could not be counted.
  uint64_t lost = 0;
  bool lost_unknown = false;
  // Events that were stored and were deleted by the capture's retention.
  uint64_t expired = 0;
  // The time of the latest of these, raw.
  uint64_t expired_last_ns = 0;
  // By place and reason, expiries included.
  std::vector<Loss> losses;
  Conservation conserved = Conservation::kYes;

  // Returns whether nothing is missing. Expired events are not missing.
  bool whole() const { return lost == 0 && !lost_unknown && conserved == Conservation::kYes; }
  // Adds another account. Sums saturate; the worse Conservation of the two remains.
  void Add(const EventAccount& more);
};

// A time in which a stream lacks events; `loss` has both ends, raw.
struct Gap {
  StreamIdentity stream;
  Loss loss;
};

// The outcome of one stream.
struct StreamCertificate {
  StreamIdentity identity;
  uint32_t number = 0;
  int64_t worker_gid = -1;
  // What worker_gid rests on, best first.
  std::vector<RankEvidence> evidence;
  EventAccount account;
  // Its producer declared that nothing follows.
  bool ended = false;
  // Losses with a length in time; gaps_sum_ns is the length of their union.
  uint64_t gaps = 0;
  uint64_t gaps_sum_ns = 0;
  std::vector<Remark> remarks;
  // Its times count from an unknown moment.
  bool own_time = false;
};

// The outcome of one worker or, with `framework`, of all framework files of one instance.
struct WorkerCertificate {
  WorkerIdentity worker;
  bool framework = false;
  std::string agent_id;
  // Its job key; empty if it is not known.
  std::string job;
  WorkerPart part = WorkerPart::kUnspecified;
  WorkerAbsence absence = WorkerAbsence::kNone;
  // Why it was refused, if its agent reports it.
  CaptureObstacle obstacle = CaptureObstacle::kNone;
  std::string detail;
  std::vector<int64_t> worker_gids;  // ascending
  EventAccount account;
  // How its cores missed the capture's first execution, and its last; empty if they did not.
  std::string late_cores;
  std::string early_end;
  // The number that its agent reported last, and whether it differs from what arrived.
  uint64_t events_read = 0;
  bool events_read_differs = false;
  ClockQuality clock;
  // When it recorded less because of the capture's budget, with a text. This is not a loss.
  std::optional<Loss> left_out;
  // When the capture was suspended in the worker for others. These are not losses.
  std::vector<Suspension> suspensions;
  // Longest first, at most limits::kCertificateGapsMax.
  std::vector<Gap> longest_gaps;
  uint64_t gaps = 0;
  // Of the stream with the largest sum, because gaps of several streams may coincide.
  uint64_t gaps_sum_ns = 0;
  std::vector<StreamCertificate> streams;
  // Those of its streams and those without a stream, added up by kind.
  std::vector<Remark> remarks;
};

// The outcome of the samples of one host's processors and memory. No other account counts them.
struct HostCertificate {
  StreamIdentity stream;
  uint32_t number = 0;
  EventAccount account;
  bool ended = false;
  // Its agent has finished, but the stream did not come to its end in the store.
  bool cut_short = false;
  // Stretches without samples; gaps_sum_ns is the length of their union.
  uint64_t gaps = 0;
  uint64_t gaps_sum_ns = 0;
  // Further stretches whose end is not known.
  uint64_t gaps_without_end = 0;
  std::vector<Remark> remarks;
};

// The outcome of one agent. Times are nanoseconds since 1970 by the aggregator's clock.
struct AgentCertificate {
  std::string agent_id;
  std::string instance_id;
  AgentPart part = AgentPart::kUnspecified;
  bool connected = false;
  // 0 while it is connected.
  uint64_t away_since_realtime_ns = 0;
  // Only with kAwaited, else 0.
  uint64_t awaited_until_realtime_ns = 0;
};

// A core that claims a rank.
struct RankClaimant {
  WorkerIdentity worker;
  uint32_t nc_idx = 0;
  std::string job;  // its job key; may differ within one communicator
  RankEvidence evidence;
};

// A rank that several cores of one job claim at the same time. They are kept apart everywhere.
struct RankDispute {
  int64_t worker_gid = 0;
  std::vector<RankClaimant> claimants;  // at most limits::kRankClaimantsNamedMax
  // All of them, including those beyond the limit.
  uint64_t claimants_count = 0;
};

// A world size that workers of one job claim.
struct WorldSizeClaim {
  int64_t world_size = 0;
  // Cores that claim it.
  uint64_t cores = 0;
  // One core of each worker, at most limits::kRankClaimantsNamedMax.
  std::vector<RankClaimant> claimants = {};
};

// The ranks of one job, compared over all its workers: those of a capture, or those that live.
struct JobRanks {
  // Its key; empty if its workers name none.
  std::string job;
  // Job keys of other workers of the same communicator.
  std::vector<std::string> other_names;
  uint64_t workers = 0;
  uint64_t cores = 0;
  // The largest that a worker claims; 0 if none claims any.
  int64_t world_size = 0;
  std::vector<WorldSizeClaim> world_sizes;
  // Distinct ranks, below world_size if that is known.
  int64_t ranks_seen = 0;
  int64_t ranks_beyond_world = 0;
  uint64_t cores_without_rank = 0;
  // Cores whose rank rests on something that nobody stated.
  uint64_t cores_guessed = 0;
  // Cores whose evidence names several ranks; the best evidence counts.
  uint64_t cores_contradicted = 0;
  std::vector<NumberRange> never_seen;  // at most limits::kCertificateRankRangesMax
  int64_t never_seen_count = 0;
  std::vector<RankDispute> disputes;  // at most limits::kRankDisputesNamedMax
  uint64_t disputes_count = 0;
  // Only for the jobs of a capture.
  EventAccount account;
  // Cores whose worker, and with it its job, is no longer in the inventory: they may be of several
  // jobs.
  uint64_t cores_forgotten = 0;

  // Returns whether its ranks cannot be those of one job.
  bool is_contradictory() const {
    return disputes_count > 0 || world_sizes.size() > 1 || ranks_beyond_world > 0;
  }
  // Returns whether it certainly is one job and its ranks cannot be relied on.
  bool has_conflict() const { return cores_forgotten == 0 && is_contradictory(); }
};

// The ranks that a job must have and that no worker of the capture has.
struct MissingRanks {
  // Its key; empty if its workers name none.
  std::string job;
  int64_t world_size = 0;
  int64_t seen = 0;
  std::vector<NumberRange> never_seen;  // at most limits::kCertificateRankRangesMax
  int64_t never_seen_count = 0;
  // Workers of the job claim different world sizes; world_size is the largest.
  bool disputed = false;
};

// The whole judgement of a capture.
struct Certificate {
  CaptureId capture_id;
  // The capture continues; `complete` is then false.
  bool provisional = true;
  // Every event that was to be recorded is stored, or has expired as intended.
  bool complete = false;
  std::string verdict;
  EventAccount account;
  // Worst first.
  std::vector<WorkerCertificate> workers;
  // By instance id. Their samples are in no other account.
  std::vector<HostCertificate> hosts;
  std::vector<AgentCertificate> agents;
  // Jobs that took part, by name.
  std::vector<JobRanks> jobs;
  // Those of them that lack ranks.
  std::vector<MissingRanks> ranks;
  // Sentences that contradict completeness; `notes` do not and are only worth knowing.
  std::vector<std::string> findings;
  std::vector<std::string> notes;
};

}  // namespace neurontrace
