// SPDX-License-Identifier: Apache-2.0
#include "lib/wire/agent_hello.h"

#include <string_view>
#include <utility>

#include "lib/base/clean_text.h"
#include "lib/base/status.h"
#include "lib/trace/limits.h"
#include "lib/wire/field_checks.h"

namespace neurontrace {

void ToProto(const AgentInfo& value, v1::AgentHello* message) {
  const auto text = [](const std::string& value) {
    return CleanText(value, limits::kIdentityStringBytesMax);
  };
  message->set_protocol_version(value.protocol_version);
  message->set_agent_id(text(value.agent_id));
  message->set_agent_version(text(value.agent_version));
  message->set_instance_id(text(value.instance_id));
  message->set_instance_id_source(text(value.instance_id_source));
  message->set_boot_id(text(value.boot_id));
  message->set_host_name(text(value.host_name));
  message->set_instance_type(text(value.instance_type));
}

absl::StatusOr<AgentInfo> FromProto(const v1::AgentHello& message) {
  // All of these become labels, keys or table cells, so none may contain control characters.
  const std::pair<std::string_view, const std::string&> texts[] = {
      {"hello.agent_id", message.agent_id()},
      {"hello.agent_version", message.agent_version()},
      {"hello.instance_id", message.instance_id()},
      {"hello.instance_id_source", message.instance_id_source()},
      {"hello.boot_id", message.boot_id()},
      {"hello.host_name", message.host_name()},
      {"hello.instance_type", message.instance_type()}};
  for (const auto& [field, text] : texts) RETURN_IF_ERROR(CheckIdentityText(field, text));
  return AgentInfo{.protocol_version = message.protocol_version(),
                   .agent_id = message.agent_id(),
                   .agent_version = message.agent_version(),
                   .instance_id = message.instance_id(),
                   .instance_id_source = message.instance_id_source(),
                   .boot_id = message.boot_id(),
                   .host_name = message.host_name(),
                   .instance_type = message.instance_type()};
}

}  // namespace neurontrace
