// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace neurontrace {

// A POST that was received. `name` is the part of the path after the page's prefix, not decoded.
struct PostRequest {
  std::string name;
  std::string body;
};
// The answer to it; the body is plain text.
struct PostAnswer {
  // An HTTP status: 202 is for work that continues after the answer.
  int code = 202;
  std::string body;
  uint64_t retry_after_seconds = 0;  // 0: no such header
};

// A page that accepts POSTs under a prefix of the HTTP port, such as "/triggers/". `take` is called
// on a thread of the server, a few at a time (limits::kHealthWaitingMax), and may block it for a
// few seconds.
struct PostPage {
  // Matched against the beginning of the path; the first page that was added wins.
  std::string prefix;
  size_t body_bytes_max = 0;    // larger: 413, unread
  bool is_for_anybody = false;  // otherwise 403 for clients on other machines
  std::function<PostAnswer(const PostRequest&)> take;
};

}  // namespace neurontrace
