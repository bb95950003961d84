// SPDX-License-Identifier: Apache-2.0
#include "aggregator/exports/export_service.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <utility>

#include "aggregator/align/core/clock_maps.h"
#include "aggregator/exports/capture_delivery.h"
#include "aggregator/exports/capture_export.h"
#include "aggregator/exports/grpc_output_files.h"
#include "aggregator/exports/relative_window.h"
#include "aggregator/exports/resume_state.h"
#include "lib/base/status.h"
#include "lib/base/time_units.h"
#include "lib/trace/access_limits.h"
#include "lib/trace/export_limits.h"
#include "lib/wire/export_options.h"

namespace neurontrace {
namespace {

// How long an export up to now waits for events that agents have still to send. Somebody waits for
// the result, and ResolveWindow adds a note about what did not arrive in time.
constexpr uint64_t kWindowPatienceNs = 3'000'000'000;
// Short against the patience, and long enough that polling costs little.
constexpr std::chrono::milliseconds kEvidencePollInterval(20);

// Returns a note for somebody who exports a capture right after its end, or an empty text.
std::string FinalClocksNote(const CaptureRecord& record, const CaptureClocks& clocks,
                            uint64_t now_ns) {
  if (!HasEnded(record.state) || clocks.instances.empty() || clocks.is_final) return {};
  const uint64_t final_ns = ClockModelCache::FinalAtNs(record);
  if (clocks.version == 0 || now_ns >= final_ns) return {};
  return fmt::format("the clock models are not final yet; an export in {} s has the best bounds",
                     (final_ns - now_ns) / kNsPerSecond + 1);
}

// Without names of callers there is one limit for all of them together.
StreamingCallLimiter::Options CallLimitOptions(const Clock& clock, const ExportMetrics& metrics,
                                               bool callers_have_names) {
  return {
      .clock = clock,
      .what = "exports",
      .at_once_max = limits::kExportsAtOnceMax,
      .of_caller_max = callers_have_names ? limits::kExportsOfCallerMax : limits::kExportsAtOnceMax,
      .refused = metrics.refused,
      .unread = metrics.unread};
}

}  // namespace

absl::StatusOr<std::unique_ptr<ExportService>> ExportService::Open(const Options& options,
                                                                   const Deps& deps) {
  // Rules are checked before the service exists, so that a wrong one stops the start.
  const ExportRoots roots(options.roots, options.s3);
  ASSIGN_OR_RETURN(std::vector<StandingRule> rules,
                   StandingExports::ReadRules(options.standing_rules, roots));
  return std::unique_ptr<ExportService>(new ExportService(options, deps, std::move(rules)));
}

ExportService::ExportService(const Options& options, const Deps& deps,
                             std::vector<StandingRule> rules)
    : deps_(deps),
      roots_(options.roots, options.s3),
      incarnation_(
          MakeStoreIncarnation(options.store_directory, deps.store.aggregator_id(), deps.random)),
      metrics_(deps.registry),
      calls_(CallLimitOptions(deps.clock, metrics_, options.callers_have_names)),
      standing_({deps.store, deps.registry, deps.clock, deps.random, *this, deps.audit},
                options.store_directory + "/standing_exports", std::move(rules)) {}

absl::Status ExportService::ExportCapture(const CaptureRecord& record,
                                          const v1::ExportRequest& request,
                                          const ExportWriter& write) {
  // Before the lease, so that every export that fails is one that was counted.
  metrics_.begun.Increment();
  metrics_.running.Increment();
  ExportMetrics::Meter meter(metrics_, deps_.clock, request);
  const absl::Status status =
      ExportLeased(record, request, [&meter, &write](const v1::ExportReply& reply) {
        meter.Observe(reply);
        return write(reply);
      });
  metrics_.running.Decrement();
  if (!status.ok()) metrics_.CountFailed(status, CanReachDestination(record, request));
  return status;
}

// Called after a failure, to decide whose fault it was; the lease that it takes ends at once.
bool ExportService::CanReachDestination(const CaptureRecord& record,
                                        const v1::ExportRequest& request) {
  return !request.destination().empty() && record.state != CaptureState::kNotBegun &&
         roots_.Check(request.destination()).ok() && leases_.Take(record.id) != nullptr &&
         deps_.store.captures().Get(record.id).ok();
}

// Order: options, lease, window, clocks, then the export. The lease is held until the end, so that
// the capture cannot be deleted meanwhile.
absl::Status ExportService::ExportLeased(const CaptureRecord& record,
                                         const v1::ExportRequest& request,
                                         const ExportWriter& write) {
  RETURN_IF_ERROR(CheckExportOptions(request));
  const ExportLeases::Lease lease = leases_.Take(record.id);
  if (lease == nullptr) {
    return NotFound("capture {} is being deleted", record.id.ToString());
  }
  // The record was read before the lease was taken: a deletion may have finished in between.
  RETURN_IF_ERROR(deps_.store.captures().Get(record.id).status());
  std::vector<std::string> notes;
  ASSIGN_OR_RETURN(const v1::ExportRequest resolved, ResolveWindow(record, request, notes));
  ASSIGN_OR_RETURN(const CaptureClocks clocks, ClocksFor(record, resolved));
  if (!request.raw_clocks()) {
    std::string note = FinalClocksNote(record, clocks, deps_.clock.RealtimeNs());
    if (!note.empty()) notes.push_back(std::move(note));
  }
  // Notes are known before the export starts, and belong into its last reply.
  const ExportWriter noted = [&](const v1::ExportReply& reply) {
    if (!reply.has_done() || notes.empty()) return write(reply);
    v1::ExportReply with_notes = reply;
    for (const std::string& note : notes) with_notes.mutable_done()->add_notes(note);
    return write(with_notes);
  };
  if (request.destination().empty()) return SendReplies(record, resolved, clocks, noted);
  if (request.held_size() != 0) {
    return InvalidArgument(
        "held: not allowed with a destination, because no files are sent to the caller");
  }
  return DeliverStoredCapture(
      {deps_.store, StoreProblem(), roots_, incarnation_, deps_.machine_clock, deps_.random},
      record, resolved, clocks, noted);
}

std::string ExportService::StoreProblem() const {
  const auto problem = deps_.storage.write_problem();
  return problem ? problem->text : "";
}

// For exports without a destination: the caller receives the files.
absl::Status ExportService::SendReplies(const CaptureRecord& record,
                                        const v1::ExportRequest& resolved,
                                        const CaptureClocks& clocks,
                                        const ExportWriter& write) const {
  if (resolved.more_formats_size() != 0) {
    return InvalidArgument("more_formats: several formats need a destination");
  }
  ASSIGN_OR_RETURN(ResumeState held, ResumeState::Of(resolved));
  const uint64_t held_bytes = held.bytes();
  GrpcOutputFiles files(write, std::move(held));
  absl::Status as_held;
  const ExportWriter checked = [&](const v1::ExportReply& reply) {
    if (!reply.has_done() || held_bytes == 0) return write(reply);
    // Before `done`: a client that got `done` would keep a file that this export no longer has.
    // `write` can only return false, so that the reason is carried around it.
    as_held = files.CheckHeld();
    if (!as_held.ok()) return false;
    v1::ExportReply with_held = reply;
    with_held.mutable_done()->set_bytes_held(held_bytes);
    return write(with_held);
  };
  RETURN_IF_ERROR(
      ExportStoredCapture(deps_.store, record, resolved, clocks, StoreProblem(), files, checked));
  return as_held;
}

absl::StatusOr<v1::ExportRequest> ExportService::ResolveWindow(const CaptureRecord& record,
                                                               const v1::ExportRequest& request,
                                                               std::vector<std::string>& notes) {
  v1::ExportRequest resolved = request;
  if (!request.window_is_before_now()) return resolved;
  // First the window becomes two moments, in the time that the format shows.
  const Clock& clock = deps_.clock;
  const bool is_raw = request.raw_clocks() || request.format() == v1::EXPORT_FORMAT_EVENTS;
  ASSIGN_OR_RETURN(const CaptureClocks now, deps_.clocks.book().Now(clock.RealtimeNs()));
  const uint64_t reference_ns = deps_.clocks.ReferenceNs();
  if (is_raw) {
    ASSIGN_OR_RETURN(const auto streams, deps_.store.OpenCapture(record.id).Streams());
    RETURN_IF_ERROR(
        ResolveBeforeNow(HostsNow(streams, now.maps, reference_ns, clock.RealtimeNs()), resolved));
  } else {
    RETURN_IF_ERROR(ResolveBeforeNow({reference_ns, reference_ns}, resolved));
  }
  const ClockMaps maps = is_raw ? ClockMaps() : now.maps;
  // Then the events on their way into the window get a little time to arrive.
  KnownUntil known(resolved.window_end_ns(), maps);
  const uint64_t begun_ns = clock.MonotonicNs();
  // Polls: no signal tells that events of a certain time have arrived.
  while (true) {
    ASSIGN_OR_RETURN(const auto streams, deps_.store.OpenCapture(record.id).Streams());
    if (known.Observe(streams) || HasEnded(record.state) ||
        clock.MonotonicNs() >= begun_ns + kWindowPatienceNs) {
      break;
    }
    std::this_thread::sleep_for(kEvidencePollInterval);
  }
  notes = known.Notes(resolved.window_start_ns());
  return resolved;
}

// A capture that is being recorded can be days old, and fitting its clocks from the beginning would
// take long: only those of the window are fitted.
absl::StatusOr<CaptureClocks> ExportService::ClocksFor(const CaptureRecord& record,
                                                       const v1::ExportRequest& resolved) {
  const bool has_window = resolved.window_start_ns() != 0 && !resolved.window_start_is_relative() &&
                          !resolved.window_end_is_relative();
  if (HasEnded(record.state) || !has_window) return deps_.clocks.ForCapture(record);
  const uint64_t end_ns =
      resolved.window_end_ns() == 0 ? deps_.clock.RealtimeNs() : resolved.window_end_ns();
  return deps_.clocks.book().ForWindow(record, {resolved.window_start_ns(), end_ns});
}

}  // namespace neurontrace
