// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agent/spool/spool_disk.h"
#include "agent/spool/spool_format.h"
#include "agent/spool/spool_job.h"
#include "agent/spool/spool_recovery.h"
#include "lib/base/backoff.h"
#include "lib/base/clock.h"
#include "lib/base/file_system.h"
#include "lib/base/random.h"
#include "lib/base/task_runner.h"
#include "lib/base/weak_tasks.h"
#include "lib/trace/capture_spec.h"
#include "lib/trace/ids.h"
#include "lib/trace/limits.h"

namespace neurontrace {

// The user's name for a chunk. The spool only hands it back; the delivery queue puts its stream
// number and the chunk's sequence in it.
struct SpoolTicket {
  uint64_t stream = 0;
  uint64_t sequence = 0;
};

// A bounded store of chunks on this node's disk: one directory for each capture, with segments in
// it (docs/formats/spool.md). Chunks are appended and, once durable, reported as kept; they can be
// read back, and are released when they are no longer needed. It knows captures, segments and
// sizes; the order within streams is its user's concern.
//
// A disk without room for a single chunk, by Options::free_percent_min, counts as one that fails.
//
// What is appended while a write is under way goes into the next one, with a single sync. When the
// disk fails the spool reports it and tries again with growing delays; appended chunks wait in
// memory. When the budget is spent, Options::when_full decides: drop the oldest segments, or let
// new chunks wait. docs/decisions/0009-durable-is-the-agents-disk.md has the reasons.
//
// Lives on the agent's sequence. The disk is touched on `io` alone, except by Recover. Errors of
// writing are not returned by a call: they change health() and reach Listener::OnHealth.
class Spool {
 public:
  enum class WhenFull { kDropOldest, kRefuseNewest };
  struct Options {
    // Created if it does not exist. One agent at a time uses it, by a lock on a file in it.
    std::string directory;
    std::string agent_id;
    std::string boot_id;  // of the machine; empty: no capture continues by itself
    // Bytes of segment files, of all captures and of each one. Cursors and the quarantine, which
    // have limits of their own, do not count.
    uint64_t bytes_max = limits::kSpoolBytesDefault;
    uint64_t capture_bytes_max = limits::kSpoolBytesDefault / 2;
    WhenFull when_full = WhenFull::kDropOldest;
    // How much of the disk must stay free, in percent of its size: the spool counts as full before
    // it takes more. 0: it may fill the disk.
    uint32_t free_percent_min = 0;
  };
  struct Counters {
    uint64_t chunks_kept = 0;
    uint64_t bytes_kept = 0;
    uint64_t batches = 0;               // writes with a sync
    uint64_t failures = 0;              // of the disk
    uint64_t segments_dropped = 0;      // to make room
    uint64_t chunks_set_aside = 0;      // refused by the aggregator, kept for people
    uint64_t chunks_not_set_aside = 0;  // the quarantine was full
  };
  // Called on the agent's sequence. A callback may call the spool again, except Recover.
  class Listener {
   public:
    virtual ~Listener() = default;
    // The chunk is durable at `place`.
    virtual void OnKept(const SpoolTicket& ticket, const SpoolPlace& place) = 0;
    // The disk fails, or works again.
    virtual void OnHealth(const absl::Status& health) = 0;
    // The segment is dropped to make room, and its chunks are lost. A chunk that must not disappear
    // without a trace is replaced from within this call, by AppendFirst.
    virtual void OnSegmentDropped(const CaptureId& capture_id, uint64_t segment) = 0;
    // Returns what the cursor file is to contain about the streams.
    virtual std::map<StreamIdentity, SpoolCursor::Stream> StreamsOf(
        const CaptureId& capture_id) = 0;
    // Returns true while StreamsOf, together with the segments, describes where every stream
    // continues: no chunk may be on its way that is neither kept nor stored by the aggregator.
    virtual bool CursorsAreExact() = 0;
  };

  // All references outlive the spool, and `files` every task that it posted to `io`.
  Spool(const Options& options, FileSystem& files, TaskRunner& io, TaskRunner& runner,
        const Clock& clock, Random& random);
  ~Spool();

  // Sets the user; null once that is gone. Nothing is written without one.
  void SetListener(Listener* listener) { listener_ = listener; }

  // Reads what is on the disk. To be called before any other function; blocks. Nothing is written
  // until it has succeeded. It may be called again after an error (see SpoolRecovery for which).
  // With call number limits::kSpoolReadTriesMax, files that the disk does not return count as lost.
  absl::Status Recover(const SpoolRecovery::Visitor& visitor);
  // After an error of Recover: whether there is something that it could not read. Blocks.
  bool CanHoldChunks();
  // Returns what the last successful Recover found.
  const SpoolRecovery::Summary& recovered() const { return recovered_; }

