// SPDX-License-Identifier: Apache-2.0
#include "aggregator/maintenance/maintenance.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <optional>
#include <string>

#include "aggregator/access/system_audit_events.h"
#include "aggregator/ingest/canary_ages.h"
#include "lib/base/post_and_wait.h"
#include "lib/trace/capture_limits.h"
#include "lib/wire/security_watch.h"

namespace neurontrace {
namespace {

// Ticks carry out moments of captures, which are announced at least 60 ms ahead.
constexpr uint64_t kTickNs = 20'000'000;       // while a capture runs
constexpr uint64_t kIdleTickNs = 200'000'000;  // otherwise
// How often metrics are published and streaming calls are checked.
constexpr uint64_t kPublishIntervalNs = 1'000'000'000;
// How long retention waits for the sequence before it gives up for this time.
constexpr std::chrono::seconds kReleasePatience{10};

}  // namespace

Maintenance::Maintenance(const Deps& deps)
    : deps_(deps),
      clock_bounds_(deps.registry),
      retention_({.store = deps.storage.store(),
                  .registry = deps.registry,
                  .clock = deps.clock,
                  .clocks = deps.clocks,
                  .clock_steps = deps.clock_steps,
                  .leases = deps.exports.leases(),
                  .changes = deps.changed_retentions,
                  .owner = *this}) {
  deps_.sequence.PostTask([this] { Tick(); });
}

// Forgetting comes first: a capture that awaits late agents has ended, and its deletion is a reason
// to stop waiting.
bool Maintenance::ReleaseForDeletion(const CaptureId& capture) {
  const auto is_free = PostAndWait(deps_.sequence, "the aggregator", kReleasePatience, [&] {
    deps_.coordinator.Forget(capture);
    return deps_.coordinator.FindRunning(capture) == nullptr;
  });
  // A sequence that does not answer counts as using the capture; retention asks again.
  return is_free.value_or(false);
}

void Maintenance::OnExpired(const Expired& expired) {
  deps_.access.audit().Write(DeletedByRetention({.capture = expired.capture,
                                                 .job = expired.job,
                                                 .is_whole = expired.is_whole,
                                                 .events = expired.events,
                                                 .chunks = expired.chunks,
                                                 .bytes = expired.bytes}));
}

void Maintenance::RunDiskChores() {
  Storage& storage = deps_.storage;
  // First, because the rest fails anyway if the store cannot be written.
  storage.CheckHealth();
  for (const CaptureId& id : deps_.previews.Reap()) {
    deps_.sequence.PostTask([this, id] { deps_.coordinator.Forget(id); });
  }
  const absl::Status refreshed = storage.quota().Refresh(CaptureAllowance::kAgeMaxNs);
  if (!refreshed.ok()) SPDLOG_WARN("{}", std::string(refreshed.message()));
  storage.metrics().UpdateDiskMetrics();
  clock_bounds_.Publish(deps_.clocks.live().BoundsAt(deps_.clocks.ReferenceNs()));
  deps_.metrics.SetSecurityEnds(EndsOf(deps_.security));
}

// The watchdog comes first; it notices a sequence on which ticks no longer run.
void Maintenance::Tick() {
  deps_.turns.Turn();
  deps_.coordinator.Tick();
  deps_.triggers.Tick();
  deps_.live_insight.Tick(deps_.coordinator);
  if (deps_.clock.MonotonicNs() >= published_monotonic_ns_ + kPublishIntervalNs) {
    deps_.exports.calls().Poll();
    deps_.watches.Poll();
    deps_.views.Poll();
    CheckMachineClock();
    PublishMetrics();
  }
  // Nothing is due in milliseconds without a running capture, and an idle aggregator should cost
  // little.
  const bool is_idle = deps_.coordinator.running() == 0;
  deps_.sequence.PostDelayedTask([this] { Tick(); }, is_idle ? kIdleTickNs : kTickNs);
}

void Maintenance::CheckMachineClock() {
  const std::optional<std::string> news = deps_.clock_steps.Check();
  if (!news) return;
  SPDLOG_WARN("{}", *news);
  for (const CaptureRecord& capture : deps_.coordinator.Running()) {
    deps_.coordinator.Warn(capture.id, *news);
  }
}

void Maintenance::PublishMetrics() {
  published_monotonic_ns_ = deps_.clock.MonotonicNs();
  AggregatorMetrics& metrics = deps_.metrics;
  const Coordinator& coordinator = deps_.coordinator;
  const AgentRegistry& registry = coordinator.registry();
  Store& store = deps_.storage.store();
  metrics.agents_connected.Set(static_cast<double>(registry.connected()));
  metrics.workers.Set(static_cast<double>(registry.workers()));
  metrics.captures_running.Set(static_cast<double>(coordinator.running()));
  metrics.captures_stored.Set(static_cast<double>(store.captures().size()));
  metrics.chunks_damaged.Set(static_cast<double>(store.chunks().damaged_chunks()));
  metrics.store_bytes.Set(static_cast<double>(store.bytes()));
  deps_.access.PublishMetrics();
  deps_.page.PublishMetrics();
  deps_.process.Publish();
  deps_.storage.metrics().Publish();
  CanaryAges& canaries = deps_.canaries;
  canaries.KeepOnly(
      [&coordinator](const CaptureId& id) { return coordinator.FindRunning(id) != nullptr; });
  // No canary is due from a lost agent: captures continue with the others.
  const uint64_t now_ns = deps_.clock.RealtimeNs();
  canaries.ForgetLost(limits::kAgentLostForNs, published_monotonic_ns_,
                      [&](const std::string& agent_id) {
                        return IsAwayFor(registry.Find(agent_id), limits::kAgentLostForNs, now_ns);
                      });
  metrics.streams_live.Set(static_cast<double>(canaries.streams()));
  metrics.SetCanaryAge(canaries.OldestNs(published_monotonic_ns_));
}

}  // namespace neurontrace
