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
// spool; what it removes meanwhile is skipped. A plain value.
struct SpoolCheckReport {
  struct Segment {
    std::string path;  // in the spool's directory
    std::string agent_id;
    uint64_t bytes = 0;
    uint64_t chunks = 0;
    uint64_t events = 0;
    uint64_t damaged_places = 0;  // where a record should be and none is
    uint64_t damaged_chunks = 0;  // whose header is sound and whose columns are not
    uint64_t torn_bytes = 0;      // of a write that did not end; no damage
    std::string problem;          // why it cannot be read at all; empty if it can
    bool later_version = false;
  };
  struct Cursor {
    std::string path;
    uint64_t streams = 0;
    std::string problem;
  };
  std::vector<Segment> segments;
  std::vector<Cursor> cursors;
  std::string aggregator_id;         // that the spool is for; empty: not known
  std::vector<std::string> running;  // captures that go on when an agent starts
  std::string problem;               // of the files that say so
  uint64_t quarantined_files = 0;

  // True if nothing is damaged and everything can be read.
  bool sound() const;
  std::string ToText() const;
  std::string ToJson() const;
};

// Reads a whole spool; blocks for the disk. Fails if the directory cannot be listed; every other
// problem is part of the report.
absl::StatusOr<SpoolCheckReport> CheckSpool(FileSystem& files, const std::string& root);

}  // namespace neurontrace
