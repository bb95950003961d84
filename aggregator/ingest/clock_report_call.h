// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "aggregator/ingest/clock_evidence_writer.h"
#include "aggregator/ingest/evidence_allowance.h"
#include "aggregator/reference/probe_keys.h"
#include "aggregator/store/clock_evidence_store.h"
#include "lib/base/clock.h"
#include "neurontrace/v1/clock_gateway.grpc.pb.h"

namespace neurontrace {

// What every call of the ClockGateway uses; must outlive them all.
struct ClockDeps {
  // Keys that authenticate UDP probes; one for each open report call.
  ProbeKeys& keys;
  uint16_t probe_port = 0;  // UDP; 0: none
  ClockEvidenceWriter& writer;
  EvidenceAllowance& allowance;
  ClockMetrics& metrics;
  const Clock& clock;
  std::atomic<size_t>& calls;  // number of open report calls
};

// One agent's report about its clocks. Strictly sequential: a batch is read once the previous one
// is durable, so a call holds one batch at most and needs no lock. The writer's thread calls
// OnStored, while gRPC has nothing pending on the call. Deletes itself in OnDone; it cannot be
// deleted before, as gRPC calls OnDone only after Finish.
class ClockReportCall final : public grpc::ServerBidiReactor<v1::ClockReport, v1::ClockOrder> {
 public:
  // Refuses the call with RESOURCE_EXHAUSTED beyond limits::kClockCallsMax.
  explicit ClockReportCall(const ClockDeps& deps);

  // Called by gRPC, one at a time: each starts the next operation or finishes the call.
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone() override;

 private:
  // Identifies the host by the first message, and answers with its probe key and the UDP port.
  void OnHello(const v1::ClockHello& hello);
  // Charges the batch to its instance and submits it. A batch that is invalid or too much is
  // dropped with a receipt, because the agent would send it again otherwise.
  void OnBatch(const v1::ClockEvidenceBatch& batch);
  // Drops a batch that will never be acceptable. The receipt makes the agent drop it, too.
  void DropBatch(uint64_t number, const absl::Status& why, prometheus::Counter& counter);
  // Called by the writer once the batch is durable, or could not be written.
  void OnStored(uint64_t number, const absl::Status& status);
  // Finishes the call with this status. Nothing may be started afterwards.
  void End(const absl::Status& status);

  const ClockDeps deps_;
  // The message being read, and the one being written; one of each exists at a time.
  v1::ClockReport report_;
  v1::ClockOrder order_;
  // The hello was accepted. Evidence before it ends the call.
  bool welcomed_ = false;
  // From the hello; identifies the clocks that the evidence is about.
  HostBoot host_;
  // Returned to `keys` at the end of the call, if has_key_.
  uint64_t key_id_ = 0;
  bool has_key_ = false;
};

}  // namespace neurontrace
