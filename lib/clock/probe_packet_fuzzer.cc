// SPDX-License-Identifier: Apache-2.0
// Any bytes as a packet from the network; and packets that were genuine until a byte of them
// changed. An accepted packet gives exactly what it was made of, and no changed one is accepted.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "lib/clock/probe_packet.h"

namespace {

void Check(bool good) {
  if (!good) std::abort();
}

std::string_view TextOf(const neurontrace::ProbePacket& packet) {
  return {reinterpret_cast<const char*>(packet.data()), packet.size()};
}

template <typename T>
T Take(const uint8_t*& data, size_t& size) {
  T value = {};
  const size_t bytes = std::min(size, sizeof(T));
  std::memcpy(&value, data, bytes);
  data += bytes;
  size -= bytes;
  return value;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace neurontrace;
  static ProbeCipher cipher(ProbeKey{1, 2, 3});
  const std::string_view raw(reinterpret_cast<const char*>(data), size);
  KeyIdOfQuestion(raw);
  if (const auto question = cipher.DecodeQuestion(raw)) {
    Check(cipher.Encode(*question) == *reinterpret_cast<const ProbePacket*>(data));
  }
  if (const auto answer = cipher.DecodeAnswer(raw)) {
    Check(cipher.Encode(*answer) == *reinterpret_cast<const ProbePacket*>(data));
  }

  const auto at = Take<uint8_t>(data, size) % kProbePacketBytes;
  const auto flipped = Take<uint8_t>(data, size);
  const ProbeQuestion question{.key_id = Take<uint64_t>(data, size),
                               .sequence = Take<uint64_t>(data, size)};
  const ProbeAnswer answer{.key_id = question.key_id,
                           .sequence = question.sequence,
                           .reference_receive_ns = Take<uint64_t>(data, size),
                           .reference_send_ns = Take<uint64_t>(data, size),
                           .reference_epoch = Take<uint32_t>(data, size)};
  ProbePacket asked = cipher.Encode(question);
  ProbePacket answered = cipher.Encode(answer);
  Check(KeyIdOfQuestion(TextOf(asked)) == question.key_id);
  Check(!cipher.DecodeAnswer(TextOf(asked)) && !cipher.DecodeQuestion(TextOf(answered)));
  asked[at] ^= flipped;
  answered[at] ^= flipped;
  const auto read_question = cipher.DecodeQuestion(TextOf(asked));
  const auto read_answer = cipher.DecodeAnswer(TextOf(answered));
  Check(read_question.has_value() == (flipped == 0) && read_answer.has_value() == (flipped == 0));
  if (flipped == 0) Check(*read_question == question && *read_answer == answer);
  return 0;
}
