// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace neurontrace {

// Who may fire triggers by a POST to the health port, which is plain HTTP without authentication.
enum class TriggerPosts {
  kThisMachine,
  kAnybody,          // every caller of the port, which only this machine can reach
  kAnybodyInsecure,  // also from other machines
};

// Adds --trigger-posts of a daemon. `posts` must outlive the parsing. Called on the thread that
// parses.
void AddTriggerPostsOption(CLI::App& app, TriggerPosts& posts);

// Fails with FAILED_PRECONDITION and a way out if other machines could start captures without the
// operator having allowed it. `health_address` is HOST:PORT. Pure.
absl::Status CheckTriggerPosts(TriggerPosts posts, const std::string& health_address);

}  // namespace neurontrace
