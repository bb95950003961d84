// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "aggregator/ingest/agent_connections.h"
#include "aggregator/ingest/agent_reports.h"
#include "base/task_runner.h"
#include "neurontrace/v1/agent_gateway.pb.h"

namespace neurontrace {

// What every Control call uses; outlives them all. `reports` is used on `sequence` only.
struct ControlDeps {
  TaskRunner& sequence;
  AgentReports& reports;
  AgentConnections& connections;
};

// What is said in one agent's Control call, without the call: reports go to the coordinator's
// sequence one after the other, the next one is read when the last was dealt with. Any thread; the
// transport is used without the lock.
class ControlExchange final : public std::enable_shared_from_this<ControlExchange> {
 public:
  // The call: each begins one thing, whose end comes by the method named; one of each at a time.
  // Not used any more once `finish` was called.
  struct Transport {
    std::function<void(v1::AgentReport*)> read;        // OnReadDone
    std::function<void(const v1::AgentOrder*)> write;  // OnWriteDone
    std::function<void(const grpc::Status&)> finish;   // OnDone
  };

  ControlExchange(const ControlDeps& deps, Transport transport)
      : deps_(deps), transport_(std::move(transport)) {}
  void Begin();

  // An agent that lets limits::kAgentOrdersMax orders lie is disconnected.
  void Send(v1::AgentOrder order);
  void End(const grpc::Status& status);

  void OnReadDone(bool ok);
  void OnWriteDone(bool ok);
  void OnCancel();
  void OnDone();

 private:
  struct Next {
    bool read = false;
    bool write = false;
    bool finish = false;
  };

  void Handle();  // `incoming_`, on the sequence
  Next Plan();    // with the lock
  void Act(const Next& next);

  const ControlDeps deps_;
  const Transport transport_;
  ConnectionId connection_ = 0;
  std::string agent_id_;      // only on the sequence; empty until the hello
  v1::AgentReport incoming_;  // the transport's while reading_, the sequence's after
  v1::AgentOrder outgoing_;   // the transport's while writing_

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
