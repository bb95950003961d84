// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/capture_insight.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "aggregator/export/exporter.h"
#include "aggregator/insight/timeline_insight.h"
#include "aggregator/operator/insight_message.h"
#include "aggregator/timeline/store_chunk_source.h"
#include "aggregator/view/selected_streams.h"
#include "aggregator/view/verdict_annotations.h"
#include "lib/base/clean_text.h"
#include "lib/base/status.h"
#include "lib/base/time_units.h"

namespace neurontrace {
namespace {

// Jobs that an error lists, and bytes of a job's name in it.
constexpr size_t kJobsListed = 16;
constexpr size_t kJobBytesShown = 128;

// Passes a reading to the rule: an exporter without a file.
class InsightReading final : public Exporter {
 public:
  InsightReading(InsightFeed::Facts facts, ExportedCapture capture)
      : facts_(std::move(facts)), capture_(std::move(capture)) {}

  absl::Status Begin(const TimelineHeader& header) override {
    insight_.emplace(header.streams, fields_, facts_);
    for (const EarlierPreparation& earlier : header.earlier) {
      insight_->RecordPreparation(earlier.stream, earlier.exec_id, earlier.start_ns,
                                  earlier.model_name);
    }
    return absl::OkStatus();
  }
  absl::Status Write(const TimelineBatch& batch) override {
    insight_->Take(batch);
    return absl::OkStatus();
  }
  absl::Status Finish(ExportSummary& summary) override {
    report_ = ToMessage(insight_->Finish(), insight_->cores(), capture_);
    std::ranges::move(insight_->Warnings(), std::back_inserter(summary.warnings));
    return absl::OkStatus();
  }
  uint64_t bytes_written() const override { return 0; }

  // Valid after Finish.
  v1::InsightReport TakeReport() { return std::move(report_); }

