// SPDX-License-Identifier: Apache-2.0
// Whatever an API server answers, and whatever a token holds, nobody becomes an account whose name
// could be taken for another one's.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "aggregator/access/token_review.h"

namespace {

void Check(std::string_view account) {
  const size_t slash = account.find('/');
  const bool is_one = slash != std::string_view::npos && slash > 0 && slash + 1 < account.size() &&
                      account.find_first_of("/*:", slash + 1) == std::string_view::npos;
  if (!is_one) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace neurontrace;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto who = ReadTokenReview(text, "neurontrace");
  if (who.ok() && *who) Check(**who);
  if (const auto claims = ReadTokenClaims(text, "neurontrace")) Check(claims->service_account);
  return 0;
}
