// SPDX-License-Identifier: Apache-2.0
#include "agent/source/host/host_reading.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/status.h"
#include "base/unique_fd.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

// Files of /proc have no size: read until nothing more comes. What is beyond the limit is of no use
// here: /proc/stat begins with the processors.
absl::StatusOr<std::string> ReadProcFile(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  size_t size = 0;
  while (file.valid() && size < limits::kHostProcFileBytesMax) {
    text.resize(std::min(limits::kHostProcFileBytesMax, size + (64u << 10)));
    const ssize_t got = read(file.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) break;
    size += static_cast<size_t>(got);
    if (got > 0) continue;
    text.resize(size);
    return text;
  }
  if (file.valid() && size >= limits::kHostProcFileBytesMax) return text;
  return Unavailable("cannot read {}: {}", path, std::generic_category().message(errno));
}

}  // namespace

absl::StatusOr<HostReading> ReadHost(const std::string& proc_root, const Clock& clock) {
  HostReading reading;
  ASSIGN_OR_RETURN(const std::string stat, ReadProcFile(proc_root + "/stat"));
  reading.realtime_ns = clock.RealtimeNs();
  reading.monotonic_ns = clock.MonotonicNs();
  ASSIGN_OR_RETURN(reading.cpus, ParseCpuTimes(stat));
  ASSIGN_OR_RETURN(const std::string meminfo, ReadProcFile(proc_root + "/meminfo"));
  ASSIGN_OR_RETURN(reading.memory, ParseMemory(meminfo));
  return reading;
}

}  // namespace neurontrace
