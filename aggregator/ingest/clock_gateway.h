// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>

#include "aggregator/ingest/clock_report_call.h"
#include "aggregator/ingest/refused_call.h"
#include "aggregator/reference/reference_timescale.h"
#include "neurontrace/v1/clock_gateway.grpc.pb.h"

namespace neurontrace {

// Answers questions for the time, one at a time, with the reference timescale. gRPC tells one thing
// after the other here, as each step begins the next one; there is no lock. Deletes itself when
// gRPC says OnDone.
class ClockAskCall final : public grpc::ServerBidiReactor<v1::ClockQuestion, v1::ClockAnswer> {
 public:
  ClockAskCall(const ReferenceTimescale& timescale, ClockMetrics& metrics)
      : timescale_(timescale), metrics_(metrics) {
    StartRead(&question_);
  }

  void OnReadDone(bool ok) override {
    const uint64_t receive_ns = timescale_.NowNs();
    if (!ok) return Finish(grpc::Status::OK);
    metrics_.questions_answered.Increment();
    answer_.set_sequence(question_.sequence());
    answer_.set_reference_epoch(timescale_.epoch());
    answer_.set_reference_receive_ns(receive_ns);
    answer_.set_reference_send_ns(timescale_.NowNs());
    StartWrite(&answer_);
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    StartRead(&question_);
  }
  void OnDone() override { delete this; }

 private:
  const ReferenceTimescale& timescale_;
  ClockMetrics& metrics_;
  v1::ClockQuestion question_;
  v1::ClockAnswer answer_;
};

// The service for clocks: each call is an object of its own. Everything given outlives the server
// that this is registered with.
class ClockGateway final : public v1::ClockGateway::CallbackService {
 public:
  struct Deps {
    ProbeKeys& keys;
    uint16_t probe_port = 0;  // UDP; 0: there is none
    const ReferenceTimescale& timescale;
    ClockEvidenceWriter& writer;
    ClockMetrics& metrics;
    const Clock& clock;
    AdmitCall admit;
  };
  explicit ClockGateway(const Deps& deps) : deps_(deps) {}

  grpc::ServerBidiReactor<v1::ClockReport, v1::ClockOrder>* Report(
      grpc::CallbackServerContext* context) override {
    const absl::Status admitted = Admitted(deps_.admit, *context);
    if (!admitted.ok()) return new RefusedCall<v1::ClockReport, v1::ClockOrder>(admitted);
    return new ClockReportCall({deps_.keys, deps_.probe_port, deps_.writer, allowance_,
                                deps_.metrics, deps_.clock, calls_});
  }
  grpc::ServerBidiReactor<v1::ClockQuestion, v1::ClockAnswer>* Ask(
      grpc::CallbackServerContext* context) override {
    const absl::Status admitted = Admitted(deps_.admit, *context);
    if (!admitted.ok()) return new RefusedCall<v1::ClockQuestion, v1::ClockAnswer>(admitted);
    return new ClockAskCall(deps_.timescale, deps_.metrics);
  }

 private:
  const Deps deps_;
  EvidenceAllowance allowance_;
  std::atomic<size_t> calls_ = 0;
};

}  // namespace neurontrace
