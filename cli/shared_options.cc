// SPDX-License-Identifier: Apache-2.0
#include "cli/shared_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

#include "cli/export_format.h"
#include "cli/text.h"
#include "lib/base/status.h"
#include "lib/trace/event_filter.h"

namespace neurontrace::cli {
namespace {

// Adds help and check of --format; `more` ends the help. Formats are checked by the parser, so that
// --help and completion list them.
CLI::Option* DescribeFormats(CLI::Option* option, std::string_view more) {
  return option
      ->description(fmt::format("{} (default: from the file name's suffix){}",
                                fmt::join(ExportFormatNames(), ", "), more))
      ->check(CLI::IsMember(ExportFormatNames()));
}

}  // namespace

CLI::Validator NotEmpty(const std::string& remedy) {
  return CLI::Validator(
      [remedy](const std::string& value) {
        // Commas alone are also empty, as each item would be.
        if (!SplitList({value}).empty()) return std::string();
        return "it is empty (an unset variable?): " + remedy;
      },
      "");
}

CLI::Option* AddInstances(CLI::App& command, std::vector<std::string>& instances) {
  // The first name is that of the vendor's profiler, so that its users' scripts continue to work.
  return command
      .add_option("--system-trace-filter-instance-id,--instance", instances,
                  "Only these instances (comma-separated)")
      ->allow_extra_args(false)
      ->check(NotEmpty("omit it for all instances"));
}

CLI::Option* AddCores(CLI::App& command, std::vector<std::string>& cores) {
  return command
      .add_option("--system-trace-filter-neuron-core,--core", cores,
                  "Only these cores, by their index in the process: 0,2,4-7")
      ->allow_extra_args(false)
      ->check(NotEmpty("omit it for all cores"));
}

CLI::Option* AddEventTypes(CLI::App& command, std::vector<std::string>& event_types) {
  return command
      .add_option("--system-trace-filter-event-type,--event-type", event_types,
                  "Only these event types: names, hardware, software, or ^name to exclude one")
      ->allow_extra_args(false)
      ->check(NotEmpty("omit it for the default event types"));
}

CLI::Option* AddFormat(CLI::App& command, std::string& format) {
  return DescribeFormats(command.add_option("--format", format), "");
}

CLI::Option* AddFormats(CLI::App& command, std::vector<std::string>& formats) {
  return DescribeFormats(command.add_option("--format", formats), "; several with --to DIRECTORY")
      ->allow_extra_args(false);
}

CLI::Option* AddStorePrograms(CLI::App& command, std::string& programs) {
  return command
      .add_option("--programs", programs,
                  "With --store: directory of neurontrace-aggregator (default: beside this "
                  "program)")
      ->envname("NEURONTRACE_PROGRAMS");
}

absl::StatusOr<std::vector<uint32_t>> CoresOf(const std::vector<std::string>& cores) {
  std::vector<uint32_t> all;
  for (const std::string& text : SplitList(cores)) {
    ASSIGN_OR_RETURN(const std::vector<uint32_t> some, ParseCoreList(text));
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

absl::StatusOr<std::vector<std::string>> EventTypesOf(const std::vector<std::string>& event_types,
                                                      bool all_events) {
  std::vector<std::string> types = SplitList(event_types);
  // Parsed here only to report errors before any call; the aggregator parses them again.
  RETURN_IF_ERROR(EventFilter::Parse(types).status());
  if (all_events && !types.empty()) {
    return InvalidArgument("--all-events and --event-type exclude each other; omit one of them");
  }
  return types;
}

}  // namespace neurontrace::cli
