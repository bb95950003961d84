// SPDX-License-Identifier: Apache-2.0
// Anything at all as a segment, a cursor, a `running` and an `aggregator` file, with checksums made
// right so that mutations get past them; a segment's records both as they are and made right. What
// is read must keep its promises: records lie one behind the other within the file, and the other
// files make the same ones again.
#include <google/protobuf/stubs/logging.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "agent/spool/segment_reader.h"
#include "agent/spool/spool_format.h"
#include "lib/base/crc32c.h"
#include "lib/base/fake_file_system.h"

namespace {

// Of texts that are no UTF-8 protobuf would write a line each.
[[maybe_unused]] const auto kQuiet = google::protobuf::SetLogHandler(nullptr);

void Check(bool good, const char* what) {
  if (good) return;
  fprintf(stderr, "violated requirement: %s\n", what);
  abort();
}

// Puts the checksum of what is before it at `at`.
void Repair(std::string& bytes, size_t at) {
  if (at + 4 > bytes.size()) return;
  const uint32_t crc = neurontrace::Crc32c(bytes.data(), at);
  std::memcpy(bytes.data() + at, &crc, sizeof crc);
}

// Makes right what of each record is checked, one behind the other from `at` on, as far as their
// sizes lead within the file.
void RepairRecords(std::string& bytes, size_t at, uint64_t salt) {
  using namespace neurontrace;
  while (at + kRecordHeadBytes <= bytes.size()) {
    bytes.replace(at, kRecordMagic.size(), kRecordMagic);
    const auto head = DecodeRecordHead(std::string_view(bytes).substr(at, kRecordHeadBytes));
    if (!head || head->record_bytes() > bytes.size() - at) return;
    const auto header = std::string_view(bytes).substr(at + kRecordHeadBytes, head->header_bytes);
    bytes.replace(at, kRecordHeadBytes, EncodeRecordHead(*head, header, salt));
    at += head->record_bytes();
  }
}

void ReadAsSegment(const std::string& bytes) {
  using namespace neurontrace;
  FakeFileSystem disk;
  disk.SetContents("/s", bytes);
  const auto file = disk.OpenForReading("/s");
  uint64_t end = 0;
  const auto summary = ReadSegment(**file, [&](const FoundRecord& record) {
    Check(record.offset >= end, "records follow each other");
    Check(record.chunk_header.size() == record.head.header_bytes, "the chunk's header is whole");
    end = record.offset + record.head.record_bytes();
    Check(end <= bytes.size(), "records end within the file");
  });
  if (!summary.ok()) return;
  Check(summary->synced_bytes <= bytes.size(), "no more is synced than there is");
  Check(summary->torn_bytes + summary->damaged_bytes <= bytes.size(), "damage has a size");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace neurontrace;
  std::string bytes(reinterpret_cast<const char*>(data), size);

  std::string cursor_bytes = bytes;
  if (size >= 4) Repair(cursor_bytes, size - 4);
  if (const auto cursor = DecodeSpoolCursor(cursor_bytes); cursor.ok()) {
    const auto again = DecodeSpoolCursor(EncodeSpoolCursor(*cursor));
    Check(again.ok() && *again == *cursor, "a cursor makes the same cursor again");
  }

  if (const auto running = DecodeSpoolRunning(cursor_bytes); running.ok()) {
    const auto again = DecodeSpoolRunning(EncodeSpoolRunning(*running));
    Check(again.ok() && *again == *running, "running captures make the same file again");
  }

  if (const auto aggregator = DecodeSpoolAggregator(cursor_bytes); aggregator.ok()) {
    Check(DecodeSpoolAggregator(EncodeSpoolAggregator(*aggregator)) == aggregator,
          "an aggregator's name is the same again");
  }

  uint32_t header_bytes = 0;
  if (size >= 16) std::memcpy(&header_bytes, bytes.data() + 12, sizeof header_bytes);
  if (header_bytes >= 4) Repair(bytes, header_bytes - 4);
  ReadAsSegment(bytes);
  if (const auto header = DecodeSegmentHeader(bytes); header.ok()) {
    RepairRecords(bytes, header->bytes, header->salt);
    ReadAsSegment(bytes);
  }
  return 0;
}
