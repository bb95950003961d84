// SPDX-License-Identifier: Apache-2.0
#include "aggregator/exports/export_metrics.h"

#include "lib/health/metric_builders.h"
#include "lib/trace/export_traits.h"
#include "lib/wire/export_options.h"

namespace neurontrace {
namespace {

// An export of several formats reports one sum of bytes for all.
constexpr char kSeveral[] = "several";

// Returns the label of the format. "unknown" is that of a request which CheckExportOptions then
// refuses.
std::string FormatLabel(const v1::ExportRequest& request) {
  if (request.more_formats_size() != 0) return kSeveral;
  const ExportTraits* const traits = TraitsOf(request.format());
  return traits == nullptr ? "unknown" : std::string(traits->name());
}

// The values of the label "reason", which docs/operator/metrics.md lists.
constexpr char kCancelled[] = "cancelled";
constexpr char kInvalid[] = "invalid";
constexpr char kNotFound[] = "not_found";
constexpr char kDestination[] = "destination";
constexpr char kStore[] = "store";

// Maps a code to a reason. `delivers` is described at CountFailed.
const char* FailureLabel(absl::StatusCode code, bool delivers) {
  switch (code) {
    case absl::StatusCode::kCancelled:
      return kCancelled;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kUnimplemented:
      return kInvalid;
    // With a destination these codes describe the volume; without one, a limit of the request
    // itself.
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kFailedPrecondition:
      return delivers ? kDestination : kInvalid;
    case absl::StatusCode::kNotFound:
      return delivers ? kDestination : kNotFound;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kDeadlineExceeded:
      return delivers ? kDestination : kStore;
    // What remains, such as DATA_LOSS and INTERNAL, is a fault on the aggregator's side.
    default:
      return kStore;
  }
}

}  // namespace

ExportMetrics::ExportMetrics(prometheus::Registry& registry)
    : begun(MakeCounter(registry, "neurontrace_aggregator_exports_total", "Exports started")),
      refused(MakeCounter(registry, "neurontrace_aggregator_exports_refused_total",
                          "Exports refused because too many were running")),
      unread(MakeCounter(registry, "neurontrace_aggregator_exports_stalled_total",
                         "Exports cancelled because the client stopped reading")),
      running(MakeGauge(registry, "neurontrace_aggregator_exports_running", "Exports in progress")),
      seconds_(MakeHistogram(registry, "neurontrace_aggregator_export_seconds",
                             "Duration of exports, including failed ones",
                             {0.1, 0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3600})),
      bytes_(MakeCounterFamily(registry, "neurontrace_aggregator_export_bytes_total",
                               "Bytes written by exports, by format")),
      failed_(MakeCounterFamily(registry, "neurontrace_aggregator_exports_failed_total",
                                "Exports that failed, by reason")) {
  // All series exist from the start, so that Prometheus sees the first failure as an increase.
  for (const char* const reason : {kCancelled, kInvalid, kNotFound, kDestination, kStore}) {
    failed_.Add({{"reason", reason}});
  }
  for (const ExportTraits& traits : AllExportTraits()) BytesOf(std::string(traits.name()));
  BytesOf(kSeveral);
}

prometheus::Counter& ExportMetrics::BytesOf(const std::string& format) {
  return bytes_.Add({{"format", format}});
}

void ExportMetrics::CountFailed(const absl::Status& status, bool delivers) {
  failed_.Add({{"reason", FailureLabel(status.code(), delivers)}}).Increment();
}

ExportMetrics::Meter::Meter(ExportMetrics& metrics, const Clock& clock,
                            const v1::ExportRequest& request)
    : metrics_(metrics),
      clock_(clock),
      begun_ns_(clock.MonotonicNs()),
      bytes_(metrics.BytesOf(FormatLabel(request))) {}

ExportMetrics::Meter::~Meter() {
  metrics_.seconds_.Observe(static_cast<double>(clock_.MonotonicNs() - begun_ns_) * 1e-9);
}

void ExportMetrics::Meter::Observe(const v1::ExportReply& reply) {
  if (!reply.has_progress() && !reply.has_done()) return;
  const uint64_t now =
      reply.has_done() ? reply.done().total().bytes_written() : reply.progress().bytes_written();
  // Progress is cumulative, and a reply without a new number must not count twice.
  if (now <= written_) return;
  bytes_.Increment(static_cast<double>(now - written_));
  written_ = now;
}

}  // namespace neurontrace
