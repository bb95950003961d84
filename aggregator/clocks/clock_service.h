// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/registry.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/clock/clock_collector.h"
#include "aggregator/clocks/clock_model_cache.h"
#include "aggregator/clocks/live_clocks.h"
#include "aggregator/clocks/order_classes.h"
#include "aggregator/ingest/clock_evidence_writer.h"
#include "aggregator/ingest/clock_gateway.h"
#include "aggregator/reference/probe_keys.h"
#include "aggregator/reference/probe_responder.h"
#include "aggregator/reference/reference_timescale.h"
#include "aggregator/session/session_environment.h"
#include "aggregator/store/store.h"
#include "lib/base/clock.h"
#include "lib/base/event_loop.h"
#include "lib/base/file_system.h"
#include "lib/base/random.h"
#include "lib/clock/host_clocks.h"
#include "lib/wire/call_admission.h"

namespace neurontrace {

// Collects the aggregator's own clock evidence: snapshots, events and UTC of the host that keeps
// the reference. Works as an agent does on its host and stores the evidence under ReferenceKeeper.
// It relates the reference to UTC; nothing else depends on it. Has a thread of its own, because
// nothing on it may wait.
// thread: own clocks: collects evidence about the clocks of the aggregator's host
class ReferenceHostClockCollector final : private ClockCollector::Listener {
 public:
  // Batches passed to the writer and not durable yet. Beyond this a new one is dropped and counted.
  static constexpr int kBatchesWaitingMax = 16;

  // All of them must outlive this. `metrics` counts the batches that are dropped.
  struct Deps {
    const ReferenceTimescale& timescale;
    ClockEvidenceWriter& writer;
    ClockMetrics& metrics;
    const Clock& clock;
  };
  // Starts at once. `raw_origin` identifies what the timescale's raw clock counts from.
  ReferenceHostClockCollector(const Deps& deps, std::string raw_origin);
  // Stops at once; what was collected in the last moments is lost.
  ~ReferenceHostClockCollector() override;
  ReferenceHostClockCollector(const ReferenceHostClockCollector&) = delete;
  ReferenceHostClockCollector& operator=(const ReferenceHostClockCollector&) = delete;

 private:
  // Starts the collector. Called on loop_'s sequence.
  void Start();
  // Implements ClockCollector::Listener: adds an exchange that relates raw to the reference, and
  // submits the batch. Called on loop_'s sequence; does not wait for the disk.
  void OnBatch(ClockEvidence batch) override;

  const Deps deps_;
  const std::string raw_origin_;
  // Runs until the destructor; everything of the collector happens on it.
  EventLoop loop_;
  SystemHostClocks host_clocks_;
  SystemFileSystem files_;
  SystemRandom random_;
  std::unique_ptr<ClockCollector> collector_;  // only used on loop_'s sequence
  // Shared, because the writer may call back when this no longer exists.
  const std::shared_ptr<std::atomic<int>> waiting_ = std::make_shared<std::atomic<int>>(0);
  bool has_dropped_ = false;  // on loop_'s sequence
  std::thread thread_;
};

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
  absl::StatusOr<CaptureClocks> OfCapture(const CaptureRecord& record);
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
  // Waits until the evidence reaches the last events or cannot be expected any more, see OfCapture.
  absl::Status AwaitEvidence(const CaptureRecord& record) const;
  // Builds the parts; Start then calls Listen.
  ClockService(const Options& options, const Deps& deps, const ReferenceEpoch& epoch);
  // Starts the responder, the gateway and the background thread. Fails only for a port that was
  // requested.
  absl::Status Listen(const Options& options);
  // Prune and finalize, and post themselves again. Called on background_.
  void PruneAndAgain();
  void FinalizeAndAgain();

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
