// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "aggregator/certificate/certificate.h"
#include "aggregator/store/stream_record.h"

namespace neurontrace {

// The account of one stream, checked. Pure.
EventAccount AccountOf(const StreamRecord& stream);

// Events that the stream's agent says it has read, by what arrived of its account: those captured
// and those that no chunk could hold.
uint64_t EventsReadBy(const StreamRecord& stream);

// "12 in the runtime ring (overwritten), an unknown number in the tap buffer"; empty without
// losses.
std::string DescribeLosses(const std::vector<Loss>& losses);

}  // namespace neurontrace
