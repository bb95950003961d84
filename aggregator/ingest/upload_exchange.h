// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
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
class UploadExchange final : public std::enable_shared_from_this<UploadExchange> {
 public:
  // The call: each begins one thing, whose end comes by the method named; one of each at a time.
  // Not used any more once `finish` was called.
  struct Transport {
    std::function<void(v1::ChunkEnvelope*)> read;     // OnReadDone
    std::function<void(const v1::UploadAck*)> write;  // OnWriteDone
    std::function<void(const grpc::Status&)> finish;  // OnDone
  };

  UploadExchange(const UploadDeps& deps, std::string agent_id, Transport transport);
  void Begin();

  void OnReadDone(bool ok);
  void OnWriteDone(bool ok);
  void OnCancel();
  void OnDone();

 private:
  // A message from its arrival until all before it have gone to the writer.
  struct Arrival {
    v1::ChunkEnvelope envelope;
    std::optional<absl::StatusOr<ReceivedChunk>> verdict;
    std::optional<uint64_t> sequence;  // where the header of a refused one can be read
    size_t bytes = 0;
  };
  // What is to be done once the lock is let go.
  struct Next {
    bool want_read = false;
    bool write = false;
    bool finish = false;
  };

  void Judge(Arrival& arrival);
  void OnRoom();
  void HandOver();
  void OnResult(uint32_t stream_ref, uint64_t sequence, const absl::StatusOr<PutResult>& result);
  void CountRefusal(const absl::StatusOr<PutResult>& result);
  Next Plan();  // with the lock
  void Act(const Next& next);

  const UploadDeps deps_;
  const std::string agent_id_;
  const Transport transport_;
  v1::ChunkEnvelope incoming_;  // the transport's while reading_
  v1::UploadAck outgoing_;      // the transport's while writing_

  std::mutex mutex_;
  // All guarded by mutex_:
  std::deque<std::unique_ptr<Arrival>> arrivals_;  // in order
  UploadAcks acks_;
  size_t at_writer_ = 0;
  bool handing_over_ = false;  // one thread at a time, so that the order stays
  bool asking_ = false;        // for room in the budget
  bool reading_ = false;
  bool writing_ = false;
  bool all_read_ = false;  // the agent has ended its side, or is gone
  bool cancelled_ = false;
  bool finished_ = false;
  grpc::Status finish_status_;
};

}  // namespace neurontrace
