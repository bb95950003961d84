// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/store/durability.h"
#include "lib/trace/ids.h"

namespace neurontrace {

class Database;

// One version of the models of a capture's clocks: a header about all of them, and a row for each.
// docs/formats/store.md describes the contents; to this class they are bytes.
struct ClockModelVersion {
  uint32_t version = 0;  // counts from 1
  std::string header;
  std::vector<std::string> rows;
  friend bool operator==(const ClockModelVersion&, const ClockModelVersion&) = default;
};

// Returns, by the header of the newest version, whether a capture's models are final and need no
// further evidence. Given by the owner, as the header is encoded in aggregator/clocks.
using AreClocksFinal = std::function<bool(std::string_view header)>;

// Keeps models of clocks, which are derived and not measured: a lost version is fitted again while
// its evidence exists (docs/decisions/0015). Any thread, but one at a time for each capture. The
// database must outlive it.
class ClockModelStore {
 public:
  // Versions kept per capture: the newest, and the one that recently exported files were made with.
  static constexpr uint32_t kVersionsKept = 2;

  ClockModelStore(Database& database, Durability durability)
      : database_(database), durability_(durability) {}
  ClockModelStore(const ClockModelStore&) = delete;
  ClockModelStore& operator=(const ClockModelStore&) = delete;

  // Stores a whole version in one write, replaces one of the same number, and deletes those that
  // are too old to be kept. Fails with INVALID_ARGUMENT for version 0 and beyond
  // limits::kClockModelRowsMax or kClockModelBytesMax.
  absl::Status Put(const CaptureId& capture, const ClockModelVersion& models);

  // Returns the newest complete version; nullopt if there is none.
  absl::StatusOr<std::optional<ClockModelVersion>> Newest(const CaptureId& capture) const;
  // Lists the numbers of all versions with any row, complete or not, in ascending order.
  absl::StatusOr<std::vector<uint32_t>> Versions(const CaptureId& capture) const;
  // Fails with DATA_LOSS if that version is incomplete, with NOT_FOUND if it has no rows.
  absl::StatusOr<ClockModelVersion> Read(const CaptureId& capture, uint32_t version) const;
  // Returns the header of the newest version that has one, without reading rows.
  absl::StatusOr<std::optional<std::string>> NewestHeader(const CaptureId& capture) const;

  // Deletes all versions. Not synced: FinishDeletions deletes what a crash restores.
  absl::Status Delete(const CaptureId& capture);
  // Called at start. Deletes models of captures that no longer exist.
  absl::Status FinishDeletions();

 private:
  Database& database_;
  const Durability durability_;
};

// Returns a sentence for each version of the capture that is not complete. Changes nothing.
absl::StatusOr<std::vector<std::string>> CheckClockModels(const Database& database,
                                                          const CaptureId& capture);

// Deletes incomplete versions from a database that was rebuilt out of damaged files.
absl::Status DropBrokenClockModels(Database& database);

}  // namespace neurontrace
