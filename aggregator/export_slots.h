// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>

namespace neurontrace {

// How many exports are made at once: each has a thread, buffers and a share of the disk. Any
// thread.
class ExportSlots {
 public:
  explicit ExportSlots(size_t most) : most_(most) {}

  // A place as long as it lives, which may be longer than this; null where all are taken.
  using Slot = std::shared_ptr<const void>;
  Slot Take();

 private:
  struct Count {
    std::mutex mutex;
    size_t taken = 0;  // guarded by mutex
  };
  const size_t most_;
  const std::shared_ptr<Count> count_ = std::make_shared<Count>();
};

}  // namespace neurontrace
