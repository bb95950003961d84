// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "neurontrace/v1/clock_gateway.pb.h"

// Converts between the messages of the ClockGateway and values. FromProto checks what a peer sent
// and fails with INVALID_ARGUMENT, naming the field. Pure functions, any thread.
namespace neurontrace {

// The host and boot whose clocks a call is about.
struct ClockIdentity {
  std::string agent_id;
  std::string instance_id;
  std::string boot_id;
  friend bool operator==(const ClockIdentity&, const ClockIdentity&) = default;
};
void ToProto(const ClockIdentity& value, v1::ClockHello* message);
// Fails also if a text is empty, has control characters, or is longer than an identity may be.
absl::StatusOr<ClockIdentity> FromProto(const v1::ClockHello& message);

// A batch as it was received; its observations have been decoded once to check them.
struct ReceivedClockBatch {
  // The agent's number of the batch, from 1.
  uint64_t number = 0;
  uint64_t age_ns = 0;
  std::string observations;
};
// Fails also if the number is 0, or the observations cannot be decoded.
absl::StatusOr<ReceivedClockBatch> FromProto(const v1::ClockEvidenceBatch& message);

// The parameters of probes over UDP, without the address, which is the gateway's own.
struct ProbeGrant {
  uint16_t udp_port = 0;  // 0: no probes over UDP
  uint64_t key_id = 0;
  std::array<uint8_t, 32> key{};
};
void ToProto(const ProbeGrant& value, v1::ProbeAccess* message);
// Fails also if the key has another length, or the port is beyond 65535.
absl::StatusOr<ProbeGrant> FromProto(const v1::ProbeAccess& message);

}  // namespace neurontrace
