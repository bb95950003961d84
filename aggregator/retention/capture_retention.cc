// SPDX-License-Identifier: Apache-2.0
#include "aggregator/retention/capture_retention.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "aggregator/align/core/clock_maps.h"
#include "lib/base/mutex.h"
#include "lib/base/status.h"
#include "lib/base/time_units.h"
#include "lib/health/metric_builders.h"

namespace neurontrace {
namespace {

// A capture above its size loses time slices from all streams, each this fraction of its excess.
constexpr uint64_t kSlicesPerExcess = 2;
constexpr uint64_t kSliceMinNs = 1'000'000;
constexpr int kSlicesMax = 64;
// How often the log reports what a running capture has lost to its retention.
constexpr uint64_t kReportIntervalNs = 600'000'000'000;

// Returns whether chunks of the capture expire while it runs.
bool IsTrimmed(const CaptureRecord& record) {
  return !HasEnded(record.state) && record.spec.mode == CaptureMode::kContinuous &&
         (record.spec.retention.duration_ns > 0 || record.spec.retention.bytes > 0);
}

// When an ended capture is to be deleted, by the aggregator's clock.
uint64_t DeleteAtNs(const CaptureRecord& record, const RetentionEnvironment& environment) {
  // The retention of a continuous capture is how much of it is kept, not how long after its end.
  if (record.spec.retention.duration_ns == 0 || record.spec.mode == CaptureMode::kContinuous) {
    return UINT64_MAX;
  }
  const uint64_t end_ns = LatestMomentNs(record);
  return AddSaturating(AddSaturating(end_ns, record.spec.retention.duration_ns),
                       environment.ForwardSince(end_ns));
}

}  // namespace

RetentionMetrics::RetentionMetrics(prometheus::Registry& registry)
    : events_expired(MakeCounter(registry, "neurontrace_aggregator_expired_events_total",
                                 "Events of continuous captures deleted by their retention")),
      bytes_expired(
          MakeCounter(registry, "neurontrace_aggregator_expired_bytes_total",
                      "Bytes of chunks of continuous captures deleted by their retention")),
      trims(MakeCounter(registry, "neurontrace_aggregator_trims_total",
                        "Steps of deletion from continuous captures")),
      trim_seconds(MakeCounter(registry, "neurontrace_aggregator_trim_seconds_total",
                               "Duration of steps of deletion from continuous captures")),
      captures_deleted(MakeCounter(registry, "neurontrace_aggregator_captures_expired_total",
                                   "Ended captures deleted by their retention")),
      errors(MakeCounter(registry, "neurontrace_aggregator_retention_errors_total",
                         "Failed retention passes over a capture, which are retried")),
      step_seconds_max(
          MakeGauge(registry, "neurontrace_aggregator_trim_step_seconds_max",
                    "Longest deletion step since the start, during which writers wait")),
      streams_by_receipt(MakeGauge(registry, "neurontrace_aggregator_retention_streams_by_receipt",
                                   "Streams of continuous captures with implausible timestamps, "
                                   "aged by the arrival of their chunks")) {}

// One pass over the streams of one capture: first by age, then by size, since what is too old need
// not be deleted for size. A failing stream does not keep the others from being trimmed.
class CaptureRetention::Pass {
 public:
  Pass(CaptureRetention& retention, const CaptureRecord& record, Running& running)
      : retention_(retention), deps_(retention.deps_), record_(record), running_(running) {}

  absl::Status Run() {
    RETURN_IF_ERROR(RecordStreams());
    if (record_.spec.retention.duration_ns > 0) {
      RETURN_IF_ERROR(OlderThan(record_.spec.retention.duration_ns, UINT64_MAX));
    }
    if (record_.spec.retention.bytes > 0) RETURN_IF_ERROR(TrimToBytes());
    return absl::OkStatus();
  }

