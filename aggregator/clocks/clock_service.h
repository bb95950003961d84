// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/registry.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "aggregator/clocks/clock_finalizer.h"
#include "aggregator/clocks/clock_model_cache.h"
#include "aggregator/clocks/live_clocks.h"
#include "aggregator/clocks/order_classes.h"
#include "aggregator/clocks/reference_host_clock_collector.h"
#include "aggregator/ingest/clock_evidence_writer.h"
#include "aggregator/ingest/clock_gateway.h"
#include "aggregator/reference/probe_keys.h"
#include "aggregator/reference/probe_responder.h"
#include "aggregator/reference/reference_timescale.h"
#include "aggregator/session/session_environment.h"
#include "aggregator/store/store.h"
#include "lib/base/clock.h"
#include "lib/base/event_loop.h"
#include "lib/base/random.h"
#include "lib/clock/host_clocks.h"
#include "lib/wire/call_admission.h"

namespace neurontrace {

// Everything of an aggregator that concerns clocks: the reference timescale, the responder to
// probes, storage of agents' evidence, collection of its own host's evidence, and models. Builds,
// connects and owns these parts.
// thread: clock models: makes the models of ended captures final, removes old evidence
class ClockService final : public SessionClocks {
 public:
  // How far a moment can be off on a host.
  struct HostBound {
    std::string instance_id;
    uint64_t bound_ns = 0;
  };
  // Comes from the aggregator's configuration.
  struct Options {
    std::string listen = "127.0.0.1:0";  // HOST:PORT of gRPC; probes use the same host
    std::optional<uint16_t> probe_port;  // nullopt: the port of `listen` if it is free
    bool udp_probes = true;
    uint32_t evidence_hours = 24;  // how long to keep evidence that no capture needs
    OrderClasses order_checks;
  };
  // All of them must outlive this. `random` makes probe keys; `admission` limits agents' calls,
  // and null admits them all.
  struct Deps {
    Store& store;
    prometheus::Registry& registry;
    Random& random;
    const Clock& clock;
    CallAdmission* admission = nullptr;
  };

  // Answers probes from here on. Fails with the errors of the store, and of a UDP port that was
  // requested by number. If the default port is taken, logs that and continues without UDP.
  static absl::StatusOr<std::unique_ptr<ClockService>> Start(const Options& options,
                                                             const Deps& deps);
  // Makes a fit that is running end soon, and stops the background thread.
  ~ClockService() override;
  ClockService(const ClockService&) = delete;
  ClockService& operator=(const ClockService&) = delete;

  // The gRPC service, to be registered with a server that must end before this.
  ClockGateway& gateway() { return *gateway_; }
  // Returns the UDP port that answers probes; 0: none.
  uint16_t probe_port() const { return responder_ == nullptr ? 0 : responder_->port(); }
  const ReferenceTimescale& timescale() const { return timescale_; }
  // Parts for the rest of the aggregator; valid while this exists. Both are safe on any thread.
  ClockModelCache& book() { return book_; }
  LiveClocks& live() { return live_; }
  // Return what the cache has for a capture. Shortly after its end the last evidence may still be
  // under way: they block until it has arrived, at most until three seconds after the end. Any
  // thread.
  absl::StatusOr<CaptureClocks> ForCapture(const CaptureRecord& record);
  absl::StatusOr<CaptureClocks> HostsOfCapture(const CaptureRecord& record) const;
  // Returns how well the clocks of a capture's hosts are currently known; omits unknown ones. Any
  // thread.
  std::vector<HostBound> BoundsOf(const CaptureRecord& record) const;

  // Implement SessionClocks. None of them waits. ReferenceNs may be called on any thread.
  uint64_t ReferenceNs() const override { return timescale_.NowNs(); }
  std::optional<MomentOnHost> MomentOn(const AgentInfo& agent,
                                       uint64_t reference_ns) const override {
    return live_.MomentOn({agent.instance_id, agent.boot_id}, reference_ns);
  }
  void RefreshSoon() override { live_.Refresh(); }

  // Removes evidence that is older than configured and that no capture needs. Can take as long as
  // reading that evidence. Any thread.
  absl::Status Prune();

 private:
  // Waits until the evidence reaches the last events or cannot be expected any more, see
  // ForCapture.
  absl::Status AwaitEvidence(const CaptureRecord& record) const;
  // Builds the parts; Start then calls Listen.
  ClockService(const Options& options, const Deps& deps, const ReferenceEpoch& epoch);
  // Starts the responder, the gateway and the background thread. Fails only for a port that was
  // requested.
  absl::Status Listen(const Options& options);
  // Prune and finalize, and post themselves again. Called on background_.
  void PruneAndReschedule();
  void FinalizeAndReschedule();

  const uint64_t retention_ns_;
  CallAdmission* const admission_;
  Store& store_;
  const Clock& clock_;
  // Read by the timescale and the responder.
  SystemHostClocks host_clocks_;
  // The parts below use those above them, so the order of declaration matters.
  ReferenceTimescale timescale_;
  ProbeKeys keys_;
  ProbeMetrics probe_metrics_;
  ClockMetrics metrics_;
  ClockEvidenceWriter writer_;
  ClockModelCacheMetrics book_metrics_;
  ClockModelCache book_;
  LiveClocks live_;
  ClockFinalizer finalizer_;                   // used on background_ only
  std::unique_ptr<ProbeResponder> responder_;  // null: no UDP
  std::unique_ptr<ClockGateway> gateway_;
  std::unique_ptr<ReferenceHostClockCollector> keeper_;
  // Runs pruning and finalizing, whose work is too long for other threads.
  EventLoop background_;
  std::thread background_thread_;
};

}  // namespace neurontrace
