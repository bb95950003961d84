// SPDX-License-Identifier: Apache-2.0
// Any bytes as a library that doctor and record look at, and that a package or a job brought.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "cli/elf_file.h"
#include "cli/fake_host_view.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace neurontrace::cli;
  static FakeHostView host;
  const std::string path = "/lib";
  host.PutFile(path, {reinterpret_cast<const char*>(data), size});
  const auto file = ReadElf(host, path);
  const auto text = ReadElfText(host, path, "neurontrace_tap_version");
  if (!file.ok()) return 0;
  if (file->HighestGlibcMinor() < -1) std::abort();
  file->IsOfThisMachine();
  if (text.ok() && !file->objects.contains("neurontrace_tap_version")) std::abort();
  return 0;
}