 private:
  absl::Status RecordStreams() {
    ASSIGN_OR_RETURN(const std::vector<StreamRecord> streams,
                     deps_.store.OpenCapture(record_.id).Streams());
    const RetentionTime now = retention_.Now();
    size_t by_receipt = 0;
    oldest_ns_ = 0;
    for (const StreamRecord& stream : streams) {
      const ClockMap& map =
          retention_.maps_.For(stream.identity.worker, ClockDomain::kHostRealtime);
      StreamAge& age = running_.ages[stream.number];
      age.SetRetention(record_.spec.retention.duration_ns);
      age.RecordStream(stream, map, now);
      by_receipt += age.is_by_receipt() ? 1 : 0;
      // Host samples expire with events of the same age, but do not determine the size of a slice:
      // their chunks are long and small.
      if (stream.identity.kind == StreamKind::kHost) continue;
      span_max_ns_ = std::max(span_max_ns_, stream.chunk_span_max_ns);
      oldest_ns_ = std::max(oldest_ns_, age.OldestNs());
    }
    running_.by_receipt = by_receipt;
    return absl::OkStatus();
  }

  // Deletes from the oldest stream on until `bytes_max` bytes are gone.
  absl::Status OlderThan(uint64_t age_ns, uint64_t bytes_max) {
    std::vector<std::pair<uint64_t, uint32_t>> oldest;
    for (const auto& [number, age] : running_.ages) oldest.emplace_back(age.OldestNs(), number);
    std::ranges::sort(oldest, std::greater<>());
    trimmed_bytes_ = 0;
    absl::Status first_error;
    for (const auto& [oldest_ns, number] : oldest) {
      TrimRequest request = running_.ages.at(number).OlderThan(age_ns);
      // Each step deletes a bounded number of chunks, while writers wait, and then pauses.
      while (trimmed_bytes_ < bytes_max && !deps_.environment.IsEnding()) {
        request.bytes_max = bytes_max - trimmed_bytes_;
        const absl::StatusOr<bool> can_remove_more = Step(number, request);
        // One failing stream must not keep the others.
        first_error.Update(can_remove_more.status());
        if (!can_remove_more.value_or(false)) break;
      }
    }
    return first_error;
  }

  // Deletes once from a stream. Returns whether more of the request is left.
  absl::StatusOr<bool> Step(uint32_t stream, const TrimRequest& request) {
    const uint64_t begun_ns = deps_.clock.MonotonicNs();
    ASSIGN_OR_RETURN(const Trimmed trimmed, deps_.store.chunks().Trim(record_.id, stream, request));
    const uint64_t took_ns = deps_.clock.MonotonicNs() - begun_ns;
    if (trimmed.chunks == 0 && trimmed.damaged == 0) return false;
    RetentionMetrics& metrics = deps_.metrics;
    metrics.trims.Increment();
    metrics.trim_seconds.Increment(static_cast<double>(took_ns) * 1e-9);
    metrics.events_expired.Increment(static_cast<double>(trimmed.events));
    metrics.bytes_expired.Increment(static_cast<double>(trimmed.bytes));
    metrics.step_seconds_max.Set(
        std::max(metrics.step_seconds_max.Value(), static_cast<double>(took_ns) * 1e-9));
    running_.events_expired += trimmed.events;
    running_.bytes_expired += trimmed.bytes;
    trimmed_bytes_ += trimmed.bytes;
    deps_.environment.PauseAfterStep(took_ns);
    return trimmed.can_remove_more;
  }

