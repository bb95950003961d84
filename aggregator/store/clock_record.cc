// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/clock_record.h"

#include <utility>

#include "aggregator/store/stored_message.h"
#include "lib/base/time_units.h"

namespace neurontrace {
namespace {

// Boot ids of Linux have 36 characters; anything much longer is damage.
constexpr size_t kBootBytesMax = 256;

}  // namespace

void ClockRecord::AddStep(const ForwardStep& step) {
  steps.push_back(step);
  if (steps.size() <= kStepsMax) return;
  steps[1].step_ns = AddSaturating(steps[0].step_ns, steps[1].step_ns);
  steps.erase(steps.begin());
}

// Sums the steps that came after the timestamp, since each made it look older than it is.
uint64_t ClockRecord::ForwardSince(uint64_t stamp_ns) const {
  uint64_t sum_ns = 0;
  for (const ForwardStep& step : steps) {
    if (stamp_ns <= step.at_ns) sum_ns = AddSaturating(sum_ns, step.step_ns);
  }
  return sum_ns;
}

std::string EncodeClockRecord(const ClockRecord& record) {
  v1::StoredClock message;
  message.set_boot(CleanStored(record.boot));
  message.set_offset_ns(record.offset_ns);
  for (const ClockRecord::ForwardStep& step : record.steps) {
    v1::StoredForwardStep* const out = message.add_steps();
    out->set_at_ns(step.at_ns);
    out->set_step_ns(step.step_ns);
  }
  return EncodeStored(std::move(message));
}

// Steps are added one by one, so that a record with too many of them is merged and not trusted.
ClockRecord DecodeClockRecord(std::string_view text) {
  const auto record = DecodeStored<v1::StoredClock>(
      "clock record", text, [](const v1::StoredClock& message) -> absl::StatusOr<ClockRecord> {
        ClockRecord record{.boot = CleanStored(message.boot()), .offset_ns = message.offset_ns()};
        if (record.boot.size() > kBootBytesMax) return InvalidArgument("the boot id is too long");
        for (const auto& step : message.steps()) record.AddStep({step.at_ns(), step.step_ns()});
        return record;
      });
  return record.value_or(ClockRecord());
}

}  // namespace neurontrace
