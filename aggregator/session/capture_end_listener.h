// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/trace/capture_record.h"

namespace neurontrace {

// Is told when a capture has ended.
class CaptureEndListener {
 public:
  virtual ~CaptureEndListener() = default;

  // Called on the coordinator's sequence, once the end is on disk, and again if what is known of an
  // ended capture changes later. Must be quick, and must not call the coordinator.
  virtual void OnCaptureEnded(const CaptureRecord& record) = 0;
};

}  // namespace neurontrace
