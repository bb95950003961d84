// SPDX-License-Identifier: Apache-2.0
#include "daemon/descriptor_limit.h"

#include <sys/resource.h>

#include <algorithm>

#include "base/status.h"
#include "trace/access_limits.h"

namespace neurontrace {

absl::Status RaiseDescriptorLimit() {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max < limits::kDescriptorsMin) {
    return FailedPrecondition(
        "this process may have {} files and connections open, and needs {}: raise the hard limit "
        "(ulimit -Hn, LimitNOFILE= of systemd)",
        limit.rlim_max, limits::kDescriptorsMin);
  }
  const rlim_t wanted = std::min<rlim_t>(limit.rlim_max, limits::kDescriptorsMax);
  if (limit.rlim_cur >= wanted) return absl::OkStatus();
  limit.rlim_cur = wanted;
  setrlimit(RLIMIT_NOFILE, &limit);  // cannot fail: it is within the other limit
  return absl::OkStatus();
}

}  // namespace neurontrace
