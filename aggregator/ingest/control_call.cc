// SPDX-License-Identifier: Apache-2.0
#include "aggregator/ingest/control_call.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "trace/limits.h"
#include "wire/grpc_status.h"

namespace neurontrace {

ControlCall* ControlCall::Begin(const ControlDeps& deps) {
  std::shared_ptr<ControlCall> call(new ControlCall(deps));
  call->self_ = call;
  call->connection_ = deps.connections.Add(call);
  Next next;
  {
    const std::lock_guard lock(call->mutex_);
    next = call->Plan();
  }
  call->Act(next);
  return call.get();
}

void ControlCall::OnReadDone(bool ok) {
  Next next;
  bool handle = false;
  {
    const std::lock_guard lock(mutex_);
    reading_ = false;
    if (ok && !ending_ && !cancelled_) {
      handle = handling_ = true;
    } else {
      ending_ = true;
    }
    next = Plan();
  }
  Act(next);
  if (handle) {
    deps_.sequence.PostTask([call = shared_from_this()] { call->Handle(); });
  }
}

void ControlCall::Handle() {
  absl::Status status;
  if (agent_id_.empty()) {
    auto welcome = deps_.reports.Connect(incoming_, connection_, agent_id_);
    status = welcome.status();
    if (welcome.ok()) {
      SPDLOG_INFO("agent {} of {} connected", agent_id_, incoming_.hello().instance_id());
      Send(*std::move(welcome));
    }
  } else {
    status = deps_.reports.Handle(incoming_, agent_id_, connection_);
  }
  Next next;
  {
    const std::lock_guard lock(mutex_);
    handling_ = false;
    if (!status.ok()) {
      SPDLOG_WARN("the control call of agent {} ends: {}", agent_id_,
                  std::string(status.message()));
      ending_ = true;
      status_ = ToGrpcStatus(status);
    }
    next = Plan();
  }
  Act(next);
}

void ControlCall::Send(v1::AgentOrder order) {
  Next next;
  {
    const std::lock_guard lock(mutex_);
    if (ending_ || finished_) return;
    if (orders_.size() >= limits::kAgentOrdersMax) {
      ending_ = true;
      status_ = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "orders are not being read");
      orders_.clear();
    } else {
      orders_.push_back(std::move(order));
    }
    next = Plan();
  }
  Act(next);
}

void ControlCall::End(const grpc::Status& status) {
  Next next;
  {
    const std::lock_guard lock(mutex_);
    if (ending_ || finished_) return;
    ending_ = true;
    status_ = status;
    next = Plan();
  }
  Act(next);
}

// A call that ends sends what it still has to say, but reads nothing more. A read under way is
// ended by Finish itself.
ControlCall::Next ControlCall::Plan() {
  Next next;
  if (finished_) return next;
  if (!ending_ && !cancelled_ && !reading_ && !handling_) reading_ = next.read = true;
  if (!cancelled_ && !writing_ && !orders_.empty()) {
    outgoing_ = std::move(orders_.front());
    orders_.pop_front();
    writing_ = next.write = true;
  }
  if ((cancelled_ || ending_) && !writing_ && !handling_) finished_ = next.finish = true;
  return next;
}

void ControlCall::Act(const Next& next) {
  if (next.read) StartRead(&incoming_);
  if (next.write) StartWrite(&outgoing_);
  if (next.finish) Finish(status_);
}

void ControlCall::OnWriteDone(bool ok) {
  Next next;
  {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    if (!ok) cancelled_ = true;
    next = Plan();
  }
  Act(next);
}

void ControlCall::OnCancel() {
  Next next;
  {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    next = Plan();
  }
  Act(next);
}

void ControlCall::OnDone() {
  deps_.connections.Remove(connection_);
  deps_.sequence.PostTask([call = std::move(self_)] {
    if (call->agent_id_.empty()) return;
    SPDLOG_INFO("agent {} disconnected", call->agent_id_);
    call->deps_.reports.Disconnect(call->agent_id_, call->connection_);
  });
}

}  // namespace neurontrace
