// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace neurontrace {

// A format that a program reads or writes, such as "chunk", with its version.
struct FormatVersion {
  std::string_view name;
  uint64_t version = 0;
};

// What this program was built from and with. The texts are constants of the program and never
// freed.
struct Build {
  std::string_view version;
  std::string_view commit;  // abbreviated, as git does
  std::string_view compiler;
  std::string_view type;  // "release", or with sanitizers "debug, address"
};
// Returns the facts of the running program, for its build_info metric and status page. Any thread.
Build ThisBuild();

// Returns the text of --version: the program, its version, and in brackets what it was built from
// and with and which formats it reads and writes, as
//   neurontrace-agent 0.1.0 (commit 0123456789ab, gcc 12.2.0, release; chunk 1, spool 1)
// The first two words are for programs, the rest for people. Any thread.
std::string BuildFacts(std::string_view program, std::initializer_list<FormatVersion> formats);

}  // namespace neurontrace
