// SPDX-License-Identifier: Apache-2.0
#include "aggregator/derive/capture_summary_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "aggregator/derive/arrivals.h"
#include "aggregator/derive/busy_share_sums.h"
#include "aggregator/derive/collectives.h"
#include "aggregator/derive/duration_stats.h"
#include "aggregator/derive/executions.h"
#include "aggregator/derive/memory_use.h"
#include "aggregator/derive/shape_fields.h"
#include "aggregator/derive/steps.h"
#include "aggregator/derive/summary_rows.h"
#include "aggregator/timeline/timeline_record.h"
#include "lib/trace/ids.h"
#include "lib/trace/loss.h"
#include "lib/trace/suspension.h"

namespace neurontrace {
namespace {

// One pass over the timeline: Parts holds a finder for each kind of thing (executions, steps,
// collectives, memory, transfers) and a table for each figure. A batch passes through the finders,
// what they return passes through the tables, and nothing of the batch is kept. The figures are
// defined in docs/formats/derived.md and tested in capture_summary_builder_test.cc.

// Returns the largest error bound of the stream's stamps; nullopt if any of them has none.
// Considers only pieces of the map that the stamps fall into.
std::optional<uint64_t> ClockBoundOf(const TimelineStream& stream) {
  uint64_t largest_ns = 0;
  const StreamDescription& about = stream.description;
  const auto pieces = stream.clock->pieces();
  for (size_t i = 0; i < pieces.size(); ++i) {
    const bool is_before =
        i + 1 < pieces.size() && pieces[i + 1].raw_begin_ns <= about.first_timestamp_ns;
    if (is_before || (i > 0 && pieces[i].raw_begin_ns > about.last_timestamp_ns)) continue;
    if (!pieces[i].error_bound_ns) return std::nullopt;
    largest_ns = std::max(largest_ns, *pieces[i].error_bound_ns);
  }
  return largest_ns;
}

// Returns what a summary shows of a stream. Losses without a number are only flagged.
SummaryStream SummaryOf(const TimelineStream& stream) {
  SummaryStream summary{.identity = stream.description.identity,
                        .worker_gid = stream.rank.worker_gid,
                        .rank_label = stream.rank.label,
                        .events = stream.description.events,
                        .clock_bound_ns = ClockBoundOf(stream)};
  for (const Loss& loss : stream.description.losses) {
    summary.lost =
        loss.events > UINT64_MAX - summary.lost ? UINT64_MAX : summary.lost + loss.events;
    summary.lost_unknown |= loss.events_unknown;
  }
  return summary;
}

// Fills in the streams, their numbers and the losses of all of them.
void DescribeStreams(std::span<const TimelineStream> streams, CaptureSummary& summary) {
  std::set<std::string_view> instances;
  std::set<WorkerIdentity> workers;
  for (const TimelineStream& stream : streams) {
    const StreamIdentity& identity = stream.description.identity;
    summary.streams.push_back(SummaryOf(stream));
    instances.insert(identity.worker.instance_id);
    if (identity.kind == StreamKind::kNeuronCore) workers.insert(identity.worker);
    if (identity.has_core()) ++summary.cores;
    for (const Loss& loss : stream.description.losses) AddLoss(loss, summary.losses);
    for (const Suspension& suspension : stream.description.suspensions) {
      AddLoss(ShownAmongLosses(suspension), summary.losses);
    }
  }
  summary.instances = instances.size();
  summary.workers = workers.size();
}

// Returns one row for each event type. Requires rows sorted by event type.
std::vector<DurationRow> SumOverStreams(const std::vector<DurationRow>& rows) {
  std::vector<DurationRow> sums;
  for (const DurationRow& row : rows) {
    if (sums.empty() || sums.back().event_type != row.event_type) {
      sums.push_back({.event_type = row.event_type, .stream = DurationStats::kOtherStream});
    }
    sums.back().spans.Merge(row.spans);
    sums.back().open += row.open;
    sums.back().start_lost += row.start_lost;
    sums.back().anomalous += row.anomalous;
    sums.back().instants += row.instants;
  }
  return sums;
}

// Adds "WORDS: COUNT" unless the count is 0.
void Warn(uint64_t count, std::string_view words, std::vector<std::string>& warnings) {
  if (count > 0) warnings.push_back(fmt::format("{}: {}", words, count));
}

// Adds a sentence for each limit that was reached and each figure that may be incomplete.
void AddWarnings(CaptureSummary& summary) {
  auto& warnings = summary.warnings;
  Warn(summary.duration_overflow,
       "events counted under \"(other)\" because there are too many event types or workers",
       warnings);
  uint64_t anomalous = 0;
  for (const DurationRow& row : summary.event_types) anomalous += row.anomalous;
  Warn(anomalous,
       "spans with an impossible length (negative, not a number, absent, beyond their file's "
       "times), counted without a length",
       warnings);
  Warn(summary.communicator_overflow, "parts in collectives of communicators beyond the limit",
       warnings);
  Warn(summary.execution_counts.not_joined,
       "executions not joined across physical cores because too many were in progress", warnings);
  Warn(summary.collective_counts.closed_early,
       "collectives that may lack later members because too many were in progress", warnings);
  Warn(summary.collective_counts.not_members,
       "cores never reported as absent from collectives of a communicator because there are too "
       "many cores and communicators",
       warnings);
  Warn(summary.collective_counts.disjoint,
       "collectives whose members cannot have met, so their ids are ambiguous (they count in no "
       "skew and in no arrivals)",
       warnings);
  Warn(summary.step_counts.too_many,
       "framework steps without their executions because there are too many", warnings);
  Warn(summary.step_counts.ambiguous,
       "framework steps without their executions because two workers of their instance have their "
       "process id",
       warnings);
  Warn(summary.step_counts.own_time,
       "framework steps without their executions because the times of their file count from an "
       "unknown moment",
       warnings);
  Warn(summary.hbm_counts.dropped,
       "memory events left out because there are too many memories or events at once", warnings);
  Warn(summary.bandwidth_counts.not_spread,
       "transfers counted in one bin each because they are too long or there are too many bins at "
       "once",
       warnings);
}

}  // namespace

// Finders come before tables: each batch passes through the finders, and their results through the
// tables, so that no figure needs a second reading.
struct CaptureSummaryBuilder::Parts {
  Parts(std::span<const TimelineStream> streams, const TimelineFilter& filter,
        SummaryOptions options)
      : window_start_ns(filter.window_start_ns),
        window_end_ns(filter.window_end_ns),
        executions(streams, fields),
        steps(streams, fields),
        collectives(streams, fields, std::move(options.communicators)),
        busy(streams.size(), filter.window_start_ns, filter.window_end_ns),
        arrivals(streams.size()),
        hbm(streams, fields),
        bandwidth(fields, options.bandwidth_bin_ns),
        execution_rows(options.slowest_max),
        communicator_rows(options.worst_collectives_max) {
    for (const TimelineStream& stream : streams) {
      has_own_time.push_back(stream.description.has_own_time());
    }
  }

