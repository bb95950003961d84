// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lib/base/clock.h"
#include "lib/clock/host_clocks.h"
#include "lib/trace/clock_evidence.h"
#include "simulate/fleet_dice.h"
#include "simulate/fleet_model.h"

namespace neurontrace {

// The aggregator's timescale as a function of a replayed run's true time.
struct ReplayReference {
  uint32_t epoch = 0;
  uint64_t true_ns = 0;       // at this true time …
  uint64_t reference_ns = 0;  // … the timescale shows this
  // Returns what the timescale shows at a true time.
  uint64_t At(uint64_t at_true_ns) const { return reference_ns + (at_true_ns - true_ns); }
};

// The clocks of one simulated instance during a replay, and the evidence that an agent would
// collect about them. REALTIME is wrong and drifts as the plan says. CLOCK_MONOTONIC_RAW drifts
// alike, as nothing disciplines the host's clock, and does not step. All clocks show the true time
// that the replay has reached: an event is never newer than a canary that follows it, whatever the
// machine's load is. One thread, although the interfaces allow for more.
class ReplayHost final : public Clock, public HostClocks {
 public:
  // The distance between two readings of the clocks.
  static constexpr uint64_t kEvidenceNs = 500'000'000;

  // Equal seeds and instances give equal delays of probes.
  ReplayHost(uint64_t seed, uint32_t instance, const ReplayReference& reference);

  // The run has come to this true time; earlier times have no effect. `clock` is that of the
  // instance by then.
  void Reach(uint64_t true_ns, const FleetClock& clock);
  // Returns the evidence of the time since the last call that has evidence: snapshots, exchanges
  // with the aggregator, and a step if there was one. With `is_last` it reaches beyond the last
  // event.
  ClockEvidence TakeEvidence(bool is_last);

  // Clock. Durations are of true time: an age in a chunk is that of the run, whatever the speed.
  uint64_t RealtimeNs() const override { return clock_.HostTime(true_ns_); }
  uint64_t MonotonicNs() const override { return RawNs(); }
  uint64_t BoottimeNs() const override { return RawNs(); }
  // HostClocks
  uint64_t RawNs() const override { return RawAt(true_ns_); }
  ClockSnapshot ReadOnce() const override { return SnapshotAt(true_ns_); }
  void ReadSteering(ClockSnapshot&) const override {}  // nothing steers them

 private:
  uint64_t RawAt(uint64_t true_ns) const;
  ClockSnapshot SnapshotAt(uint64_t true_ns) const;
  ClockExchange ExchangeAt(uint64_t true_ns);

  const ReplayReference reference_;
  FleetDice dice_;
  FleetClock clock_;
  uint64_t true_ns_ = 0;           // 0: the run has not begun
  uint64_t evidence_true_ns_ = 0;  // of the next reading; 0: there was none
  bool has_reported_step_ = false;
};

}  // namespace neurontrace
