// SPDX-License-Identifier: Apache-2.0
// pftrace_check FILE [--json]: prints the content of a Perfetto trace, and whether it is sound. The
// exit code is 0 when nothing is wrong, 1 when something is, 2 when there is no such file.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "tests/e2e/pftrace_check/checker.h"

int main(int argc, char** argv) {
  using namespace neurontrace::pftrace_check;
  if (argc < 2 || argc > 3 || (argc == 3 && std::string_view(argv[2]) != "--json")) {
    std::fputs("usage: pftrace_check FILE [--json]\n", stderr);
    return 2;
  }
  std::ifstream file(argv[1], std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "pftrace_check: %s cannot be read\n", argv[1]);
    return 2;
  }
  const std::string trace((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const Report report = Check(trace);
  const std::string text = argc == 3 ? ToJson(report) : ToText(report);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return report.error_count == 0 ? 0 : 1;
}
