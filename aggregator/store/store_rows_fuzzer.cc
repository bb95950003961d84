// SPDX-License-Identifier: Apache-2.0
// Any bytes as a row of the store, as a damaged disk or a backup of unknown origin may hold it. The
// first byte selects the family. A record that is accepted is the same after it is written and read
// again.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "aggregator/store/artifact_codec.h"
#include "aggregator/store/chunk_index_entry.h"
#include "aggregator/store/keys.h"
#include "aggregator/store/record_codec.h"
#include "aggregator/store/stream_record.h"

namespace neurontrace {
namespace {

void Check(bool good) {
  if (!good) std::abort();
}

template <typename Value, typename Encode, typename Decode>
void CheckRow(const absl::StatusOr<Value>& value, Encode encode, Decode decode) {
  if (!value.ok()) return;
  const auto again = decode(encode(*value));
  Check(again.ok() && *again == *value);
}

void Fuzz(int kind, std::string_view key, std::string_view value) {
  const CaptureId id = *CaptureId::FromBytes("0123456789abcdef");
  const auto capture = [&](std::string_view row) { return DecodeCaptureRecord(id, row); };
  const auto stream = [](std::string_view row) { return DecodeStreamRecord(7, row); };
  switch (kind % 7) {
    case 0:
      return CheckRow(capture(value), EncodeCaptureRecord, capture);
    case 1:
      return CheckRow(DecodeAgentRecord(value), EncodeAgentRecord, DecodeAgentRecord);
    case 2:
      return CheckRow(DecodeWorkerRecord(value), EncodeWorkerRecord, DecodeWorkerRecord);
    case 3:
      return CheckRow(stream(value), EncodeStreamRecord, stream);
    case 4: {
      ChunkIndexEntry entry;
      ForeignStops stops;
      static_cast<void>(DecodeChunkIndexValue(value, entry, &stops));
      return;
    }
    case 5:
      IsArtifactEntry(key, value);
      static_cast<void>(DecodeReference(key, value));
      static_cast<void>(DecodeForgone(key, value));
      return;
    default:
      keys::ParseStream(value);
      keys::ParseChunk(value);
      keys::ParseChunkIndex(value);
      keys::ParseClockModel(value);
  }
}

}  // namespace
}  // namespace neurontrace

// kind, length of the key, key, value
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  const bool has_key = data[0] % 7 == 5;
  const size_t key_bytes = has_key ? data[1] : 0;
  neurontrace::Fuzz(data[0], rest.substr(0, key_bytes),
                    rest.substr(std::min(key_bytes, rest.size())));
  return 0;
}
