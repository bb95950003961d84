// SPDX-License-Identifier: Apache-2.0
#include "tests/fake_nrt/misuse_log.h"

#include <unistd.h>

#include <cstdlib>
#include <string>

namespace neurontrace {

void MisuseLog::Report(std::string_view what) {
  count_.fetch_add(1, std::memory_order_relaxed);
  // One write, so that lines of several threads and processes do not mix.
  std::string line = "fake_nrt: misuse: ";
  line.append(what);
  line.push_back('\n');
  if (write(STDERR_FILENO, line.data(), line.size()) < 0) {
    // Nobody reads stderr; the counter stands.
  }
  const char* fatal = std::getenv("FAKE_NRT_MISUSE_FATAL");
  if (fatal != nullptr && std::string_view(fatal) == "1") std::abort();
}

}  // namespace neurontrace
