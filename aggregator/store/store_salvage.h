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

// Records of the small families, as far as they can be read.
struct SalvagedRecords {
  std::string aggregator_id;
  std::string clock_record;  // the encoded value
  std::map<CaptureId, CaptureRecord> captures;
  std::map<std::string, std::string> agents;   // encoded values by key
  std::map<std::string, std::string> workers;  // encoded values by key
  std::map<std::string, std::string> epochs;   // of the reference timescale, encoded, by key
  std::map<std::pair<CaptureId, uint32_t>, StreamRecord> streams;
  ClockDamage clocks;
  bool captures_complete = true;  // nothing of family `captures` was unreadable
  uint64_t damaged = 0;           // unreadable files, places in files and rows

  // Keeps the newer of two versions of a record. Files hold several, and their order is not
  // reliable.
  void Take(CaptureRecord record);
  void Take(CaptureId capture, StreamRecord record);
};

// Receive what is too much for memory, as keys and values, possibly more than once. An error of one
// ends the salvage. Clock models and artifacts are passed on without a check of their values.
struct SalvageSinks {
  using Take = std::function<absl::Status(std::string_view key, std::string_view value)>;
  Take chunk;
  Take clock_evidence;
  Take clock_model;
  Take artifact;
};

// Reads the files of a database one by one, without the manifest that says how they belong
// together: tables first, then chunks from blob files, then the whole log over it. Rows that cannot
// be read are skipped and counted.
//
// A deleted record can return if the table with its old version still exists. Deletions in the log
// are applied to captures; chunks of a capture without a record do not matter, as they are dropped
// later. Fails with the error of listing or reading files, or of a sink.
absl::StatusOr<SalvagedRecords> SalvageFiles(const std::string& path, rocksdb::Env& env,
                                             const SalvageSinks& sinks);

}  // namespace neurontrace
