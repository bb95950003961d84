// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "agent/source/framework/trace_file.h"

namespace neurontrace {

// True for the names that PyTorch's and JAX's profilers give: trace.json, *.trace.json,
// framework_mapping_*.json (trace/framework_mapping.h), and each with .gz. A file of such a name
// that is no trace is an error.
bool IsTraceFileName(std::string_view name);
// True for names of files that may be traces, which their content decides: *.json, *.json.gz and
// *.pb. Schedulers, launchers and people rename what profilers write.
bool MayBeTraceFileName(std::string_view name);

// The pid in a directory name `<instance>_pid_<pid>`, as the vendor's tools lay out their output;
// 0 where there is none. `path` is that of a file in the directory.
uint32_t PidOfDirectory(std::string_view path);

// The state of one file; false if it cannot be looked at or is no regular file.
bool LookAtFile(const std::string& path, FileState& state);

struct DirectoryListing {
  // Files that may be traces, by path relative to the directory. Links, pipes, sockets and devices
  // of such names are among them: opening one fails with the reason. At most
  // limits::kFrameworkDirectoryFilesMax, the first in the order of their paths; there are
  // `files_beyond` more.
  std::map<std::string, FileState> files;
  uint64_t files_beyond = 0;
  // Files of other names, and one of them.
  uint64_t others = 0;
  std::string other;
  // Folders that are too deep to be looked into, and one of them.
  uint64_t too_deep = 0;
  std::string deep_folder;
  // There are more than limits::kFrameworkDirectoryEntriesMax entries; further ones were not seen.
  bool is_truncated = false;
  // Nothing failed while it was listed: what is not in `files` is not there.
  bool is_whole = true;
};

// Lists a directory and its folders down to four levels, as deep as JAX puts files. No link is
// followed. A directory that is not there is empty.
DirectoryListing ListTraceFiles(const std::string& directory);

}  // namespace neurontrace