  // Writes the chunk with the next job; OnKept follows, unless the capture is forgotten or `chunk`
  // is destroyed before it is written, as the spool holds it weakly.
  void Append(const CaptureId& capture_id, const SpoolTicket& ticket,
              const std::shared_ptr<const v1::ChunkEnvelope>& chunk);
  // Writes the chunk before all that wait, and regardless of the budget: for what replaces a lost
  // chunk.
  void AppendFirst(const CaptureId& capture_id, const SpoolTicket& ticket,
                   const std::shared_ptr<const v1::ChunkEnvelope>& chunk);
  // The chunk is no longer needed. Its segment is removed once all its chunks are released.
  void Release(const SpoolPlace& place);
  // The first chunks of a stream were given up, so the cursor has to be written.
  void RecordCursor(const CaptureId& capture_id);
  // Removes everything of the capture, pending chunks included.
  void Forget(const CaptureId& capture_id);
  // The capture is to be resumed at the next start, before the aggregator is reached, if the spool
  // can vouch for its cursors by then. Valid until Forget or RecordUnsure.
  void RecordRunning(const CaptureId& capture_id, const CaptureSpec& spec);
  void RecordUnsure(const CaptureId& capture_id);
  // Returns the captures that Recover found to be resumed.
  const std::map<CaptureId, CaptureSpec>& running() const { return running_; }
  // Sets the aggregator that the spool is for; empty: not known yet.
  void RecordAggregator(const std::string& aggregator_id);
  const std::string& aggregator_id() const { return aggregator_id_; }
  using Loaded = std::function<void(std::vector<LoadedChunk>)>;
  // Reads chunks back; `done` gets one result for each place, in their order, unless this is
  // destroyed before.
  void Load(const CaptureId& capture_id, std::vector<SpoolPlace> places, Loaded done);
  // Keeps a copy of a refused chunk in the quarantine, for people, if there is room.
  void SetAside(const CaptureId& capture_id, uint64_t sequence,
                std::shared_ptr<const v1::ChunkEnvelope> chunk);
  // Writes the cursors once more, then calls `done`, whether that succeeded or not.
  void Finish(std::function<void()> done);

  // Returns true while new chunks have to wait for room; IsFullFor: those of the capture.
  bool full() const { return blocked_ || !waiting_.empty(); }
  bool IsFullFor(const CaptureId& capture_id) const {
    return blocked_ || waiting_.contains(capture_id);
  }
  const absl::Status& health() const { return health_; }
  // Bytes, chunks, segments and captures that the spool holds now; what waits for its first write
  // does not count, and what is released counts until its segment is retired.
  uint64_t bytes() const { return bytes_; }
  // Its maximum size, or less if the disk cannot spare that much. The result is in bytes.
  uint64_t bytes_max() const { return std::min(options_.bytes_max, disk_bytes_max_); }
  uint64_t chunks() const { return chunks_; }
  size_t segments() const { return segments_.size(); }
  size_t captures() const { return captures_.size(); }
  const Counters& counters() const { return counters_; }

 private:
  // One attempt of Recover: takes the lock, reads all files, and rebuilds the books from nothing.
  absl::Status Read(const SpoolRecovery::Visitor& visitor);
  // One segment file in the books.
  struct Segment {
    CaptureId capture_id;
    uint64_t bytes = 0;
    // 0 for a segment of an earlier run, which is never written to again.
    uint64_t salt = 0;
    uint64_t chunks = 0;  // not released
  };
  // One directory in the books.
  struct Capture {
    std::set<uint64_t> segments;
    uint64_t active = 0;  // the one that is written to; 0: none
    uint64_t bytes = 0;
    bool cursor_dirty = false;
    bool in_job = false;  // the job at hand has a batch for it
  };
  // A chunk that waits to be written. Held weakly: its user may settle it otherwise meanwhile.
  struct Pending {
    CaptureId capture_id;
    SpoolTicket ticket;
    std::weak_ptr<const v1::ChunkEnvelope> chunk;
    bool first = false;  // came by AppendFirst
  };
  struct Written {  // in the job under way
    Pending pending;
    SpoolPlace place;
  };

