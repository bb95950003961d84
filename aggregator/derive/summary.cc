// SPDX-License-Identifier: Apache-2.0
#include "aggregator/derive/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/string_view.h"
#include "aggregator/derive/shape_fields.h"
#include "aggregator/derive/summary_rows.h"
#include "lib/trace/suspension.h"

namespace neurontrace {
namespace {

// One pass over the timeline: Parts holds a finder for each kind of thing (executions, steps,
// collectives, memory, transfers) and a table for each figure. A batch passes through the finders,
// what they return passes through the tables, and nothing of the batch is kept. The figures are
// defined in docs/formats/derived.md and tested in summary_test.cc.

// 16 bins for each power of two, see DurationSketch.
constexpr int kSubBits = 4;
constexpr uint64_t kSubBins = 1u << kSubBits;

// The bins of a floating-point number with four bits of mantissa, as in HdrHistogram: a bin's
// number is exponent and mantissa, so that numbers ascend with values.
uint16_t BinOf(uint64_t value) {
  if (value < kSubBins) return static_cast<uint16_t>(value);
  const int exponent = std::bit_width(value) - 1 - kSubBits;
  return static_cast<uint16_t>((static_cast<uint64_t>(exponent) << kSubBits) + (value >> exponent));
}

// Returns the middle of a bin.
uint64_t ValueOf(uint16_t bin) {
  if (bin < 2 * kSubBins) return bin;
  const int exponent = (bin >> kSubBits) - 1;
  const uint64_t low = (kSubBins + (bin & (kSubBins - 1))) << exponent;
  return low + ((uint64_t{1} << exponent) - 1) / 2;
}

// Sums saturate: hostile lengths must not wrap around to small figures.
uint64_t Plus(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

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
    sums.back().odd += row.odd;
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
  uint64_t odd = 0;
  for (const DurationRow& row : summary.event_types) odd += row.odd;
  Warn(odd,
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
       "skew and have no straggler)",
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

// Most values fall into the bin of the value before, so that bin is tried first.
void DurationSketch::AddTo(uint16_t bin, uint64_t count) {
  if (latest_ < bins_.size() && bins_[latest_].number == bin) {
    bins_[latest_].count += count;
    return;
  }
  // A sorted vector: real sketches have a few dozen bins, and iterating in order gives quantiles.
  const auto at = std::lower_bound(bins_.begin(), bins_.end(), bin,
                                   [](const Bin& b, uint16_t number) { return b.number < number; });
  latest_ = static_cast<size_t>(at - bins_.begin());
  if (at != bins_.end() && at->number == bin) {
    at->count += count;
  } else {
    bins_.insert(at, {bin, count});
  }
}

void DurationSketch::Add(uint64_t duration_ns) {
  ++count_;
  sum_ns_ = Plus(sum_ns_, duration_ns);
  min_ns_ = std::min(min_ns_, duration_ns);
  max_ns_ = std::max(max_ns_, duration_ns);
  AddTo(BinOf(duration_ns), 1);
}

// Bins are added one by one, as the other sketch may use other bins.
void DurationSketch::Merge(const DurationSketch& other) {
  count_ += other.count_;
  sum_ns_ = Plus(sum_ns_, other.sum_ns_);
  min_ns_ = std::min(min_ns_, other.min_ns_);
  max_ns_ = std::max(max_ns_, other.max_ns_);
  for (const Bin& bin : other.bins_) AddTo(bin.number, bin.count);
}

uint64_t DurationSketch::QuantileNs(double q) const {
  if (count_ == 0) return 0;
  // The nearest-rank definition: a quantile is always a value that occurred, apart from its bin's
  // width.
  const double wanted = std::ceil(std::clamp(q, 0.0, 1.0) * static_cast<double>(count_));
  const uint64_t rank = std::clamp<uint64_t>(static_cast<uint64_t>(wanted), 1, count_);
  // The maximum is known exactly, the last bin's middle is not.
  if (rank == count_) return max_ns_;
  uint64_t seen = 0;
  for (const Bin& bin : bins_) {
    seen += bin.count;
    if (seen >= rank) return std::clamp(ValueOf(bin.number), min_ns_, max_ns_);
  }
  return max_ns_;
}

// Each member waited from its own arrival to the last one.
void Stragglers::Add(const Collective& collective) {
  // If its members cannot have met, nobody waited for the last one.
  if (collective.members.size() < 2 || collective.is_disjoint()) return;
  for (const CollectiveMember& member : collective.members) {
    StragglerRow& row = rows_[member.stream];
    ++row.collectives;
    row.waits.Add(collective.last_arrival_ns() - member.start_ns);
  }
  StragglerRow& last = rows_[collective.last().stream];
  ++last.last;
  if (!collective.is_last_known()) return;
  ++last.last_known;
  last.lateness.Add(collective.lateness_ns());
  const auto bound_ns = collective.lateness_bound_ns();
  if (!bound_ns) ++last.lateness_unbounded;
  last.lateness_bound_max_ns = std::max(last.lateness_bound_max_ns, bound_ns.value_or(0));
}

std::vector<StragglerRow> Stragglers::Finish(std::span<const uint64_t> absences) {
  // Numbers the rows, which is only needed in the result.
  for (size_t i = 0; i < rows_.size(); ++i) {
    rows_[i].stream = static_cast<uint32_t>(i);
    if (i < absences.size()) rows_[i].absent = absences[i];
  }
  std::erase_if(rows_, [](const StragglerRow& r) { return r.collectives == 0 && r.absent == 0; });
  // By the time that the others lost, rather than by how often the core was last.
  std::stable_sort(rows_.begin(), rows_.end(), [](const StragglerRow& a, const StragglerRow& b) {
    return a.lateness.sum_ns() > b.lateness.sum_ns();
  });
  return std::move(rows_);
}

// Types are numbered from 1, and 1 is kOther, so that 0 can mean "not looked up yet".
uint32_t DurationStats::TypeOf(const SharedShape& shape) {
  const bool is_kept = shape.number < ShapeFieldTable::kShapesMax;
  // Avoids hashing the name for each event.
  if (is_kept && shape.number < type_of_shape_.size() && type_of_shape_[shape.number] != 0) {
    return type_of_shape_[shape.number];
  }
  if (types_.empty()) types_.emplace(kOther, 1);
  const std::string_view name = shape.shape.event_type;
  const auto known = types_.find(absl::string_view(name.data(), name.size()));
  uint32_t type = 1;
  if (known != types_.end()) {
    type = known->second;
  } else if (types_.size() < kTypesMax) {
    type = static_cast<uint32_t>(types_.size() + 1);
    types_.emplace(name, type);
  }
  if (is_kept) {
    if (shape.number >= type_of_shape_.size()) type_of_shape_.resize(shape.number + 1);
    type_of_shape_[shape.number] = type;
  }
  return type;
}

// Rows are made on first use, for each stream and type.
DurationRow& DurationStats::RowOf(const TimelineRecord& record) {
  // Several shapes may have one type.
  const uint32_t type = TypeOf(*record.shape);
  if (rows_.empty()) rows_.push_back({.event_type = kOther, .stream = kOtherStream});
  if (record.stream >= row_of_.size()) row_of_.resize(record.stream + 1);
  auto& rows = row_of_[record.stream];
  if (type >= rows.size()) rows.resize(type + 1);
  uint32_t& row = rows[type];
  if (row == 0 && rows_.size() < kRowsMax) {
    rows_.push_back({.event_type = type == 1 ? std::string(kOther)
                                             : std::string(record.shape->shape.event_type),
                     .stream = record.stream});
    row = static_cast<uint32_t>(rows_.size());
  }
  // Rows are numbered from 1 for the same reason as types; row 0 is the common one for all beyond
  // kRowsMax.
  if (type == 1 || row == 0) ++overflow_;
  return row == 0 ? rows_.front() : rows_[row - 1];
}

// Only whole spans have a duration; the others are counted by what they lack.
void DurationStats::Take(const TimelineBatch& batch) {
  for (const TimelineRecord* record : batch.records) {
    switch (record->kind) {
      case RecordKind::kSpan: {
        DurationRow& row = RowOf(*record);
        if ((record->flags & kOpen) != 0) {
          ++row.open;
        } else if ((record->flags & kStartLost) != 0) {
          ++row.start_lost;
        } else if ((record->flags & kOddLength) != 0) {
          ++row.odd;
        } else {
          row.spans.Add(record->end_ns - record->start_ns);
        }
        break;
      }
      case RecordKind::kInstant:
      case RecordKind::kOther:
        ++RowOf(*record).instants;
        break;
      case RecordKind::kFlowStart:
      case RecordKind::kFlowStep:
      case RecordKind::kFlowEnd:
      case RecordKind::kCounter:
      case RecordKind::kStopAttributes:
        break;
    }
  }
}

// The common row of the limits is removed if nothing is in it.
std::vector<DurationRow> DurationStats::Finish() {
  std::erase_if(rows_, [](const DurationRow& row) { return row.count() == 0; });
  std::sort(rows_.begin(), rows_.end(), [](const DurationRow& a, const DurationRow& b) {
    return std::tie(a.event_type, a.stream) < std::tie(b.event_type, b.stream);
  });
  return std::move(rows_);
}

BusyShareSums::BusyShareSums(size_t streams, uint64_t window_start_ns, uint64_t window_end_ns)
    : window_start_ns_(window_start_ns),
      window_end_ns_(window_end_ns),
      device_(streams),
      runtime_(streams) {}

// An execution may reach out of the window or come after later ones (see kIntervalsMax).
void BusyShareSums::Add(const Execution& execution) {
  Sum& sum = (execution.source == ExecutionSource::kDevice ? device_ : runtime_)[execution.stream];
  sum.share.stream = execution.stream;
  sum.share.source = execution.source;
  ++sum.share.executions;
  // It is not known how much of the time it ran.
  if (execution.is_open) {
    ++sum.share.open;
    return;
  }
  Interval interval{std::max(execution.start_ns, window_start_ns_),
                    std::min(execution.end_ns, window_end_ns_)};
  if (interval.start_ns >= interval.end_ns) return;
  // What lies before cannot be compared with the intervals there any more.
  if (interval.start_ns < sum.summed_until_ns) {
    ++sum.share.joined_late;
    interval.start_ns = std::min(sum.summed_until_ns, interval.end_ns);
  }
  Hold(interval, sum);
  while (sum.held.size() > kIntervalsMax) SumFirst(sum);
}

// Merges the interval into the held ones. Most executions come nearly in the order of their starts,
// so the search begins at the end.
void BusyShareSums::Hold(Interval interval, Sum& sum) {
  auto& held = sum.held;
  auto end = held.end();
  while (end != held.begin() && std::prev(end)->start_ns > interval.end_ns) --end;
  auto begin = end;
  while (begin != held.begin() && std::prev(begin)->end_ns >= interval.start_ns) {
    --begin;
    interval.start_ns = std::min(interval.start_ns, begin->start_ns);
    interval.end_ns = std::max(interval.end_ns, begin->end_ns);
  }
  if (begin == end) {
    held.insert(begin, interval);
    return;
  }
  *begin = interval;
  held.erase(std::next(begin), end);
}

// Nothing may be merged with it afterwards; summed_until_ns remembers where it ended.
void BusyShareSums::SumFirst(Sum& sum) {
  const Interval first = sum.held.front();
  sum.held.erase(sum.held.begin());
  sum.share.busy_ns += first.end_ns - first.start_ns;
  sum.summed_until_ns = first.end_ns;
}

// The host's calls count only if the device reported nothing.
std::vector<BusyShare> BusyShareSums::Finish() {
  std::vector<BusyShare> shares;
  for (size_t i = 0; i < device_.size(); ++i) {
    Sum& sum = device_[i].share.executions > 0 ? device_[i] : runtime_[i];
    if (sum.share.executions == 0) continue;
    while (!sum.held.empty()) SumFirst(sum);
    shares.push_back(sum.share);
  }
  return shares;
}

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
        stragglers(streams.size()),
        hbm(streams, fields),
        bandwidth(fields, options.bandwidth_bin_ns),
        execution_rows(options.slowest_max),
        communicator_rows(options.worst_collectives_max) {
    for (const TimelineStream& stream : streams) {
      has_own_time.push_back(stream.description.has_own_time());
    }
  }

  // Extends the range of times that the summary covers.
  void NoteTimes(const TimelineBatch& batch);
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
  Stragglers stragglers;
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
void CaptureSummaryBuilder::Parts::NoteTimes(const TimelineBatch& batch) {
  for (const TimelineRecord* record : batch.records) {
    if (has_own_time[record->stream]) continue;
    // Spans that reach into the window count from its begin, or shares of the window would exceed
    // 100 %.
    begin_ns = std::min(begin_ns, std::max(record->start_ns, window_start_ns));
    end_ns = std::max(end_ns, std::min(record->end_ns, window_end_ns));
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
    stragglers.Add(collective);
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

void CaptureSummaryBuilder::NotePreparation(uint32_t stream, uint64_t exec_id, uint64_t start_ns,
                                            std::string_view model_name) {
  parts_->executions.NotePreparation(stream, exec_id, start_ns, model_name);
}

// Steps follow executions, because they count them.
void CaptureSummaryBuilder::Take(const TimelineBatch& batch) {
  Parts& parts = *parts_;
  parts.NoteTimes(batch);
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
  summary.stragglers = parts.stragglers.Finish(parts.collectives.absences());
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
