// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace neurontrace {

// A file as it is now; another one, or the same with other content, differs.
struct FileState {
  uint64_t bytes = 0;
  uint64_t modified_ns = 0;  // CLOCK_REALTIME of the machine that wrote it
  ino_t inode = 0;
  friend bool operator==(const FileState&, const FileState&) = default;
};

// True for the names that PyTorch's and JAX's profilers give: trace.json, *.trace.json,
// framework_mapping_*.json (trace/framework_mapping.h), and each with .gz.
bool IsTraceFileName(std::string_view name);

// The pid in a directory name `<instance>_pid_<pid>`, as the vendor's tools lay out their output;
// 0 where there is none. `path` is that of a file in the directory.
uint32_t PidOfDirectory(std::string_view path);

// The state of one file; nothing where it cannot be looked at or is no regular file.
bool LookAtFile(const std::string& path, FileState& state);

// The trace files below a directory, by path relative to it: in itself and in folders down to four
// levels, as deep as JAX puts them. No link is followed; one with the name of a trace file stands
// there as it is, so that who opens it says that it is one. At most
// limits::kFrameworkDirectoryEntriesMax entries are looked at; `truncated` tells that there were
// more. A directory that is not there is empty.
std::map<std::string, FileState> ListTraceFiles(const std::string& directory, bool& truncated);

}  // namespace neurontrace
