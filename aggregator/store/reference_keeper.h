// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "aggregator/store/clock_evidence_store.h"

namespace neurontrace {

// The aggregator keeps evidence of its own host's clocks among that of all others, as a host
// without an instance id: every message of an agent that has none is refused, so that neither can
// be taken for the other. Instead of a boot it has what its raw counts from (RawOrigin), the same
// for an aggregator that starts again.
//
// Its exchanges (ProbePath::kPeer) are with itself and take no time: each says which reading of raw
// is which of the reference, and in which epoch.
inline HostBoot ReferenceKeeper(std::string raw_origin) { return {"", std::move(raw_origin)}; }
inline bool IsReferenceKeeper(const HostBoot& host) { return host.instance_id.empty(); }

}  // namespace neurontrace