  // Deletes slices of time from the oldest event on, so that all streams lose the same period.
  absl::Status TrimToBytes() {
    for (int i = 0; i < kSlicesMax && !deps_.environment.IsEnding(); ++i) {
      // Read again after every slice: chunks arrive meanwhile, and how many bytes a slice of time
      // holds is not known before.
      ASSIGN_OR_RETURN(const uint64_t bytes, deps_.store.chunks().BytesOf(record_.id));
      if (bytes <= record_.spec.retention.bytes) return absl::OkStatus();
      const uint64_t excess = bytes - record_.spec.retention.bytes;
      if (i > 0) RETURN_IF_ERROR(RecordStreams());
      const double share = static_cast<double>(excess) / static_cast<double>(bytes);
      const auto slice_ns =
          static_cast<uint64_t>(static_cast<double>(oldest_ns_) * share) / kSlicesPerExcess;
      // At least one whole oldest chunk, or nothing would be deleted.
      const uint64_t step_ns = std::max(slice_ns, kSliceMinNs) + span_max_ns_;
      RETURN_IF_ERROR(OlderThan(oldest_ns_ > step_ns ? oldest_ns_ - step_ns : 0, excess));
    }
    return absl::OkStatus();
  }

  CaptureRetention& retention_;
  const Deps& deps_;
  const CaptureRecord& record_;
  Running& running_;
  uint64_t span_max_ns_ = 0;  // the longest chunk of a worker
  uint64_t oldest_ns_ = 0;    // age of the oldest event of a worker
  uint64_t trimmed_bytes_ = 0;
};

RetentionTime CaptureRetention::Now() const {
  return {.reference_ns = deps_.environment.ReferenceNs(),
          .realtime_ns = deps_.clock.RealtimeNs(),
          .monotonic_ns = deps_.clock.MonotonicNs()};
}

void CaptureRetention::ApplyChanges() {
  for (const CaptureId& id : deps_.changes.Take()) {
    delete_at_.erase(id);
    if (const auto at = running_.find(id); at != running_.end()) at->second.due_monotonic_ns = 0;
  }
}

absl::Status CaptureRetention::Run() {
  ApplyChanges();
  absl::Status first_error;
  std::set<CaptureId> present;
  for (const CaptureId& id : deps_.store.captures().Ids()) {
    if (deps_.environment.IsEnding()) return first_error;
    const absl::Status status = Inspect(id);
    if (!status.ok()) deps_.metrics.errors.Increment();
    first_error.Update(status);
    present.insert(id);
  }
  // Captures that others have deleted.
  const auto is_gone = [&](const auto& entry) { return !present.contains(entry.first); };
  std::erase_if(running_, is_gone);
  std::erase_if(delete_at_, is_gone);
  size_t by_receipt = 0;
  for (const auto& [id, of] : running_) by_receipt += of.by_receipt;
  deps_.metrics.streams_by_receipt.Set(static_cast<double>(by_receipt));
  return first_error;
}

// Records are read only when something may be due. Times on the wall clock are used for whole
// captures, because their ends are stored in it.
absl::Status CaptureRetention::Inspect(const CaptureId& id) {
  const auto known = delete_at_.find(id);
  if (known != delete_at_.end() && deps_.clock.RealtimeNs() < known->second) {
    return absl::OkStatus();
  }
  const auto at = running_.find(id);
  if (at != running_.end() && deps_.clock.MonotonicNs() < at->second.due_monotonic_ns) {
    return absl::OkStatus();
  }
  const auto record = deps_.store.captures().Get(id);
  if (absl::IsNotFound(record.status())) return absl::OkStatus();  // just deleted
  RETURN_IF_ERROR(record.status());
  if (IsTrimmed(*record)) return TrimCapture(*record, running_[id]);
  if (at != running_.end()) {
    LogExpiredTotals(*record, at->second);
    running_.erase(at);
  }
  if (!HasEnded(record->state)) return absl::OkStatus();
  const uint64_t delete_at_ns = delete_at_[id] = DeleteAtNs(*record, deps_.environment);
  return deps_.clock.RealtimeNs() < delete_at_ns ? absl::OkStatus() : DeleteCapture(*record);
}

absl::Status CaptureRetention::TrimCapture(const CaptureRecord& record, Running& running) {
  const uint64_t now_ns = deps_.clock.MonotonicNs();
  const uint64_t retention_ns = record.spec.retention.duration_ns;
  // A limit by bytes alone is checked as often as possible, since the size grows with the load.
  running.due_monotonic_ns =
      now_ns + (retention_ns == 0
                    ? kPassIntervalMinNs
                    : std::clamp(retention_ns / 8, kPassIntervalMinNs, kPassIntervalMaxNs));
  // Without the clocks the timestamps themselves have to do.
  if (const absl::Status status = RefreshMaps(); !status.ok()) {
    SPDLOG_WARN("retention uses the hosts' own clocks: {}", std::string(status.message()));
  }
  const absl::Status status = Pass(*this, record, running).Run();
  if (running.reported_monotonic_ns == 0) running.reported_monotonic_ns = now_ns;
  if (now_ns >= running.reported_monotonic_ns + kReportIntervalNs) {
    LogExpiredTotals(record, running);
    running.reported_monotonic_ns = now_ns;
  }
  return status;
}

void CaptureRetention::LogExpiredTotals(const CaptureRecord& record, Running& running) const {
  if (running.events_expired == 0) return;
  const Expired expired{.capture = record.id,
                        .job = record.spec.selection.job,
                        .events = std::exchange(running.events_expired, 0),
                        .bytes = std::exchange(running.bytes_expired, 0)};
  SPDLOG_INFO("capture {}: {} events in {} bytes have expired since the last report",
              record.id.ToString(), expired.events, expired.bytes);
  deps_.environment.OnExpired(expired);
}

CaptureRetention::~CaptureRetention() {
  for (auto& [id, running] : running_) {
    // A record that cannot be read was deleted, or the store has failed and reports that itself.
    if (const auto record = deps_.store.captures().Get(id); record.ok())
      LogExpiredTotals(*record, running);
  }
}

absl::Status CaptureRetention::RefreshMaps() {
  const uint64_t now_ns = deps_.clock.MonotonicNs();
  if (maps_monotonic_ns_ != 0 && now_ns < maps_monotonic_ns_ + kMapsMaxAgeNs) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(ClockMaps maps, deps_.environment.ReadClockMaps());
  // Ages refer to the maps. Each pass calls Note before it uses them, and for all of them, because
  // a running capture loses no stream.
  maps_ = std::move(maps);
  maps_monotonic_ns_ = now_ns;
  return absl::OkStatus();
}

absl::Status CaptureRetention::DeleteCapture(const CaptureRecord& record) {
  // The claim keeps exports from starting until the capture is gone.
  const ExportLeases::Claim claim = deps_.leases.ClaimForDeletion(record.id);
  if (claim == nullptr || !deps_.environment.ReleaseForDeletion(record.id)) {
    return absl::OkStatus();  // retried later
  }
  // Somebody may have changed its retention before the claim, which keeps them from it now.
  const absl::StatusOr<CaptureRecord> claimed = deps_.store.captures().Get(record.id);
  if (absl::IsNotFound(claimed.status())) return absl::OkStatus();
  RETURN_IF_ERROR(claimed.status());
  if (claimed->spec.retention != record.spec.retention) return absl::OkStatus();
  ASSIGN_OR_RETURN(const ChunkStore::Deleted deleted, deps_.store.DeleteCapture(record.id));
  deps_.metrics.captures_deleted.Increment();
  SPDLOG_INFO(
      "capture {} ('{}') deleted by its retention of {} s after its end: {} chunks, {} bytes",
      record.id.ToString(), record.spec.name, record.spec.retention.duration_ns / 1'000'000'000,
      deleted.chunks, deleted.bytes);
  deps_.environment.OnExpired({.capture = record.id,
                               .job = record.spec.selection.job,
                               .is_whole = true,
                               .chunks = deleted.chunks,
                               .bytes = deleted.bytes});
  return absl::OkStatus();
}

}  // namespace neurontrace
