// SPDX-License-Identifier: Apache-2.0
#include "daemon/descriptor_limit.h"

#include <sys/resource.h>

#include <algorithm>

#include "trace/access_limits.h"

namespace neurontrace {

void RaiseDescriptorLimit() {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t wanted = std::min<rlim_t>(limit.rlim_max, limits::kDescriptorsMax);
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = wanted;
  setrlimit(RLIMIT_NOFILE, &limit);  // cannot fail: it is within the other limit
}

}  // namespace neurontrace
