// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/sha256.h"

namespace neurontrace {

// The beginning of a file that the caller already has, from an interrupted download. It is produced
// again, hashed and compared, but not sent. Used by one thread at a time.
class ResumePrefix {
 public:
  // For a file that the caller does not have.
  ResumePrefix() = default;
  ResumePrefix(uint64_t bytes, std::string sha256)
      : bytes_(bytes), left_(bytes), sha256_(std::move(sha256)) {}

  // Removes from the front of `bytes` what the caller has. Returns false if all of that has been
  // produced and differs from it.
  bool Skip(std::string_view& bytes);
  // Returns whether all that the caller has was produced again; Skip then compared it.
  bool is_through() const { return left_ == 0; }
  uint64_t bytes() const { return bytes_; }

 private:
  uint64_t bytes_ = 0;
  // Bytes of it that have not been produced again, and the SHA-256 of all of it, as 32 bytes.
  uint64_t left_ = 0;
  std::string sha256_;
  Sha256 hash_;
};

}  // namespace neurontrace
