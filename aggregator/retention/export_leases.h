// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lib/trace/ids.h"

namespace neurontrace {

// Knows which captures are being exported or changed, so that none is deleted meanwhile. Any
// thread; never waits.
class ExportLeases {
 public:
  // Marks the capture as being exported or changed while this exists. Any number may hold one;
  // copies extend it, and the last one ends it. Take returns null if the capture is being deleted.
  using Lease = std::shared_ptr<const void>;
  // Counts are per capture; leases of different captures do not affect each other.
  Lease Take(const CaptureId& id);

  // While this exists no lease of the capture is given. ClaimForDeletion returns null if there is a
  // lease or another claim.
  using Claim = std::shared_ptr<const void>;
  Claim ClaimForDeletion(const CaptureId& id);

  // Reference-counted, so that a lease may be destroyed after this object.
 private:
  struct State;
  const std::shared_ptr<State> state_ = MakeState();  // leases may outlive this
  static std::shared_ptr<State> MakeState();
};

}  // namespace neurontrace
