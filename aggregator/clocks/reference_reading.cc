// SPDX-License-Identifier: Apache-2.0
#include "aggregator/clocks/reference_reading.h"

#include <utility>
#include <vector>

#include "aggregator/store/reference_keeper.h"
#include "base/status.h"

namespace neurontrace {

absl::StatusOr<ReferenceUtc> ReadReferenceUtc(const ClockEvidenceStore& store,
                                              const RealtimeWindow& window) {
  ASSIGN_OR_RETURN(const std::vector<HostBoot> hosts, store.Hosts());
  std::vector<ClockEvidence> own;
  for (const HostBoot& host : hosts) {  // in order
    if (!IsReferenceKeeper(host)) continue;
    ASSIGN_OR_RETURN(ClockEvidence evidence, store.Read(host, window));
    own.push_back(std::move(evidence));
  }
  return ReferenceUtcOf(own);
}

}  // namespace neurontrace
