// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "agent/control/control_stream.h"
#include "agent/upload/upload_stream.h"
#include "neurontrace/v1/agent_gateway.pb.h"
#include "tests/sim/sim_call.h"
#include "tests/sim/sim_world.h"

namespace neurontrace {

using UploadSimCall = SimCall<v1::ChunkEnvelope, v1::UploadAck>;
using ControlSimCall = SimCall<v1::AgentReport, v1::AgentOrder>;

// Answers calls. Accept is called within a task of the world.
class SimServer {
 public:
  virtual ~SimServer() = default;
  virtual void AcceptUpload(std::shared_ptr<UploadSimCall> call, const std::string& agent_id) = 0;
  virtual void AcceptControl(std::shared_ptr<ControlSimCall> call) = 0;
};

// Connects agents with the aggregator that there is at the moment. Links outlive it.
class SimNetwork {
 public:
  explicit SimNetwork(SimWorld& world) : world_(world) {}
  ~SimNetwork();

  // nullptr: nobody listens. The calls of the one before are dropped; their clients hear of it
  // after `reported_after_ns`.
  void SetServer(SimServer* server, uint64_t reported_after_ns);

  // Envelopes that get a wrong byte, of a thousand: refused for good.
  void SetCorruption(uint32_t per_mille) { corrupt_per_mille_ = per_mille; }

  UploadConnector MakeUploadConnector(SimLink& link, const std::string& agent_id);
  ControlConnector MakeControlConnector(SimLink& link);

  // The link's calls break.
  void BreakCalls(SimLink& link);
  // The link works again: what waited continues.
  void Unblock(SimLink& link);
  // The agent's machine is gone without a word.
  void Silence(SimLink& link);

 private:
  template <typename Call>
  void Begin(const std::shared_ptr<Call>& call, std::vector<std::weak_ptr<Call>>& calls,
             std::function<void(SimServer&, std::shared_ptr<Call>)> accept);
  template <typename Visit>
  void ForEach(Visit visit);

  SimWorld& world_;
  SimServer* server_ = nullptr;
  uint32_t corrupt_per_mille_ = 0;
  std::vector<std::weak_ptr<UploadSimCall>> uploads_;
  std::vector<std::weak_ptr<ControlSimCall>> controls_;
};

}  // namespace neurontrace
