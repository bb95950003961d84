// SPDX-License-Identifier: Apache-2.0
#include "lib/wire/clock_messages.h"

#include <cstring>
#include <string_view>
#include <utility>

#include "lib/base/clean_text.h"
#include "lib/base/status.h"
#include "lib/trace/clock_evidence_codec.h"
#include "lib/trace/limits.h"
#include "lib/wire/field_checks.h"

namespace neurontrace {

void ToProto(const ClockIdentity& value, v1::ClockHello* message) {
  message->set_agent_id(CleanText(value.agent_id, limits::kIdentityStringBytesMax));
  message->set_instance_id(CleanText(value.instance_id, limits::kIdentityStringBytesMax));
  message->set_boot_id(CleanText(value.boot_id, limits::kIdentityStringBytesMax));
}

// Evidence without one of these could not be distinguished from that of another host or boot.
absl::StatusOr<ClockIdentity> FromProto(const v1::ClockHello& message) {
  const std::pair<std::string_view, const std::string&> texts[] = {
      {"clock_hello.agent_id", message.agent_id()},
      {"clock_hello.instance_id", message.instance_id()},
      {"clock_hello.boot_id", message.boot_id()}};
  for (const auto& [field, text] : texts) {
    if (text.empty()) return InvalidArgument("{} is empty", field);
    RETURN_IF_ERROR(CheckIdentityText(field, text));
  }
  return ClockIdentity{message.agent_id(), message.instance_id(), message.boot_id()};
}

absl::StatusOr<ReceivedClockBatch> FromProto(const v1::ClockEvidenceBatch& message) {
  if (message.number() == 0) return InvalidArgument("clock batch: number is 0; numbers start at 1");
  // Only checked here: the bytes are stored as they came, and models decode them later.
  RETURN_IF_ERROR(DecodeClockEvidence(message.observations()).status());
  return ReceivedClockBatch{message.number(), message.age_ns(), message.observations()};
}

void ToProto(const ProbeGrant& value, v1::ProbeAccess* message) {
  message->set_udp_port(value.udp_port);
  message->set_key_id(value.key_id);
  message->set_key(value.key.data(), value.key.size());
}

absl::StatusOr<ProbeGrant> FromProto(const v1::ProbeAccess& message) {
  ProbeGrant grant;
  if (message.udp_port() > 65'535) {
    return InvalidArgument("probe access: udp_port {} is out of range", message.udp_port());
  }
  if (message.key().size() != grant.key.size()) {
    return InvalidArgument("probe access: key has {} bytes instead of {}", message.key().size(),
                           grant.key.size());
  }
  grant.udp_port = static_cast<uint16_t>(message.udp_port());
  grant.key_id = message.key_id();
  memcpy(grant.key.data(), message.key().data(), grant.key.size());
  return grant;
}

}  // namespace neurontrace
