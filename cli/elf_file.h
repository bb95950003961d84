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

// The properties of an ELF file (elf(5)), read from the disk and never loaded. A plain value. Of
// 32-bit files only the header is known.
struct ElfFile {
  bool is_64_bit = false;
  uint16_t machine = 0;              // EM_*
  bool is_shared_object = false;     // a library, or a position-independent program
  std::string interpreter;           // the dynamic loader; empty for a library or a static program
  std::vector<std::string> defined;  // dynamic symbols that it defines
  std::map<std::string, uint64_t> objects;  // offsets in the file of these constants and variables
  std::vector<std::string> versions;        // of other libraries' symbols: "GLIBC_2.34"

  // Returns whether the file defines a dynamic symbol of this name, which LD_PRELOAD could
  // interpose.
  bool Defines(std::string_view symbol) const;
  // Returns the highest N of the versions "GLIBC_2.N"; -1 if there are none.
  int HighestGlibcMinor() const;
  // Returns whether this program's processor runs the file.
  bool IsOfThisMachine() const;
};

// Reads a file. Fails with INVALID_ARGUMENT if it is not an ELF file, has another byte order, or is
// damaged; otherwise as HostView does. Reads only the tables, so that the size of a library does
// not matter.
absl::StatusOr<ElfFile> ReadElf(HostView& host, const std::string& path);

// Returns the text in the library's own constant `symbol`. Fails with NOT_FOUND if it has none.
absl::StatusOr<std::string> ReadElfText(HostView& host, const std::string& path,
                                        std::string_view symbol);

// Returns the N of "2.N"; -1 for another text.
int MinorOfGlibc(std::string_view version);

}  // namespace neurontrace::cli
