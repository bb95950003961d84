// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rocksdb/env.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/store/clock_damage.h"
#include "aggregator/store/record_codec.h"
#include "aggregator/store/stream_record.h"
#include "lib/trace/capture_record.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// What the small families said, as far as it can be read.
struct SalvagedRecords {
  std::string aggregator_id;
  std::string clock_record;  // its value
  std::map<CaptureId, CaptureRecord> captures;
  std::map<std::string, std::string> agents;   // values, by key
  std::map<std::string, std::string> workers;  // the same
  std::map<std::string, std::string> epochs;   // of the reference timescale, also
  std::map<std::pair<CaptureId, uint32_t>, StreamRecord> streams;
  ClockDamage clocks;
  bool captures_complete = true;  // no part of family captures was unreadable
  uint64_t damaged = 0;           // files, places in them and rows that could not be read

  // Keeps whichever of two versions of a record is the newer one.
  void Take(CaptureRecord record);
  void Take(CaptureId capture, StreamRecord record);
};

// Where what is too much for memory goes: keys and values, some more than once. An error ends it.
struct SalvageSinks {
  using Take = std::function<absl::Status(std::string_view key, std::string_view value)>;
  Take chunk;
  Take clock_evidence;
  Take clock_model;
  Take artifact;
};

// Reads the files of a database one by one, without what says how they belong together: chunks out
// of blob files, everything else out of tables, and then all of the log over it. A record that was
// deleted can come back where the table with the old one is still there; chunks of a capture whose
// record is gone do not matter. A row that cannot be read is left out.
absl::StatusOr<SalvagedRecords> SalvageFiles(const std::string& path, rocksdb::Env& env,
                                             const SalvageSinks& sinks);

}  // namespace neurontrace
