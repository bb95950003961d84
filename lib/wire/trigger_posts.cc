// SPDX-License-Identifier: Apache-2.0
#include "lib/wire/trigger_posts.h"

#include <CLI/CLI.hpp>
#include <map>

#include "lib/base/address.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

const std::map<std::string, TriggerPosts>& Words() {
  static const auto* const words =
      new std::map<std::string, TriggerPosts>{{"this-machine", TriggerPosts::kThisMachine},
                                              {"anybody", TriggerPosts::kAnybody},
                                              {"anybody-insecure", TriggerPosts::kAnybodyInsecure}};
  return *words;
}

}  // namespace

void AddTriggerPostsOption(CLI::App& app, TriggerPosts& posts) {
  app.add_option_function<std::string>(
         "--trigger-posts", [&posts](const std::string& who) { posts = Words().at(who); },
         "Whose POST /triggers/NAME at --health-address is heard: this-machine, anybody who "
         "reaches it, or anybody-insecure, where other machines do")
      ->check(CLI::IsMember(Words()))
      ->default_str("this-machine");
}

absl::Status CheckTriggerPosts(TriggerPosts posts, const std::string& health_address) {
  if (posts != TriggerPosts::kAnybody || IsLoopback(health_address)) return absl::OkStatus();
  return FailedPrecondition(
      "--trigger-posts anybody: {} is reached from other machines, in plain text that shows nobody "
      "who sends it, and a POST begins captures: leave it out, or, on a network that you trust, "
      "write --trigger-posts anybody-insecure",
      health_address);
}

}  // namespace neurontrace
