// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lib/trace/ids.h"

namespace neurontrace {

// Which captures are being exported, so that none is deleted meanwhile. Any thread.
class ExportLeases {
 public:
  // The capture is being exported as long as this lives; null if it is being deleted.
  using Lease = std::shared_ptr<const void>;
  Lease Take(const CaptureId& id);

  // While it lives, no lease of the capture is given; null if there is one already.
  using Claim = std::shared_ptr<const void>;
  Claim ClaimForDeletion(const CaptureId& id);

 private:
  struct State;
  const std::shared_ptr<State> state_ = MakeState();  // leases may outlive this
  static std::shared_ptr<State> MakeState();
};

}  // namespace neurontrace
