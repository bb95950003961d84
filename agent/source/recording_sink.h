// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "agent/source/chunk_sink.h"
#include "lib/trace/event_chunk.h"
#include "lib/trace/event_json.h"
#include "lib/trace/stream_cursor.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {

// For tests: keeps what is submitted and gives receipts on request, as a store would that takes the
// chunks of each stream in order. `has_room` and `entries` are for the test to set and read.
class RecordingSink final : public ChunkSink {
 public:
  struct Entry {
    Chunk chunk;
    Done done;
    bool answered = false;
    bool stored = false;
  };

  bool HasRoom(const CaptureId&) const override { return has_room; }
  void Submit(Chunk chunk, Done done) override {
    entries.push_back({std::move(chunk), std::move(done)});
  }

  // Reports all unanswered entries, or entry number `index`. Each entry gets one receipt; further
  // answers are ignored.
  void StoreAll() {
    for (size_t i = 0; i < entries.size(); ++i) Answer(i, true);
  }
  void Answer(size_t index, bool stored, const std::string& reason = "") {
    Answer(index, {stored ? Fate::kStored : Fate::kLost, reason});
  }
  void Answer(size_t index, const Receipt& receipt) {
    Entry& entry = entries[index];
    if (std::exchange(entry.answered, true)) return;
    entry.stored = receipt.fate == Fate::kStored;
    const Done done = std::move(entry.done);
    done(receipt);
  }

  // Returns the cursor of each stream behind its last stored chunk.
  std::vector<StreamCursor> Cursors() const {
    std::map<StreamIdentity, StreamCursor> cursors;
    for (const Entry& entry : entries) {
      if (!entry.stored) continue;
      cursors[entry.chunk.header.stream] = CursorAfter(entry.chunk.header);
    }
    std::vector<StreamCursor> result;
    for (const auto& [stream, cursor] : cursors) result.push_back(cursor);
    return result;
  }

  // Returns the runtime's JSON of every event in the stored (or all) chunks, in order.
  std::vector<std::string> Events(bool stored_only = false) const {
    std::vector<std::string> events;
    for (const Entry& entry : entries) {
      if (entry.chunk.header.event_count == 0 || (stored_only && !entry.stored)) continue;
      std::string columns;
      DecodedChunk decoded;
      if (!UncompressColumns(entry.chunk.columns, entry.chunk.header.columns_bytes, columns).ok() ||
          !decoded.Decode(columns).ok()) {
        events.emplace_back("a chunk that cannot be decoded");
        continue;
      }
      for (size_t i = 0; i < decoded.size(); ++i) {
        AppendEventJson(decoded, i, entry.chunk.header.stream.nc_idx, events.emplace_back());
      }
    }
    return events;
  }
  std::vector<Loss> Losses() const {
    std::vector<Loss> losses;
    for (const Entry& entry : entries) {
      losses.insert(losses.end(), entry.chunk.header.losses.begin(),
                    entry.chunk.header.losses.end());
    }
    return losses;
  }
  std::vector<Suspension> Suspensions() const {
    std::vector<Suspension> suspensions;
    for (const Entry& entry : entries) {
      suspensions.insert(suspensions.end(), entry.chunk.header.suspensions.begin(),
                         entry.chunk.header.suspensions.end());
    }
    return suspensions;
  }

  bool has_room = true;
  std::vector<Entry> entries;
};

}  // namespace neurontrace
