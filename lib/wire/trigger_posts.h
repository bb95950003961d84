// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"

namespace CLI {
class App;
}

// Who may fire triggers with a POST at the health port, which is plain HTTP and knows nobody.
namespace neurontrace {

enum class TriggerPosts {
  kThisMachine,
  kAnybody,          // who reaches the port, which only this machine does
  kAnybodyInsecure,  // also from other machines
};

// --trigger-posts of a daemon.
void AddTriggerPostsOption(CLI::App& app, TriggerPosts& posts);

// FAILED_PRECONDITION, with the way out, where other machines could begin captures and nobody said
// that they may. `health_address` is HOST:PORT.
absl::Status CheckTriggerPosts(TriggerPosts posts, const std::string& health_address);

}  // namespace neurontrace
