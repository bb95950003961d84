// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "absl/status/status.h"

namespace neurontrace {

// What can be asked of an export besides what it is of.
enum class ExportOption {
  kGzip,           // the whole file compressed
  kPackets,        // compressed within the file
  kMaxSize,        // split at a size
  kSplitByWorker,  // into ranges of workers
  kPrimaryGroup,
  kSecondaryGroup,
  kNoFlows,
  kClockArguments,
};
inline constexpr int kExportOptions = 8;

// A format of exports, and what it takes: the one place where that stands. The CLI refuses by it
// before anybody is asked, the aggregator whoever asks. A constant; any thread.
class ExportTraits {
 public:
  struct Row {
    std::string_view name;  // as in `--format`
    bool is_directory = false;
    unsigned options = 0;                      // a bit for each ExportOption
    std::string_view why_not_compressed = {};  // where there is more to say than that it is not
    std::string_view instead_of_groups = {};
  };
  explicit constexpr ExportTraits(const Row& row) : row_(row) {}

  constexpr std::string_view name() const { return row_.name; }
  // Whether it makes several files whatever is asked of it.
  constexpr bool is_directory() const { return row_.is_directory; }
  constexpr bool Takes(ExportOption option) const {
    return (row_.options >> static_cast<unsigned>(option) & 1u) != 0;
  }
  // INVALID_ARGUMENT for an option that the format has not, with what to do.
  absl::Status Check(ExportOption option) const;

 private:
  Row row_;
};

std::span<const ExportTraits> AllExportTraits();
// Null for a name that is none.
const ExportTraits* FindExportTraits(std::string_view name);

}  // namespace neurontrace
