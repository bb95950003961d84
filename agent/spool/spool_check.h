// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/file_system.h"

namespace neurontrace {

// The contents of a spool and what is wrong with it, for people and scripts (--spool-check): every
// segment is read, every checksum compared, and nothing is changed. An agent may be using the
// spool; what it removes meanwhile is skipped. A plain value. Used by main() of the agent;
// docs/operator/spool.md describes the command.
struct SpoolCheckReport {
  struct Segment {
    std::string path;  // in the spool's directory
    std::string agent_id;
    // Bytes of the file; chunks and events are those whose checksums are right.
    uint64_t bytes = 0;
    uint64_t chunks = 0;
    uint64_t events = 0;
    uint64_t damaged_places = 0;  // where a record should be and none is
    uint64_t damaged_chunks = 0;  // whose header is sound and whose columns are not
    uint64_t torn_bytes = 0;      // of a write that did not end; no damage
    std::string problem;          // why it cannot be read at all; empty if it can
    bool later_version = false;
  };
  // A capture's cursor file.
  struct Cursor {
    std::string path;
    // Number of streams that it names; `problem` is empty if it can be read.
    uint64_t streams = 0;
    std::string problem;
  };
  std::vector<Segment> segments;
  std::vector<Cursor> cursors;
  std::string aggregator_id;         // that the spool is for; empty: not known
  std::vector<std::string> running;  // captures that continue when an agent starts
  std::string problem;               // of the files that say so
  uint64_t quarantined_files = 0;

  // Returns true if nothing is damaged and everything can be read. A torn end is no damage: every
  // crash leaves one, and nothing in it was reported as kept. A file of a later version is not
  // sound, since this program cannot judge it.
  bool sound() const;
  // One line for each segment and cursor, and a sum.
  std::string ToText() const;
  // One object with the same contents, followed by a newline.
  std::string ToJson() const;
};

// Reads a whole spool; blocks for the disk. Fails if the directory cannot be listed; every other
// problem is part of the report. Needs no lock and takes none, so that it works beside a running
// agent.
absl::StatusOr<SpoolCheckReport> CheckSpool(FileSystem& files, const std::string& root);

}  // namespace neurontrace
