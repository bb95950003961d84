// SPDX-License-Identifier: Apache-2.0
#include "lib/trace/suspension.h"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace neurontrace {

std::string Describe(const Suspension& suspension) {
  const CaptureId& other = suspension.other;
  return (other.empty() ? "another capture" : "capture " + other.ToString()) + " had the worker";
}

bool IsSameSuspension(const Suspension& a, const Suspension& b) {
  if (a.other != b.other) return false;
  return !a.other.empty() || (a.begin_ns <= b.end_ns && b.begin_ns <= a.end_ns);
}

SuspensionAdded AddSuspension(const Suspension& suspension, size_t most,
                              std::vector<Suspension>& suspensions) {
  assert(most > 1);
  if (!suspension.is_valid()) return SuspensionAdded::kInvalid;
  Suspension added = suspension;
  // A report may join several entries without an id, so that all of them are merged.
  const size_t erased = std::erase_if(suspensions, [&](const Suspension& known) {
    if (!IsSameSuspension(known, suspension)) return false;
    added.begin_ns = std::min(added.begin_ns, known.begin_ns);
    added.end_ns = std::max(added.end_ns, known.end_ns);
    return true;
  });
  const auto behind =
      std::ranges::upper_bound(suspensions, added.begin_ns, {}, &Suspension::begin_ns);
  suspensions.insert(behind, added);
  if (suspensions.size() > most) {
    suspensions.erase(std::min_element(suspensions.begin(), std::prev(suspensions.end()),
                                       [](const Suspension& a, const Suspension& b) {
                                         return a.length_ns() < b.length_ns();
                                       }));
  }
  return erased > 0 ? SuspensionAdded::kMerged : SuspensionAdded::kNew;
}

Loss ShownAmongLosses(const Suspension& suspension) {
  return {.place = LossPlace::kRuntimeRing,
          .reason = LossReason::kRefused,
          .first_timestamp_ns = suspension.begin_ns,
          .last_timestamp_ns = suspension.end_ns,
          .detail = Describe(suspension)};
}

}  // namespace neurontrace
