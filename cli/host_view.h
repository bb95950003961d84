// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace neurontrace::cli {

// The result of stat(2) for a path.
struct PathFacts {
  enum class Kind { kFile, kDirectory, kSocket, kOther };
  Kind kind = Kind::kOther;
  uint32_t mode = 0;  // permission bits, including setuid and setgid
  uint32_t uid = 0;
  uint32_t gid = 0;
};

// The state of CLOCK_REALTIME by adjtimex(2).
struct ClockDiscipline {
  bool synchronised = false;  // a daemon steers it
  int64_t error_max_ns = 0;   // by that daemon's estimate
};

// A limit of this process; nullopt if there is none.
using ResourceLimit = std::optional<uint64_t>;

// This machine, as far as `doctor` and `record` examine it; nothing is changed. Abstract so that
// tests have machines with every fault (cli/fake_host_view.h). Functions without a status return an
// empty value if they fail. One thread.
class HostView {
 public:
  virtual ~HostView() = default;

  // Returns up to `bytes_max` bytes of a file from `offset` on, including files of /proc and /sys
  // that have no size. Fails with NOT_FOUND, or with FAILED_PRECONDITION if it may not be read.
  virtual absl::StatusOr<std::string> Read(const std::string& path, uint64_t offset,
                                           size_t bytes_max) = 0;
  // Returns the names in a directory; empty if it does not exist.
  virtual std::vector<std::string> List(const std::string& directory) = 0;
  // Returns the facts of a path, following symbolic links; nullopt if nothing exists there.
  virtual std::optional<PathFacts> Examine(const std::string& path) = 0;
  // Returns the path without symbolic links; "" if nothing exists there.
  virtual std::string RealPath(const std::string& path) = 0;
  // Returns whether this user may write to the file or directory; false if it does not exist.
  virtual bool CanWrite(const std::string& path) = 0;
  // Returns the bytes that this user may still write on the file system of `path`. Fails as Read
  // does, or with UNAVAILABLE.
  virtual absl::StatusOr<uint64_t> FreeBytes(const std::string& path) = 0;
  // Checks whether a process listens at a unix socket of packets, to which taps connect. Fails with
  // NOT_FOUND, FAILED_PRECONDITION (access is denied) or UNAVAILABLE (no process listens).
  virtual absl::Status TryToConnect(const std::string& socket) = 0;
  virtual uint32_t user() = 0;      // effective
  virtual std::string glibc() = 0;  // "2.36"; empty: another C library
  // Returns the state of the clock; nullopt if the system call is not permitted.
  virtual std::optional<ClockDiscipline> discipline() = 0;
  // Return the soft limits of this process, which its children inherit.
  virtual ResourceLimit locked_bytes_limit() = 0;
  virtual ResourceLimit open_files_limit() = 0;
  virtual std::string Environment(const std::string& name) = 0;  // empty: not set
};

// The machine on which the program runs.
class SystemHostView final : public HostView {
 public:
  absl::StatusOr<std::string> Read(const std::string& path, uint64_t offset,
                                   size_t bytes_max) override;
  std::vector<std::string> List(const std::string& directory) override;
  std::optional<PathFacts> Examine(const std::string& path) override;
  std::string RealPath(const std::string& path) override;
  bool CanWrite(const std::string& path) override;
  absl::StatusOr<uint64_t> FreeBytes(const std::string& path) override;
  absl::Status TryToConnect(const std::string& socket) override;
  uint32_t user() override;
  std::string glibc() override;
  std::optional<ClockDiscipline> discipline() override;
  ResourceLimit locked_bytes_limit() override;
  ResourceLimit open_files_limit() override;
  std::string Environment(const std::string& name) override;
};

}  // namespace neurontrace::cli
