// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
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

// Answers POSTs. Called on threads of the HTTP server, a few at a time (limits::kHealthWaitingMax),
// which it may block for a few seconds.
class PostHandler {
 public:
  virtual ~PostHandler() = default;
  virtual PostAnswer TakePost(const PostRequest& request) = 0;
};

// A page that accepts POSTs under a prefix of the HTTP port, such as "/triggers/".
struct PostPage {
  // Matched against the beginning of the path; the first page that was added wins.
  std::string prefix;
  size_t body_bytes_max = 0;       // larger: 413, unread
  bool is_for_anybody = false;     // otherwise 403 for clients on other machines
  PostHandler* handler = nullptr;  // outlives the server; required
};

}  // namespace neurontrace
