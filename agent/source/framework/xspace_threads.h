// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace neurontrace {

// Finds the threads of a process by their ids in an XSpace. Newer XLA (measured: jaxlib 0.10.2)
// gives a line not the kernel's thread id but std::hash<std::thread::id> of libstdc++, a MurmurHash
// of the thread's pthread_t. It has an inverse, so the pthread_t is known: the address of glibc's
// struct pthread, which contains the kernel's id. That is read from the memory of the process, and
// believed only if the memory shows that such a structure is there: the file may be anybody's. Any
// thread.
class XSpaceThreads {
 public:
  // No process: no thread is found.
  XSpaceThreads() = default;
  // Requires the pid in the agent's pid namespace; 0 is no process. Tests give another directory.
  explicit XSpaceThreads(uint32_t pid, std::string proc_root = "/proc");

  // Returns the id of the thread in its own pid namespace, which is that of the runtime's events.
  // Returns nothing if `line_id` is not such a hash, or the thread or its process has ended, or
  // this agent may not read its memory. Blocks for the kernel only.
  std::optional<uint32_t> KernelId(int64_t line_id) const;

  // Returns the id that XLA gives to the thread of a pthread_t. Pure.
  static int64_t LineIdOf(uint64_t handle);
  // Where the id is in struct pthread, in bytes, on the machine that this is compiled for; 0: not
  // known. Constant since glibc 2.11.
#if defined(__x86_64__)
  static constexpr uint64_t kIdOffset = 0x2d0;
#elif defined(__aarch64__)
  static constexpr uint64_t kIdOffset = 0xd0;
#else
  static constexpr uint64_t kIdOffset = 0;
#endif

 private:
  uint32_t pid_ = 0;
  std::string process_;  // its directory
};

}  // namespace neurontrace
