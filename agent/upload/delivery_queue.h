// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "agent/source/chunk_sink.h"
#include "agent/spool/spool.h"
#include "agent/upload/ack_window.h"
#include "lib/trace/capture_spec.h"
#include "lib/trace/ids.h"
#include "lib/trace/limits.h"
#include "lib/trace/loss_table.h"
#include "lib/trace/stream_cursor.h"
#include "lib/trace/worker_info.h"
#include "neurontrace/v1/chunk.pb.h"

namespace neurontrace {

// Returns how envelopes and acknowledgements refer to a stream: the same in every Upload call of
// this process.
inline uint32_t StreamRef(StreamNumber number) { return static_cast<uint32_t>(number); }

// Returns an empty chunk in place of one that is lost: its header, with the lost events in
// `replaced`. A header that already replaces another keeps its reason. Pure.
Chunk MakeLossChunk(ChunkHeader header, LossPlace place, LossReason reason, std::string detail);

// The chunks of this agent between its sources and its uploader, one queue for each stream. Each
// chunk is appended to the spool; when it is durable there its source gets kKept, and it may be
// sent. It stays in memory too if there is room, else it is read back when its turn comes. Without
// a spool, or while the spool's disk fails, chunks are held in memory alone, sent from there, and
// reported as kStored when the aggregator has them
// (docs/decisions/0009-durable-is-the-agents-disk.md).
//
// When the budget in memory is spent, or the spool refuses the newest chunks, HasRoom is false and
// sources stop reading. What is submitted anyway is accepted up to twice the budget; beyond, the
// newest chunk is replaced by an empty one that reports the loss. When the spool drops the oldest
// chunks, the next chunk of the stream reports that what preceded it is gone, or an empty one
// replaces the last if none follows. So every loss is part of its stream's account.
//
// Lives on the agent's sequence. Blocks only in Recover. Sources, the spool and the uploader call
// it on that sequence and may call it again from within a callback.
class DeliveryQueue final : public ChunkSink, public Spool::Listener {
 public:
  // Since construction; only grow. docs/operator/metrics.md describes them.
  struct Counters {
    uint64_t chunks_taken = 0;
    uint64_t chunks_kept = 0;  // of these, durable on this node before they were sent
    uint64_t chunks_stored = 0;
    uint64_t events_stored = 0;
    uint64_t chunks_lost = 0;  // given up, for whatever reason
    uint64_t events_lost = 0;
    uint64_t chunks_refused_full = 0;  // of the lost ones: beyond twice the budget
    uint64_t chunks_dropped = 0;       // of the lost ones: to make room in the spool
    uint64_t chunks_damaged = 0;       // of the lost ones: the disk did not give them back
    uint64_t chunks_recovered = 0;     // found in the spool at the start
  };

  // Counts for one logical core, over all workers of the node.
  struct CoreCounters {
    uint64_t events = 0;
    uint64_t events_lost = 0;  // known when the chunk was closed
  };

  // `spool` may be null; it outlives the queue. `bytes_max` is the budget in memory. The queue is
  // the spool's only listener; without a spool nothing survives the process.
  explicit DeliveryQueue(Spool* spool, size_t bytes_max = limits::kAgentQueueBytesMax);
  ~DeliveryQueue() override;

  // Takes over what the spool holds from earlier runs. Blocks; to be called before anything is
  // submitted, and again after an error, which is that of Spool::Recover.
  absl::Status Recover();

  // ChunkSink
  using ChunkSink::HasRoom;
  bool HasRoom(const CaptureId& capture_id) const override;
  void Submit(Chunk chunk, Done done) override;

  // Adds what this node holds to the aggregator's cursors of a capture, so that the sources
  // continue behind both.
  void MergeCursors(const CaptureId& capture_id, std::vector<StreamCursor>& cursors);
  // A capture that is resumed from the spool, before the aggregator is reached.
  struct Resumed {
    CaptureId capture_id;
    CaptureSpec spec;
    std::vector<StreamCursor> cursors;
  };
  // Returns these captures; to be called once, after Recover.
  std::vector<Resumed> HandleRunning();
  // The capture runs here, so that the next agent is to resume it too.
  void RecordRunning(const CaptureId& capture_id, const CaptureSpec& spec);
  // Returns true if the aggregator has chunks of a resumed stream that this node did not know of:
  // what was made since has their numbers and cannot be sent. The capture has to be forgotten here
  // and begun again; each of its streams then reports an unknown loss. To be called before
  // MergeCursors.
  bool WasWrong(const CaptureId& capture_id, const std::vector<StreamCursor>& cursors);
  // Returns true while some chunk of the capture is not acknowledged. Chunks in the spool count,
  // also those that are not in memory.
  bool Holds(const CaptureId& capture_id) const;
  // Returns the captures that the spool or the queue knows.
  std::set<CaptureId> captures() const;

