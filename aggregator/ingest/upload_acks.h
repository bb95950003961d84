// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
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

  // What became of a chunk: an error means that nothing was stored and that it may be sent again.
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

}  // namespace neurontrace
