// SPDX-License-Identifier: Apache-2.0
#include "aggregator/clocks/clock_service.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <set>
#include <utility>
#include <vector>

#include "aggregator/clocks/capture_span.h"
#include "aggregator/store/clock_evidence_store.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

constexpr uint64_t kHourNs = 3'600'000'000'000;
// How often evidence is pruned and final models are looked for.
constexpr uint64_t kPruneIntervalNs = kHourNs / 6;
constexpr uint64_t kFinalizeIntervalNs = 5'000'000'000;
// Agents send their measurements when a capture ends. If an agent is gone, nothing comes.
constexpr uint64_t kLastEvidenceNs = 3'000'000'000;
// How often AwaitEvidence looks for new evidence.
constexpr std::chrono::milliseconds kRetryDelay(20);
// Evidence from before and after a capture improves its models. Larger than the margin of the
// cache, so that a later build may use more.
constexpr uint64_t kCaptureMarginNs = kHourNs / 4;

// Returns HOST of HOST:PORT; an IPv6 host keeps its brackets.
std::string HostOf(const std::string& address) { return address.substr(0, address.rfind(':')); }

// Returns PORT of HOST:PORT, or 0 if it is not a number.
uint16_t PortOf(const std::string& address) {
  uint16_t port = 0;
  const char* const end = address.data() + address.size();
  std::from_chars(address.data() + address.rfind(':') + 1, end, port);
  return port;
}

// Returns the interval whose evidence a capture needs.
absl::StatusOr<RealtimeWindow> WindowOf(const Store& store, const CaptureRecord& capture,
                                        uint64_t now_ns) {
  // Only the span of a continuous capture depends on its streams, so the others are not read.
  std::vector<StreamRecord> streams;
  if (capture.spec.mode == CaptureMode::kContinuous) {
    ASSIGN_OR_RETURN(streams, store.OpenCapture(capture.id).Streams());
  }
  RealtimeWindow window = SpanOf(capture, streams, now_ns);
  window.begin_ns -= std::min(window.begin_ns, kCaptureMarginNs);
  window.end_ns = HasEnded(capture.state) ? window.end_ns + kCaptureMarginNs : UINT64_MAX;
  return window;
}

}  // namespace

// The epoch is stored before anything is answered: two epochs must never have the same number.
absl::StatusOr<std::unique_ptr<ClockService>> ClockService::Start(const Options& options,
                                                                  const Deps& deps) {
  const SystemHostClocks clocks;
  const uint64_t now_ns = deps.clock.RealtimeNs();
  // The timescale starts as REALTIME and is never steered; after a restart within one boot it
  // continues.
  ASSIGN_OR_RETURN(const ReferenceEpoch epoch,
                   deps.store.clocks().ContinueEpoch(RawOrigin(), now_ns - clocks.RawNs(), now_ns));
  std::unique_ptr<ClockService> service(new ClockService(options, deps, epoch));
  RETURN_IF_ERROR(service->Listen(options));
  service->keeper_ = std::make_unique<ReferenceHostClockCollector>(
      ReferenceHostClockCollector::Deps{service->timescale_, service->writer_, service->metrics_,
                                        service->clock_},
      epoch.raw_origin);
  return service;
}

ClockService::ClockService(const Options& options, const Deps& deps, const ReferenceEpoch& epoch)
    : retention_ns_(options.evidence_hours * kHourNs),
      admission_(deps.admission),
      store_(deps.store),
      clock_(deps.clock),
      timescale_(host_clocks_, epoch.number, epoch.offset_ns),
      keys_(deps.random),
      probe_metrics_(deps.registry),
      metrics_(deps.registry),
      writer_(deps.store.clocks(), metrics_),
      book_metrics_(deps.registry),
      book_(deps.store, deps.clock, book_metrics_, options.order_checks),
      live_(deps.store.clocks(), deps.clock),
      finalizer_(deps.store, book_) {
  metrics_.reference_epoch.Set(epoch.number);
  SPDLOG_INFO("reference timescale: epoch {}", epoch.number);
}

// Ends fits first, then the background thread. The members then stop in the reverse order of
// declaration.
ClockService::~ClockService() {
  // First, as the background thread may be fitting.
  book_.Close();
  background_.Quit();
  if (background_thread_.joinable()) background_thread_.join();
}

// An error is logged; the next try is in ten minutes.
void ClockService::PruneAndReschedule() {
  if (const absl::Status status = Prune(); !status.ok()) {
    SPDLOG_WARN("cannot remove old clock evidence: {}", std::string(status.message()));
  }
  background_.PostDelayedTask([this] { PruneAndReschedule(); }, kPruneIntervalNs);
}

