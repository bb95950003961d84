// SPDX-License-Identifier: Apache-2.0
// A worker process on a string: linked against libnrt.so.1 as a real one would be, it carries out
// the lines of its standard input and answers each with one line. It knows nothing of the tap.
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>

#include "tests/fake_nrt/fake_nrt.h"
#include "tests/fake_nrt/nrt_api.h"

namespace {

using std::chrono::steady_clock;

uint64_t NowNs() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::system_clock::now().time_since_epoch())
                                   .count());
}

double MsSince(steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(steady_clock::now() - begin).count();
}

std::string Emit(uint32_t core, uint64_t count) {
  static const fake_nrt_field fields[] = {{"exec_id", FAKE_NRT_UNSIGNED}};
  static const fake_nrt_form* form = fake_nrt_define("nc_exec_running", "instant", fields, 1);
  fake_nrt_event event = {};
  event.form = form;
  event.nc_idx = core;
  event.thread_id = 7;
  uint64_t accepted = 0;
  const auto begin = steady_clock::now();
  for (uint64_t i = 0; i < count; ++i) {
    event.timestamp_ns = NowNs();
    event.tracking_id = fake_nrt_next_tracking_id(core);
    event.values[0] = i;
    if (fake_nrt_emit(&event, nullptr)) ++accepted;
  }
  return std::to_string(accepted) + " " + std::to_string(MsSince(begin));
}

std::string RunInChild(const std::string& rest);

std::string Run(const std::string& line) {
  std::istringstream words(line);
  std::string command;
  words >> command;
  const auto begin = steady_clock::now();
  if (command == "init") {
    errno = 42;
    const NRT_STATUS status = nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "");
    return std::to_string(status) + " " + std::to_string(errno);
  }
  if (command == "close") {
    nrt_close();
    return std::to_string(MsSince(begin));
  }
  if (command == "emit") {
    uint32_t core = 0;
    uint64_t count = 0;
    words >> core >> count;
    return Emit(core, count);
  }
  if (command == "comm") {
    int32_t core = 0;
    uint32_t id = 0;
    uint32_t count = 0;
    words >> core >> id >> count;
    return std::to_string(nrt_build_global_comm(core, id, count));
  }
  if (command == "misuses") return std::to_string(fake_nrt_misuse_count());
  if (command == "buffers") return std::to_string(fake_nrt_live_buffers());
  if (command == "fork") {
    std::string rest;
    std::getline(words, rest);
    return RunInChild(rest);
  }
  return "unknown command " + command;
}

// `rest` is a list of commands separated by commas; the child ends as exit() ends a program.
std::string RunInChild(const std::string& rest) {
  const pid_t child = fork();
  if (child == 0) {
    std::istringstream list(rest);
    std::string command;
    while (std::getline(list, command, ',')) {
      if (command.find("pause") != std::string::npos) {
        std::cout << "child pauses"
                  << "\n"
                  << std::flush;
        std::string line;
        std::getline(std::cin, line);
      } else {
        Run(command);
      }
    }
    exit(fake_nrt_misuse_count() == 0 ? 0 : 3);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    if (line == "exit") exit(fake_nrt_misuse_count() == 0 ? 0 : 3);
    std::cout << Run(line) << "\n" << std::flush;
  }
  return fake_nrt_misuse_count() == 0 ? 0 : 3;
}
