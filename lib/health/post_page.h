// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace neurontrace {

// A POST that came in, and what is answered. `name` is what follows the page's prefix in the path.
struct PostRequest {
  std::string name;
  std::string body;
};
struct PostAnswer {
  int code = 202;
  std::string body;
  uint64_t retry_after_seconds = 0;  // 0: nothing is said of it
};

// What a process takes by POST under a prefix of its HTTP port, as "/triggers/". `take` is called
// on a thread of the server's, a few at a time, and may block it for a few seconds.
struct PostPage {
  std::string prefix;
  size_t body_bytes_max = 0;    // larger: 413, unread
  bool is_for_anybody = false;  // else 403 for whoever is not on this machine
  std::function<PostAnswer(const PostRequest&)> take;
};

}  // namespace neurontrace
