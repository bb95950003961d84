// SPDX-License-Identifier: Apache-2.0
#include "aggregator/clocks/live_clocks.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "aggregator/align/core/clock_reading.h"
#include "aggregator/align/host_fit.h"
#include "aggregator/store/clock_evidence_store.h"

namespace neurontrace {
namespace {

// Two clocks differ by at most 200 ppm, so each step leaves a five-thousandth of the error.
constexpr int kInversionSteps = 4;

}  // namespace

// The first fit runs on the thread, so that the constructor does not wait for the disk.
LiveClocks::LiveClocks(const ClockEvidenceStore& evidence, const Clock& clock)
    : evidence_(evidence), clock_(clock) {
  loop_.PostTask([this] { RefreshAndReschedule(); });
  thread_ = std::thread([this] { loop_.Run(); });
}

LiveClocks::~LiveClocks() {
  loop_.Quit();
  thread_.join();
}

void LiveClocks::RefreshAndReschedule() {
  RefreshNow();
  loop_.PostDelayedTask([this] { RefreshAndReschedule(); }, kRefreshNs);
}

void LiveClocks::Refresh() {
  loop_.PostTask([this] { RefreshNow(); });
}

// Fits without the lock and replaces all models at once: readers see either the old or the new
// ones.
void LiveClocks::RefreshNow() {
  const auto hosts = evidence_.Hosts();
  if (!hosts.ok()) {
    SPDLOG_WARN("hosts' clocks: {}", std::string(hosts.status().message()));
    return;
  }
  const uint64_t now_ns = clock_.RealtimeNs();
  const RealtimeWindow window{.begin_ns = now_ns > kEvidenceNs ? now_ns - kEvidenceNs : 0};
  auto models = std::make_shared<Models>();
  for (const HostBoot& host : *hosts) {
    if (IsReferenceHost(host)) continue;
    const auto evidence = evidence_.Read(host, window);
    // Damage is reported by those who need the evidence for a capture.
    if (!evidence.ok() || evidence->exchanges.empty()) continue;
    // UTC is not used, because a moment needs the relation to the reference only.
    ClockModel model = FitHostClock(*evidence, {});
    if (!model.segments.empty()) models->emplace(host, std::move(model));
  }
  const MutexLock lock(mutex_);
  models_ = std::move(models);
}

std::shared_ptr<const LiveClocks::Models> LiveClocks::models() const {
  const MutexLock lock(mutex_);
  return models_;
}

// Works on a shared copy, so a fit that ends meanwhile changes nothing.
std::optional<MomentOnHost> LiveClocks::MomentOn(const HostBoot& host,
                                                 uint64_t reference_ns) const {
  const std::shared_ptr<const Models> all = models();
  const auto it = all->find(host);
  return it == all->end() ? std::nullopt : MomentBy(it->second, reference_ns);
}

std::map<std::string, uint64_t> LiveClocks::BoundsAt(uint64_t reference_ns) const {
  const std::shared_ptr<const Models> all = models();
  std::map<std::string, uint64_t> bounds;
  for (const auto& [host, model] : *all) {
    const auto moment = MomentBy(model, reference_ns);
    if (!moment) continue;
    const auto [known, is_new] = bounds.try_emplace(host.instance_id, moment->bound_ns);
    if (!is_new) known->second = std::min(known->second, moment->bound_ns);
  }
  return bounds;
}

// Uses the last segment only, as a moment is near now.
std::optional<MomentOnHost> LiveClocks::MomentBy(const ClockModel& model, uint64_t reference_ns) {
  const ClockSegment& segment = model.segments.back();
  // Inverts the model by iteration: the error in reference time is nearly the error in raw. The
  // difference wraps correctly if the moment is before the knot.
  uint64_t raw_ns = segment.knots.back().x_ns + (reference_ns - segment.knots.back().y_ns);
  ClockEstimate estimate = EvaluateSegment(segment, raw_ns);
  for (int i = 0; i < kInversionSteps; ++i) {
    raw_ns += reference_ns - estimate.y_ns;
    estimate = EvaluateSegment(segment, raw_ns);
  }
  if (estimate.bound_ns == kNoBound || raw_ns == 0) return std::nullopt;
  return MomentOnHost{.raw_ns = raw_ns, .bound_ns = estimate.bound_ns};
}

}  // namespace neurontrace
