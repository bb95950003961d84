// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "agent/source/framework/on_demand/framework_recorder.h"
#include "agent/source/framework/on_demand/kineto_socket.h"
#include "agent/source/framework/on_demand/kineto_states.h"
#include "agent/source/neuron/tap/peer_identity.h"
#include "agent/source/source_metrics.h"
#include "lib/base/clock.h"

namespace neurontrace {

// Has PyTorch record on demand: answers the workers that ask KinetoSocket for orders, and knows by
// their rhythm who can be reached before a planned moment. A worker of a capture is the client with
// its process, by pid and start time from the kernel; what clients claim of themselves is not used.
// Clients beyond limits::kKinetoClientsMax are counted and get no orders. On the agent's sequence.
//
// Times are CLOCK_REALTIME for the moments of captures, which workers compare with their own, and
// monotonic for everything else.
class KinetoRecorder final : public FrameworkRecorder, public KinetoOrders {
 public:
  // How often a worker asks, unless its own rhythm is known (libkineto's
  // ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS).
  static constexpr uint64_t kPollNs = 5'000'000'000;
  // An order that arrives later than this before the moment would begin late.
  static constexpr uint64_t kPrepareNs = 500'000'000;
  // Kineto begins a trace of the next step at a multiple of this number.
  static constexpr uint32_t kStepRoundUp = 100;

  // `trace_directory` is the framework directory, where the workers write; absolute. The
  // references outlive the recorder.
  KinetoRecorder(std::string trace_directory, ProcFiles proc, const Clock& clock,
                 AgentSourceMetrics& metrics);

  // FrameworkRecorder
  std::string_view framework() const override { return "pytorch"; }
  void Begin(const FrameworkOrder& order) override;
  void OnFile(const CaptureId& capture_id, std::string_view name) override;
  void Stop(const CaptureId& capture_id) override;
  void Poll() override;
  std::vector<FrameworkTrace> Traces(const CaptureId& capture_id) const override;
  bool IsFileOf(const CaptureId& capture_id, std::string_view name) const override;
  void Forget(const CaptureId& capture_id) override { captures_.erase(capture_id); }

  // KinetoOrders
  std::string OnRequest(const KinetoClient& client, bool takes_activities) override;
  void OnNotDelivered(const KinetoClient& client) override;

  // Returns the number of processes that ask for orders.
  size_t clients() const { return clients_.size(); }

 private:
  // A process that asks for orders.
  struct Client {
    uint64_t start_time_ticks = 0;
    uint64_t asked_ns = 0;         // last, monotonic
    uint64_t period_ns = kPollNs;  // between its last two requests
    bool takes_activities = false;
  };
  // One worker of a capture.
  struct Target {
    WorkerIdentity worker;
    KinetoState state = KinetoState::kUnknown;
  };
  struct Capture {
    FrameworkOrder order;
    std::vector<Target> targets;
    bool is_closed = false;  // nobody else is asked
    bool stopped = false;
    bool stopped_early = false;  // before the end of the trace, which continues
    uint64_t deadline_ns = 0;    // monotonic, for files; 0: not stopped
  };

  static bool IsByStep(const FrameworkOrder& order) { return order.steps > 0; }
  // Returns the client of the worker, or null.
  const Client* FindClient(const WorkerIdentity& worker) const;
  // Returns the client with this request taken into account; null beyond the limit.
  Client* UpdateClient(const KinetoClient& client, bool takes_activities);
  // Returns whether the client has an order that it has not finished, as far as that is known.
  bool HasOrder(const Client& client) const;
  // Returns whether an order for the capture would still arrive in time.
  bool IsInTime(const Capture& capture) const;
  static void Apply(KinetoEvent event, Target& target);
  static void ApplyToAll(KinetoEvent event, Capture& capture);
  std::string ConfigFor(const FrameworkOrder& order, const WorkerIdentity& worker) const;
  std::string DetailOf(const Capture& capture, const Target& target) const;

  const std::string trace_directory_;
  const ProcFiles proc_;
  const Clock& clock_;
  AgentSourceMetrics& metrics_;
  std::map<uint32_t, Client> clients_;  // by pid
  std::map<CaptureId, Capture> captures_;
  CaptureId ordered_;  // the capture of the order that was returned last
};

}  // namespace neurontrace
