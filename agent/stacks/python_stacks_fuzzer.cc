// SPDX-License-Identifier: Apache-2.0
// Any bytes as the output of py-spy: refused or parsed without a crash, and what is parsed is
// within its limits and clean, so that the aggregator takes it.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "agent/stacks/python_stacks.h"
#include "lib/base/clean_text.h"
#include "lib/trace/stacks_limits.h"

namespace neurontrace {
namespace {

void Check(bool good) {
  if (!good) std::abort();
}

void CheckName(const std::string& name) {
  Check(name.size() <= limits::kStackNameBytesMax);
  Check(CleanText(name, limits::kStackNameBytesMax) == name);
}

void CheckStacks(const PythonStacks& stacks) {
  Check(stacks.threads.size() <= limits::kStackThreadsMax);
  size_t bytes = 0;
  for (const StackThread& thread : stacks.threads) {
    CheckName(thread.name);
    Check(thread.frames.size() <= limits::kStackFramesMax);
    for (const StackFrame& frame : thread.frames) {
      CheckName(frame.function);
      CheckName(frame.file);
      Check(!frame.function.empty());
      Check(frame.file.find('/') == std::string::npos);
      bytes += frame.function.size() + frame.file.size();
    }
  }
  Check(bytes <= limits::kStackBytesMax);
}

}  // namespace
}  // namespace neurontrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto stacks = neurontrace::ParsePythonStacks(text, 7);
  if (stacks.ok()) neurontrace::CheckStacks(*stacks);
  return 0;
}
