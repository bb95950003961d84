// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agent/spool/spool_format.h"
#include "lib/base/file_system.h"
#include "neurontrace/v1/chunk.pb.h"

namespace neurontrace {

// The place of a chunk in the spool. A plain value. The delivery queue keeps one for each chunk and
// hands it back to read or release the chunk.
struct SpoolPlace {
  uint64_t segment = 0;  // 0: nowhere
  // Of the record's head in the segment file. The lengths are those of the chunk's header and
  // columns, which follow the head; a reader compares them with the head that it finds.
  uint32_t offset = 0;
  uint32_t header_bytes = 0;
  uint32_t columns_bytes = 0;

  uint32_t record_bytes() const {
    return static_cast<uint32_t>(kRecordHeadBytes) + header_bytes + columns_bytes;
  }
  friend bool operator==(const SpoolPlace&, const SpoolPlace&) = default;
};

// What the disk has to do in one go, in the order of the fields. The order is what makes a crash at
// any point safe: the `running` file stops vouching before anything is removed, chunks are durable
// before cursors refer to them, cursors before segments go, and the `running` file vouches again
// last. Made by Spool on the agent's sequence, carried out by SpoolDisk on the I/O sequence, and
// never changed in between.
struct SpoolJob {
  struct Directory {  // of a capture that is over: all of it goes
    std::string path;
    std::set<std::string> keep;  // names in it that stay, whatever they are
  };
  // The chunks are written one after the other from `offset` on, and synced once.
  struct Append {  // a batch for one segment
    std::string directory;
    SegmentHeader segment;
    // The segment is new: its file is created and `segment` is written in front of the batch.
    bool create = false;
    uint32_t offset = 0;  // where the batch begins
    // Held until the job is done, so that a chunk which its user settles meanwhile stays valid.
    std::vector<std::shared_ptr<const v1::ChunkEnvelope>> chunks;
  };
  struct QuarantinedChunk {  // a refused chunk, for people to look at
    std::string name;
    std::shared_ptr<const v1::ChunkEnvelope> chunk;
  };
  struct Cursor {
    std::string directory;
    // The encoded file (EncodeSpoolCursor), which replaces the old one as a whole.
    std::string bytes;
    bool create = false;  // the directory, if it does not exist
  };
  struct Removal {  // of a segment
    std::string directory;
    uint64_t segment = 0;
    // Of the segment's file: they count against the budget as long as the removal fails.
    uint64_t bytes = 0;
    // Not stored by the aggregator: only once the batch (with what replaces it) and the
    // cursor are durable.
    bool given_up = false;
    bool failed_before = false;
  };

  bool probe = false;  // try whether the disk takes a file
  bool look = false;   // see how much room the disk has
  // The `running` file without the captures that are over, written before anything else; empty: it
  // is removed.
  std::optional<std::string> running_left;
  std::vector<Directory> directories;
  std::vector<Append> appends;
  std::vector<QuarantinedChunk> aside;
  std::vector<Cursor> cursors;
  std::vector<Removal> removals;
  // The `running` file, if everything above succeeded.
  std::optional<std::string> running;
  std::optional<std::string> aggregator;  // the file of that name

  // Returns true if there is nothing to do.
  bool empty() const {
    return !probe && !look && !running_left && !running && !aggregator && directories.empty() &&
           appends.empty() && aside.empty() && cursors.empty() && removals.empty();
  }
};

// The result of a job. Spool::OnDone takes it on the agent's sequence. Every failed part is named,
// so that the next job can contain it again.
struct SpoolJobResult {
  absl::Status appended;  // all chunks are durable, or none is said to be
  absl::Status tidied;    // cursors, removals, the probe, files of the spool as a whole
  // The outcome for the `running` file. If anything failed it is removed: what follows may be sent
  // without being on this disk, and the cursors here would then be wrong.
  enum class Running { kAsItWas, kLeft, kWritten, kGone, kStuck };
  // kLeft: without the captures that are over. kStuck: it should be removed and cannot be, so
  // nothing that it vouches for may be removed either.
  Running running = Running::kAsItWas;
  std::optional<FileSystem::Capacity>
      capacity;  // of the disk, after the job; none: it does not say
  // Parts of the job that have to be repeated.
  std::vector<SpoolJob::Removal> not_removed;
  std::vector<SpoolJob::Directory> not_emptied;
};

// A chunk that was read back.
struct LoadedChunk {
  // DATA_LOSS: it is damaged. NOT_FOUND: its file is gone. Others: errors of the disk.
  absl::Status status;
  // Set if the status is OK, and, with the header alone, if only the columns are damaged.
  std::shared_ptr<v1::ChunkEnvelope> envelope;
};

}  // namespace neurontrace
