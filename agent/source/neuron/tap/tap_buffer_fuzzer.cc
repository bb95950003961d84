// SPDX-License-Identifier: Apache-2.0
// Any bytes as a tap's shared buffer, header, facts and ring; and, since few inputs hit a checksum,
// any bytes as well-formed records.
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "agent/source/neuron/decode/nrt_event_decoder.h"
#include "agent/source/neuron/tap/tap_buffer_reader.h"
#include "agent/source/neuron/tap/worker_facts.h"
#include "lib/base/crc32c.h"

namespace neurontrace {
namespace {

constexpr size_t kImageBytes = kTapRingOffset + kTapRingBytesMin;
constexpr uint8_t kRawHeader = 1;
constexpr uint8_t kRawRing = 2;
constexpr uint8_t kRawFacts = 4;

class Ignore final : public NrtEventSink {
 public:
  void OnEvent(const NrtEvent&) override {}
  void OnUnfitEvent(uint32_t, const EventFields&, uint32_t, std::string_view) override {}
};

std::string_view Take(std::string_view& data, size_t bytes) {
  const std::string_view taken = data.substr(0, bytes);
  data.remove_prefix(taken.size());
  return taken;
}

void PutHeader(char* image, std::string_view& data, bool raw) {
  auto& header = *reinterpret_cast<TapBufferHeader*>(image);
  header.magic = kTapBufferMagic;
  header.format_version = kTapBufferFormatVersion;
  header.header_bytes = kTapHeaderBytes;
  header.facts_offset = kTapFactsOffset;
  header.facts_bytes = kTapFactsBytes;
  header.ring_offset = kTapRingOffset;
  header.ring_bytes = kTapRingBytesMin;
  if (!raw) return;
  const std::string_view bytes = Take(data, sizeof header);
  std::memcpy(image, bytes.data(), bytes.size());
}

void PutFacts(char* image, std::string_view& data, bool raw) {
  char* const facts = image + kTapFactsOffset;
  const std::string_view bytes = Take(data, 512);
  if (raw) {
    std::memcpy(facts, bytes.data(), bytes.size());
    return;
  }
  const auto used = static_cast<uint32_t>(bytes.size());
  const uint32_t crc = Crc32c(bytes.data(), bytes.size());
  std::memcpy(facts + offsetof(TapFactsHeader, used_bytes), &used, sizeof used);
  std::memcpy(facts + offsetof(TapFactsHeader, crc32c), &crc, sizeof crc);
  std::memcpy(facts + sizeof(TapFactsHeader), bytes.data(), bytes.size());
}

// Records of up to 255 bytes, each with a length byte before it.
uint64_t PutRecords(char* ring, std::string_view data) {
  uint64_t position = 0;
  while (data.size() > 1 && position + 512 < kTapRingBytesMin) {
    const auto bytes = static_cast<uint8_t>(Take(data, 1)[0]);
    const std::string_view content = Take(data, bytes);
    TapRecordHeader record = {};
    std::vector<char> whole(std::max(sizeof record, 8 + content.size()));
    std::memcpy(whole.data() + 8, content.data(), content.size());
    const auto length = static_cast<uint32_t>(whole.size());
    const uint32_t crc = Crc32c(whole.data() + 8, whole.size() - 8);
    std::memcpy(whole.data(), &length, sizeof length);
    std::memcpy(whole.data() + 4, &crc, sizeof crc);
    std::memcpy(ring + position, whole.data(), whole.size());
    position += TapRecordSpan(length);
  }
  return position;
}

void Fuzz(std::string_view data) {
  static std::vector<uint64_t> memory(kImageBytes / sizeof(uint64_t));
  static RecordBuffer buffer;
  static NrtEventDecoder decoder;
  static size_t dirty_bytes = 0;  // of the input before: clearing all of it each time is slow
  std::fill_n(memory.begin(), dirty_bytes / sizeof(uint64_t), 0);
  char* const image = reinterpret_cast<char*>(memory.data());
  const uint8_t mode = data.empty() ? 0 : static_cast<uint8_t>(Take(data, 1)[0]);
  PutHeader(image, data, (mode & kRawHeader) != 0);
  PutFacts(image, data, (mode & kRawFacts) != 0);
  auto& header = *reinterpret_cast<TapBufferHeader*>(image);
  if ((mode & kRawRing) != 0) {
    std::memcpy(image + kTapRingOffset, data.data(), std::min(data.size(), kTapRingBytesMin));
    if ((mode & kRawHeader) == 0) header.write_pos.store(data.size() & ~size_t{7});
  } else {
    header.write_pos.store(PutRecords(image + kTapRingOffset, data));
  }
  dirty_bytes = std::min(kImageBytes, kTapRingOffset + 512 * (data.size() + 1));
  auto reader = TapBufferReader::Over(image, kImageBytes);
  if (!reader.ok()) return;
  if (const auto facts = (*reader)->ReadFacts(); facts.ok()) SortFacts(*facts);
  Ignore ignore;
  TapRecord record;
  for (auto more = (*reader)->Next(buffer, record); more.ok() && *more;
       more = (*reader)->Next(buffer, record)) {
    decoder.Decode(record.payload, record.payload_bytes, record.host_realtime_ns, ignore);
    (*reader)->Commit(record.next_position);
  }
  (*reader)->WaitForMore();
}

}  // namespace
}  // namespace neurontrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  neurontrace::Fuzz({reinterpret_cast<const char*>(data), size});
  return 0;
}
