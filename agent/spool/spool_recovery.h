// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "agent/spool/segment_reader.h"
#include "agent/spool/spool_job.h"
#include "lib/base/file_system.h"
#include "lib/trace/capture_spec.h"
#include "lib/trace/chunk_header.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// Reads a spool's directory when an agent starts, also after a crash. It copes with whatever it
// finds: a segment that cannot be read is moved to the quarantine, and one of a later version or of
// another agent stays where it is. Blocking; used by one thread, once for each attempt. Used by
// Spool::Recover. It changes the disk only by moving segments that cannot be used, or by removing
// them if the quarantine is full.
class SpoolRecovery {
 public:
  // A segment that this agent owns and can read. `bytes` is its size, and `records` counts what is
  // sound in it.
  struct FoundSegment {
    CaptureId capture_id;
    uint64_t bytes = 0;
    uint64_t records = 0;
  };
  // What was found on the disk. Counts are for logs and metrics; the rest rebuilds the spool's
  // books.
  struct Summary {
    uint64_t chunks = 0;
    uint64_t bytes = 0;
    uint64_t damaged_places = 0;       // in segments
    uint64_t torn_bytes = 0;           // at the ends of segments: never said to be kept
    uint64_t damaged_segments = 0;     // moved to the quarantine
    uint64_t segments_left_alone = 0;  // of a later version, or of another agent
    uint64_t files_unreadable = 0;     // segments and cursors that the disk did not give
    uint64_t quarantine_bytes = 0;
    uint64_t quarantine_files = 0;
    uint64_t last_segment = 0;  // the greatest number there is
    std::map<uint64_t, FoundSegment> segments;
    // Captures that lost whole segments, with unknown contents.
    std::set<CaptureId> uncertain;
    // Captures that are resumed before the aggregator is reached: of this boot, with every file
    // sound.
    std::map<CaptureId, CaptureSpec> running;
    bool running_stale = false;  // the file that says so names others too, or nonsense
    std::string aggregator_id;   // that the spool is for; empty: not known
    // Names in the directories of captures that have to stay.
    std::map<CaptureId, std::set<std::string>> left_alone;
  };
  // Receives what is found, while Run reads. After a failed Run the visitor must forget what it was
  // given: the next attempt starts over.
  struct Visitor {
    // Called before the chunks of a capture; `cursor` is empty if there is none.
    std::function<void(const CaptureId&, const SpoolCursor& cursor)> on_capture;
    // Called in the order in which chunks were written. If a chunk comes twice, the later one
    // counts.
    std::function<void(const ChunkHeader&, const SpoolPlace&)> on_chunk;
  };

  // With `gives_up`, files that the disk does not return are skipped and counted. `files` outlives
  // this.
  SpoolRecovery(FileSystem& files, std::string root, std::string agent_id, std::string boot_id,
                bool gives_up)
      : files_(files),
        root_(std::move(root)),
        agent_id_(std::move(agent_id)),
        boot_id_(std::move(boot_id)),
        gives_up_(gives_up) {}

  // Reads everything. Fails with the disk's errors about a directory or a file; it is to be tried
  // again then. What is no regular file, such as a FIFO or a link, is skipped and counted.
  absl::Status Run(const Visitor& visitor, Summary& summary);

 private:
  // Reads the cursor and then the segments of one capture in ascending order. Fails with errors of
  // the disk unless files that cannot be read are given up.
  absl::Status ReadCapture(const CaptureId& capture_id, const std::string& directory,
                           const Visitor& visitor, Summary& summary);
  // Reads a whole file. Fails with NOT_FOUND if it does not exist.
  absl::StatusOr<std::string> ReadWhole(const std::string& path, size_t bytes_max);
  // Returns whether a file with this error is to be skipped now.
  bool IsPassedOver(const absl::Status& status) const;
  // Read the files of the spool as a whole.
  absl::Status ReadRunning(Summary& summary);
  absl::Status ReadAggregator(Summary& summary);
  absl::StatusOr<SpoolCursor> ReadCursor(const CaptureId& capture_id, const std::string& directory,
                                         Summary& summary);
  // Reads one segment; `cursor` is set for the last segment of its capture, whose end may be torn.
  absl::Status ReadOne(const CaptureId& capture_id, const std::string& path, uint64_t segment,
                       const SpoolCursor* cursor, const Visitor& visitor, Summary& summary);
  // Moves a segment that cannot be used to the quarantine, or removes it if that is full.
  void SetAside(const FileSystem::Entry& entry, const CaptureId& capture_id,
                const absl::Status& why, Summary& summary);

  FileSystem& files_;
  const std::string root_;
  const std::string agent_id_;
  const std::string boot_id_;
  const bool gives_up_;
  std::set<CaptureId> exact_;  // captures whose cursors are all there
};

}  // namespace neurontrace
