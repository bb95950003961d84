// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace neurontrace {

inline constexpr size_t kSha256Bytes = 32;

// SHA-256 of bytes that come piece by piece (FIPS 180-4), by OpenSSL. One thread at a time.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void Update(std::string_view bytes);
  // The 32 bytes of all that came; the next Update restarts.
  std::string Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Lower-case hexadecimal digits.
std::string HexOf(std::string_view bytes);
// Those of the SHA-256 of bytes that are all there.
std::string Sha256HexOf(std::string_view bytes);

}  // namespace neurontrace
