// SPDX-License-Identifier: Apache-2.0
#include "cli/capture_defaults.h"

#include <array>
#include <cstdint>
#include <type_traits>
#include <variant>
#include <vector>

#include "lib/base/status.h"

namespace neurontrace::cli {
namespace {

using Member = std::variant<std::string CaptureOptions::*, bool CaptureOptions::*,
                            uint64_t CaptureOptions::*, std::vector<std::string> CaptureOptions::*>;

struct Setting {
  const char* name;
  Member member;
};

constexpr Setting kDuration = {"--duration", &CaptureOptions::duration};
constexpr Setting kExecutions = {"--executions", &CaptureOptions::executions};
constexpr Setting kAtExecution = {"--at-execution", &CaptureOptions::at_execution};
constexpr Setting kMaxSize = {"--max-size", &CaptureOptions::bytes_max};
constexpr Setting kLast = {"--last", &CaptureOptions::last};
constexpr Setting kContinuous = {"--continuous", &CaptureOptions::continuous};
constexpr Setting kKeep = {"--keep", &CaptureOptions::keep};
constexpr Setting kKeepBytes = {"--keep-bytes", &CaptureOptions::keep_bytes};
constexpr Setting kKeepFor = {"--keep-for", &CaptureOptions::keep_for};
constexpr Setting kDryRun = {"--dry-run", &CaptureOptions::dry_run};
constexpr Setting kEventType = {"--event-type", &CaptureOptions::event_types};
constexpr Setting kAllEvents = {"--all-events", &CaptureOptions::all_events};
constexpr Setting kRingEvents = {"--ring-events", &CaptureOptions::ring_events};
constexpr Setting kNoNeuron = {"--no-neuron", &CaptureOptions::no_neuron};
constexpr Setting kNoFramework = {"--no-framework", &CaptureOptions::no_framework};

// What SpecOf refuses together.
struct Contradiction {
  Setting one;
  Setting other;
};
constexpr std::array<Contradiction, 16> kContradictions = {{{kLast, kContinuous},
                                                            {kLast, kDuration},
                                                            {kLast, kExecutions},
                                                            {kLast, kAtExecution},
                                                            {kLast, kAllEvents},
                                                            {kLast, kRingEvents},
                                                            {kLast, kDryRun},
                                                            {kContinuous, kDuration},
                                                            {kContinuous, kExecutions},
                                                            {kContinuous, kAtExecution},
                                                            {kContinuous, kMaxSize},
                                                            {kContinuous, kKeepFor},
                                                            {kDryRun, kExecutions},
                                                            {kDryRun, kAtExecution},
                                                            {kAllEvents, kEventType},
                                                            {kNoNeuron, kNoFramework}}};

bool IsGiven(const CaptureOptions& options, const Setting& setting) {
  return std::visit(
      [&](auto member) {
        return options.*member != std::remove_cvref_t<decltype(options.*member)>{};
      },
      setting.member);
}

void Clear(const Setting& setting, CaptureOptions& options) {
  std::visit([&](auto member) { options.*member = {}; }, setting.member);
}

bool IsOfFile(const CLI::Option& option, const ConfigOrigins& origins) {
  return option.count() == 0 && origins.count(&option) != 0;
}

bool IsOfFile(const CLI::App& command, const ConfigOrigins& origins, const Setting& setting) {
  const CLI::Option* const option = command.get_option_no_throw(setting.name);
  return option != nullptr && IsOfFile(*option, origins);
}

}  // namespace

bool IsTyped(const CLI::App& command, const std::string& name) {
  const CLI::Option* const option = command.get_option_no_throw(name);
  return option != nullptr && option->count() != 0;
}

void YieldToTyped(const CLI::App& command, const ConfigOrigins& origins, CaptureOptions& options) {
  for (const auto& [one, other] : kContradictions) {
    if (!IsGiven(options, one) || !IsGiven(options, other)) continue;
    const bool is_one_of_file = IsOfFile(command, origins, one);
    if (is_one_of_file == IsOfFile(command, origins, other)) continue;
    Clear(is_one_of_file ? one : other, options);
  }
  for (const Setting& keep : {kKeep, kKeepBytes}) {
    if (!options.continuous && IsOfFile(command, origins, keep)) Clear(keep, options);
  }
}

absl::Status NamingDefaults(const CLI::App& command, const ConfigOrigins& origins,
                            const absl::Status& refusal) {
  std::string lines;
  for (const CLI::Option* const option : command.get_options()) {
    if (!IsOfFile(*option, origins)) continue;
    const ConfigOrigin& origin = origins.at(option);
    lines += fmt::format("\n  --{} is set in {}:{}", option->get_lnames().back(), origin.path,
                         origin.line);
  }
  return InvalidArgument("{}{}", std::string(refusal.message()), lines);
}

}  // namespace neurontrace::cli
