// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/tap/worker_facts.h"

#include <charconv>
#include <optional>

#include "lib/base/clean_text.h"
#include "lib/trace/limits.h"
#include "tap/buffer_format.h"

namespace neurontrace {
namespace {

constexpr size_t kEventTypeBytesMax = limits::kIdentityStringBytesMax;
// Prefixes of keys (docs/formats/tap_buffer.md lists them); the name of a variable or the number of
// a core follows.
constexpr std::string_view kEnvironmentPrefix = "env.";
constexpr std::string_view kCommunicatorPrefix = "communicator.";

// Parses a number that is the whole text; returns nothing for any other text.
template <typename Number>
std::optional<Number> ParseNumber(std::string_view text) {
  Number number = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

// Removes the text up to the separator, and the separator, from `text`; returns that text.
std::string_view TakeWord(std::string_view& text, char separator) {
  const size_t end = text.find(separator);
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return word;
}

// Adds the ranks that a call for `core` stated, a number or "any". Ignores invalid values.
void AddCommunicator(std::string_view core, std::string_view value, WorkerFacts& facts) {
  const auto id = ParseNumber<int64_t>(TakeWord(value, ' '));
  const auto count = ParseNumber<int64_t>(TakeWord(value, ' '));
  if (!id || *id < 0) return;
  const CommunicatorFact rank{*id, count.value_or(0)};
  if (core == "any") {
    // A call for the process as a whole gives the rank of its first core.
    facts.communicators.try_emplace(0, rank);
  } else if (const auto nc_idx = ParseNumber<uint32_t>(core);
             nc_idx && *nc_idx < limits::kCoresPerWorkerMax) {
    facts.communicators.insert_or_assign(*nc_idx, rank);
  }
}

}  // namespace

std::string ReportedCommand(std::string_view command_line, bool with_arguments) {
  if (!with_arguments) command_line = command_line.substr(0, command_line.find(' '));
  return CleanText(command_line, kWorkerCommandBytesMax);
}

WorkerFacts SortFacts(const TapBufferReader::Facts& facts) {
  WorkerFacts sorted;
  const auto text = [&facts](std::string_view key) -> std::string_view {
    const auto found = facts.find(key);
    return found == facts.end() ? std::string_view() : std::string_view(found->second);
  };
  sorted.command = text("process.command_line");
  if (sorted.command.empty()) sorted.command = text("process.executable");
  sorted.runtime_version = text("runtime.version");
  sorted.detail = text("tap.detail");
  // The runtime's version and types are only meaningful while it is initialised.
  const std::string_view state = text(kTapStateFact);
  sorted.runtime_known = state != kTapNameNotInitialised && state != kTapNameClosed;
  const uint32_t cores = ParseNumber<uint32_t>(text("runtime.visible_cores")).value_or(0);
  // Out of range counts as unknown rather than as the maximum.
  sorted.visible_cores = cores <= limits::kCoresPerWorkerMax ? cores : 0;
  std::string_view types = text("runtime.event_types");
  while (!types.empty() && sorted.event_types.size() < limits::kWorkerEventTypesMax) {
    const std::string_view name = TakeWord(types, ',');
    if (!name.empty()) sorted.event_types.push_back(CleanText(name, kEventTypeBytesMax));
  }
  // "any" sorts behind every number, so that what is said of a core stands.
  for (const auto& [key, value] : facts) {
    if (key.starts_with(kEnvironmentPrefix)) {
      sorted.environment.emplace(key.substr(kEnvironmentPrefix.size()), value);
    } else if (key.starts_with(kCommunicatorPrefix)) {
      AddCommunicator(std::string_view(key).substr(kCommunicatorPrefix.size()), value, sorted);
    }
  }
  sorted.environment_left_out = ParseNumber<uint32_t>(text("tap.env_left_out")).value_or(0);
  sorted.job = FindJob(sorted.environment);
  sorted.job_facts = FindJobFacts(sorted.environment);
  return sorted;
}

}  // namespace neurontrace