  // --- The uploader's side ---

  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void OnReady(StreamNumber stream) = 0;  // one chunk more may be sent
    // Called once for each Load that reads something: what it asked for is in memory, or lost; with
    // `try_later` the disk did not return it this time.
    virtual void OnLoaded(StreamNumber stream, bool try_later) = 0;
    // A chunk is about to be removed: the first of its queue, or one behind those that were sent.
    virtual void OnFirstDropped(StreamNumber stream) = 0;
    virtual void OnUnsentDropped(StreamNumber stream) = 0;
  };
  void SetListener(Listener* listener) { listener_ = listener; }

  // One chunk of a queue.
  struct Entry {
    uint64_t sequence = 0;
    uint32_t events = 0;
    uint32_t envelope_bytes = 0;
    uint64_t sent_ns = 0;  // the uploader's; 0: never
    bool end_of_stream = false;
    bool replaced = false;  // replaces a chunk that is lost
    bool loading = false;
    uint8_t load_failures = 0;
    uint8_t refusals = 0;              // of the chunk that replaces it
    std::optional<PrecedingGap> gone;  // of what lies before it
    SpoolPlace place;
    std::shared_ptr<v1::ChunkEnvelope> envelope;  // null: to be loaded
    std::unique_ptr<Done> done;
  };
  // Returns the number of entries in a stream's queue; 0 for an unknown stream. An index counts the
  // entries of a stream's queue from its front. It is valid until an entry before it is removed.
  size_t size(StreamNumber stream) const;
  size_t ready(StreamNumber stream) const;  // how many of the first may be sent
  // Requires an existing entry. The reference is valid until an entry of the stream is added or
  // removed.
  Entry& at(StreamNumber stream, size_t index);
  // Returns the index of the first entry with a sequence of at least `sequence`; size() if there is
  // none.
  size_t IndexOf(StreamNumber stream, uint64_t sequence) const;
  // Returns the sequence before which the aggregator has reported everything as stored.
  uint64_t stored_before(StreamNumber stream) const;
  StreamNumber Find(const CaptureId& capture_id, const StreamIdentity& stream) const;  // 0: none
  // Reads the entry back, and some that follow it. OnLoaded is called later. Does nothing for an
  // entry that is in memory or already being read.
  void Load(StreamNumber stream, size_t index);

  // Removes the first entry, as the aggregator has stored it. Returns false if the stream has ended
  // with it.
  bool PopStored(StreamNumber stream);
  // Gives up what is left of the stream. Later chunks of it get a new number. Every receipt is
  // kLost with this reason, and the events count as refused by the aggregator.
  void Drop(StreamNumber stream, const std::string& reason);
  // Puts `chunk`, which has no events, in the place of one that was refused permanently. The
  // receipt is then kLost.
  void Replace(StreamNumber stream, Entry& entry, Chunk chunk);
  // The capture is over, and its streams have been dropped. The spool removes its directory, and
  // its cursors are forgotten here.
  void ForgetCapture(const CaptureId& capture_id);
  std::vector<StreamNumber> StreamsIn(const CaptureId& capture_id) const;

  size_t bytes() const { return unspooled_bytes_ + cached_bytes_; }  // in memory
  size_t chunks() const { return chunks_; }                          // in memory and in the spool
  size_t unspooled_chunks() const { return unspooled_chunks_; }      // in memory alone
  size_t streams() const { return streams_.size(); }
  const Counters& counters() const { return counters_; }
  const LossTable& losses() const { return losses_; }                       // of events_lost, each
  const std::map<uint32_t, CoreCounters>& cores() const { return cores_; }  // by nc_idx

  // From now on there is no room: sources stop, and what is here can drain.
  void Close() { closed_ = true; }

  // Spool::Listener
  void OnKept(const SpoolTicket& ticket, const SpoolPlace& place) override;
  void OnHealth(const absl::Status& health) override;
  void OnSegmentDropped(const CaptureId& capture_id, uint64_t segment) override;
  std::map<StreamIdentity, SpoolCursor::Stream> StreamsOf(const CaptureId& capture_id) override;
  bool CursorsAreExact() override;

