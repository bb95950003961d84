// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/on_demand/kineto_messages.h"

#include <bit>
#include <cstring>

#include "lib/base/status.h"
#include "lib/trace/framework_limits.h"

namespace neurontrace {
namespace {

static_assert(std::endian::native == std::endian::little, "the structs are those of the worker");

constexpr size_t kTypeBytes = 32;
constexpr std::string_view kRequestType = "req";
constexpr std::string_view kContextType = "ctxt";
// Both messages begin with two numbers of 4 bytes and one of 8.
constexpr size_t kFixedBytes = 16;
// Bits of a request's kind: what the worker would take.
constexpr int32_t kTakesActivities = 2;
constexpr int32_t kKindMax = 3;

template <typename Number>
Number NumberAt(std::string_view bytes, size_t at) {
  Number number = 0;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

template <typename Number>
void AppendNumber(Number number, std::string& out) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

std::string Message(std::string_view type, std::string_view body) {
  std::string out;
  AppendNumber<uint64_t>(body.size(), out);
  out.append(type);
  out.resize(kKinetoHeaderBytes);
  return out.append(body);
}

absl::StatusOr<KinetoRequest> ParseRequest(std::string_view body) {
  const auto kind = NumberAt<int32_t>(body, 0);
  const auto count = NumberAt<int32_t>(body, 4);
  if (kind < 0 || kind > kKindMax) return InvalidArgument("a request of the kind {}", kind);
  if (count < 0 || static_cast<size_t>(count) > limits::kKinetoPidsMax ||
      body.size() != kFixedBytes + static_cast<size_t>(count) * sizeof(int32_t)) {
    return InvalidArgument("{} processes in a request of {} bytes", count, body.size());
  }
  KinetoRequest request{.takes_activities = (kind & kTakesActivities) != 0,
                        .job_id = NumberAt<int64_t>(body, 8)};
  for (size_t at = kFixedBytes; at < body.size(); at += sizeof(int32_t)) {
    request.pids.push_back(NumberAt<int32_t>(body, at));
  }
  return request;
}

}  // namespace

absl::StatusOr<std::variant<KinetoRequest, KinetoContext>> ParseKinetoDatagram(
    std::string_view datagram) {
  if (datagram.size() > limits::kKinetoDatagramBytesMax ||
      datagram.size() < kKinetoHeaderBytes + kFixedBytes) {
    return InvalidArgument("a datagram of {} bytes", datagram.size());
  }
  const std::string_view body = datagram.substr(kKinetoHeaderBytes);
  if (NumberAt<uint64_t>(datagram, 0) != body.size()) {
    return InvalidArgument("a size that is not that of the datagram's {} bytes", datagram.size());
  }
  // The bytes behind the first 0 are not initialised by every sender.
  std::string_view type = datagram.substr(sizeof(uint64_t), kTypeBytes);
  type = type.substr(0, type.find('\0'));
  if (type == kRequestType) return ParseRequest(body);
  if (type == kContextType && body.size() == kFixedBytes) {
    return KinetoContext{.gpu = NumberAt<int32_t>(body, 0),
                         .pid = NumberAt<int32_t>(body, 4),
                         .job_id = NumberAt<int64_t>(body, 8)};
  }
  return InvalidArgument("a datagram of an unknown type");
}

std::string KinetoAnswer(std::string_view config) { return Message(kRequestType, config); }

// The number of workers that the daemon knows, which the worker only logs.
std::string KinetoContextAnswer() {
  std::string body;
  AppendNumber<int32_t>(1, body);
  return Message(kContextType, body);
}

}  // namespace neurontrace
