// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "lib/base/clock.h"
#include "lib/base/small_file.h"
#include "lib/wire/channel_security.h"

// The outcome of the files of TLS while a program runs.
namespace neurontrace {

// When certificates expire, in seconds since 1970, also if that is past; empty if there is no file,
// or it cannot be read. For metrics.
struct SecurityEnds {
  std::optional<int64_t> certificate;
  std::optional<int64_t> authority;  // see AuthorityEnd
  size_t open_secrets = 0;           // see DescribeOpenSecrets
};
// Reads the files and returns when they expire.
SecurityEnds EndsOf(const ChannelSecurity& security);

// Checks while a program runs whether the files of TLS can still be used: gRPC loads new files by
// itself but does not report bad ones, and good certificates expire. One thread; blocks on the
// disk.
class SecurityWatch {
 public:
  // `clock` must outlive this.
  SecurityWatch(ChannelSecurity security, std::string address, ChannelSide side, const Clock& clock)
      : security_(std::move(security)), address_(std::move(address)), side_(side), clock_(clock) {}

  // Called every few seconds. Returns the result of CheckSecurity if a file has changed since the
  // last call, or if the result has, which is checked once a minute; otherwise nothing. Before the
  // first call the result counts as good.
  std::optional<absl::Status> Poll();

 private:
  const ChannelSecurity security_;
  const std::string address_;
  const ChannelSide side_;
  const Clock& clock_;
  bool has_checked_ = false;
  std::vector<FileVersion> marks_;
  uint64_t checked_monotonic_ns_ = 0;
  absl::Status status_;
};

}  // namespace neurontrace
