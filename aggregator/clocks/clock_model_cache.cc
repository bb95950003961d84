// SPDX-License-Identifier: Apache-2.0
#include "aggregator/clocks/clock_model_cache.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cassert>
#include <iterator>
#include <string>
#include <utility>

#include "aggregator/align/instance_clock.h"
#include "aggregator/align/utc/reference_utc.h"
#include "aggregator/clocks/capture_span.h"
#include "aggregator/clocks/clock_rows.h"
#include "aggregator/clocks/event_clocks.h"
#include "aggregator/store/clock_evidence_store.h"
#include "lib/base/status.h"
#include "lib/base/time_units.h"
#include "lib/health/metric_builders.h"

namespace neurontrace {
namespace {

// How long a version is valid. The record of a fit (clock_fit_record.h) states what it used. Survey
// makes the record that a fit would have now, and Holds compares the two. An ended capture is
// fitted at most a few times: for the first question, when all evidence has had time to arrive, and
// again only for late evidence or another build. All machines are fitted from scratch each time, in
// time linear in their evidence.

// Derives what the reference's keeper knew of UTC in a window from its own stored evidence. Fails
// with the error of the store. Any thread.
absl::StatusOr<ReferenceUtc> ReadReferenceUtc(const ClockEvidenceStore& store,
                                              const RealtimeWindow& window) {
  ASSIGN_OR_RETURN(const std::vector<HostBoot> hosts, store.Hosts());
  std::vector<ClockEvidence> own;
  for (const HostBoot& host : hosts) {  // sorted
    if (!IsReferenceHost(host)) continue;
    ASSIGN_OR_RETURN(ClockEvidence evidence, store.Read(host, window));
    own.push_back(std::move(evidence));
  }
  return ReferenceUtcOf(own);
}

// Uses REALTIME as reference time, which is close enough for a window: the reference began as
// REALTIME and a capture, or what is left of it, is short.
ReferenceWindow WindowOf(const CaptureRecord& record, std::span<const StreamRecord> streams,
                         uint64_t now_ns) {
  const RealtimeWindow span = SpanOf(record, streams, now_ns);
  if (record.spec.mode == CaptureMode::kContinuous) return {span.begin_ns, span.end_ns};
  return {span.begin_ns, HasEnded(record.state) ? span.end_ns : span.begin_ns};
}

// Returns whether a stored version is to be used instead of a fit from the present evidence.
bool Holds(const ClockFitRecord& stored, const ClockFitRecord& now) {
  // Evidence has been pruned, so a new fit would know less.
  if (HasLessEvidence(now, stored)) return true;
  if (!AreFittedAlike(stored, now) || HasMoreOfCapture(now, stored)) return false;
  // Until it can be final, the version that the first caller got is everybody's.
  return stored.is_final ? !HasMoreEvidence(now, stored) : !now.is_final;
}

}  // namespace

// Each last event is converted by its own machine's clock, and the latest of them ends the window.
void EndWithEvents(const std::vector<StreamRecord>& streams, CaptureClocks& clocks) {
  uint64_t last_ns = 0;
  for (const StreamRecord& stream : streams) {
    if (stream.clock_domain == ClockDomain::kOwn) continue;
    const InstanceClock* const clock = clocks.Find(stream.identity.worker);
    if (clock == nullptr || clock->realtime.is_identity() || stream.last_timestamp_ns == 0) {
      continue;
    }
    last_ns = std::max(last_ns, clock->realtime.ToReference(stream.last_timestamp_ns));
  }
  if (last_ns < clocks.window.begin_ns || last_ns >= clocks.window.end_ns) return;
  clocks.window.end_ns = last_ns;
  for (InstanceClock& clock : clocks.instances) SetBoundsIn(clocks.window, clock);
}

// Waits in the constructor until no other caller has the capture.
class ClockModelCache::Turn {
 public:
  Turn(ClockModelCache& book, const CaptureId& id) : book_(book), id_(id) {
    const MutexLock lock(book_.mutex_);
    book_.turn_ended_.Wait(
        book_.mutex_, [this]() NT_REQUIRES(book_.mutex_) { return !book_.busy_.contains(id_); });
    book_.busy_.insert(id_);
  }
  ~Turn() {
    {
      const MutexLock lock(book_.mutex_);
      // Nobody else can have removed it: only its own turn does.
      assert(book_.busy_.contains(id_));
      book_.busy_.erase(id_);
    }
    book_.turn_ended_.NotifyAll();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  ClockModelCache& book_;
  const CaptureId id_;
};

uint64_t ClockModelCache::FinalAtNs(const CaptureRecord& record) {
  return record.ended_realtime_ns + kMarginNs + kArrivalNs;
}

absl::StatusOr<CaptureClocks> ClockModelCache::ForCapture(const CaptureRecord& record) {
  if (HasEnded(record.state)) {
    const Turn turn(*this, record.id);
    return ForEnded(record);
  }
  ASSIGN_OR_RETURN(ClockFitRecord fit, Survey(record));
  return FitCapture(record, fit);
}

// Reads only the header for captures that are final already, which are most of them.
absl::StatusOr<bool> ClockModelCache::Finalize(const CaptureRecord& record) {
  if (!HasEnded(record.state) || clock_.RealtimeNs() < FinalAtNs(record)) return false;
  // Whether a final version could be improved is only checked when somebody needs it.
  ASSIGN_OR_RETURN(const std::optional<std::string> header,
                   store_.clock_models().NewestHeader(record.id));
  const auto stored = header ? DecodeClockFitRecord(*header) : ClockFitRecord();
  if (stored.ok() && stored->is_final) return true;
  ASSIGN_OR_RETURN(const CaptureClocks clocks, ForCapture(record));
  return clocks.is_final;
}

// The order is this: survey what a fit would use, compare it with the stored version, then fit only
// if necessary. A store that cannot be read does not keep clocks from callers.
absl::StatusOr<CaptureClocks> ClockModelCache::ForEnded(const CaptureRecord& record) {
  ASSIGN_OR_RETURN(ClockFitRecord fit, Survey(record));
  fit.is_final = clock_.RealtimeNs() >= FinalAtNs(record);
  const auto stored = ReadStored(record.id);
  if (!stored.ok()) {
    LogNotStored(record.id, stored.status());
    return FitCapture(record, fit);
  }
  uint32_t version = 1;
  if (*stored) {
    const Stored& known = **stored;
    // The next version, if there will be one.
    version = known.models.version + 1;
    ASSIGN_OR_RETURN(std::optional<CaptureClocks> clocks, Held(record, known, fit));
    if (clocks) {
      // Evidence is gone, and what is stored is all that there will be.
      if (fit.is_final && !known.fit.is_final) {
        fit = known.fit;
        fit.is_final = true;
        StoreAs(record.id, fit, {version, {}, known.models.rows}, *clocks);
      }
      return *std::move(clocks);
    }
  }
  ASSIGN_OR_RETURN(CaptureClocks clocks, FitCapture(record, fit));
  ClockModelVersion models{version, {}, EncodeClockRows(clocks)};
  // Later evidence that changed nothing does not make a new version.
  if (*stored && (*stored)->fit.is_final == fit.is_final && (*stored)->models.rows == models.rows) {
    models.version = (*stored)->models.version;
  }
  StoreAs(record.id, fit, std::move(models), clocks);
  return clocks;
}

// Rows that cannot be decoded are no error, because evidence can replace them.
absl::StatusOr<std::optional<CaptureClocks>> ClockModelCache::Held(
    const CaptureRecord& record, const Stored& stored, const ClockFitRecord& now) const {
  auto clocks = DecodeClockRows(stored.models.rows);
  if (!clocks.ok()) {
    SPDLOG_WARN("capture {}: cannot use version {} of its clock models: {}; fitting them again",
                record.id.ToString(), stored.models.version,
                std::string(clocks.status().message()));
    return std::nullopt;
  }
  if (!Holds(stored.fit, now)) return std::nullopt;
  // The window and its bounds are not stored: they follow from the streams as they are now.
  ASSIGN_OR_RETURN(const auto streams, store_.OpenCapture(record.id).Streams());
  clocks->window = WindowOf(record, streams, clock_.RealtimeNs());
  EndWithEvents(streams, *clocks);
  clocks->version = stored.models.version;
  clocks->is_final = stored.fit.is_final;
  return *std::move(clocks);
}

// Takes no Turn, as it stores nothing.
absl::StatusOr<CaptureClocks> ClockModelCache::HostsOfCapture(const CaptureRecord& record) const {
  ASSIGN_OR_RETURN(ClockFitRecord fit, Survey(record));
  if (HasEnded(record.state)) {
    fit.is_final = clock_.RealtimeNs() >= FinalAtNs(record);
    const auto stored = ReadStored(record.id);
    if (stored.ok() && *stored) {
      ASSIGN_OR_RETURN(std::optional<CaptureClocks> clocks, Held(record, **stored, fit));
      if (clocks) return *std::move(clocks);
    }
  }
  return FitHosts(record, fit);
}

absl::StatusOr<std::optional<ClockModelCache::Stored>> ClockModelCache::ReadStored(
    const CaptureId& id) const {
  ASSIGN_OR_RETURN(std::optional<ClockModelVersion> models, store_.clock_models().Newest(id));
  if (!models) return std::nullopt;
  auto fit = DecodeClockFitRecord(models->header);
  // A record of a newer build, or a damaged one, counts as fitted from nothing.
  return Stored{fit.ok() ? *std::move(fit) : ClockFitRecord(), *std::move(models)};
}

// Sets the version and finality of `clocks` only if the models are stored, so that callers do not
// refer to a version that does not exist.
void ClockModelCache::StoreAs(const CaptureId& id, const ClockFitRecord& fit,
                              ClockModelVersion models, CaptureClocks& clocks) {
  // The capture was deleted while its clocks were fitted.
  if (absl::IsNotFound(store_.captures().Get(id).status())) return;
  models.header = EncodeClockFitRecord(fit);
  if (const absl::Status status = store_.clock_models().Put(id, models); !status.ok()) {
    LogNotStored(id, status);
    return;
  }
  metrics_.versions_stored.Increment();
  clocks.version = models.version;
  clocks.is_final = fit.is_final;
}

// Counts and logs; `clocks` keep version 0.
void ClockModelCache::LogNotStored(const CaptureId& id, const absl::Status& status) const {
  metrics_.versions_not_stored.Increment();
  SPDLOG_WARN("capture {}: its clock models are not stored and will be fitted again next time: {}",
              id.ToString(), std::string(status.message()));
}

// Uses the span of the capture and the margin on either side.
absl::StatusOr<ClockFitRecord> ClockModelCache::Survey(const CaptureRecord& record) const {
  ASSIGN_OR_RETURN(const std::vector<StreamRecord> streams,
                   store_.OpenCapture(record.id).Streams());
  RealtimeWindow window = SpanOf(record, streams, clock_.RealtimeNs());
  window.begin_ns = SubtractSaturating(window.begin_ns, kMarginNs);
  // A capture without an end still receives evidence.
  window.end_ns = record.ended_realtime_ns == 0 ? UINT64_MAX : record.ended_realtime_ns + kMarginNs;
  return Survey(streams, window);
}

// Reads sizes only, not the evidence itself.
absl::StatusOr<ClockFitRecord> ClockModelCache::Survey(std::span<const StreamRecord> streams,
                                                       const RealtimeWindow& window) const {
  ClockFitRecord fit = FitRecordOfThisBuild(order_);
  fit.window = window;
  std::set<HostBoot> hosts;
  for (const StreamRecord& stream : streams) {
    const WorkerIdentity& worker = stream.identity.worker;
    hosts.insert({worker.instance_id, worker.boot_id});
    fit.chunks += stream.chunks;
  }
  ASSIGN_OR_RETURN(const std::vector<HostBoot> all, store_.clocks().Hosts());
  // The keeper's evidence determines UTC for every capture.
  std::ranges::copy_if(all, std::inserter(hosts, hosts.end()), IsReferenceHost);
  for (const HostBoot& host : hosts) {
    ASSIGN_OR_RETURN(const auto extent, store_.clocks().ExtentOf(host, fit.window));
    // A keeper without evidence in the window cannot change anything, and the record stays equal.
    if (IsReferenceHost(host) && extent.batches == 0) continue;
    fit.evidence.push_back({host, extent});
  }
  return fit;
}

absl::StatusOr<CaptureClocks> ClockModelCache::FitHosts(const CaptureRecord& record,
                                                        ClockFitRecord& fit) const {
  ASSIGN_OR_RETURN(const auto streams, store_.OpenCapture(record.id).Streams());
  ASSIGN_OR_RETURN(CaptureClocks clocks, Fit(fit, WindowOf(record, streams, clock_.RealtimeNs())));
  EndWithEvents(streams, clocks);
  return clocks;
}

// Uses one snapshot of the store for streams and chunks, so that both are of one moment.
absl::StatusOr<CaptureClocks> ClockModelCache::FitCapture(const CaptureRecord& record,
                                                          ClockFitRecord& fit) const {
  const uint64_t begun_ns = clock_.MonotonicNs();
  const CaptureReader reader = store_.OpenSnapshot(record.id);
  ASSIGN_OR_RETURN(const std::vector<StreamRecord> streams, reader.Streams());
  ASSIGN_OR_RETURN(CaptureClocks clocks, FitHosts(record, fit));
  RETURN_IF_ERROR(AddEventClocks(reader, streams, order_, clocks));
  metrics_.fits.Increment();
  metrics_.fit_seconds.Increment(static_cast<double>(clock_.MonotonicNs() - begun_ns) / 1e9);
  return clocks;
}

// Nothing is stored, as the same window of a running capture is rarely asked for again.
absl::StatusOr<CaptureClocks> ClockModelCache::ForWindow(const CaptureRecord& record,
                                                         const RealtimeWindow& window) const {
  const CaptureReader reader = store_.OpenSnapshot(record.id);
  ASSIGN_OR_RETURN(const std::vector<StreamRecord> streams, reader.Streams());
  const RealtimeWindow wide{SubtractSaturating(window.begin_ns, kMarginNs),
                            AddSaturating(window.end_ns, kMarginNs)};
  ASSIGN_OR_RETURN(ClockFitRecord fit, Survey(streams, wide));
  ASSIGN_OR_RETURN(CaptureClocks clocks, Fit(fit, ReferenceWindow{window.begin_ns, window.end_ns}));
  RETURN_IF_ERROR(AddEventClocks(reader, streams, order_, clocks, wide));
  metrics_.fits.Increment();
  return clocks;
}

// Every machine of the store is fitted, with a window that is open at its end.
absl::StatusOr<CaptureClocks> ClockModelCache::Now(uint64_t now_realtime_ns) const {
  ASSIGN_OR_RETURN(const std::vector<HostBoot> hosts, store_.clocks().Hosts());
  ClockFitRecord fit;
  fit.window.begin_ns = SubtractSaturating(now_realtime_ns, kNowNs);
  for (const HostBoot& host : hosts) fit.evidence.push_back({.host = host});
  return Fit(fit, std::nullopt);
}

// Fits one machine after another on the caller's thread.
absl::StatusOr<CaptureClocks> ClockModelCache::Fit(
    ClockFitRecord& fit, const std::optional<ReferenceWindow>& window) const {
  CaptureClocks clocks;
  if (window) clocks.window = *window;
  ASSIGN_OR_RETURN(const ReferenceUtc reference_utc, ReadReferenceUtc(store_.clocks(), fit.window));
  // Sorted by host, as CaptureClocks requires.
  for (ClockWatermark& mark : fit.evidence) {
    if (is_closed_)
      return absl::Status(absl::StatusCode::kCancelled, "the aggregator is shutting down");
    const HostBoot& host = mark.host;
    if (IsReferenceHost(host)) continue;
    ASSIGN_OR_RETURN(const ClockEvidence evidence, store_.clocks().Read(host, fit.window));
    // A machine without exchanges has no clock; its timestamps are used as they are.
    if (evidence.exchanges.empty()) continue;
    mark.last_raw_ns = evidence.exchanges.back().receive_raw_ns;
    InstanceClock clock =
        FitInstanceClock(host.instance_id, host.boot_id, evidence, window, reference_utc);
    WorkerIdentity machine;
    machine.instance_id = host.instance_id;
    machine.boot_id = host.boot_id;
    clocks.maps.Set(machine, ClockDomain::kHostRealtime, clock.realtime);
    clocks.instances.push_back(std::move(clock));
  }
  return clocks;
}

ClockModelCacheMetrics::ClockModelCacheMetrics(prometheus::Registry& registry)
    : fits(MakeCounter(registry, "neurontrace_aggregator_clock_fits_total",
                       "Fits of a capture's clocks")),
      fit_seconds(MakeCounter(registry, "neurontrace_aggregator_clock_fit_seconds_total",
                              "Duration of a fit of a capture's clocks")),
      versions_stored(MakeCounter(registry, "neurontrace_aggregator_clock_versions_stored_total",
                                  "Versions of captures' clock models stored")),
      versions_not_stored(MakeCounter(registry,
                                      "neurontrace_aggregator_clock_versions_not_stored_total",
                                      "Versions of captures' clock models that the store refused, "
                                      "or whose predecessor it could not read")) {}

}  // namespace neurontrace
