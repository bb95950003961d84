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

// A field of CaptureOptions of any type that an option can have.
using Member = std::variant<std::string CaptureOptions::*, bool CaptureOptions::*,
                            uint64_t CaptureOptions::*, std::vector<std::string> CaptureOptions::*>;

// An option by its long name, with the field that it fills.
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
constexpr Setting kFramework = {"--framework", &CaptureOptions::framework};
constexpr Setting kSteps = {"--steps", &CaptureOptions::steps};
constexpr Setting kAtStep = {"--at-step", &CaptureOptions::at_step};
constexpr Setting kFrameworkStacks = {"--framework-stacks", &CaptureOptions::framework_stacks};
constexpr Setting kNoFramework = {"--no-framework", &CaptureOptions::no_framework};

// Two options that SpecOf refuses together. Every pair of SpecOf must be here: for a missing pair,
// a value from a file would make a typed option fail.
struct Contradiction {
  Setting one;
  Setting other;
};
constexpr std::array<Contradiction, 32> kContradictions = {{{kLast, kContinuous},
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
                                                            {kNoNeuron, kNoFramework},
                                                            {kFramework, kNoFramework},
                                                            {kFramework, kLast},
                                                            {kFramework, kContinuous},
                                                            {kFramework, kDryRun},
                                                            {kSteps, kNoFramework},
                                                            {kSteps, kLast},
                                                            {kSteps, kContinuous},
                                                            {kSteps, kDryRun},
                                                            {kAtStep, kNoFramework},
                                                            {kAtStep, kLast},
                                                            {kAtStep, kContinuous},
                                                            {kAtStep, kDryRun},
                                                            {kFrameworkStacks, kNoFramework},
                                                            {kFrameworkStacks, kLast},
                                                            {kFrameworkStacks, kContinuous},
                                                            {kFrameworkStacks, kDryRun}}};

// Returns whether the option has a value other than its default, wherever it comes from.
bool IsGiven(const CaptureOptions& options, const Setting& setting) {
  return std::visit(
      [&](auto member) {
        return options.*member != std::remove_cvref_t<decltype(options.*member)>{};
      },
      setting.member);
}

// Resets the field as if the option had not been given.
void Clear(const Setting& setting, CaptureOptions& options) {
  std::visit([&](auto member) { options.*member = {}; }, setting.member);
}

// Returns whether the value in effect comes from a file. The parser counts typed values and those
// of the environment only.
bool IsOfFile(const CLI::Option& option, const ConfigOrigins& origins) {
  return option.count() == 0 && origins.count(&option) != 0;
}

// Returns the same for an option by name; false if the command has no such option.
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
    // Two typed options stay as they are, so that SpecOf refuses them; so do two options of files,
    // whose lines the refusal names.
    if (!IsGiven(options, one) || !IsGiven(options, other)) continue;
    const bool is_one_of_file = IsOfFile(command, origins, one);
    if (is_one_of_file == IsOfFile(command, origins, other)) continue;
    Clear(is_one_of_file ? one : other, options);
  }
  // Retention in a file means that standing captures keep this much; other captures have none.
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
