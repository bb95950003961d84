// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include "base/clock.h"
#include "neurontrace/v1/agent_gateway.grpc.pb.h"

namespace neurontrace {

// Answers clock probes, one at a time, with the reference clock: this machine's CLOCK_REALTIME.
// Deletes itself when gRPC says OnDone. gRPC tells one thing after the other here, as each step
// begins the next one; there is no lock.
class ProbeCall final : public grpc::ServerBidiReactor<v1::ClockProbe, v1::ClockProbeReply> {
 public:
  explicit ProbeCall(const Clock& clock) : clock_(clock) { StartRead(&probe_); }

  void OnReadDone(bool ok) override {
    const uint64_t receive_ns = clock_.RealtimeNs();
    if (!ok) {
      Finish(grpc::Status::OK);
      return;
    }
    reply_.set_sequence(probe_.sequence());
    reply_.set_agent_send_ns(probe_.agent_send_ns());
    reply_.set_reference_receive_ns(receive_ns);
    reply_.set_reference_send_ns(clock_.RealtimeNs());
    StartWrite(&reply_);
  }
  void OnWriteDone(bool ok) override {
    if (ok) {
      StartRead(&probe_);
    } else {
      Finish(grpc::Status::OK);
    }
  }
  void OnDone() override { delete this; }

 private:
  const Clock& clock_;
  v1::ClockProbe probe_;
  v1::ClockProbeReply reply_;
};

}  // namespace neurontrace
