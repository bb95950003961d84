// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "aggregator/ingest/clock_evidence_writer.h"
#include "aggregator/ingest/refused_call.h"
#include "aggregator/reference/probe_keys.h"
#include "aggregator/reference/reference_timescale.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/wire/call_admission.h"
#include "neurontrace/v1/clock_gateway.grpc.pb.h"

namespace neurontrace {

// Limits how much clock evidence is stored of each instance, so that an agent that invents evidence
// cannot fill the store. A token bucket for each instance. Any thread.
class EvidenceAllowance {
 public:
  // Takes `bytes` at `now_ns`, which is monotonic. Fails with RESOURCE_EXHAUSTED, and takes
  // nothing, beyond limits::kClockHostBytesPerHourMax or kClockHostBytesAtOnceMax, or for a new
  // instance beyond limits::kClockHostsMax.
  absl::Status Take(const std::string& instance_id, size_t bytes, uint64_t now_ns);

 private:
  // Returns whether another instance can be counted. Removes instances whose whole allowance is
  // available again, since forgetting those changes nothing.
  bool HasPlace(uint64_t now_ns) NT_REQUIRES(mutex_);

  Mutex mutex_;
  // When an instance's whole allowance is available again.
  absl::flat_hash_map<std::string, uint64_t> due_ns_ NT_GUARDED_BY(mutex_);
  uint64_t next_sweep_ns_ NT_GUARDED_BY(mutex_) = 0;  // monotonic
};

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

// Answers requests for the time, one at a time, with the reference timescale. Each step starts the
// next, so gRPC's callbacks are sequential and no lock is needed. Deletes itself in OnDone.
class ClockAskCall final : public grpc::ServerBidiReactor<v1::ClockQuestion, v1::ClockAnswer> {
 public:
  // Both must outlive the call.
  ClockAskCall(const ReferenceTimescale& timescale, ClockMetrics& metrics)
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
    return new ClockAskCall(deps_.timescale, deps_.metrics);
  }

 private:
  const Deps deps_;
  // Shared by all report calls, since an agent that reconnects must not get another allowance.
  EvidenceAllowance allowance_;
  // Number of open report calls.
  std::atomic<size_t> calls_ = 0;
};

}  // namespace neurontrace