  std::string DirectoryOf(const CaptureId& capture_id) const;
  // Starts a job if there is work and none is running.
  void Kick();
  // Calls Kick after a while; calls that are already scheduled are not repeated.
  void KickLater(uint64_t delay_ns);
  // Collects everything that is due into one job.
  SpoolJob MakeJob();
  // Adds the waiting chunks to the job, within one batch. Chunks that find no room stay in
  // pending_, and full() is true from then on.
  void TakePending(SpoolJob& job);
  enum class Taken { kOne, kNoMoreOfCapture, kNoMore };
  // Adds the first chunk of a queue to the job if there is room. kNoMoreOfCapture: the others may
  // still have some; kNoMore: the batch or the whole spool is full.
  Taken TakeOne(const CaptureId& capture_id, std::deque<Pending>& pending, SpoolJob& job);
  // Returns whether a chunk that replaces lost ones waits; it goes before everything else.
  bool HasPendingReplacement() const;
  bool Put(const Pending& pending, const std::shared_ptr<const v1::ChunkEnvelope>& chunk,
           SpoolJob& job);
  enum class Room { kEnough, kNoneForCapture, kNone };
  // Makes room for a chunk by the policy; returns what is still missing.
  Room MakeRoom(const CaptureId& capture_id, uint64_t bytes);
  // Retires the active segments that hold no chunk any more. Returns true if there was one, so that
  // room has to be computed again.
  bool RemoveIdle(const CaptureId& capture_id, bool any_capture);
  // Returns null only if the spool holds no capture.
  Capture* Victim(const CaptureId& wanting, bool over_share);
  // Drops a segment to make room, and tells the listener.
  void DropSegment(uint64_t segment);
  // Removes the segment from the books; its file is removed by a later job.
  void Retire(uint64_t segment, bool given_up);
  // Adds what can wait: removals, cursors, and the `running` file.
  void TidyInto(SpoolJob& job);
  // Adds the cursor file of a capture.
  void PutCursor(const CaptureId& capture_id, bool create, SpoolJob& job);
  // Returns true while some running capture is not in the `running` file yet.
  bool WaitsToBeRecorded() const;
  // The `running` file: takes captures out before anything of them is removed, adds captures when
  // the cursors are exact, and takes the outcome.
  void PutRunningLeft(SpoolJob& job);
  void PutRunning(SpoolJob& job);
  void HandleRunning(const SpoolJobResult& result);
  // Takes the result of a job, and starts the next one.
  void OnDone(const SpoolJobResult& result);
  // Reports the chunks of the job as kept, or puts them back if the write failed.
  void HandleAppended(bool well);
  // Derives disk_bytes_max_ from what the disk has free.
  void HandleCapacity(const FileSystem::Capacity& capacity);
  // Returns true while the disk allows less than the configured size.
  bool IsShortOfDisk() const { return disk_bytes_max_ < options_.bytes_max; }
  // Logs and reports a change.
  void SetHealth(absl::Status health);

  const Options options_;
  const uint64_t segment_bytes_max_;
  TaskRunner& io_;
  TaskRunner& runner_;
  FileSystem& files_;
  const Clock& clock_;
  Random& random_;
  Backoff backoff_;
  Listener* listener_ = nullptr;
  // Used on io_ alone, except in Read; shared with each posted task.
  const std::shared_ptr<SpoolDisk> disk_;
  std::unique_ptr<FileSystem::Lock> lock_;
  // Until it is true, appended chunks are ignored; the queue holds them in memory.
  bool readable_ = false;  // Recover went well
  uint32_t reading_tries_ = 0;
  SpoolRecovery::Summary recovered_;

  // The books. They change when a job is made, before the disk has followed.
  std::map<CaptureId, Capture> captures_;
  std::map<uint64_t, Segment> segments_;
  uint64_t next_segment_ = 1;
  uint64_t bytes_ = 0;                    // of segments in the books
  uint64_t stuck_bytes_ = 0;              // of segments whose removal failed
  uint64_t disk_bytes_max_ = UINT64_MAX;  // of all segments, by what is to stay free of the disk
  uint64_t chunks_ = 0;
  uint64_t aside_bytes_ = 0;
  uint64_t aside_files_ = 0;

  std::map<CaptureId, std::deque<Pending>> pending_;
  uint64_t batch_bytes_ = 0;  // of the job that is being made
  std::vector<Written> in_job_;
  std::vector<uint64_t> touched_;  // segments that the job writes to
  std::vector<SpoolJob::Directory> directories_;
  std::vector<SpoolJob::QuarantinedChunk> quarantined_;
  std::vector<SpoolJob::Removal> removals_;
  std::vector<std::function<void()>> finishing_;
  bool job_running_ = false;
  bool kick_posted_ = false;        // at once
  bool later_kick_posted_ = false;  // for a while later
  bool blocked_ = false;            // there is no room for what waits
  uint64_t bytes_wanted_ = 0;       // by a chunk for which the disk alone has no room; 0: none
  std::set<CaptureId> waiting_;     // whose share is spent
  std::map<CaptureId, CaptureSpec> running_;
  std::set<CaptureId> recorded_;         // in the `running` file, as far as it is there
  std::set<CaptureId> recorded_in_job_;  // and will be, if the job goes well
  bool running_stuck_ = false;           // it cannot be removed
  std::string aggregator_id_;
  bool aggregator_dirty_ = false;
  // Monotonic times before which cursors are not written, and no job is tried after a failure.
  uint64_t next_tidy_ns_ = 0;
  uint64_t next_try_ns_ = 0;
  uint64_t next_poll_ns_ = 0;  // monotonic: at the disk's room, while there is none
  absl::Status health_;
  Counters counters_;
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
