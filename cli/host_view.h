// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace neurontrace::cli {

// What `stat` says of a path.
struct PathFacts {
  enum class Kind { kFile, kDirectory, kSocket, kOther };
  Kind kind = Kind::kOther;
  uint32_t mode = 0;  // permission bits, setuid and setgid among them
  uint32_t uid = 0;
  uint32_t gid = 0;
};

// What adjtimex says of CLOCK_REALTIME.
struct ClockDiscipline {
  bool synchronised = false;  // somebody steers it
  int64_t error_max_ns = 0;   // as the one who steers it says
};

// A limit of this process; nullopt: there is none.
using ResourceLimit = std::optional<uint64_t>;

// This machine, as far as `doctor` and `record` look at it: nothing is changed. Abstract so that
// tests have machines with every illness (cli/fake_host_view.h). One thread.
class HostView {
 public:
  virtual ~HostView() = default;

  // Up to `bytes_max` bytes of a file from `offset` on, also of those in /proc and /sys that have
  // no size. NOT_FOUND, or FAILED_PRECONDITION where it may not be read.
  virtual absl::StatusOr<std::string> Read(const std::string& path, uint64_t offset,
                                           size_t bytes_max) = 0;
  // The names in a directory; empty where there is none.
  virtual std::vector<std::string> List(const std::string& directory) = 0;
  // Follows symbolic links; nullopt: nothing is there.
  virtual std::optional<PathFacts> Look(const std::string& path) = 0;
  // The path without symbolic links; empty: nothing is there.
  virtual std::string RealPath(const std::string& path) = 0;
  virtual bool MayWrite(const std::string& path) = 0;
  // Of the file system that holds `path`, for this user.
  virtual absl::StatusOr<uint64_t> FreeBytes(const std::string& path) = 0;
  // Whether somebody listens at a unix socket of packets, as taps connect to: OK, NOT_FOUND,
  // FAILED_PRECONDITION (it may not be used) or UNAVAILABLE (nobody does).
  virtual absl::Status TryToConnect(const std::string& socket) = 0;
  virtual uint32_t user() = 0;      // effective
  virtual std::string glibc() = 0;  // "2.36"; empty: another C library
  virtual std::optional<ClockDiscipline> discipline() = 0;
  virtual ResourceLimit locked_bytes_limit() = 0;
  virtual ResourceLimit open_files_limit() = 0;
  virtual std::string Environment(const std::string& name) = 0;  // empty: not set
};

// The one that the program runs on.
class SystemHostView final : public HostView {
 public:
  absl::StatusOr<std::string> Read(const std::string& path, uint64_t offset,
                                   size_t bytes_max) override;
  std::vector<std::string> List(const std::string& directory) override;
  std::optional<PathFacts> Look(const std::string& path) override;
  std::string RealPath(const std::string& path) override;
  bool MayWrite(const std::string& path) override;
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
