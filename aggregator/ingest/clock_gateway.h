// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "aggregator/ingest/clock_ask_call.h"
#include "aggregator/ingest/clock_evidence_writer.h"
#include "aggregator/ingest/clock_report_call.h"
#include "aggregator/ingest/evidence_allowance.h"
#include "aggregator/ingest/refused_call.h"
#include "aggregator/reference/probe_keys.h"
#include "aggregator/reference/reference_timescale.h"
#include "lib/base/clock.h"
#include "lib/wire/call_admission.h"
#include "neurontrace/v1/clock_gateway.grpc.pb.h"

namespace neurontrace {

// The gRPC service for clocks; each call is an object of its own. Everything passed in must outlive
// the server that this is registered with.
class ClockGateway final : public v1::ClockGateway::CallbackService {
 public:
  // All of them must outlive the server. `admission` may be null: every call is served.
  struct Deps {
    ProbeKeys& keys;
    uint16_t probe_port = 0;  // UDP; 0: there is none
    const ReferenceTimescale& timescale;
    ClockEvidenceWriter& writer;
    ClockMetrics& metrics;
    const Clock& clock;
    CallAdmission* admission = nullptr;
  };
  explicit ClockGateway(const Deps& deps) : deps_(deps) {}

  grpc::ServerBidiReactor<v1::ClockReport, v1::ClockOrder>* Report(
      grpc::CallbackServerContext* context) override {
    const absl::Status admitted = Admitted(deps_.admission, *context);
    if (!admitted.ok()) return new RefusedCall<v1::ClockReport, v1::ClockOrder>(admitted);
    return new ClockReportCall({deps_.keys, deps_.probe_port, deps_.writer, allowance_,
                                deps_.metrics, deps_.clock, calls_});
  }
  grpc::ServerBidiReactor<v1::ClockQuestion, v1::ClockAnswer>* Ask(
      grpc::CallbackServerContext* context) override {
    const absl::Status admitted = Admitted(deps_.admission, *context);
    if (!admitted.ok()) return new RefusedCall<v1::ClockQuestion, v1::ClockAnswer>(admitted);
    return new ClockProbeCall(deps_.timescale, deps_.metrics);
  }

 private:
  const Deps deps_;
  // Shared by all report calls, since an agent that reconnects must not get another allowance.
  EvidenceAllowance allowance_;
  // Number of open report calls.
  std::atomic<size_t> calls_ = 0;
};

}  // namespace neurontrace
