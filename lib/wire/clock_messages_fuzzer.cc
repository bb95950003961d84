// SPDX-License-Identifier: Apache-2.0
// As messages_fuzzer, for the messages about clocks.
#include <google/protobuf/stubs/logging.h>

#include <cstdlib>

#include "lib/trace/clock_evidence_codec.h"
#include "lib/wire/clock_messages.h"

namespace {

// Of texts that are no UTF-8 protobuf would write a line each.
[[maybe_unused]] const auto kQuiet = google::protobuf::SetLogHandler(nullptr);

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace neurontrace;
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  v1::ClockHello hello;
  if (data[0] % 3 == 0 && hello.ParseFromString(bytes)) {
    const auto identity = FromProto(hello);
    if (!identity.ok()) return 0;
    v1::ClockHello same;
    ToProto(*identity, &same);
    const auto again = FromProto(same);
    if (!again.ok() || !(*again == *identity)) std::abort();
  }
  v1::ClockEvidenceBatch batch;
  if (data[0] % 3 == 1 && batch.ParseFromString(bytes)) {
    const auto received = FromProto(batch);
    // Decoded once, and found good.
    if (received.ok() && !DecodeClockEvidence(received->observations).ok()) std::abort();
  }
  v1::ProbeAccess access;
  if (data[0] % 3 == 2 && access.ParseFromString(bytes)) {
    const auto grant = FromProto(access);
    if (!grant.ok()) return 0;
    v1::ProbeAccess same;
    ToProto(*grant, &same);
    const auto again = FromProto(same);
    if (!again.ok() || again->key != grant->key || again->key_id != grant->key_id) std::abort();
  }
  return 0;
}
