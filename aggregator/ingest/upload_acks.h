// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
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
    std::optional<uint64_t> rewind_sequence;
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

}  // namespace neurontrace
