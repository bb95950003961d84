// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "aggregator/certificate/certificate.h"
#include "aggregator/store/stream_record.h"

namespace neurontrace {

// Returns the checked account of one stream: captured events must equal those stored, lost after
// capture, and expired. A pure function.
EventAccount AccountOf(const StreamRecord& stream);

// Returns how many events the stream's agent must have read, judging by the part of its account
// that arrived: those captured and those that no chunk could hold. Compared with the number that
// the agent reports itself (worker_certificates.cc).
uint64_t EventsReadBy(const StreamRecord& stream);

// Returns "12 in the runtime ring (overwritten), an unknown number in the tap buffer", or an empty
// text without losses. Expiries are no losses.
std::string DescribeLosses(const std::vector<Loss>& losses);

}  // namespace neurontrace
