// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <deque>
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

// Collects the answers of one Upload call. Acknowledgements are cumulative: several waiting ones of
// a stream become one. A stream that has to go back gets one such answer. The chunks that were
// under way behind the gap get no answer until the stream continues or another refusal is due. A
// plain value, used by one thread at a time.
class UploadAcks {
 public:
  // Registers the number that the agent chose for a stream, which means nothing outside of its
  // call. Returns false beyond limits::kUploadStreamsMax.
  bool Know(uint32_t stream_ref);

  // Takes the result of a chunk. An error means that nothing was stored and it may be sent again.
  void OnResult(uint32_t stream_ref, uint64_t sequence, const absl::StatusOr<PutResult>& result);

  // Refuses a chunk that will never be stored. Without a `sequence`, because its header is
  // unreadable, it is assumed to be the expected one.
  void OnRefused(uint32_t stream_ref, std::optional<uint64_t> sequence, v1::RefusalCode code,
                 const std::string& reason);

  size_t pending() const { return refusals_.size() + moved_.size(); }
  // Returns the next answer: acknowledgements first, as they free the agent's window. Requires a
  // pending one.
  v1::UploadAck Take();

 private:
  struct Stream {
    uint64_t durable = 0;   // everything below it is durable
    uint64_t expected = 0;  // one above the highest sequence seen
    bool moved = false;     // is in moved_
    // The sequence that the agent was ordered to go back to and has not continued from.
    std::optional<uint64_t> going_back_to;
    std::optional<uint64_t> failed;  // the chunk whose failure was reported last
  };
  // Queues a refusal. It repeats the durable position, so that the agent knows from where to
  // continue. `retry_delay_ms` 0: the agent may act at once.
  void Refuse(uint32_t stream_ref, uint64_t sequence, v1::RefusalCode code,
              const std::string& reason, uint32_t retry_delay_ms = 0);

  // By the agent's number; at most limits::kUploadStreamsMax.
  absl::flat_hash_map<uint32_t, Stream> streams_;
  std::deque<uint32_t> moved_;  // streams with an acknowledgement to send
  // In the order in which they were made. Bounded, because Plan stops reading beyond
  // limits::kUploadAnswersMax.
  std::deque<v1::UploadAck> refusals_;
};

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
