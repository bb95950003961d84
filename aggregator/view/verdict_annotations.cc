// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/verdict_annotations.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "aggregator/derive/shape_fields.h"
#include "aggregator/derive/steps.h"
#include "aggregator/export/exporter.h"
#include "aggregator/insight/verdict_text.h"
#include "aggregator/view/selected_streams.h"
#include "lib/base/clean_text.h"
#include "lib/base/time_units.h"

namespace neurontrace {
namespace {

// Distinct names of ranges that one reading compares. Ranges with further names are left out.
constexpr size_t kNamesMax = 4'096;
// Ranges that are open in one thread at a time. The outermost of more count with those inside.
constexpr size_t kNestedMax = 256;
// Threads of all workers. Ranges of further ones are left out.
constexpr size_t kThreadsMax = 65'536;
// Chunks that are read for one verdict.
constexpr uint64_t kChunksMax = 4'096;
constexpr size_t kNameBytesShown = 80;

// Instance and process id, as a verdict names a worker.
using Worker = std::pair<std::string, uint64_t>;

bool ConcernsHostCode(v1::VerdictKind kind) {
  switch (kind) {
    case v1::VERDICT_KIND_SLOW_HOST:
    case v1::VERDICT_KIND_SLOW_PROCESS:
    case v1::VERDICT_KIND_INPUT_STALL:
    case v1::VERDICT_KIND_MEMORY_STALL:
    case v1::VERDICT_KIND_HOST_CODE:
      return true;
    default:
      return false;
  }
}

// The own time of annotated ranges in a window, by worker and name. An exporter without a file.
class AnnotatedTimes final : public Exporter {
 public:
  AnnotatedTimes(uint64_t from_ns, uint64_t to_ns) : from_ns_(from_ns), to_ns_(to_ns) {}

  absl::Status Begin(const TimelineHeader& header) override {
    streams_ = header.streams;
    return absl::OkStatus();
  }
  absl::Status Write(const TimelineBatch& batch) override {
    for (const TimelineRecord* record : batch.records) Take(*record);
    return absl::OkStatus();
  }
  absl::Status Finish(ExportSummary&) override {
    for (auto& [thread, open] : open_) Close(open, UINT64_MAX, UINT64_MAX);
    return absl::OkStatus();
  }
  bool reads_before_window() const override { return false; }
  uint64_t bytes_written() const override { return 0; }

  // By name, of one worker. Valid after Finish.
  using Times = std::map<std::string, uint64_t, std::less<>>;
  const std::map<Worker, Times>& times() const { return times_; }
  uint64_t ranges_left_out() const { return ranges_left_out_; }

 private:
  struct Open {
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
    uint64_t inside_ns = 0;  // of ranges directly inside
    uint64_t* own_ns = nullptr;
  };

  void Take(const TimelineRecord& record) {
    if (record.kind != RecordKind::kSpan) return;
    if ((record.flags & (kStartLost | kInvalidLength)) != 0) return;
    const uint64_t start_ns = std::max(record.start_ns, from_ns_);
    const uint64_t end_ns = std::min(record.end_ns, to_ns_);
    if (end_ns <= start_ns) return;
    const StreamIdentity& identity = streams_[record.stream].description.identity;
    const ShapeFields& fields = fields_.Of(*record.shape);
    std::string_view name = StartText(record, fields, DerivedField::kName);
    // Each step has a name of its own.
    const auto payload = StartNumber(record, fields, DerivedField::kPayload);
    if (AnnotatedStepNumber(name, record.start().event_type, payload)) name = "step";
    const std::pair thread(record.stream, record.thread_id);
    Times& times = times_[Worker(identity.worker.instance_id, identity.worker.pid)];
    auto total = times.find(name);
    const bool is_new = total == times.end();
    if ((is_new && names_ == kNamesMax) ||
        (open_.size() == kThreadsMax && !open_.contains(thread))) {
      ++ranges_left_out_;
      return;
    }
    if (is_new) {
      ++names_;
      total = times.emplace(std::string(name), uint64_t{0}).first;
    }
    std::vector<Open>& open = open_[thread];
    Close(open, start_ns, end_ns);
    if (!open.empty()) open.back().inside_ns += end_ns - start_ns;
    if (open.size() == kNestedMax) {
      total->second += end_ns - start_ns;
      return;
    }
    open.push_back({start_ns, end_ns, 0, &total->second});
  }

  // Adds up the ranges that do not contain [start_ns, end_ns), which begins after all of them.
  static void Close(std::vector<Open>& open, uint64_t start_ns, uint64_t end_ns) {
    while (!open.empty() && (open.back().end_ns <= start_ns || open.back().end_ns < end_ns)) {
      const Open& last = open.back();
      *last.own_ns += SubtractSaturating(last.end_ns - last.start_ns, last.inside_ns);
      open.pop_back();
    }
  }

