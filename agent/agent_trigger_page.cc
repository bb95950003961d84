// SPDX-License-Identifier: Apache-2.0
// What an agent takes by POST: that something fired which a rule waits for.
#include <chrono>

#include "agent/agent.h"
#include "base/post_and_wait.h"
#include "trace/trigger_limits.h"

namespace neurontrace {
namespace {

constexpr std::chrono::milliseconds kPostPatience{5'000};

PostAnswer AnswerOf(const AgentTriggers::PostOutcome& outcome) {
  using Posted = AgentTriggers::Posted;
  switch (outcome.posted) {
    case Posted::kTold:
      return {202, "told the aggregator: neurontrace triggers list shows what came of it\n"};
    case Posted::kNoRule:
      return {404, "there is no such rule\n"};
    case Posted::kNotPosted:
      return {404, "only rules of `when = \"post\"` take a POST\n"};
    case Posted::kCoolsDown:
      return {429, "it cools down\n", outcome.retry_ns / 1'000'000'000 + 1};
    case Posted::kUnheard:
      return {503, "there is no aggregator now\n", 10};
  }
  return {503, ""};
}

}  // namespace

PostPage Agent::MakeTriggerPage(const AgentConfig& config) {
  return {.prefix = "/triggers/",
          .body_bytes_max = limits::kTriggerBodyBytesMax,
          .is_for_anybody = config.trigger_posts != TriggerPosts::kThisMachine,
          .take = [this](const PostRequest& request) {
            const auto outcome = PostAndWait(loop_, "the agent", kPostPatience, [this, &request] {
              return triggers_.Post(request.name, request.body);
            });
            if (outcome.ok()) return AnswerOf(*outcome);
            return PostAnswer{503, std::string(outcome.status().message()) + "\n", 1};
          }};
}

}  // namespace neurontrace
