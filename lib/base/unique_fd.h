// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <utility>

namespace neurontrace {

// Owns a file descriptor and closes it. Move only. A negative descriptor is invalid and is not
// closed. Used by one thread at a time.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  // Swaps: the descriptor that this owned is closed when `other` is destroyed.
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd() { Close(); }

  // Returns the descriptor, which stays this object's; negative: none.
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  // Gives up the descriptor without closing it; the caller owns it then.
  int release() { return std::exchange(fd_, -1); }
  // Closes the descriptor, if there is one. Errors of close(2) are ignored: the descriptor is gone
  // in any case (Linux).
  void Close() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

}  // namespace neurontrace
