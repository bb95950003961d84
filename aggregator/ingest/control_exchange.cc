// SPDX-License-Identifier: Apache-2.0
#include "aggregator/ingest/control_exchange.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "lib/trace/limits.h"
#include "lib/wire/grpc_status.h"

namespace neurontrace {

void ControlExchange::Begin() {
  connection_ = deps_.connections.Add(weak_from_this());
  Change([] {});
}

void ControlExchange::OnReadDone(bool ok) {
  bool handle = false;
  Change([&]() NT_REQUIRES(mutex_) {
    reading_ = false;
    if (ok && !ending_ && !cancelled_) {
      handle = handling_ = true;
    } else {
      ending_ = true;
    }
  });
  // Outside the lock. The posted task keeps the exchange alive, even if the call ends before it
  // runs.
  if (handle) {
    deps_.sequence.PostTask([self = shared_from_this()] { self->Handle(); });
  }
}

// Runs on the coordinator's sequence. incoming_ is not read into meanwhile, because Plan starts no
// read while handling_ is set.
void ControlExchange::Handle() {
  absl::Status status;
  if (agent_id_.empty()) {
    auto welcome = deps_.reports.Connect(incoming_, connection_, agent_id_);
    status = welcome.status();
    if (welcome.ok()) {
      SPDLOG_INFO("agent {} of {} connected", agent_id_, incoming_.hello().instance_id());
      Send(*std::move(welcome));
      if (auto order = deps_.reports.AfterWelcome()) Send(*std::move(order));
    }
  } else {
    status = deps_.reports.Handle(incoming_, agent_id_, connection_);
  }
  // Only now may the next report be read. This is what slows down the agents of a busy coordinator.
  Change([&]() NT_REQUIRES(mutex_) {
    handling_ = false;
    if (status.ok()) return;
    SPDLOG_WARN("the control call of agent {} ends: {}", agent_id_, std::string(status.message()));
    ending_ = true;
    status_ = ToGrpcStatus(status);
  });
}

void ControlExchange::Send(v1::AgentOrder order) {
  Change([&]() NT_REQUIRES(mutex_) {
    if (ending_ || finished_) return;
    // Orders of one agent are few, so a full queue means that it no longer reads. It gets all
    // orders that still matter when it reconnects.
    if (orders_.size() < limits::kAgentOrdersMax) return orders_.push_back(std::move(order));
    ending_ = true;
    status_ =
        grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "the agent does not read its orders");
    orders_.clear();
  });
}

void ControlExchange::End(const grpc::Status& status) {
  Change([&]() NT_REQUIRES(mutex_) {
    if (ending_ || finished_) return;
    ending_ = true;
    status_ = status;
  });
}

// An ending call sends what is queued but reads nothing more; finishing ends a read that is active.
ControlExchange::Next ControlExchange::Plan() {
  Next next;
  if (!ending_ && !cancelled_ && !reading_ && !handling_) reading_ = next.read = true;
  if (!cancelled_ && !writing_ && !orders_.empty()) {
    outgoing_ = std::move(orders_.front());
    orders_.pop_front();
    writing_ = next.write = true;
  }
  if ((cancelled_ || ending_) && !writing_ && !handling_) finished_ = next.finish = true;
  return next;
}

void ControlExchange::OnDone() {
  deps_.connections.Remove(connection_);
  // On the sequence, after any report that is still being handled there.
  deps_.sequence.PostTask([self = shared_from_this()] {
    if (self->agent_id_.empty()) return;
    SPDLOG_INFO("agent {} disconnected", self->agent_id_);
    self->deps_.reports.Disconnect(self->agent_id_, self->connection_);
  });
}

}  // namespace neurontrace
