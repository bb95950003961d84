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

namespace neurontrace {

// The aggregator's own clock evidence: snapshots, events and UTC of the host that keeps the
// reference, collected as an agent does on its host and stored under ReferenceKeeper. It is what
// relates the reference to UTC; nobody is worse off without. On a thread of its own, as nothing
// there may wait for anything.
// thread: own clocks: collects evidence about the clocks of the aggregator's host
class ReferenceHostClockCollector {
 public:
  // Batches that are given to the writer and not durable yet. Beyond: a new one is dropped, and
  // counted.
  static constexpr int kBatchesWaitingMax = 16;

  // What is in `deps` outlives this.
  struct Deps {
    const ReferenceTimescale& timescale;
    ClockEvidenceWriter& writer;
    ClockMetrics& metrics;
    const Clock& clock;
  };
  // Begins to work at once. `raw_origin`: what the timescale's raw counts from.
  ReferenceHostClockCollector(const Deps& deps, std::string raw_origin);
  // Ends at once; what was collected in the last moments is lost.
  ~ReferenceHostClockCollector();
  ReferenceHostClockCollector(const ReferenceHostClockCollector&) = delete;
  ReferenceHostClockCollector& operator=(const ReferenceHostClockCollector&) = delete;

 private:
  void Start();
  void Store(ClockEvidence batch);

  const Deps deps_;
  const std::string raw_origin_;
  EventLoop loop_;
  SystemHostClocks host_clocks_;
  SystemFileSystem files_;
  SystemRandom random_;
  std::unique_ptr<ClockCollector> collector_;  // made, used and destroyed on loop_'s sequence
  // The writer may call back when this is gone.
  const std::shared_ptr<std::atomic<int>> waiting_ = std::make_shared<std::atomic<int>>(0);
  bool has_dropped_ = false;  // on loop_'s sequence
  std::thread thread_;
};

// Everything of an aggregator that is about clocks: the reference timescale, who answers probes
// with it, what stores the evidence of agents, what collects that of its own host, and what makes
// models of it. Builds it, connects it and owns it.
// thread: clock models: makes the models of ended captures final, removes old evidence
class ClockService final : public SessionClocks {
 public:
  // How far a moment can be off on a host.
  struct HostBound {
    std::string instance_id;
    uint64_t bound_ns = 0;
  };
  struct Options {
    std::string listen = "127.0.0.1:0";  // HOST:PORT of gRPC, whose host and port probes use, too
    std::optional<uint16_t> probe_port;  // nullopt: the port of `listen`, or none if it is taken
    bool udp_probes = true;
    uint32_t evidence_hours = 24;  // how long evidence is kept that no capture needs
    OrderClasses order_checks;
  };
  struct Deps {
    Store& store;
    prometheus::Registry& registry;
    Random& random;
    const Clock& clock;
    AdmitCall admit;
  };

  // Answers probes from here on; what is in `deps` outlives this. Errors of the store, and of a UDP
  // port that was asked for by its number, as they are said to people.
  static absl::StatusOr<std::unique_ptr<ClockService>> Start(const Options& options,
                                                             const Deps& deps);
  ~ClockService() override;
  ClockService(const ClockService&) = delete;
  ClockService& operator=(const ClockService&) = delete;

  // To be registered with a server, which this outlives.
  ClockGateway& gateway() { return *gateway_; }
  // Where probes are answered over UDP; 0: nowhere.
  uint16_t probe_port() const { return responder_ == nullptr ? 0 : responder_->port(); }
  const ReferenceTimescale& timescale() const { return timescale_; }
  ClockModelCache& book() { return book_; }
  LiveClocks& live() { return live_; }
  // What the book says of a capture. Of one that has just ended the last evidence may be on its
  // way: blocks until it has come, for three seconds from the end at most. Any thread.
  absl::StatusOr<CaptureClocks> OfCapture(const CaptureRecord& record);
  absl::StatusOr<CaptureClocks> HostsOfCapture(const CaptureRecord& record) const;
  // How well the clocks of a capture's hosts are known now; without those that are not known. Any
  // thread.
  std::vector<HostBound> BoundsOf(const CaptureRecord& record) const;

  // SessionClocks. ReferenceNs may be called from any thread: it is what maps of clocks lead to.
  uint64_t ReferenceNs() const override { return timescale_.NowNs(); }
  std::optional<MomentOnHost> MomentOn(const AgentInfo& agent,
                                       uint64_t reference_ns) const override {
    return live_.MomentOn({agent.instance_id, agent.boot_id}, reference_ns);
  }
  void RefreshSoon() override { live_.Refresh(); }

  // Removes evidence that is older than the configuration says and that no capture needs. May take
  // as long as reading it does. Any thread.
  absl::Status Prune();

 private:
  absl::Status AwaitEvidence(const CaptureRecord& record) const;
  ClockService(const Options& options, const Deps& deps, const ReferenceEpoch& epoch);
  absl::Status Listen(const Options& options);
  void PruneAndAgain();
  void FinalizeAndAgain();

  const uint64_t retention_ns_;
  const AdmitCall admit_;
  Store& store_;
  const Clock& clock_;
  SystemHostClocks host_clocks_;
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
  EventLoop background_;
  std::thread background_thread_;
};

}  // namespace neurontrace
