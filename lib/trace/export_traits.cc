// SPDX-License-Identifier: Apache-2.0
#include "lib/trace/export_traits.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "lib/base/status.h"

namespace neurontrace {
namespace {

using enum ExportOption;

// Returns the set of options as bits.
template <typename... Options>
constexpr unsigned Bits(Options... options) {
  return (0u | ... | (1u << static_cast<unsigned>(options)));
}

// One row for each format.
constexpr std::array<ExportTraits, 8> kTraits = {
    ExportTraits({.name = "perfetto",
                  .options = Bits(kGzip, kPackets, kMaxSize, kSplitByWorker, kPrimaryGroup,
                                  kSecondaryGroup, kNoFlows, kClockArguments)}),
    ExportTraits({.name = "events", .options = Bits(kGzip)}),
    ExportTraits({.name = "summary-json", .options = Bits(kGzip)}),
    ExportTraits({.name = "summary-text", .options = Bits(kGzip)}),
    ExportTraits(
        {.name = "chrome-json",
         .options = Bits(kGzip, kPrimaryGroup, kSecondaryGroup, kNoFlows, kClockArguments)}),
    ExportTraits({.name = "parquet",
                  .is_directory = true,
                  .options = Bits(kMaxSize, kNoFlows, kClockArguments),
                  .no_compression_reason = "its tables are already compressed",
                  .instead_of_groups = "group its rows in SQL"}),
    ExportTraits({.name = "xspace",
                  .is_directory = true,
                  .options = Bits(kMaxSize, kSecondaryGroup, kNoFlows, kClockArguments),
                  .no_compression_reason = "its viewer reads uncompressed files",
                  .instead_of_groups = "it has one file per instance and one plane per process"}),
    ExportTraits({.name = "json", .options = Bits(kGzip, kClockArguments)}),
};

// Returns the formats that accept the option, for the end of an error message.
std::string ListSupportingFormats(ExportOption option) {
  std::string names;
  for (const ExportTraits& traits : kTraits) {
    if (!traits.Supports(option)) continue;
    names += (names.empty() ? "" : ", ") + std::string(traits.name());
  }
  return names;
}

}  // namespace

absl::Status ExportTraits::Check(ExportOption option) const {
  if (Supports(option)) return absl::OkStatus();
  const auto refuse = [&](std::string_view what, std::string_view instead) {
    return InvalidArgument("{} {}: {}; supported by {}", name(), what, instead,
                           ListSupportingFormats(option));
  };
  // Each refusal ends with what to do instead, and the formats that accept the option.
  switch (option) {
    case kGzip: {
      const std::string why = row_.no_compression_reason.empty()
                                  ? ""
                                  : fmt::format(" ({})", row_.no_compression_reason);
      return refuse("cannot be compressed as a whole" + why,
                    "omit --compress gzip, and .gz at the end of the name");
    }
    case kPackets:
      return refuse("cannot be compressed within the file",
                    Supports(kGzip) ? "use --compress gzip" : "omit --compress packets");
    case kMaxSize:
      return refuse(
          "cannot be split by size",
          "omit --max-size, or select less with --from, --to, --instance or --worker-gid");
    case kSplitByWorker:
      return refuse("cannot be split by worker",
                    "omit --split worker, or select workers with --worker-gid");
    case kPrimaryGroup:
    case kSecondaryGroup:
      return refuse(
          fmt::format("has no {} group to choose",
                      option == kPrimaryGroup ? "primary" : "secondary"),
          fmt::format("omit --system-trace-{}-group{}{}",
                      option == kPrimaryGroup ? "primary" : "secondary",
                      row_.instead_of_groups.empty() ? "" : ", ", row_.instead_of_groups));
    case kNoFlows:
      return refuse("has no arrows", "omit --no-flows");
    case kClockArguments:
      return refuse("cannot hold stamps and bounds of events", "omit --clock-arguments");
  }
  return InvalidArgument("export option {} is unknown", static_cast<int>(option));
}

std::span<const ExportTraits> AllExportTraits() { return kTraits; }

const ExportTraits* FindExportTraits(std::string_view name) {
  for (const ExportTraits& traits : kTraits) {
    if (traits.name() == name) return &traits;
  }
  return nullptr;
}

}  // namespace neurontrace
