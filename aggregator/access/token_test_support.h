// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/strings/escaping.h"

namespace neurontrace {

// A token as Kubernetes makes them, but for its signature, which nobody but an API server looks at.
inline std::string TestToken(const std::string& payload) {
  const auto encoded = [](const std::string& text) {
    std::string out;
    absl::WebSafeBase64Escape({text.data(), text.size()}, &out);
    return out;
  };
  return encoded(R"({"alg":"RS256","kid":"k"})") + "." + encoded(payload) + ".c2lnbmF0dXJl";
}

inline std::string TestToken(const std::string& space, const std::string& name,
                             uint64_t expires_seconds, const std::string& salt = "") {
  return TestToken(R"({"aud":["neurontrace"],"exp":)" + std::to_string(expires_seconds) +
                   R"(,"jti":")" + salt + R"(","sub":"system:serviceaccount:)" + space + ":" +
                   name + "\"}");
}

}  // namespace neurontrace
