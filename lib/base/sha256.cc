// SPDX-License-Identifier: Apache-2.0
#include "lib/base/sha256.h"

#include <openssl/evp.h>

#include <cassert>
#include <cstdlib>

namespace neurontrace {
namespace {

// OpenSSL fails here only without memory, or where a policy of the machine has switched off the
// algorithm. A digest that is silently wrong would be worse than the end of the program.
void Insist(int result) {
  if (result != 1) std::abort();
}

}  // namespace

struct Sha256::State {
  State() : context(EVP_MD_CTX_new()) { Begin(); }
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  void Begin() { Insist(EVP_DigestInit_ex(context, EVP_sha256(), nullptr)); }

  EVP_MD_CTX* context;
};

Sha256::Sha256() : state_(std::make_unique<State>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::Update(std::string_view bytes) {
  assert(state_ != nullptr);  // not moved from
  Insist(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()));
}

std::string Sha256::Finish() {
  assert(state_ != nullptr);
  std::string digest(kSha256Bytes, '\0');
  unsigned size = 0;
  Insist(
      EVP_DigestFinal_ex(state_->context, reinterpret_cast<unsigned char*>(digest.data()), &size));
  assert(size == kSha256Bytes);
  // EVP_DigestFinal_ex leaves a context that must be initialised again before the next update.
  state_->Begin();
  return digest;
}

std::string HexOf(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char byte : bytes) {
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

std::string Sha256HexOf(std::string_view bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return HexOf(hash.Finish());
}

}  // namespace neurontrace