  const uint64_t from_ns_;
  const uint64_t to_ns_;
  std::span<const TimelineStream> streams_;
  ShapeFieldTable fields_;
  std::map<Worker, Times> times_;  // Open points into it
  size_t names_ = 0;               // over all workers
  uint64_t ranges_left_out_ = 0;
  absl::flat_hash_map<std::pair<uint32_t, uint64_t>, std::vector<Open>> open_;  // stream, thread
};

// The streams that are read for a verdict.
struct Selection {
  std::vector<uint32_t> streams;  // numbers
  std::set<Worker> suspects;      // those that annotate
  size_t peers = 0;
};

Selection SelectStreams(const CaptureLayout& layout, const v1::Verdict& verdict) {
  std::set<Worker> suspects;
  std::set<std::string> jobs;
  for (const v1::InsightCore& core : verdict.suspects()) {
    suspects.emplace(core.instance_id(), core.pid());
    jobs.insert(core.job());
  }
  std::set<Worker> of_job;
  for (const StreamDescription& stream : layout.capture().streams) {
    const WorkerIdentity& worker = stream.identity.worker;
    // A verdict's job has a name even where the stream has none, see InsightFeed.
    if (stream.identity.has_core() && (stream.job.empty() || jobs.contains(stream.job))) {
      of_job.emplace(worker.instance_id, worker.pid);
    }
  }
  Selection selection;
  for (const StreamDescription& stream : layout.capture().streams) {
    if (stream.identity.kind != StreamKind::kAnnotation) continue;
    const Worker worker(stream.identity.worker.instance_id, stream.identity.worker.pid);
    if (suspects.contains(worker)) {
      if (selection.suspects.size() == kAnnotatedSuspectsMax) continue;
      selection.suspects.insert(worker);
    } else {
      if (!of_job.contains(worker) || selection.peers == kAnnotatedPeersMax) continue;
      ++selection.peers;
    }
    selection.streams.push_back(stream.number);
  }
  return selection;
}

// Returns the sentence about a verdict. `cost_ns` is that of its whole time.
std::string DescribeExcess(const AnnotatedTimes& read, const Selection& selection,
                           uint64_t cost_ns) {
  struct Sums {
    uint64_t suspects_ns = 0;
    std::vector<uint64_t> peers_ns;  // of those that have the name
  };
  std::map<std::string_view, Sums> by_name;
  for (const auto& [worker, times] : read.times()) {
    const bool is_suspect = selection.suspects.contains(worker);
    for (const auto& [name, own_ns] : times) {
      Sums& sums = by_name[name];
      if (is_suspect) {
        sums.suspects_ns += own_ns;
      } else {
        sums.peers_ns.push_back(own_ns);
      }
    }
  }
  std::string_view most_name;
  uint64_t most_ns = 0;
  uint64_t most_excess_ns = 0;
  uint64_t most_median_ns = 0;
  for (auto& [name, sums] : by_name) {
    const uint64_t mean_ns = sums.suspects_ns / selection.suspects.size();
    // A peer without the name spends no time in it.
    sums.peers_ns.resize(selection.peers);
    const auto middle = sums.peers_ns.begin() + static_cast<ptrdiff_t>(selection.peers / 2);
    std::ranges::nth_element(sums.peers_ns, middle);
    const uint64_t excess_ns = SubtractSaturating(mean_ns, *middle);
    if (excess_ns <= most_excess_ns) continue;
    most_name = name;
    most_ns = mean_ns;
    most_excess_ns = excess_ns;
    most_median_ns = *middle;
  }
  if (most_excess_ns == 0 || most_excess_ns < cost_ns / 2) {
    return fmt::format("no annotated range has half of it, compared with {} workers",
                       selection.peers);
  }
  return fmt::format("in the annotated range '{}': {}, and {} at the median of {} workers",
                     CleanText(most_name, kNameBytesShown), ShortDuration(most_ns),
                     ShortDuration(most_median_ns), selection.peers);
}

}  // namespace

absl::Status DescribeAnnotations(ChunkSource& source, const CaptureLayout& layout,
                                 ExplainObserver* observer, v1::InsightReport& report) {
  size_t described = 0;
  uint64_t left_out = 0;
  uint64_t chunks_refused = 0;
  for (v1::Verdict& verdict : *report.mutable_verdicts()) {
    if (!ConcernsHostCode(verdict.kind()) || verdict.until_ns() <= verdict.since_ns()) continue;
    const Selection selection = SelectStreams(layout, verdict);
    if (selection.suspects.empty() || selection.peers < kAnnotatedPeersMin) continue;
    if (described++ == kAnnotatedVerdictsMax) break;
    SelectedStreams selected(source, layout.capture(), selection.streams, kChunksMax);
    ExportRequest reading;
    reading.clocks = &layout.clocks();
    reading.no_flows = true;
    reading.filter.window_start_ns = verdict.since_ns();
    reading.filter.window_end_ns = verdict.until_ns();
    AnnotatedTimes times(verdict.since_ns(), verdict.until_ns());
    const auto summary =
        RunExporter(selected, times, reading, /*takes_host_samples=*/false,
                    [&](const ExportProgress& progress) {
                      // The window itself has been read: progress stays complete.
                      return observer == nullptr ||
                             observer->OnRead(progress.chunks_total, progress.chunks_total);
                    });
    if (!summary.ok()) return summary.status();
    left_out += times.ranges_left_out();
    chunks_refused += selected.chunks_refused();
    const uint64_t cost_ns =
        verdict.total_cost_ns() != 0 ? verdict.total_cost_ns() : verdict.cost_ns();
    verdict.set_annotation(DescribeExcess(times, selection, cost_ns));
  }
  if (left_out > 0) {
    report.add_warnings(fmt::format(
        "why: {} annotated ranges were not compared, as there are more than {} names or "
        "{} threads",
        left_out, kNamesMax, kThreadsMax));
  }
  if (chunks_refused > 0) {
    report.add_warnings(
        fmt::format("why: {} chunks of annotations were not compared; choose a shorter window",
                    chunks_refused));
  }
  return absl::OkStatus();
}

}  // namespace neurontrace
