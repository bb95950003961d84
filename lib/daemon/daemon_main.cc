// SPDX-License-Identifier: Apache-2.0
#include "lib/daemon/daemon_main.h"

#include <absl/synchronization/mutex.h>
#include <sys/resource.h>

#include <algorithm>
#include <string_view>

#include "lib/trace/access_limits.h"
#include "lib/wire/grpc_set_up.h"

namespace neurontrace {

absl::Status RaiseDescriptorLimit() {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max < limits::kDescriptorsMin) {
    return FailedPrecondition(
        "this process may open {} files and connections but needs {}; raise the hard limit (ulimit "
        "-Hn, LimitNOFILE= in systemd)",
        limit.rlim_max, limits::kDescriptorsMin);
  }
  const rlim_t wanted = std::min<rlim_t>(limit.rlim_max, limits::kDescriptorsMax);
  if (limit.rlim_cur >= wanted) return absl::OkStatus();
  limit.rlim_cur = wanted;
  // Cannot fail, as it is within the hard limit.
  setrlimit(RLIMIT_NOFILE, &limit);
  return absl::OkStatus();
}

int PrintValidation(const char* program, const absl::Status& status,
                    const EffectiveOptions& options) {
  if (!status.ok()) {
    std::fprintf(stderr, "%s: %s\n", program, std::string(status.message()).c_str());
    return 2;
  }
  std::fputs(DescribeOptions(program, options).c_str(), stdout);
  return 0;
}

absl::Status PrepareDaemon(sigset_t& signals) {
  // The limit is raised before the daemon opens files and connections.
  RETURN_IF_ERROR(RaiseDescriptorLimit());
  // Debian's build of Abseil searches for deadlocks at every lock, and gRPC takes many.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  SetUpGrpc([](std::string_view line) { SPDLOG_WARN("{}", line); });
  // Blocked before any thread exists: threads inherit the mask, so that only the main thread takes
  // signals, by signalfd(2).
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return absl::OkStatus();
}

}  // namespace neurontrace
