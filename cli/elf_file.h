// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/host_view.h"

namespace neurontrace::cli {

// What an ELF file reports about itself, read from the disk and never loaded. A plain value.
struct ElfFile {
  bool is_64_bit = false;
  uint16_t machine = 0;              // EM_*
  bool is_shared_object = false;     // a library, or a position-independent program
  std::string interpreter;           // the dynamic loader; empty: a library or a static program
  std::vector<std::string> defined;  // dynamic symbols that it has
  std::map<std::string, uint64_t> objects;  // of these constants and variables: where in the file
  std::vector<std::string> versions;  // of other libraries' symbols that it needs: "GLIBC_2.34"

  bool Defines(std::string_view symbol) const;
  // The highest N of the versions "GLIBC_2.N"; -1: none.
  int HighestGlibcMinor() const;
  bool IsOfThisMachine() const;
};

// INVALID_ARGUMENT: no ELF file, one of another byte order, or a damaged one; else as HostView
// has it. Reads the tables and nothing else, so a library of any size costs little.
absl::StatusOr<ElfFile> ReadElf(HostView& host, const std::string& path);

// The text in the library's own constant `symbol`; NOT_FOUND where it has none.
absl::StatusOr<std::string> ReadElfText(HostView& host, const std::string& path,
                                        std::string_view symbol);

// The N of "2.N"; -1: it is none.
int MinorOfGlibc(std::string_view version);

}  // namespace neurontrace::cli
