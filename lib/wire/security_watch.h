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

// In seconds since 1970, also when that is over; nothing where there is no file, or none that can
// be read.
struct SecurityEnds {
  std::optional<int64_t> certificate;
  std::optional<int64_t> authority;  // the first of those that are valid: see AuthorityEnd
  size_t open_secrets = 0;           // see DescribeOpenSecrets
};
// Reads the files.
SecurityEnds EndsOf(const ChannelSecurity& security);

// Whether the files can still be used: gRPC takes new ones by itself, is silent about bad ones, and
// one that was good ends. One thread; blocks on the disk.
class SecurityWatch {
 public:
  // `clock` outlives it.
  SecurityWatch(ChannelSecurity security, std::string address, ChannelSide side, const Clock& clock)
      : security_(std::move(security)), address_(std::move(address)), side_(side), clock_(clock) {}

  // To be called every few seconds. As CheckSecurity, where a file has changed since the last call,
  // or what is wrong has; the latter is looked at once a minute. Nothing where there is no news: at
  // first all is well.
  std::optional<absl::Status> Look();

 private:
  const ChannelSecurity security_;
  const std::string address_;
  const ChannelSide side_;
  const Clock& clock_;
  bool has_looked_ = false;
  std::vector<FileVersion> marks_;
  uint64_t looked_monotonic_ns_ = 0;
  absl::Status status_;
};

}  // namespace neurontrace
