// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>

#include "aggregator/ingest/clock_evidence_writer.h"
#include "aggregator/reference/reference_timescale.h"
#include "neurontrace/v1/clock_gateway.grpc.pb.h"

namespace neurontrace {

// Answers requests for the time, one at a time, with the reference timescale. Each step starts the
// next, so gRPC's callbacks are sequential and no lock is needed. Deletes itself in OnDone.
class ClockProbeCall final : public grpc::ServerBidiReactor<v1::ClockQuestion, v1::ClockAnswer> {
 public:
  // Both must outlive the call.
  ClockProbeCall(const ReferenceTimescale& timescale, ClockMetrics& metrics)
      : timescale_(timescale), metrics_(metrics) {
    StartRead(&question_);
  }

  // The time of receipt is read first and the time of sending last, so that the agent can exclude
  // the time spent here.
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

}  // namespace neurontrace
