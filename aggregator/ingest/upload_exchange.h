// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "aggregator/ingest/bidi_exchange.h"
#include "aggregator/ingest/chunk_door.h"
#include "aggregator/ingest/chunk_writer.h"
#include "aggregator/ingest/ingest_budget.h"
#include "aggregator/ingest/ingest_metrics.h"
#include "aggregator/ingest/upload_acks.h"
#include "neurontrace/v1/agent_gateway.pb.h"

namespace neurontrace {

// What every Upload call uses; outlives them all.
struct UploadDeps {
  ChunkDoor& door;
  // Takes chunks for the store, in order; see ChunkWriter::Submit.
  std::function<void(ReceivedChunk, ChunkWriter::Done)> submit;
  IngestBudget& budget;
  IngestMetrics& metrics;
};

// The metadata that names the agent of an Upload call.
inline constexpr char kAgentIdKey[] = "neurontrace-agent-id";

// What is said in one agent's Upload call, without the call. Messages are validated on the threads
// that bring them, several at once, and handed to the writer in the order they came; answers go
// back as the writer gives results. Any thread; the transport is used without the lock. Lives until
// the transport lets go of it and the writer has answered everything.
class UploadExchange final : public BidiExchange<v1::ChunkEnvelope, v1::UploadAck>,
                             public std::enable_shared_from_this<UploadExchange> {
 public:
  UploadExchange(const UploadDeps& deps, std::string agent_id, Transport transport);
  void Begin();

  void OnReadDone(bool ok);
  void OnDone();

 private:
  // A message from its arrival until all before it have gone to the writer.
  struct Arrival {
    v1::ChunkEnvelope envelope;
    std::optional<absl::StatusOr<ReceivedChunk>> verdict;
    std::optional<uint64_t> sequence;  // where the header of a refused one can be read
    size_t bytes = 0;
  };

  void Judge(Arrival& arrival);
  void OnRoom();
  void HandOver();
  void OnResult(uint32_t stream_ref, uint64_t sequence, const absl::StatusOr<PutResult>& result);
  void CountRefusal(const absl::StatusOr<PutResult>& result);
  Next Plan() override;
  void BeginRead() override;  // once there is room for it

  const UploadDeps deps_;
  const std::string agent_id_;

  // All guarded by mutex_:
  std::deque<std::unique_ptr<Arrival>> arrivals_;  // in order
  UploadAcks acks_;
  size_t at_writer_ = 0;
  bool handing_over_ = false;  // one thread at a time, so that the order stays
  bool asking_ = false;        // for room in the budget
  bool all_read_ = false;      // the agent has ended its side, or is gone
};

}  // namespace neurontrace
