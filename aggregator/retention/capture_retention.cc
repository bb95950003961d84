// SPDX-License-Identifier: Apache-2.0
#include "aggregator/retention/capture_retention.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

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
constexpr uint64_t kSayIntervalNs = 600'000'000'000;

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
  const uint64_t end_ns =
      std::max({record.started_realtime_ns, record.stopped_realtime_ns, record.ended_realtime_ns});
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

// With the initial spacing the marks cover four times the retention; OlderThan looks back twice the
// retention.
StreamAge::StreamAge(uint64_t retention_ns)
    : behind_max_ns_(retention_ns == 0 ? kBehindMaxNs : std::min(kBehindMaxNs, retention_ns / 2)),
      mark_spacing_ns_(std::max(kMarkSpacingNs, retention_ns / (kMarksMax / 4))) {}

void StreamAge::Note(const StreamRecord& record, const ClockMap& map, const RetentionTime& now) {
  const bool has_more = record.next_sequence > next_sequence_;
  map_ = &map;
  now_ = now;
  first_sequence_ = record.first_sequence;
  next_sequence_ = record.next_sequence;
  first_timestamp_ns_ = record.first_timestamp_ns;
  events_ = record.events;
  // Marks of chunks that have expired are useless.
  while (marks_.size() > 1 && marks_[1].next_sequence <= first_sequence_) marks_.pop_front();
  if (has_more &&
      (marks_.empty() || now.monotonic_ns >= marks_.back().monotonic_ns + mark_spacing_ns_)) {
    marks_.push_back({now.monotonic_ns, record.next_sequence});
  }
  if (marks_.size() > kMarksMax) {
    // Keeps every second mark, and spaces later ones accordingly. Chunks then count as younger than
    // they are, which is the safe direction.
    mark_spacing_ns_ *= 2;
    for (size_t i = 1; i < marks_.size() - 1; ++i) marks_.erase(marks_.begin() + i);
  }
  if (record.events == 0) return;
  // Such timestamps cannot be compared with any clock here.
  if (record.clock_domain == ClockDomain::kOwn) {
    by_receipt_ = true;
  } else if (map.is_identity()) {
    by_receipt_ =
        record.last_timestamp_ns > now.realtime_ns + kAheadMaxNs ||
        // Only new chunks show whether timestamps are plausibly recent; old ones are old.
        (has_more ? record.last_timestamp_ns < SubtractSaturating(now.realtime_ns, behind_max_ns_)
                  : by_receipt_);
  } else {
    by_receipt_ = map.ToReference(record.last_timestamp_ns) > now.reference_ns + kAheadMaxNs;
  }
}

// Returns the sequence below which everything had arrived `age_ns` ago.
uint64_t StreamAge::ReceivedBefore(uint64_t age_ns) const {
  uint64_t sequence = 0;
  for (const Mark& mark : marks_) {
    if (now_.monotonic_ns - mark.monotonic_ns < age_ns) break;
    sequence = mark.next_sequence;
  }
  return sequence;
}

uint64_t StreamAge::StampAgo(uint64_t age_ns) const {
  if (map_->is_identity()) return SubtractSaturating(now_.realtime_ns, age_ns);
  return map_->ToRaw(SubtractSaturating(now_.reference_ns, age_ns));
}

// Both limits of a request apply, whichever covers more: timestamps, and arrival as a safeguard.
TrimRequest StreamAge::OlderThan(uint64_t age_ns) const {
  TrimRequest request;
  if (map_ == nullptr) return request;
  if (by_receipt_) {
    request.before_sequence = ReceivedBefore(age_ns);
    return request;
  }
  request.before_raw_ns = StampAgo(age_ns);
  const uint64_t twice_ns = age_ns > UINT64_MAX / 2 ? UINT64_MAX : 2 * age_ns;
  request.before_sequence = ReceivedBefore(std::max(twice_ns, kBehindMaxNs));
  return request;
}

uint64_t StreamAge::OldestNs() const {
  if (events_ == 0 || map_ == nullptr) return 0;
  if (!by_receipt_) {
    return map_->is_identity()
               ? SubtractSaturating(now_.realtime_ns, first_timestamp_ns_)
               : SubtractSaturating(now_.reference_ns, map_->ToReference(first_timestamp_ns_));
  }
  // The first mark above the oldest stored chunk is the earliest time at which that chunk is known
  // to have arrived.
  for (const Mark& mark : marks_) {
    if (mark.next_sequence > first_sequence_) return now_.monotonic_ns - mark.monotonic_ns;
  }
  return 0;
}

// One pass over the streams of one capture: first by age, then by size, since what is too old need
// not be deleted for size. A failing stream does not keep the others from being trimmed.
class CaptureRetention::Pass {
 public:
  Pass(CaptureRetention& retention, const CaptureRecord& record, Running& running)
      : retention_(retention), deps_(retention.deps_), record_(record), running_(running) {}

  absl::Status Run() {
    RETURN_IF_ERROR(NoteStreams());
    if (record_.spec.retention.duration_ns > 0) {
      RETURN_IF_ERROR(OlderThan(record_.spec.retention.duration_ns, UINT64_MAX));
    }
    if (record_.spec.retention.bytes > 0) RETURN_IF_ERROR(BeyondBytes());
    return absl::OkStatus();
  }

 private:
  absl::Status NoteStreams() {
    ASSIGN_OR_RETURN(const std::vector<StreamRecord> streams,
                     deps_.store.OpenCapture(record_.id).Streams());
    const RetentionTime now = retention_.Now();
    size_t by_receipt = 0;
    oldest_ns_ = 0;
    for (const StreamRecord& stream : streams) {
      const ClockMap& map =
          retention_.maps_.For(stream.identity.worker, ClockDomain::kHostRealtime);
      StreamAge& age = running_.ages.try_emplace(stream.number, record_.spec.retention.duration_ns)
                           .first->second;
      age.Note(stream, map, now);
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
        const absl::StatusOr<bool> may_remove_more = Step(number, request);
        // One failing stream must not keep the others.
        first_error.Update(may_remove_more.status());
        if (!may_remove_more.value_or(false)) break;
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
    return trimmed.may_remove_more;
  }

  // Deletes slices of time from the oldest event on, so that all streams lose the same period.
  absl::Status BeyondBytes() {
    for (int i = 0; i < kSlicesMax && !deps_.environment.IsEnding(); ++i) {
      // Read again after every slice: chunks arrive meanwhile, and how many bytes a slice of time
      // holds is not known before.
      ASSIGN_OR_RETURN(const uint64_t bytes, deps_.store.chunks().BytesOf(record_.id));
      if (bytes <= record_.spec.retention.bytes) return absl::OkStatus();
      const uint64_t excess = bytes - record_.spec.retention.bytes;
      if (i > 0) RETURN_IF_ERROR(NoteStreams());
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

absl::Status CaptureRetention::Run() {
  absl::Status first_error;
  std::set<CaptureId> present;
  for (const CaptureId& id : deps_.store.captures().Ids()) {
    if (deps_.environment.IsEnding()) return first_error;
    const absl::Status status = Look(id);
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
absl::Status CaptureRetention::Look(const CaptureId& id) {
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
  if (running.said_monotonic_ns == 0) running.said_monotonic_ns = now_ns;
  if (now_ns >= running.said_monotonic_ns + kSayIntervalNs) {
    LogExpiredTotals(record, running);
    running.said_monotonic_ns = now_ns;
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
