// SPDX-License-Identifier: Apache-2.0
#include "lib/base/build_facts.h"

#include <fmt/format.h>

#include "lib/base/build_commit.h"

namespace neurontrace {
namespace {

// Tested first, as clang also defines __VERSION__.
#if defined(__clang__)
constexpr char kCompiler[] = "clang " __clang_version__;
#else
constexpr char kCompiler[] = "gcc " __VERSION__;
#endif

}  // namespace

Build ThisBuild() { return {NEURONTRACE_VERSION, kBuildCommit, kCompiler, NEURONTRACE_BUILD_TYPE}; }

std::string BuildFacts(std::string_view program, std::initializer_list<FormatVersion> formats) {
  std::string text = fmt::format("{} {} (commit {}, {}, {}", program, NEURONTRACE_VERSION,
                                 kBuildCommit, kCompiler, NEURONTRACE_BUILD_TYPE);
  const char* separator = "; ";
  for (const FormatVersion& format : formats) {
    text += fmt::format("{}{} {}", separator, format.name, format.version);
    separator = ", ";
  }
  return text + ")";
}

}  // namespace neurontrace
