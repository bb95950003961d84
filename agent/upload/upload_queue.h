// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "agent/source/chunk_sink.h"
#include "agent/upload/ack_window.h"
#include "neurontrace/v1/chunk.pb.h"
#include "trace/ids.h"
#include "trace/limits.h"

namespace neurontrace {

// What envelopes and acknowledgements call a stream: the same in every Upload call of this process.
inline uint32_t StreamRef(StreamNumber number) { return static_cast<uint32_t>(number); }

// An empty chunk to stand in the place of one that is lost: its header, with `replaced` to count
// its events. One that stands for another already stays as it is.
Chunk MakeLossChunk(ChunkHeader header, LossPlace place, LossReason reason, std::string detail);

// The chunks of this agent between its sources and its uploader, in memory, one queue a stream.
// When the budget is spent HasRoom is false and sources stop reading; what is submitted all the
// same is taken up to twice the budget, and beyond that the newest gives way to an empty chunk that
// tells of the loss. Lives on the agent's sequence.
class UploadQueue final : public ChunkSink {
 public:
  struct Counters {
    uint64_t chunks_taken = 0;
    uint64_t chunks_stored = 0;
    uint64_t events_stored = 0;
    uint64_t chunks_lost = 0;  // given up, for whatever reason
    uint64_t events_lost = 0;
    uint64_t chunks_refused_full = 0;  // of the lost ones: beyond twice the budget
  };

  // Of the streams of one logical core, over all workers of the node.
  struct CoreCounters {
    uint64_t events = 0;
    uint64_t events_lost = 0;  // known when the chunk was closed
  };

  explicit UploadQueue(size_t bytes_max = limits::kAgentQueueBytesMax);

  // ChunkSink
  bool HasRoom() const override { return !closed_ && bytes_ < bytes_max_; }
  void Submit(Chunk chunk, Done done) override;

  // --- The uploader's side ---

  // Called for each chunk that joins a queue.
  void SetListener(std::function<void(StreamNumber)> on_chunk) { on_chunk_ = std::move(on_chunk); }

  struct Entry {
    uint64_t sequence = 0;
    uint32_t events = 0;
    bool end_of_stream = false;
    bool replaced = false;  // stands for a chunk that was refused
    std::shared_ptr<v1::ChunkEnvelope> envelope;
    Done done;
    size_t bytes() const;
  };
  // Entries of a stream's queue; none for a stream that is not known.
  size_t size(StreamNumber stream) const;
  Entry& at(StreamNumber stream, size_t index);

  // The first entry is durable: its receipt is given. False when the stream has ended with it.
  bool PopStored(StreamNumber stream);
  // Gives up what is left of the stream, with receipts. Later chunks of it begin a new number.
  void Drop(StreamNumber stream, const std::string& reason);
  // Puts `chunk`, which has no events, in the place of one that was refused for good. The receipt
  // will say "not stored".
  void Replace(StreamNumber stream, Entry& entry, Chunk chunk);
  // The streams of a capture that is over.
  std::vector<StreamNumber> StreamsOf(const CaptureId& capture_id) const;

  size_t bytes() const { return bytes_; }
  size_t chunks() const { return chunks_; }
  size_t streams() const { return streams_.size(); }
  const Counters& counters() const { return counters_; }
  const std::map<uint32_t, CoreCounters>& cores() const { return cores_; }  // by nc_idx

  // From now on there is no room: sources stop, and what is here can drain.
  void Close() { closed_ = true; }

 private:
  using StreamKey = std::tuple<CaptureId, StreamIdentity>;
  struct Stream {
    StreamKey key;
    std::deque<Entry> entries;
  };

  void Forget(StreamNumber number);
  void CountCore(const ChunkHeader& header);

  const size_t bytes_max_;
  std::function<void(StreamNumber)> on_chunk_;
  absl::flat_hash_map<StreamKey, StreamNumber> numbers_;
  absl::flat_hash_map<StreamNumber, Stream> streams_;
  StreamNumber last_number_ = 0;
  size_t bytes_ = 0;
  size_t chunks_ = 0;
  bool closed_ = false;
  Counters counters_;
  std::map<uint32_t, CoreCounters> cores_;
};

}  // namespace neurontrace
