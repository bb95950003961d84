// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "absl/status/status.h"

namespace neurontrace {

// Options of an export that not every format accepts.
enum class ExportOption {
  kGzip,           // the whole file compressed
  kPackets,        // compressed within the file
  kMaxSize,        // split at a size
  kSplitByWorker,  // into ranges of workers
  // Choose the facts by which rows are grouped, on the first and on the second level.
  kPrimaryGroup,
  kSecondaryGroup,
  // Omits arrows between events.
  kNoFlows,
  // Adds raw stamps and error bounds to events.
  kClockArguments,
};
inline constexpr int kExportOptions = 8;

// A format of exports and the options that it accepts: the only table of these facts. The CLI
// refuses by it before it connects, and the aggregator checks every request. A constant; any
// thread.
class ExportTraits {
 public:
  struct Row {
    std::string_view name;  // as in `--format`
    bool is_directory = false;
    unsigned options = 0;                         // a bit for each ExportOption
    std::string_view no_compression_reason = {};  // added to the refusal of kGzip; may be empty
    std::string_view instead_of_groups = {};
  };
  explicit constexpr ExportTraits(const Row& row) : row_(row) {}

  constexpr std::string_view name() const { return row_.name; }
  // Returns whether it always makes several files.
  constexpr bool is_directory() const { return row_.is_directory; }
  constexpr bool Supports(ExportOption option) const {
    return (row_.options >> static_cast<unsigned>(option) & 1u) != 0;
  }
  // Fails with INVALID_ARGUMENT if the format does not accept the option; the message suggests what
  // to do.
  absl::Status Check(ExportOption option) const;

 private:
  Row row_;
};

// Returns all formats.
std::span<const ExportTraits> AllExportTraits();
// Returns the format of this name, or null if there is none.
const ExportTraits* FindExportTraits(std::string_view name);

}  // namespace neurontrace