void ClockService::FinalizeAndReschedule() {
  const absl::Status status = finalizer_.Run();
  if (!status.ok() && !absl::IsCancelled(status)) {
    SPDLOG_WARN("cannot store final models of captures' clocks: {}", std::string(status.message()));
  }
  background_.PostDelayedTask([this] { FinalizeAndReschedule(); }, kFinalizeIntervalNs);
}

// The responder comes first, because the gateway announces its port to agents.
absl::Status ClockService::Listen(const Options& options) {
  if (options.udp_probes) {
    auto responder = ProbeResponder::Start(HostOf(options.listen),
                                           options.probe_port.value_or(PortOf(options.listen)),
                                           {host_clocks_, timescale_, keys_, probe_metrics_});
    if (responder.ok()) {
      responder_ = *std::move(responder);
      // A port that was requested has to work; without a request gRPC is good enough.
    } else if (options.probe_port) {
      return responder.status();
    } else {
      SPDLOG_WARN("{}; agents probe over gRPC", std::string(responder.status().message()));
    }
  }
  gateway_ = std::make_unique<ClockGateway>(
      ClockGateway::Deps{keys_, probe_port(), timescale_, writer_, metrics_, clock_, admission_});
  // Pruning waits for one interval; finalizing starts at once.
  background_.PostDelayedTask([this] { PruneAndReschedule(); }, kPruneIntervalNs);
  background_.PostTask([this] { FinalizeAndReschedule(); });
  background_thread_ = std::thread([this] { background_.Run(); });
  return absl::OkStatus();
}

// Polls, because evidence arrives by way of the store and nothing signals it. Streams are read only
// if the capture ended a moment ago.
absl::Status ClockService::AwaitEvidence(const CaptureRecord& record) const {
  const auto can_continue = [&] {
    return HasEnded(record.state) && !book_.is_closed() &&
           clock_.RealtimeNs() < record.ended_realtime_ns + kLastEvidenceNs;
  };
  if (!can_continue()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const LastEvents last_events, LastEventsOf(store_, record));
  while (can_continue()) {
    ASSIGN_OR_RETURN(const bool reaches, EvidenceReaches(store_.clocks(), last_events));
    if (reaches) break;
    std::this_thread::sleep_for(kRetryDelay);
  }
  return absl::OkStatus();
}

absl::StatusOr<CaptureClocks> ClockService::ForCapture(const CaptureRecord& record) {
  RETURN_IF_ERROR(AwaitEvidence(record));
  return book_.ForCapture(record);
}

absl::StatusOr<CaptureClocks> ClockService::HostsOfCapture(const CaptureRecord& record) const {
  RETURN_IF_ERROR(AwaitEvidence(record));
  return book_.HostsOfCapture(record);
}

// Every stored capture keeps the evidence of its window; all other evidence goes by age.
absl::Status ClockService::Prune() {
  ASSIGN_OR_RETURN(const std::vector<CaptureRecord> captures, store_.captures().List());
  std::vector<RealtimeWindow> keep;
  keep.reserve(captures.size());
  const uint64_t now_ns = clock_.RealtimeNs();
  for (const CaptureRecord& capture : captures) {
    ASSIGN_OR_RETURN(const RealtimeWindow window, WindowOf(store_, capture, now_ns));
    keep.push_back(window);
  }
  ASSIGN_OR_RETURN(const ClockEvidenceStore::Pruned pruned,
                   store_.clocks().Prune(now_ns - std::min(now_ns, retention_ns_), keep));
  metrics_.batches_pruned.Increment(static_cast<double>(pruned.batches));
  return absl::OkStatus();
}

// Uses the live models, which are fitted every LiveClocks::kRefreshNs.
std::vector<ClockService::HostBound> ClockService::BoundsOf(const CaptureRecord& record) const {
  const uint64_t now_ns = timescale_.NowNs();
  std::set<HostBoot> hosts;
  for (const CaptureWorkerStatus& status : record.workers) {
    hosts.insert({status.worker.instance_id, status.worker.boot_id});
  }
  std::vector<HostBound> bounds;
  for (const HostBoot& host : hosts) {
    const auto moment = live_.MomentOn(host, now_ns);
    if (moment) bounds.push_back({host.instance_id, moment->bound_ns});
  }
  return bounds;
}

}  // namespace neurontrace
