// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace neurontrace {

// Where an export's bytes go, in order. Abstract because that is a file in one place and a network
// stream in another. One thread at a time.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  // Takes all of `bytes` before it returns; a slow receiver makes it block, which is what holds the
  // export back. An error (the receiver is gone, the disk is full) ends the export.
  virtual absl::Status Write(std::string_view bytes) = 0;
};

}  // namespace neurontrace
