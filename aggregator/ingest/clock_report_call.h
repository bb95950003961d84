// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "aggregator/ingest/clock_evidence_writer.h"
#include "aggregator/ingest/clock_metrics.h"
#include "aggregator/ingest/evidence_allowance.h"
#include "aggregator/reference/probe_keys.h"
#include "base/clock.h"
#include "neurontrace/v1/clock_gateway.grpc.pb.h"

namespace neurontrace {

// What every call of the ClockGateway uses; outlives them all.
struct ClockDeps {
  ProbeKeys& keys;
  uint16_t probe_port = 0;  // UDP; 0: there is none
  ClockEvidenceWriter& writer;
  EvidenceAllowance& allowance;
  ClockMetrics& metrics;
  const Clock& clock;
  std::atomic<size_t>& calls;  // how many there are
};

// One agent's report about its clocks. One thing after the other: a batch is read when the last one
// is durable, so that a call holds one at most, and there is no lock. Deletes itself when gRPC says
// OnDone.
class ClockReportCall final : public grpc::ServerBidiReactor<v1::ClockReport, v1::ClockOrder> {
 public:
  explicit ClockReportCall(const ClockDeps& deps);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone() override;

 private:
  void OnHello(const v1::ClockHello& hello);
  void OnBatch(const v1::ClockEvidenceBatch& batch);
  // The receipt of what is not stored, as it will never be better, has the agent let go of it.
  void LetGo(uint64_t number, const absl::Status& why, prometheus::Counter& counter);
  void OnStored(uint64_t number, const absl::Status& status);
  void End(const absl::Status& status);

  const ClockDeps deps_;
  v1::ClockReport report_;
  v1::ClockOrder order_;
  bool welcomed_ = false;
  HostBoot host_;
  uint64_t key_id_ = 0;
  bool has_key_ = false;
};

}  // namespace neurontrace
