// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/trace/ids.h"
#include "lib/trace/loss.h"

namespace neurontrace {

// A time in which a standing capture recorded nothing of a worker, because another capture had the
// worker. It is no loss, as the other capture has those events. Times are CLOCK_REALTIME of the
// worker's host, in ns. The fields of neurontrace.v1.Suspension; a plain value.
struct Suspension {
  CaptureId other;        // the capture that had the worker; empty: unknown
  uint64_t begin_ns = 0;  // never 0
  uint64_t end_ns = 0;    // of a suspension that lasts: until when it was reported

  // Returns whether it has a begin, and does not end before that. Only such a suspension is sent,
  // accepted and stored.
  bool is_valid() const { return begin_ns != 0 && begin_ns <= end_ns; }
  // Requires a valid one. It may be 0: the suspension began just now.
  uint64_t length_ns() const { return end_ns - begin_ns; }

  friend bool operator==(const Suspension&, const Suspension&) = default;
};

// Returns "capture 01K… had the worker", or "another capture had the worker" if its id is unknown.
std::string Describe(const Suspension& suspension);

// Returns whether two values report one suspension. A capture has a worker only once, without
// interruption, so the reports of an agent before and after its restart belong together. Without
// the other capture's id, reports that overlap do.
bool IsSameSuspension(const Suspension& a, const Suspension& b);

// The outcome of AddSuspension.
enum class SuspensionAdded {
  kNew,      // it was added
  kMerged,   // it extends one that was known
  kInvalid,  // it was ignored
};
// Adds a suspension, or a further report of one, to a list in the order of time. Beyond `most`
// entries the shortest is removed, except the one that begins last: that may still grow, and its
// next report has to find it. Requires `most` > 1.
SuspensionAdded AddSuspension(const Suspension& suspension, size_t most,
                              std::vector<Suspension>& suspensions);

// Returns how exports show a suspension in their rows of losses: as a row of no events. This is
// presentation only; no reader recognises a suspension by it.
Loss ShownAmongLosses(const Suspension& suspension);

}  // namespace neurontrace
