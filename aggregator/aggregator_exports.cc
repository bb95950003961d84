// SPDX-License-Identifier: Apache-2.0
// The exports of Aggregator: what is waited for, whose clocks, and what is noted.
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "aggregator/aggregator.h"
#include "aggregator/exports/capture_delivery.h"
#include "aggregator/exports/capture_export.h"
#include "aggregator/exports/grpc_output_files.h"
#include "aggregator/exports/relative_window.h"
#include "lib/base/status.h"
#include "lib/base/time_units.h"
#include "lib/wire/export_options.h"

namespace neurontrace {
namespace {

// What agents have still to send is waited for so long by an export that ends now.
constexpr uint64_t kWindowPatienceNs = 3'000'000'000;
constexpr std::chrono::milliseconds kLookAgainAtEvidence(20);

// What who exports a capture right after its end is to know; empty: nothing.
std::string NoteOf(const CaptureRecord& record, const CaptureClocks& clocks, uint64_t now_ns) {
  if (!HasEnded(record.state) || clocks.instances.empty() || clocks.is_final) return {};
  const uint64_t final_ns = ClockModelCache::FinalAtNs(record);
  if (clocks.version == 0 || now_ns >= final_ns) return {};
  return fmt::format("the clock models are not final yet; an export in {} s has the best bounds",
                     (final_ns - now_ns) / kNsPerSecond + 1);
}

}  // namespace

absl::StatusOr<v1::ExportRequest> Aggregator::Resolve(const CaptureRecord& record,
                                                      const v1::ExportRequest& request,
                                                      std::vector<std::string>& notes) {
  v1::ExportRequest resolved = request;
  if (!request.window_is_before_now()) return resolved;
  const bool is_raw = request.raw_clocks() || request.format() == v1::EXPORT_FORMAT_EVENTS;
  ASSIGN_OR_RETURN(const CaptureClocks now, clocks_->book().Now(clock_.RealtimeNs()));
  const uint64_t reference_ns = clocks_->ReferenceNowNs();
  if (is_raw) {
    ASSIGN_OR_RETURN(const auto streams, store_->OpenCapture(record.id).Streams());
    RETURN_IF_ERROR(
        ResolveBeforeNow(HostsNow(streams, now.maps, reference_ns, clock_.RealtimeNs()), resolved));
  } else {
    RETURN_IF_ERROR(ResolveBeforeNow({reference_ns, reference_ns}, resolved));
  }
  const ClockMaps maps = is_raw ? ClockMaps() : now.maps;
  KnownUntil known(resolved.window_end_ns(), maps);
  const uint64_t begun_ns = clock_.MonotonicNs();
  while (true) {
    ASSIGN_OR_RETURN(const auto streams, store_->OpenCapture(record.id).Streams());
    if (known.Look(streams) || HasEnded(record.state) ||
        clock_.MonotonicNs() >= begun_ns + kWindowPatienceNs) {
      break;
    }
    std::this_thread::sleep_for(kLookAgainAtEvidence);
  }
  notes = known.Notes(resolved.window_start_ns());
  return resolved;
}

// Of one that continues, and can be old, only what a window needs.
absl::StatusOr<CaptureClocks> Aggregator::ClocksFor(const CaptureRecord& record,
                                                    const v1::ExportRequest& resolved) {
  const bool has_window = resolved.window_start_ns() != 0 && !resolved.window_start_is_relative() &&
                          !resolved.window_end_is_relative();
  if (HasEnded(record.state) || !has_window) return clocks_->OfCapture(record);
  const uint64_t end_ns =
      resolved.window_end_ns() == 0 ? clock_.RealtimeNs() : resolved.window_end_ns();
  return clocks_->book().OfWindow(record, {resolved.window_start_ns(), end_ns});
}

// In plain text nobody has a name: there all are one caller.
StreamingCallLimiter::Options Aggregator::ExportLimits() {
  return {.clock = clock_,
          .what = "exports",
          .at_once_max = limits::kExportsAtOnceMax,
          .of_caller_max =
              security_.has_tls() ? limits::kExportsOfCallerMax : limits::kExportsAtOnceMax,
          .refused = metrics_.exports_refused,
          .unread = metrics_.exports_unread};
}

StreamingCallLimiter::Options Aggregator::WatchLimits() {
  return {.clock = clock_,
          .what = "watches of captures",
          .at_once_max = limits::kWatchesAtOnceMax,
          .of_caller_max =
              security_.has_tls() ? limits::kWatchesOfCallerMax : limits::kWatchesAtOnceMax,
          .refused = metrics_.watches_refused,
          .unread = metrics_.watches_unread};
}

absl::Status Aggregator::ExportForOperator(const CaptureRecord& record,
                                           const v1::ExportRequest& request,
                                           const ExportWriter& write) {
  absl::Status status = ExportCapture(record, request, write);
  // To who asked, UNAVAILABLE is of an aggregator that is not there, and not of a volume.
  if (absl::IsUnavailable(status)) status = absl::AbortedError(status.message());
  return status;
}

// Whether it could have come as far as the destination, as far as what was asked for goes.
bool Aggregator::Delivers(const CaptureRecord& record, const v1::ExportRequest& request) const {
  return !request.destination().empty() && record.state != CaptureState::kNotBegun &&
         export_roots_.Check(request.destination()).ok() &&
         retention_->leases().Take(record.id) != nullptr && store_->captures().Get(record.id).ok();
}

absl::Status Aggregator::ExportCapture(const CaptureRecord& record,
                                       const v1::ExportRequest& request,
                                       const ExportWriter& write) {
  metrics_.exports.Increment();
  metrics_.exports_running.Increment();
  ExportMetrics::Meter meter(export_metrics_, clock_, request);
  const absl::Status status =
      ExportHeld(record, request, [&meter, &write](const v1::ExportReply& reply) {
        meter.Look(reply);
        return write(reply);
      });
  metrics_.exports_running.Decrement();
  if (!status.ok()) export_metrics_.CountFailed(status, Delivers(record, request));
  return status;
}

absl::Status Aggregator::ExportHeld(const CaptureRecord& record, const v1::ExportRequest& request,
                                    const ExportWriter& write) {
  RETURN_IF_ERROR(CheckExportOptions(request));
  const ExportLeases::Lease lease = retention_->leases().Take(record.id);
  if (lease == nullptr) {
    return NotFound("capture {} is being deleted", record.id.ToString());
  }
  // The record was read before, and whoever deleted it has finished since.
  RETURN_IF_ERROR(store_->captures().Get(record.id).status());
  std::vector<std::string> notes;
  ASSIGN_OR_RETURN(const v1::ExportRequest resolved, Resolve(record, request, notes));
  ASSIGN_OR_RETURN(const CaptureClocks clocks, ClocksFor(record, resolved));
  if (!request.raw_clocks()) {
    std::string note = NoteOf(record, clocks, clock_.RealtimeNs());
    if (!note.empty()) notes.push_back(std::move(note));
  }
  const ExportWriter noted = [&](const v1::ExportReply& reply) {
    if (!reply.has_done() || notes.empty()) return write(reply);
    v1::ExportReply with_notes = reply;
    for (const std::string& note : notes) with_notes.mutable_done()->add_notes(note);
    return write(with_notes);
  };
  if (!request.destination().empty()) {
    if (request.held_size() != 0) {
      return InvalidArgument(
          "held: not allowed with a destination, because no files are sent to the caller");
    }
    return DeliverStoredCapture({*store_, export_roots_, store_run_, system_clock_, random_},
                                record, resolved, clocks, noted);
  }
  if (request.more_formats_size() != 0) {
    return InvalidArgument("more_formats: several formats need a destination");
  }
  ASSIGN_OR_RETURN(ResumeState held, ResumeState::Of(request));
  const uint64_t held_bytes = held.bytes();
  GrpcOutputFiles files(noted, std::move(held));
  absl::Status as_held;
  const ExportWriter checked = [&](const v1::ExportReply& reply) {
    if (!reply.has_done() || held_bytes == 0) return noted(reply);
    as_held = files.CheckHeld();
    if (!as_held.ok()) return false;
    v1::ExportReply with_held = reply;
    with_held.mutable_done()->set_bytes_held(held_bytes);
    return noted(with_held);
  };
  RETURN_IF_ERROR(ExportStoredCapture(*store_, record, resolved, clocks, files, checked));
  return as_held;
}

absl::Status Aggregator::MakeStandingExports(const AggregatorConfig& config) {
  ASSIGN_OR_RETURN(
      standing_exports_,
      StandingExports::Make(
          {*store_, export_roots_, *registry_, clock_, random_,
           [this](const CaptureRecord& record, const v1::ExportRequest& request,
                  const ExportWriter& write) { return ExportCapture(record, request, write); },
           *audit_},
          config.store + "/standing_exports", config.standing_exports));
  return absl::OkStatus();
}

}  // namespace neurontrace
