// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "aggregator/ingest/bidi_exchange.h"
#include "aggregator/ingest/chunk_admission.h"
#include "aggregator/ingest/chunk_writer.h"
#include "aggregator/ingest/ingest_budget.h"
#include "aggregator/ingest/ingest_metrics.h"
#include "aggregator/ingest/upload_acks.h"
#include "aggregator/store/chunk_store.h"
#include "neurontrace/v1/agent_gateway.pb.h"

namespace neurontrace {

// What every Upload call uses; must outlive them all.
struct UploadDeps {
  ChunkAdmission& door;
  ChunkReceiver& writer;
  IngestBudget& budget;
  IngestMetrics& metrics;
};

// The metadata key with the agent's id of an Upload call.
inline constexpr char kAgentIdKey[] = "neurontrace-agent-id";

// The conversation of one agent's Upload call, without the call. Messages are validated on the
// threads that deliver them, several at once, and passed to the writer in the order of arrival.
// Answers are sent as the writer produces results. Any thread. Lives until the transport releases
// it and the writer has answered everything.
class UploadExchange final : public BidiExchange<v1::ChunkEnvelope, v1::UploadAck>,
                             public std::enable_shared_from_this<UploadExchange> {
 public:
  // `agent_id` comes from the metadata and is checked in Begin.
  UploadExchange(const UploadDeps& deps, std::string agent_id, Transport transport);
  void Begin();

  // Called by the transport; may run while earlier messages are still being validated on other
  // threads. `ok` false: the agent has ended its side.
  void OnReadDone(bool ok);
  void OnDone();

 private:
  // A message from its arrival until all before it have been passed to the writer.
  struct Arrival {
    v1::ChunkEnvelope envelope;
    // nullopt while the message is being validated.
    std::optional<absl::StatusOr<ReceivedChunk>> verdict;
    std::optional<uint64_t> sequence;  // of a refused one, if its header is readable
    // As taken from the budget.
    size_t bytes = 0;
  };

  // Judge validates a message; HandOver passes on what is ready; OnRoom continues a read that
  // waited.
  void Judge(Arrival& arrival);
  void OnRoom();
  void HandOver();
  // Called on the writer's thread, in the order in which chunks were submitted.
  void OnResult(uint32_t stream_ref, uint64_t sequence, const absl::StatusOr<PutResult>& result);
  void CountRefusal(const absl::StatusOr<PutResult>& result);
  Next Plan() NT_REQUIRES(mutex_) override;
  // Asks the budget for room. The read may start later, on the thread that releases bytes.
  void BeginRead() override;  // waits for room in the budget

  const UploadDeps deps_;
  const std::string agent_id_;

  std::deque<std::unique_ptr<Arrival>> arrivals_ NT_GUARDED_BY(mutex_);  // in order
  UploadAcks acks_ NT_GUARDED_BY(mutex_);
  // Chunks that were submitted and not answered.
  size_t at_writer_ NT_GUARDED_BY(mutex_) = 0;
  bool handing_over_ NT_GUARDED_BY(mutex_) =
      false;                                     // one thread at a time, so that the order stays
  bool asking_ NT_GUARDED_BY(mutex_) = false;    // waits for room in the budget
  bool all_read_ NT_GUARDED_BY(mutex_) = false;  // the agent has ended its side, or is gone
};

}  // namespace neurontrace
