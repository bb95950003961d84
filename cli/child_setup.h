// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

// Functions that a child process calls between fork and exec. ForgetOptions allocates memory, so
// the parent must have a single thread when it forks.
namespace neurontrace::cli {

// Asks the kernel to send `signal` to this process when the thread that forked it ends, for
// whatever reason; see prctl(2). `parent` is the pid of the parent, from before the fork.
inline void SetParentDeathSignal(pid_t parent, int signal) {
  prctl(PR_SET_PDEATHSIG, signal);
  if (getppid() != parent) raise(signal);  // the parent had ended before the request
}

// Restores the signal state in which a shell starts programs: no signal blocked, SIGPIPE with its
// default action. Blocked and ignored signals would otherwise pass through exec, and the
// InterruptWatcher of this program blocks two.
inline void ResetSignals() {
  sigset_t none;
  sigemptyset(&none);
  signal(SIGPIPE, SIG_DFL);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Removes NEURONTRACE_ variables, so that a daemon of ours obeys its command line alone: the
// environment may contain options for the site's own daemons. Keeps NEURONTRACE_INSTANCE_ID, the
// name of the machine.
inline void ForgetOptions() {
  constexpr std::string_view kOurs = "NEURONTRACE_";
  std::vector<std::string> names;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.starts_with(kOurs)) names.emplace_back(text.substr(0, text.find('=')));
  }
  for (const std::string& name : names) {
    if (name != "NEURONTRACE_INSTANCE_ID") unsetenv(name.c_str());
  }
}

}  // namespace neurontrace::cli
