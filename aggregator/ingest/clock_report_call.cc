// SPDX-License-Identifier: Apache-2.0
#include "aggregator/ingest/clock_report_call.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "lib/base/status.h"
#include "lib/trace/clock_evidence_limits.h"
#include "lib/trace/clock_limits.h"
#include "lib/wire/clock_messages.h"
#include "lib/wire/grpc_status.h"

namespace neurontrace {

// Counts itself even if it is refused, because OnDone counts down in either case.
ClockReportCall::ClockReportCall(const ClockDeps& deps) : deps_(deps) {
  const size_t calls = ++deps_.calls;
  deps_.metrics.calls.Set(static_cast<double>(calls));
  if (calls > limits::kClockCallsMax) {
    End(ResourceExhausted("{} agents already report clock evidence, which is the limit",
                          calls - 1));
    return;
  }
  StartRead(&report_);
}

void ClockReportCall::OnReadDone(bool ok) {
  if (!ok) return Finish(grpc::Status::OK);
  if (!welcomed_) {
    if (!report_.has_hello()) {
      return End(InvalidArgument("the first message of a clock report must be a hello"));
    }
    return OnHello(report_.hello());
  }
  if (report_.has_evidence()) return OnBatch(report_.evidence());
  if (report_.has_hello()) return End(InvalidArgument("the call contains a second hello"));
  // A message of a kind that this version does not know is ignored, so that agents can be updated
  // first.
  StartRead(&report_);  // from a newer agent
}

void ClockReportCall::OnHello(const v1::ClockHello& hello) {
  auto identity = FromProto(hello);
  if (!identity.ok()) return End(identity.status());
  host_ = {std::move(identity->instance_id), std::move(identity->boot_id)};
  // The key lets the agent probe over UDP while this call is open.
  const std::optional<ProbeKeys::Given> given = deps_.keys.Give();
  if (!given) return End(ResourceExhausted("no probe keys available"));
  key_id_ = given->key_id;
  has_key_ = welcomed_ = true;
  ToProto(ProbeGrant{deps_.probe_port, given->key_id, given->key}, order_.mutable_access());
  StartWrite(&order_);
}

void ClockReportCall::OnBatch(const v1::ClockEvidenceBatch& message) {
  auto batch = FromProto(message);
  if (!batch.ok()) {
    return DropBatch(message.number(), batch.status(), deps_.metrics.batches_refused);
  }
  // The charge includes what the store adds to each row, so that many tiny batches are not free.
  const size_t bytes = host_.instance_id.size() + host_.boot_id.size() +
                       limits::kClockRowOverheadBytes + batch->observations.size();
  const absl::Status allowed =
      deps_.allowance.Take(host_.instance_id, bytes, deps_.clock.MonotonicNs());
  if (!allowed.ok()) return DropBatch(batch->number, allowed, deps_.metrics.batches_over_limit);
  // By age, as the agent's clock may be wrong.
  const uint64_t now_ns = deps_.clock.RealtimeNs();
  deps_.writer.Submit(
      {host_, now_ns - std::min(now_ns, batch->age_ns), std::move(batch->observations)},
      [this, number = batch->number](const absl::Status& status) { OnStored(number, status); });
}

// `why` is logged; the agent learns only that it need not keep the batch.
void ClockReportCall::DropBatch(uint64_t number, const absl::Status& why,
                                prometheus::Counter& counter) {
  counter.Increment();
  SPDLOG_WARN("clock evidence of {}: {}", host_.instance_id, std::string(why.message()));
  // The number could not be read, so no receipt is possible.
  if (number == 0) return End(why);
  OnStored(number, absl::OkStatus());
}

void ClockReportCall::OnStored(uint64_t number, const absl::Status& status) {
  if (!status.ok()) return End(Unavailable("{}", std::string(status.message())));
  order_.mutable_receipt()->set_number(number);
  StartWrite(&order_);
}

void ClockReportCall::OnWriteDone(bool ok) {
  if (!ok) return Finish(grpc::Status::OK);
  StartRead(&report_);
}

void ClockReportCall::End(const absl::Status& status) { Finish(ToGrpcStatus(status)); }

// The key ends with the call, so that a host that is gone can no longer probe.
void ClockReportCall::OnDone() {
  if (has_key_) deps_.keys.Revoke(key_id_);
  deps_.metrics.calls.Set(static_cast<double>(--deps_.calls));
  delete this;
}

}  // namespace neurontrace
