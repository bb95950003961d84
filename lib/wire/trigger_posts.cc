// SPDX-License-Identifier: Apache-2.0
#include "lib/wire/trigger_posts.h"

#include <CLI/CLI.hpp>
#include <map>

#include "lib/base/address.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

// The values of --trigger-posts.
const std::map<std::string, TriggerPosts>& TriggerPostsByName() {
  static const auto* const words =
      new std::map<std::string, TriggerPosts>{{"this-machine", TriggerPosts::kThisMachine},
                                              {"anybody", TriggerPosts::kAnybody},
                                              {"anybody-insecure", TriggerPosts::kAnybodyInsecure}};
  return *words;
}

}  // namespace

void AddTriggerPostsOption(CLI::App& app, TriggerPosts& posts) {
  app.add_option_function<std::string>(
         "--trigger-posts",
         [&posts](const std::string& who) { posts = TriggerPostsByName().at(who); },
         "Callers whose POST /triggers/NAME at --health-address is accepted: this-machine, "
         "anybody, or anybody-insecure if other machines can reach the port")
      ->check(CLI::IsMember(TriggerPostsByName()))
      ->default_str("this-machine");
}

absl::Status CheckTriggerPosts(TriggerPosts posts, const std::string& health_address) {
  if (posts != TriggerPosts::kAnybody || IsLoopback(health_address)) return absl::OkStatus();
  return FailedPrecondition(
      "--trigger-posts anybody: other machines can reach {} in plain text without authentication, "
      "and a POST starts captures; omit it, or use --trigger-posts anybody-insecure on a trusted "
      "network",
      health_address);
}

}  // namespace neurontrace
