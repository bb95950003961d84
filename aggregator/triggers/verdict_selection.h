// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "aggregator/watch/verdict_observer.h"
#include "lib/trace/capture_spec.h"

namespace neurontrace {

// Returns the selection of a capture of a verdict's suspects and up to `peers` of their peers: by
// rank, or by instance if a rank is unknown. Without suspects it is empty, which is the whole job.
// Pure.
CaptureSpec::Selection SelectionOf(const LiveVerdict& verdict, uint32_t peers);

}  // namespace neurontrace
