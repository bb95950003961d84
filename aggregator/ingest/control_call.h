// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "aggregator/ingest/agent_connections.h"
#include "aggregator/ingest/agent_reports.h"
#include "base/task_runner.h"
#include "neurontrace/v1/agent_gateway.grpc.pb.h"

namespace neurontrace {

// What every Control call uses; outlives them all. `reports` is used on `sequence` only.
struct ControlDeps {
  TaskRunner& sequence;
  AgentReports& reports;
  AgentConnections& connections;
};

// One agent's Control call: reports go to the coordinator's sequence one after the other, the next
// one is read when the last was dealt with. Owns itself until gRPC's OnDone; gRPC's own calls are
// made without the lock.
class ControlCall final : public grpc::ServerBidiReactor<v1::AgentReport, v1::AgentOrder>,
                          public std::enable_shared_from_this<ControlCall> {
 public:
  static ControlCall* Begin(const ControlDeps& deps);

  // Any thread. An agent that lets limits::kAgentOrdersMax orders lie is disconnected.
  void Send(v1::AgentOrder order);
  void End(const grpc::Status& status);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  struct Next {
    bool read = false;
    bool write = false;
    bool finish = false;
  };

  explicit ControlCall(const ControlDeps& deps) : deps_(deps) {}
  void Handle();  // `incoming_`, on the sequence
  Next Plan();    // with the lock
  void Act(const Next& next);

  const ControlDeps deps_;
  ConnectionId connection_ = 0;
  std::string agent_id_;               // only on the sequence; empty until the hello
  std::shared_ptr<ControlCall> self_;  // until OnDone
  v1::AgentReport incoming_;           // gRPC's while reading_, the sequence's after
  v1::AgentOrder outgoing_;            // gRPC's while writing_

  std::mutex mutex_;
  // All guarded by mutex_:
  std::deque<v1::AgentOrder> orders_;
  bool reading_ = false;
  bool handling_ = false;
  bool writing_ = false;
  bool ending_ = false;
  bool cancelled_ = false;
  bool finished_ = false;
  grpc::Status status_;
};

}  // namespace neurontrace
