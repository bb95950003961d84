// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace neurontrace {

// Bytes of a digest.
inline constexpr size_t kSha256Bytes = 32;

// SHA-256 (FIPS 180-4) of bytes that come piece by piece, by OpenSSL. Used for artifacts and
// tokens. Aborts if the library cannot compute it. One thread at a time.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  // Adds bytes to the digest. Requires an object that was not moved from.
  void Update(std::string_view bytes);
  // Returns the 32 bytes of the digest of all that came; the next Update starts a new one.
  std::string Finish();

 private:
  // OpenSSL's context; null after the object was moved from.
  struct State;
  std::unique_ptr<State> state_;
};

// Returns two lower-case hexadecimal digits for each byte.
std::string HexOf(std::string_view bytes);
// Returns the SHA-256 of `bytes` in 64 lower-case hexadecimal digits.
std::string Sha256HexOf(std::string_view bytes);

}  // namespace neurontrace