 private:
  const InsightFeed::Facts facts_;
  const ExportedCapture capture_;
  ShapeFieldTable fields_;
  std::optional<TimelineInsight> insight_;
  v1::InsightReport report_;
};

// Returns the numbers of the streams of cores of this job; empty: of all jobs.
absl::StatusOr<std::vector<uint32_t>> CoreStreams(const CaptureDescription& capture,
                                                  const std::string& job) {
  std::vector<uint32_t> numbers;
  std::set<std::string> jobs;
  for (const StreamDescription& stream : capture.streams) {
    if (!stream.identity.has_core()) continue;
    if (!stream.job.empty()) jobs.insert(CleanText(stream.job, kJobBytesShown));
    if (job.empty() || stream.job == job) numbers.push_back(stream.number);
  }
  if (!numbers.empty() || job.empty()) return numbers;
  std::vector<std::string> listed(jobs.begin(), jobs.end());
  if (listed.size() > kJobsListed) {
    listed.resize(kJobsListed);
    listed.push_back("…");
  }
  return NotFound("job: the capture has no core of a job '{}' (it has {})",
                  CleanText(job, kJobBytesShown),
                  listed.empty() ? "none with a name" : fmt::format("{}", fmt::join(listed, ", ")));
}

// Returns why no core has an event between these reference times.
std::string DescribeEmptyWindow(const CaptureLayout& layout, uint64_t from_ns, uint64_t to_ns) {
  if (layout.end_ns() == 0) {
    return "the capture has no events: `neurontrace captures show` has the state of its workers";
  }
  if (from_ns <= layout.end_ns() && to_ns > layout.begin_ns()) {
    return "the window has no events of a core; choose another window";
  }
  return fmt::format(
      "the window is outside of the capture, which has events for {:.1f} s after its first one; "
      "choose a window in that time",
      static_cast<double>(SubtractSaturating(layout.end_ns(), layout.first_event_ns())) /
          kNsPerSecond);
}

}  // namespace

// The reference time is that of this aggregator's machine, so that "before now" needs no other
// clock. A request without edges is about all events.
absl::StatusOr<CaptureInsight::Window> CaptureInsight::WindowOf(const v1::ExplainRequest& request,
                                                                const CaptureLayout& layout) const {
  Window window;
  if (request.is_before_now()) {
    const uint64_t now_ns = deps_.clock.RealtimeNs();
    if (request.begin_ns() != 0) window.from_ns = SubtractSaturating(now_ns, request.begin_ns());
    window.to_ns = SubtractSaturating(now_ns, request.end_ns());
  } else {
    window.from_ns = AddSaturating(request.begin_ns(),
                                   request.begin_is_relative() ? layout.first_event_ns() : 0);
    if (request.end_ns() != 0) {
      window.to_ns =
          AddSaturating(request.end_ns(), request.end_is_relative() ? layout.first_event_ns() : 0);
    }
  }
  if (window.to_ns <= window.from_ns) {
    return InvalidArgument("end_ns: {} is not later than begin_ns, {}", window.to_ns,
                           window.from_ns);
  }
  return window;
}

absl::StatusOr<v1::InsightReport> CaptureInsight::Explain(const CaptureRecord& record,
                                                          const v1::ExplainRequest& request,
                                                          ExplainObserver* observer) {
  StoreChunkSource stored(deps_.store.OpenSnapshot(record.id), record);
  ASSIGN_OR_RETURN(CaptureDescription capture, stored.Describe());
  ASSIGN_OR_RETURN(CaptureClocks clocks, deps_.clocks.ForCapture(record));
  const CaptureLayout layout = CaptureLayout::Make(record, std::move(capture), std::move(clocks));
  ASSIGN_OR_RETURN(const Window window, WindowOf(request, layout));
  ASSIGN_OR_RETURN(const std::vector<uint32_t> numbers,
                   CoreStreams(layout.capture(), request.job()));
  // Every event of the window counts, so no number of chunks is too many.
  SelectedStreams source(stored, layout.capture(), numbers, UINT64_MAX);
  ExportRequest reading;
  reading.clocks = &layout.clocks();
  reading.no_flows = true;
  reading.filter.window_start_ns = window.from_ns;
  reading.filter.window_end_ns = window.to_ns;
  ASSIGN_OR_RETURN(reading.filter.event_types, EventFilter::Parse(InsightFeed::EventTypes()));
  InsightReading insight({.window_start_ns = window.from_ns, .window_end_ns = window.to_ns},
                         {.id = record.id.ToString(),
                          .first_event_ns = layout.is_live() ? 0 : layout.first_event_ns()});
  const auto summary = RunExporter(
      source, insight, reading, /*takes_host_samples=*/false, [&](const ExportProgress& progress) {
        return observer == nullptr || observer->OnRead(progress.chunks_read, progress.chunks_total);
      });
  if (!summary.ok()) return summary.status();
  v1::InsightReport report = insight.TakeReport();
  report.set_begin_ns(std::max(
      window.from_ns, layout.first_event_ns() == 0 ? layout.begin_ns() : layout.first_event_ns()));
  report.set_end_ns(std::max(report.begin_ns(), std::min(window.to_ns, layout.end_ns())));
  // There is no core to refuse.
  if (report.cores() == 0) {
    report.add_warnings(DescribeEmptyWindow(layout, window.from_ns, window.to_ns));
  }
  for (const std::string& warning : summary->warnings) report.add_warnings(warning);
  if (summary->counts.unreadable_chunks > 0) {
    report.add_warnings(
        fmt::format("{} of {} chunks could not be read: their events are missing here",
                    summary->counts.unreadable_chunks, summary->counts.chunks_total));
  }
  if (layout.is_live()) {
    report.add_warnings("the capture still runs: this is the answer for what is stored so far");
  }
  RETURN_IF_ERROR(DescribeAnnotations(stored, layout, observer, report));
  return report;
}

}  // namespace neurontrace
