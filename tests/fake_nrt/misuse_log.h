// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace neurontrace {

// Counts and prints what the real runtime would punish with a crash, stolen data or undefined
// behaviour. One line "fake_nrt: misuse: …" on stderr each; with FAKE_NRT_MISUSE_FATAL=1 the
// process aborts there. Any thread may call.
class MisuseLog {
 public:
  void Report(std::string_view what);
  uint64_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> count_{0};
};

}  // namespace neurontrace
