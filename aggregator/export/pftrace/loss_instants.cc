// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/pftrace/loss_instants.h"

#include <algorithm>

#include "trace/fidelity.h"
#include "trace/given_way.h"

namespace neurontrace {

std::vector<Loss> LossInstants(const StreamDescription& stream) {
  std::vector<Loss> instants = stream.gaps;
  for (const Loss& sum : stream.losses) {
    // No losses; the one has instants of its own, the other all that there are among the gaps.
    if (IsLeftOut(sum) || IsGivenWay(sum)) continue;
    Loss rest = sum;
    Loss* first = nullptr;
    for (Loss& gap : instants) {
      if (gap.place != sum.place || gap.reason != sum.reason) continue;
      if (first == nullptr) first = &gap;
      rest.events -= std::min(rest.events, gap.events);
      rest.events_unknown = rest.events_unknown && !gap.events_unknown;
    }
    if (first == nullptr || rest.events > 0 || rest.events_unknown) {
      instants.push_back(std::move(rest));
    } else {
      first->detail = sum.detail;
    }
  }
  return instants;
}

}  // namespace neurontrace
