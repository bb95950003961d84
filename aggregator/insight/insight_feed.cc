// SPDX-License-Identifier: Apache-2.0
#include "aggregator/insight/insight_feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "aggregator/timeline/model_names.h"
#include "lib/base/time_units.h"

namespace neurontrace {
namespace {

// Returns whether a loss with these raw times may have been in the window. Without times it may.
bool IsInWindow(const Loss& loss, const ClockMap& clock, uint64_t start_ns, uint64_t end_ns) {
  if (loss.first_timestamp_ns == 0 || loss.last_timestamp_ns == 0) return true;
  return clock.ToReference(loss.first_timestamp_ns) < end_ns &&
         clock.ToReference(loss.last_timestamp_ns) >= start_ns;
}

}  // namespace

InsightFeed::InsightFeed(std::span<const TimelineStream> streams, ShapeFieldTable& fields,
                         Facts facts, size_t held_max)
    : streams_(streams),
      fields_(fields),
      facts_(std::move(facts)),
      held_max_(held_max),
      core_of_(streams.size(), kNoCore),
      executions_(streams, fields) {
  assert(held_max_ > 0);
  FindCores();
  device_times_.resize(cores_.size());
  std::map<std::string_view, uint32_t> jobs;
  for (uint32_t core = 0; core < cores_.size(); ++core) {
    core_of_[stream_of_[core]] = core;
    const auto number = static_cast<uint32_t>(jobs.size());
    job_of_.push_back(jobs.try_emplace(cores_[core].job, number).first->second);
  }
  groups_.resize(jobs.size());
}

std::vector<std::string> InsightFeed::EventTypes() {
  return {"nrt_execute",       "kbl_exec_pre",        "kbl_exec_post",       "nc_exec_running",
          "cc_running",        "cc_exec_barrier",     "enc_barrier",         "nrt_tensor_read*",
          "nrt_tensor_write*", "nrt_tensor_copy*",    "nrt_tensor_allocate", "nrt_tensor_free",
          "nrt_dma_mem_alloc", "nrt_dma_mem_dealloc", "numerical_err"};
}

// Two things make the identities of cores unique: a process id that two workers of an instance have
// (in two containers, or one after the other) is extended by a number, and streams without a job
// belong to one by their world size, as CommunicatorTable has it.
void InsightFeed::FindCores() {
  std::set<int64_t> nameless_worlds;
  const auto world_of = [](const TimelineStream& stream) {
    const RankEvidence* const best = BestEvidence(stream.description.evidence);
    return best == nullptr ? int64_t{0} : best->world_size;
  };
  for (const TimelineStream& stream : streams_) {
    if (stream.description.identity.has_core() && stream.description.job.empty()) {
      nameless_worlds.insert(world_of(stream));
    }
  }
  std::map<std::pair<std::string, uint32_t>, std::vector<WorkerIdentity>> workers_of;
  for (uint32_t i = 0; i < streams_.size(); ++i) {
    const StreamDescription& stream = streams_[i].description;
    if (!stream.identity.has_core()) continue;
    const bool is_read = streams_[i].is_in_window || !LossesOf(streams_[i]).empty();
    if (!is_read && stream.process_has_ended) continue;
    const WorkerIdentity& worker = stream.identity.worker;
    auto& workers = workers_of[{worker.instance_id, worker.pid}];
    const auto known = std::ranges::find(workers, worker);
    const auto nth = static_cast<uint64_t>(known - workers.begin());
    if (known == workers.end()) workers.push_back(worker);
    InsightCore core{.job = stream.job,
                     .instance_id = worker.instance_id,
                     .process = (nth << 32) | worker.pid,
                     .worker_gid = streams_[i].rank.worker_gid.value_or(-1),
                     .nc_idx = stream.identity.nc_idx,
                     .world_size = static_cast<uint32_t>(
                         std::clamp<int64_t>(world_of(streams_[i]), 0, UINT32_MAX))};
    if (core.job.empty() && nameless_worlds.size() > 1) {
      core.job = fmt::format("world of {}", world_of(streams_[i]));
      core.has_job_name = false;
    }
    if (!is_read) {
      silent_.push_back(std::move(core));
      continue;
    }
    cores_.push_back(std::move(core));
    stream_of_.push_back(i);
  }
}

// ExecutionFinder returns an execution once it ended more than kJoinNs before the batch's end, so
// only what ended before that is complete and in order.
void InsightFeed::Take(const TimelineBatch& batch, std::vector<InsightEvent>& done) {
  ended_.clear();
  executions_.Take(batch, ended_);
  for (const TimelineRecord* record : batch.records) Take(*record);
  for (const Execution& execution : ended_) Take(execution);
  absl::erase_if(parts_, [&](const auto& entry) {
    // What starts later joins only what it overlaps.
    if (entry.second.end_ns > batch.end_ns) return false;
    Hold(entry.second);
    return true;
  });
  ReleaseBefore(SubtractSaturating(batch.end_ns, ExecutionFinder::kJoinNs), done);
  // Memory stays bounded, at the price of the order.
  while (held_.size() > held_max_) {
    ++released_early_;
    done.push_back(held_.top().event);
    held_.pop();
  }
}

void InsightFeed::Take(const TimelineRecord& record) {
  const uint32_t core = core_of_[record.stream];
  if (core == kNoCore) return;
  const ShapeFields& fields = fields_.Of(*record.shape);
  if ((record.flags & kDeviceClock) != 0) ++device_times_[core].first;
  if ((record.flags & kVendorClock) != 0) ++device_times_[core].second;
  const std::string_view name = StartText(record, fields, DerivedField::kModelName);
  const auto model_id = StartNumber(record, fields, DerivedField::kModelId);
  // Also of nrt_execute, which ExecutionFinder reports: other events have only the id.
  const uint64_t model =
      name.empty() && !model_id ? 0 : ModelOf(record.stream, KeptName(name), model_id);
  const auto kind = InsightClassOf(fields.type);
  // ExecutionFinder reports runs and calls.
  if (!kind || kind == InsightClass::kRun || kind == InsightClass::kExecute) return;
  if ((record.flags & kInvalidLength) != 0) {
    ++without_length_;
    return;
  }
  const bool is_point = record.kind == RecordKind::kInstant && *kind == InsightClass::kError;
  if (record.kind != RecordKind::kSpan && !is_point) return;
  if ((record.flags & kStartLost) != 0) {
    ++start_lost_;
    return;
  }
  InsightEvent event{.core = core,
                     .kind = *kind,
                     .is_open = (record.flags & kOpen) != 0,
                     .start_ns = record.start_ns,
                     .end_ns = record.end_ns,
                     .exec_id = StartNumber(record, fields, DerivedField::kExecId).value_or(0),
                     .model = model};
  if (!HasPhysicalParts(*kind)) {
    Hold(event);
    return;
  }
  event.op_id = StartNumber(record, fields, DerivedField::kOpId).value_or(0);
  event.group = GroupOf(record, fields);
  TakePart(event);
}

void InsightFeed::Take(const Execution& execution) {
  const uint32_t core = core_of_[execution.stream];
  if (core == kNoCore) return;
  Hold({.core = core,
        .kind = execution.source == ExecutionSource::kDevice ? InsightClass::kRun
                                                             : InsightClass::kExecute,
        .is_open = execution.is_open,
        .start_ns = execution.start_ns,
        .end_ns = execution.end_ns,
        .exec_id = execution.exec_id.value_or(0),
        .model = execution.model_name.empty() && !execution.model_id
                     ? 0
                     : ModelOf(execution.stream, execution.model_name, execution.model_id)});
}

// The core arrives with its first physical core and leaves with its last, as CollectiveFinder has
// it.
void InsightFeed::TakePart(const InsightEvent& event) {
  const auto [known, is_new] =
      parts_.try_emplace(Part(event.core, event.kind, event.exec_id, event.op_id), event);
  if (is_new) {
    // Beyond the limit nothing is joined.
    if (parts_.size() <= held_max_) return;
    Hold(event);
    parts_.erase(known);
    ++released_early_;
    return;
  }
  InsightEvent& pending = known->second;
  if (event.start_ns < pending.end_ns) {
    pending.end_ns = std::max(pending.end_ns, event.end_ns);
    pending.is_open |= event.is_open;
    return;
  }
  Hold(pending);
  pending = event;
}

void InsightFeed::ReleaseBefore(uint64_t time_ns, std::vector<InsightEvent>& done) {
  while (!held_.empty() && held_.top().event.end_ns < time_ns) {
    done.push_back(held_.top().event);
    held_.pop();
  }
}

uint64_t InsightFeed::ModelOf(uint32_t stream, std::string_view name,
                              std::optional<uint64_t> model_id) {
  if (!name.empty()) {
    const uint64_t hash = NonZero(HashEventType(name));
    if (models_.size() < kModelsMax && model_hashes_.insert(hash).second) {
      models_.push_back({hash, std::string(name)});
    }
    if (model_id && model_of_id_.size() < kModelIdsMax) {
      model_of_id_.insert_or_assign(std::pair(stream, *model_id), hash);
    }
    return hash;
  }
  const auto known = model_of_id_.find(std::pair(stream, *model_id));
  return known != model_of_id_.end() ? known->second : NonZero(MixBits(*model_id + 1));
}

// GroupIds may learn during the capture that gid is the number of a group: the events before that
// have the group of their ids until then.
uint64_t InsightFeed::GroupOf(const TimelineRecord& record, const ShapeFields& fields) {
  const uint32_t core = core_of_[record.stream];
  return groups_[job_of_[core]].Of(
      {.core = core,
       .worker_gid = cores_[core].worker_gid,
       .gid = StartNumber(record, fields, DerivedField::kGid),
       .stream_id = StartNumber(record, fields, DerivedField::kCcStream),
       .peer = StartNumber(record, fields, DerivedField::kPeer)});
}

void InsightFeed::Finish(std::vector<InsightEvent>& done) {
  ended_.clear();
  executions_.Finish(ended_);
  for (const Execution& execution : ended_) Take(execution);
  for (const auto& [part, event] : parts_) Hold(event);
  parts_.clear();
  ReleaseBefore(UINT64_MAX, done);
}

std::vector<CoreCondition> InsightFeed::Conditions() const {
  std::vector<CoreCondition> conditions;
  conditions.reserve(stream_of_.size());
  for (const uint32_t stream : stream_of_) conditions.push_back(ConditionOf(streams_[stream]));
  return conditions;
}

// A process that ended was alive until its last event.
CoreCondition InsightFeed::ConditionOf(const TimelineStream& stream) const {
  const StreamDescription& about = stream.description;
  const uint64_t alive_raw_ns = std::max(about.last_timestamp_ns, about.canary_ns);
  CoreCondition condition{.alive_at_ns =
                              alive_raw_ns == 0 ? 0 : stream.clock->ToReference(alive_raw_ns)};
  if (about.process_has_ended) {
    condition.has_ended = true;
    condition.ended_orderly = about.has_closed_runtime;
    condition.ended_at_ns = stream.clock->ToReference(about.last_timestamp_ns);
  }
  return condition;
}

std::vector<std::vector<CoreLoss>> InsightFeed::Losses() const {
  std::vector<std::vector<CoreLoss>> losses;
  losses.reserve(stream_of_.size());
  for (const uint32_t stream : stream_of_) losses.push_back(LossesOf(streams_[stream]));
  return losses;
}

// Sums tell that and how much was lost, and only gaps tell when. Where the gaps have all of a sum,
// those outside the window are excluded; otherwise the whole sum was lost at some time between
// its first and its last loss, as nobody knows better. A suspended capture recorded nothing, which
// hides executions as a loss does.
std::vector<CoreLoss> InsightFeed::LossesOf(const TimelineStream& stream) const {
  const StreamDescription& about = stream.description;
  std::vector<CoreLoss> losses;
  const auto add = [&](const Loss& loss) {
    if (!IsInWindow(loss, *stream.clock, facts_.window_start_ns, facts_.window_end_ns)) return;
    CoreLoss& added = losses.emplace_back();
    added.events = loss.events;
    added.is_unknown = loss.events_unknown;
    if (loss.first_timestamp_ns == 0 || loss.last_timestamp_ns == 0) return;
    added.begin_ns = stream.clock->ToReference(loss.first_timestamp_ns);
    added.end_ns = std::max(added.begin_ns, stream.clock->ToReference(loss.last_timestamp_ns));
  };
  for (const Loss& sum : about.losses) {
    uint64_t in_gaps = 0;
    const auto is_same = [&](const Loss& gap) {
      return gap.place == sum.place && gap.reason == sum.reason;
    };
    for (const Loss& gap : about.gaps) in_gaps += is_same(gap) ? gap.events : 0;
    if (sum.events_unknown || in_gaps < sum.events) {
      add(sum);
      continue;
    }
    for (const Loss& gap : about.gaps) {
      if (is_same(gap)) add(gap);
    }
  }
  for (const Suspension& suspension : about.suspensions) {
    add({.events_unknown = true,
         .first_timestamp_ns = suspension.begin_ns,
         .last_timestamp_ns = suspension.end_ns});
  }
  return losses;
}

std::vector<std::string> InsightFeed::Warnings() const {
  std::vector<std::string> warnings;
  const auto mixed = std::ranges::count_if(
      device_times_, [](const auto& counts) { return counts.first > 0 && counts.second > 0; });
  if (mixed > 0) {
    warnings.push_back(fmt::format(
        "why: {} cores have device times with and without a model of the device's clock; segments "
        "between them can be wrong by the difference (neurontrace clocks --capture ID)",
        mixed));
  }
  if (start_lost_ > 0) {
    warnings.push_back(
        fmt::format("why: {} spans were not used because their start is missing", start_lost_));
  }
  if (without_length_ > 0) {
    warnings.push_back(fmt::format("why: {} spans were not used because their length is impossible",
                                   without_length_));
  }
  if (released_early_ > 0) {
    warnings.push_back(
        fmt::format("why: {} events came out of order because more than {} overlapped; choose a "
                    "shorter window",
                    released_early_, held_max_));
  }
  return warnings;
}

}  // namespace neurontrace
