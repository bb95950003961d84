// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/rows/loss_instants.h"

#include <algorithm>
#include <utility>

#include "lib/trace/fidelity.h"
#include "lib/trace/suspension.h"

namespace neurontrace {

// A sum counts all losses of one place and reason; gaps are those of them with a time of their own.
// What remains of the sum after subtracting its gaps is a loss of its own.
std::vector<Loss> LossInstants(const StreamDescription& stream) {
  std::vector<Loss> instants = stream.gaps;
  for (const Loss& sum : stream.losses) {
    // It is no loss, and has events of its own that show it.
    if (IsLeftOut(sum)) continue;
    Loss rest = sum;
    Loss* first = nullptr;
    for (Loss& gap : instants) {
      if (gap.place != sum.place || gap.reason != sum.reason) continue;
      if (first == nullptr) first = &gap;
      rest.events -= std::min(rest.events, gap.events);
      rest.events_unknown = rest.events_unknown && !gap.events_unknown;
    }
    // If the gaps explain the sum completely, its detail goes to the first of them.
    if (first == nullptr || rest.events > 0 || rest.events_unknown) {
      instants.push_back(std::move(rest));
    } else {
      first->detail = sum.detail;
    }
  }
  return instants;
}

std::vector<LossInstant> TraceLosses(const TimelineHeader& header) {
  const TimelineFilter& filter = *header.filter;
  // Inside the window, because viewers show nothing outside of it.
  const uint64_t untimed_ns =
      std::clamp(header.begin_ns, filter.window_start_ns, filter.window_end_ns - 1);
  std::vector<LossInstant> losses;
  const auto add = [&](uint32_t stream, Loss loss, bool is_suspension) {
    const TimelineStream& about = header.streams[stream];
    // A sum without a time is shown at the stream's first event, where a reader looks for it.
    const uint64_t raw_ns = loss.first_timestamp_ns != 0 ? loss.first_timestamp_ns
                                                         : about.description.first_timestamp_ns;
    if (raw_ns == 0) {
      losses.push_back({untimed_ns, stream, std::move(loss), is_suspension});
      return;
    }
    const uint64_t at_ns = std::min(about.clock->ToReference(raw_ns), kTimeMaxNs);
    if (at_ns < filter.window_start_ns || at_ns >= filter.window_end_ns) return;
    losses.push_back({at_ns, stream, std::move(loss), is_suspension});
  };
  for (uint32_t stream = 0; stream < header.streams.size(); ++stream) {
    const StreamDescription& about = header.streams[stream].description;
    for (Loss& loss : LossInstants(about)) add(stream, std::move(loss), false);
    for (const Suspension& suspension : about.suspensions) {
      add(stream, ShownAmongLosses(suspension), true);
    }
  }
  std::stable_sort(losses.begin(), losses.end(),
                   [](const LossInstant& a, const LossInstant& b) { return a.at_ns < b.at_ns; });
  return losses;
}

}  // namespace neurontrace
