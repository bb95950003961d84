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

// One version of the models of a capture's clocks: what is said of all of them, and a row for each.
// What the bytes mean is told in docs/formats/store.md; here they are bytes.
struct ClockModelVersion {
  uint32_t version = 0;  // from 1
  std::string header;
  std::vector<std::string> rows;
  friend bool operator==(const ClockModelVersion&, const ClockModelVersion&) = default;
};

// Whether the models of a capture's clocks are final, and need no evidence any more, by the header
// of their newest version.
using AreClocksFinal = std::function<bool(std::string_view header)>;

// Derived, not measured: what is lost here is made again, as long as the evidence is there. Any
// thread; one at a time a capture.
class ClockModelStore {
 public:
  // How many versions of a capture's models are kept: the newest, and the one that files exported a
  // moment ago were made with.
  static constexpr uint32_t kVersionsKept = 2;

  ClockModelStore(Database& database, Durability durability)
      : database_(database), durability_(durability) {}
  ClockModelStore(const ClockModelStore&) = delete;
  ClockModelStore& operator=(const ClockModelStore&) = delete;

  // All of a version in one write, in place of one with the same number; versions too old to be
  // kept go. INVALID_ARGUMENT for version 0, and for more rows or bytes than the limits allow.
  absl::Status Put(const CaptureId& capture, const ClockModelVersion& models);

  // The newest version that is whole; nullopt where there is none.
  absl::StatusOr<std::optional<ClockModelVersion>> Newest(const CaptureId& capture) const;
  // The numbers of all versions of which there is anything, in order.
  absl::StatusOr<std::vector<uint32_t>> Versions(const CaptureId& capture) const;
  // That one; DATA_LOSS where it is not whole, NOT_FOUND where there is nothing of it.
  absl::StatusOr<ClockModelVersion> Read(const CaptureId& capture, uint32_t version) const;
  // Its header alone, of the newest version that has one.
  absl::StatusOr<std::optional<std::string>> NewestHeader(const CaptureId& capture) const;

  absl::Status Delete(const CaptureId& capture);
  // Of captures that are no more: what an interrupted deletion has left.
  absl::Status FinishDeletions();

 private:
  Database& database_;
  const Durability durability_;
};

// What of the stored models is no whole version, a sentence each.
absl::StatusOr<std::vector<std::string>> CheckClockModels(const Database& database,
                                                          const CaptureId& capture);

// For a database that was made again out of damaged files.
absl::Status DropBrokenClockModels(Database& database);

}  // namespace neurontrace
