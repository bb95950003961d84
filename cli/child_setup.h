// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

// What a child does between fork and exec.
namespace neurontrace::cli {

// The kernel sends it `signal` when the thread that forked it ends, however that ends.
inline void DieWith(pid_t parent, int signal) {
  prctl(PR_SET_PDEATHSIG, signal);
  if (getppid() != parent) raise(signal);  // it was gone already
}

// As a shell leaves them to what it runs: none blocked, SIGPIPE deadly.
inline void ResetSignals() {
  sigset_t none;
  sigemptyset(&none);
  signal(SIGPIPE, SIG_DFL);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// A program of ours that is to do what its command line says: options of the site's own daemons
// are in the environment, too. The name of the machine stays.
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
