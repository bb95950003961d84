// SPDX-License-Identifier: Apache-2.0
#include "lib/daemon/line_limiter.h"

#include <algorithm>

namespace neurontrace {
namespace {

// Returns the kind of a line: FNV-1a (Fowler, Noll and Vo) over all characters except digits, so
// that times, ids and counts do not make another kind. Never 0, which marks a free place.
uint64_t KindOf(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) {
    if (c >= '0' && c <= '9') continue;
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return std::max<uint64_t>(hash, 1);
}

}  // namespace

bool LineLimiter::Bucket::Take(uint64_t monotonic_ns, uint32_t at_once, uint32_t per_second) {
  tokens += static_cast<double>(monotonic_ns - filled_ns) * 1e-9 * per_second;
  tokens = std::min<double>(tokens, at_once);
  filled_ns = monotonic_ns;
  if (tokens < 1) return false;
  tokens -= 1;
  return true;
}

LineLimiter::Verdict LineLimiter::Judge(std::string_view text, uint64_t monotonic_ns) {
  if (!began_) all_ = {.tokens = limits::kLogLinesAtOnce, .filled_ns = monotonic_ns};
  began_ = true;
  const uint64_t hash = KindOf(text);
  Kind& kind = kinds_[hash % kinds_.size()];
  // A kind that shares its place with another one starts over with a full bucket: at worst more
  // lines are written.
  if (kind.hash != hash) {
    kind = {.hash = hash,
            .bucket = {.tokens = limits::kLogLinesOfKindAtOnce, .filled_ns = monotonic_ns}};
  }
  // The kind is tested first, so that lines that it suppresses take no tokens from the others.
  const bool passes = kind.bucket.Take(monotonic_ns, limits::kLogLinesOfKindAtOnce, 1) &&
                      all_.Take(monotonic_ns, limits::kLogLinesAtOnce, limits::kLogLinesPerSecond);
  if (!passes) {
    ++kind.left_out;
    ++left_out_;
    return {};
  }
  const Verdict verdict = {.passes = true, .left_out = kind.left_out};
  kind.left_out = 0;
  return verdict;
}

}  // namespace neurontrace
