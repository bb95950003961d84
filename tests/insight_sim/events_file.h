// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "aggregator/insight/insight_engine.h"

namespace neurontrace {

// Events of a job as text, for traces of other origin: tests/insight_sim/README.md has the form.
struct EventsFile {
  static constexpr size_t kCoresMax = 100'000;
  static constexpr size_t kEventsMax = 50'000'000;

  std::vector<InsightCore> cores;
  std::vector<std::pair<uint64_t, std::string>> models;
  std::vector<InsightEvent> events;
};

// Fails with INVALID_ARGUMENT and the number of the line.
absl::StatusOr<EventsFile> ReadEventsFile(std::istream& in);

}  // namespace neurontrace
