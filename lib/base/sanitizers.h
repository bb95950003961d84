// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace neurontrace {

// True in builds with AddressSanitizer or ThreadSanitizer, several times slower: property tests
// draw fewer cases there, and all of them in the release build (scripts/test, step unit_release).
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kUnderSanitizer = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kUnderSanitizer = true;
#else
inline constexpr bool kUnderSanitizer = false;
#endif
#else
inline constexpr bool kUnderSanitizer = false;
#endif

}  // namespace neurontrace
