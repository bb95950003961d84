// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "lib/trace/ids.h"

namespace neurontrace {

// Knows the parts that workers of this node have in captures. Implemented by ControlSession, which
// every source reports to; asked by sources that record beside the workers. On the agent's
// sequence.
class CaptureParticipants {
 public:
  virtual ~CaptureParticipants() = default;

  // Returns true while a worker of this node records in the capture, or a framework's trace file is
  // read for it.
  virtual bool Records(const CaptureId& capture_id) const = 0;
  // Returns the workers of this node that have or had a part in the capture.
  virtual std::vector<WorkerIdentity> WorkersOf(const CaptureId& capture_id) const = 0;
};

}  // namespace neurontrace
