// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace neurontrace {

// For tests: a proc file system in a temporary folder, with the processes that a test adds.
class FakeProc {
 public:
  // What a test may choose about a process; the defaults are an ordinary Python program.
  struct Process {
    uint32_t pid = 0;
    uint32_t parent = 1;
    uint64_t start_time_ticks = 100;
    char state = 'S';
    int threads = 1;
    uint64_t address_space_bytes = 1'000'000;
    uint64_t code_address = 4'096;
    std::vector<std::string> mapped = {"/usr/bin/python3.11"};
    std::string command = "python train.py";
    std::vector<std::string> environment = {};
  };

  FakeProc() : root_(::testing::TempDir() + "/neurontrace_fake_proc_" + std::to_string(getpid())) {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_ + "/sys/kernel/random");
  }
  ~FakeProc() { std::filesystem::remove_all(root_); }

  const std::string& root() const { return root_; }

  // Adds a process, or replaces one of the same pid.
  void Put(const Process& process) {
    const std::string directory = fmt::format("{}/{}", root_, process.pid);
    std::filesystem::create_directories(directory);
    std::string stat =
        fmt::format("{} (a (b) c) {} {}", process.pid, process.state, process.parent);
    for (int field = 5; field < 20; ++field) stat += " 0";
    stat += fmt::format(" {} 0", process.threads);
    stat += fmt::format(" {} {} 7 0 {} 0\n", process.start_time_ticks, process.address_space_bytes,
                        process.code_address);
    Write(process.pid, "stat", stat);
    std::string maps;
    for (const std::string& path : process.mapped) {
      maps += "7f0000000000-7f0000001000 r-xp 00000000 fe:01 1234    " + path + "\n";
    }
    Write(process.pid, "maps", maps);
    std::string command;
    for (const char c : process.command) command += c == ' ' ? '\0' : c;
    Write(process.pid, "cmdline", command + '\0');
    std::string environment;
    for (const std::string& variable : process.environment) environment += variable + '\0';
    Write(process.pid, "environ", environment);
    Write(process.pid, "cgroup", "0::/\n");
  }
  void Write(uint32_t pid, const std::string& name, const std::string& text) {
    std::ofstream(fmt::format("{}/{}/{}", root_, pid, name), std::ios::binary) << text;
  }
  // Sets the sockets that are bound in the network namespace of process `who`, or of the reader
  // ("self").
  void PutSockets(const std::string& who, const std::vector<std::string>& paths) {
    std::filesystem::create_directories(fmt::format("{}/{}/net", root_, who));
    std::ofstream table(fmt::format("{}/{}/net/unix", root_, who), std::ios::binary);
    table << "Num       RefCount Protocol Flags    Type St Inode Path\n";
    for (const std::string& path : paths) {
      table << "0000000000000000: 00000002 00000000 00010000 0005 01 19012 " << path << "\n";
    }
  }
  // The process ends.
  void Remove(uint32_t pid) { std::filesystem::remove_all(fmt::format("{}/{}", root_, pid)); }

  static constexpr const char* kRuntime = "/opt/aws/neuron/lib/libnrt.so.2.31.24.0";
  static constexpr const char* kTap = "/opt/neurontrace/lib/libneurontrace_tap.so";

 private:
  const std::string root_;
};

}  // namespace neurontrace
