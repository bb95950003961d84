// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

// Functions that a child process calls between fork and exec.
namespace neurontrace::cli {

// Asks the kernel to send `signal` to this process when the thread that forked it ends, for
// whatever reason.
inline void DieWith(pid_t parent, int signal) {
  prctl(PR_SET_PDEATHSIG, signal);
  if (getppid() != parent) raise(signal);  // the parent had ended before the request
}

// Restores the signal state in which a shell starts programs: none blocked, SIGPIPE deadly.
inline void ResetSignals() {
  sigset_t none;
  sigemptyset(&none);
  signal(SIGPIPE, SIG_DFL);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Removes NEURONTRACE_ variables, so that a program of ours obeys its command line alone: the
// environment may have options of the site's own daemons. The name of the machine stays.
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
