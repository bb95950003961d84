// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/clock_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/time_units.h"

namespace neurontrace {
namespace {

constexpr size_t kBootBytesMax = 256;

template <typename Number>
std::optional<Number> NumberOf(std::string_view text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Cuts off and returns what stands before the first `separator`, or everything.
std::string_view CutAt(char separator, std::string_view& text) {
  const size_t at = std::min(text.find(separator), text.size());
  const std::string_view head = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return head;
}

}  // namespace

void ClockRecord::AddStep(const ForwardStep& step) {
  steps.push_back(step);
  if (steps.size() <= kStepsMax) return;
  steps[1].step_ns = AddSaturating(steps[0].step_ns, steps[1].step_ns);
  steps.erase(steps.begin());
}

uint64_t ClockRecord::ForwardSince(uint64_t stamp_ns) const {
  uint64_t sum_ns = 0;
  for (const ForwardStep& step : steps) {
    if (stamp_ns <= step.at_ns) sum_ns = AddSaturating(sum_ns, step.step_ns);
  }
  return sum_ns;
}

std::string EncodeClockRecord(const ClockRecord& record) {
  std::string text = fmt::format("{} {}\n", record.boot, record.offset_ns);
  for (const ClockRecord::ForwardStep& step : record.steps) {
    text += fmt::format("{} {}\n", step.at_ns, step.step_ns);
  }
  return text;
}

ClockRecord DecodeClockRecord(std::string_view text) {
  ClockRecord record;
  std::string_view line = CutAt('\n', text);
  record.boot = std::string(CutAt(' ', line));
  const auto offset_ns = NumberOf<int64_t>(line);
  if (!offset_ns || record.boot.size() > kBootBytesMax) return {};
  record.offset_ns = *offset_ns;
  while (!text.empty()) {
    line = CutAt('\n', text);
    const auto at_ns = NumberOf<uint64_t>(CutAt(' ', line));
    const auto step_ns = NumberOf<uint64_t>(line);
    if (!at_ns || !step_ns) return {};
    record.AddStep({*at_ns, *step_ns});
  }
  return record;
}

}  // namespace neurontrace
