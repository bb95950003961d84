// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "aggregator/export/exporter.h"
#include "lib/trace/view_limits.h"

namespace neurontrace {

// Returns whether the client of a question is gone. Asked between batches, on the reading thread.
using ViewCancel = std::function<bool()>;

// One question of the page: the query part of its URL. A plain value; times are reference
// nanoseconds. docs/formats/view_api.md defines the parameters.
struct ViewRequest {
  std::optional<uint64_t> from_ns;  // nullopt: the capture's begin
  std::optional<uint64_t> to_ns;    // nullopt: the capture's end
  std::vector<uint32_t> streams;    // numbers; empty: all
  uint32_t pixels = 1'600;
  uint32_t columns = 400;
  uint32_t lines = limits::kViewHeatLinesMax;  // of a heat map
  size_t limit = 200;
  uint64_t cursor = 0;
  std::string query;
  std::string metric = "busy";
  std::string by = "name";
  std::string sort = "rank";
  std::string event;  // EventId as text
  std::string chain;
  uint32_t depth = 8;
  uint32_t breadth = 3;

  // Parses "from=1&to=2&streams=4,7". Decodes percent escapes. Fails with INVALID_ARGUMENT that
  // names the parameter; an unknown one is refused, as a typing error would otherwise be ignored.
  static absl::StatusOr<ViewRequest> Parse(std::string_view query);
};

}  // namespace neurontrace
