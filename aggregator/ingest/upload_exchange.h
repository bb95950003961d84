// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "aggregator/ingest/bidi_exchange.h"
#include "aggregator/ingest/chunk_admission.h"
#include "aggregator/ingest/chunk_writer.h"
#include "aggregator/ingest/ingest_budget.h"
#include "aggregator/ingest/ingest_metrics.h"
#include "aggregator/store/chunk_store.h"
#include "neurontrace/v1/agent_gateway.pb.h"

namespace neurontrace {

// What one Upload call has to tell its agent. Acknowledgements are cumulative: several of one
// stream that wait become one. A stream that has to go back is told once; the chunks that were
// under way behind the gap are passed over in silence until the stream continues or another refusal
// comes. A plain value; the owner keeps it on one thread at a time.
class UploadAcks {
 public:
  // Registers the number that the agent uses; false when there are too many.
  bool Know(uint32_t stream_ref);

  // The outcome of a chunk: an error means that nothing was stored and that it may be sent again.
  void OnResult(uint32_t stream_ref, uint64_t sequence, const absl::StatusOr<PutResult>& result);

  // A chunk that will never be stored. Without a `sequence`, because the header cannot be read, it
  // is taken for the one that was expected.
  void OnRefused(uint32_t stream_ref, std::optional<uint64_t> sequence, v1::RefusalCode code,
                 const std::string& reason);

  size_t pending() const { return refusals_.size() + moved_.size(); }
  // The next one to send: acknowledgements first, as they free the agent's window. Not when empty.
  v1::UploadAck Take();

 private:
  struct Stream {
    uint64_t durable = 0;   // everything below it is
    uint64_t expected = 0;  // behind the highest sequence seen
    bool moved = false;     // in moved_
    // Told to go back to this sequence, and not continued since.
    std::optional<uint64_t> going_back_to;
    std::optional<uint64_t> failed;  // the chunk whose failure was told last
  };
  void Refuse(uint32_t stream_ref, uint64_t sequence, v1::RefusalCode code,
              const std::string& reason, uint32_t retry_delay_ms = 0);

  absl::flat_hash_map<uint32_t, Stream> streams_;
  std::deque<uint32_t> moved_;  // streams with an acknowledgement to send
  std::deque<v1::UploadAck> refusals_;
};

// What every Upload call uses; outlives them all.
struct UploadDeps {
  ChunkAdmission& door;
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
  Next Plan() NT_REQUIRES(mutex_) override;
  void BeginRead() override;  // once there is room for it

  const UploadDeps deps_;
  const std::string agent_id_;

  std::deque<std::unique_ptr<Arrival>> arrivals_ NT_GUARDED_BY(mutex_);  // in order
  UploadAcks acks_ NT_GUARDED_BY(mutex_);
  size_t at_writer_ NT_GUARDED_BY(mutex_) = 0;
  bool handing_over_ NT_GUARDED_BY(mutex_) =
      false;                                     // one thread at a time, so that the order stays
  bool asking_ NT_GUARDED_BY(mutex_) = false;    // for room in the budget
  bool all_read_ NT_GUARDED_BY(mutex_) = false;  // the agent has ended its side, or is gone
};

}  // namespace neurontrace