 private:
  using StreamKey = std::tuple<CaptureId, StreamIdentity>;
  // One queue. `entries` are in order of their sequence, possibly with gaps.
  struct Stream {
    StreamKey key;
    std::deque<Entry> entries;
    size_t ready = 0;         // how many of the first may be sent
    std::string last_header;  // of the last chunk there was, serialized
    std::string safe_header;  // of the last that is kept or stored, where `behind_` lags; or empty
    uint64_t next_sequence = 0;
    // See stored_before(): the end of what the aggregator has acknowledged.
    uint64_t stored_before = 0;
  };

  // Returns the number of the chunk's stream, a new one if the stream is not known. Numbers are
  // never reused, so late acknowledgements of a dropped stream find nothing.
  StreamNumber NumberOf(const ChunkHeader& header);
  // Appends a chunk to its queue and to the spool, there before all others with `first`.
  void Add(StreamNumber number, Entry entry, Chunk chunk, bool first);
  // Set or drop the chunk in memory, and keep the sums of bytes right.
  void SetEnvelope(StreamNumber number, Entry& entry, Chunk chunk);
  void DropEnvelope(Entry& entry);
  // Announces the chunks that may be sent by now.
  void MakeReady(StreamNumber number, Stream& stream);
  // Takes over a chunk that the spool held at the start. Releases it at once if the cursor shows
  // that it is stored or given up.
  void AddFound(const SpoolCursor& cursor, const ChunkHeader& header, const SpoolPlace& place);
  // Puts what was read into its entries, then calls OnLoaded once. Entries that were settled while
  // the disk was read are skipped.
  void HandleLoaded(StreamNumber number, const std::vector<uint64_t>& sequences,
                    const std::vector<LoadedChunk>& loaded);
  // Returns false if it is to be tried again.
  bool HandleOneLoaded(StreamNumber number, uint64_t sequence, const LoadedChunk& loaded);
  // Gives up a chunk whose header cannot be read either.
  void LoseUnreadable(StreamNumber number, size_t index, const absl::Status& why);
  // Records where a stream certainly continues.
  void Learn(const CaptureId& capture_id, const StreamCursor& cursor);
  // The same, from the stream's last safe chunk.
  void LearnFrom(Stream& stream);
  // Adds an empty chunk to a stream that has lost its last one.
  void ReplaceLast(StreamNumber number, const PrecedingGap& gone);
  // Adds a chunk that reports an unknown loss of the stream.
  void ReportUnknown(const CaptureId& capture_id, StreamCursor& cursor);
  // Calls the source back, if it is there: chunks of an earlier run have none.
  void SendReceipt(Entry& entry, const Receipt& receipt);
  void TakeOut(Entry& entry);  // of the sums
  // Removes the stream with its number, after recording where it continues.
  void Forget(StreamNumber number);
  void CountCore(const ChunkHeader& header);
  void CountLost(LossPlace place, LossReason reason, uint64_t events);
  // Returns whether chunks wait for the disk before they are sent.
  bool keeps() const { return spool_ != nullptr && spool_->health().ok(); }

  Spool* const spool_;
  const size_t bytes_max_;
  Listener* listener_ = nullptr;
  absl::flat_hash_map<StreamKey, StreamNumber> numbers_;
  std::map<StreamNumber, Stream> streams_;  // in order, so that what happens to all repeats itself
  std::map<CaptureId, std::set<StreamNumber>> by_capture_;
  // Where streams continue after what is kept here or stored by the aggregator; also of streams
  // that have ended, and of those without a chunk here.
  std::map<CaptureId, std::map<StreamIdentity, StreamCursor>> behind_;
  // Streams that were resumed before the aggregator was reached; WasWrong compares them.
  std::map<CaptureId, std::map<StreamIdentity, uint64_t>> resumed_;  // at which sequence
  std::set<CaptureId> uncertain_;  // the spool lost an unknown part of them: to be reported
  StreamNumber last_number_ = 0;
  size_t unspooled_bytes_ = 0;  // of chunks that are in memory alone
  size_t unspooled_chunks_ = 0;
  size_t cached_bytes_ = 0;  // of chunks that the spool has too
  size_t chunks_ = 0;
  // After Close: HasRoom is false for good.
  bool closed_ = false;
  Counters counters_;
  LossTable losses_;
  std::map<uint32_t, CoreCounters> cores_;
};

}  // namespace neurontrace