  // Extends the range of times that the summary covers.
  void RecordTimes(const TimelineBatch& batch);
  void AddOwnWork(const TimelineBatch& batch);
  void Pass();

  const uint64_t window_start_ns;
  const uint64_t window_end_ns;
  std::vector<bool> has_own_time;  // by stream
  // begin_ns and end_ns are those of the records inside the window.
  uint64_t begin_ns = UINT64_MAX;
  uint64_t end_ns = 0;
  CaptureSummary summary;
  ShapeFieldTable fields;
  ExecutionFinder executions;
  StepFinder steps;
  CollectiveFinder collectives;
  BusyShareSums busy;
  Arrivals arrivals;
  HbmUse hbm;
  Bandwidth bandwidth;
  DurationStats durations;
  ExecutionRows execution_rows;
  StepRows step_rows;
  CommunicatorRows communicator_rows;
  MemoryRows memory_rows;
  BandwidthRows bandwidth_rows;
  // What the finders gave out of the batch at hand.
  std::vector<Execution> new_executions;
  std::vector<Step> new_steps;
  std::vector<Collective> new_collectives;
  std::vector<HbmSample> new_samples;
  std::vector<BandwidthSample> new_bins;
};

// Streams with times of their own do not relate to the others.
void CaptureSummaryBuilder::Parts::RecordTimes(const TimelineBatch& batch) {
  for (const TimelineRecord* record : batch.records) {
    if (has_own_time[record->stream]) continue;
    // Spans that reach into the window count from its begin, or shares of the window would exceed
    // 100 %.
    begin_ns = std::min(begin_ns, std::max(record->start_ns, window_start_ns));
    end_ns = std::max(end_ns, std::min(record->end_ns, window_end_ns));
  }
}

// As the rule that names slow ranks does: what executes on the device, but for its meetings.
void CaptureSummaryBuilder::Parts::AddOwnWork(const TimelineBatch& batch) {
  for (const TimelineRecord* record : batch.records) {
    if (record->kind != RecordKind::kSpan || (record->flags & (kOpen | kStartLost)) != 0) continue;
    switch (fields.Of(*record->shape).type) {
      case DerivedType::kRunning:
        busy.AddRun(record->stream, record->start_ns, record->end_ns);
        break;
      case DerivedType::kCollective:
      case DerivedType::kDeviceBarrier:
        busy.AddMeeting(record->stream, record->start_ns, record->end_ns);
        break;
      default:
        break;
    }
  }
}

// Hands what the finders returned on to the tables.
void CaptureSummaryBuilder::Parts::Pass() {
  for (Execution& execution : new_executions) {
    busy.Add(execution);
    execution_rows.Add(std::move(execution));
  }
  for (const Step& step : new_steps) step_rows.Add(step);
  for (Collective& collective : new_collectives) {
    arrivals.Add(collective);
    communicator_rows.Add(std::move(collective));
  }
  for (const HbmSample& sample : new_samples) memory_rows.Add(sample);
  for (const BandwidthSample& bin : new_bins) bandwidth_rows.Add(bin, bandwidth.bin_ns());
  new_executions.clear();
  new_steps.clear();
  new_collectives.clear();
  new_samples.clear();
  new_bins.clear();
}

CaptureSummaryBuilder::CaptureSummaryBuilder(const CaptureDescription& capture,
                                             std::span<const TimelineStream> streams,
                                             const TimelineFilter& filter, SummaryOptions options)
    : parts_(std::make_unique<Parts>(streams, filter, std::move(options))) {
  parts_->summary.id = capture.id;
  parts_->summary.name = capture.name;
  DescribeStreams(streams, parts_->summary);
}

CaptureSummaryBuilder::~CaptureSummaryBuilder() = default;

void CaptureSummaryBuilder::RecordPreparation(uint32_t stream, uint64_t exec_id, uint64_t start_ns,
                                              std::string_view model_name) {
  parts_->executions.RecordPreparation(stream, exec_id, start_ns, model_name);
}

// Steps follow executions, because they count them.
void CaptureSummaryBuilder::Take(const TimelineBatch& batch) {
  Parts& parts = *parts_;
  parts.RecordTimes(batch);
  parts.AddOwnWork(batch);
  parts.durations.Take(batch);
  parts.executions.Take(batch, parts.new_executions);
  parts.steps.Take(batch, parts.new_executions, parts.new_steps);
  parts.collectives.Take(batch, parts.new_collectives);
  parts.hbm.Take(batch, parts.new_samples);
  parts.bandwidth.Take(batch, parts.new_bins);
  parts.Pass();
}

// Finders finish first and tables last, so that tables see everything.
CaptureSummary CaptureSummaryBuilder::Finish() {
  Parts& parts = *parts_;
  parts.executions.Finish(parts.new_executions);
  // The last executions belong to steps, too: before steps are finished.
  parts.steps.Take({}, parts.new_executions, parts.new_steps);
  parts.steps.Finish(parts.new_steps);
  parts.collectives.Finish(parts.new_collectives);
  parts.hbm.Finish(parts.new_samples);
  parts.bandwidth.Finish(parts.new_bins);
  parts.Pass();
  CaptureSummary summary = std::move(parts.summary);
  if (parts.begin_ns != UINT64_MAX) {
    summary.begin_ns = parts.begin_ns;
    summary.end_ns = std::max(parts.begin_ns, parts.end_ns);
  }
  // Tables move their rows out, so each is finished once.
  summary.durations = parts.durations.Finish();
  summary.event_types = SumOverStreams(summary.durations);
  parts.execution_rows.Finish(summary);
  summary.busy = parts.busy.Finish();
  summary.steps = parts.step_rows.Finish();
  parts.communicator_rows.Finish(parts.collectives.communicators(), summary);
  summary.arrivals = parts.arrivals.Finish(parts.collectives.absences());
  summary.memory = parts.memory_rows.Finish(parts.hbm.memories());
  summary.bandwidth = parts.bandwidth_rows.Finish();
  summary.execution_counts = parts.executions.counts();
  summary.step_counts = parts.steps.counts();
  summary.collective_counts = parts.collectives.counts();
  summary.hbm_counts = parts.hbm.counts();
  summary.bandwidth_counts = parts.bandwidth.counts();
  summary.duration_overflow = parts.durations.overflow();
  summary.communicator_overflow = parts.collectives.communicator_overflow();
  AddWarnings(summary);
  return summary;
}

}  // namespace neurontrace
