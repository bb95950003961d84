// SPDX-License-Identifier: Apache-2.0
// Any bytes as an envelope, its checksum made right so that mutations get past it; with an odd
// stream_ref its columns are meant plain, are compressed, and the header describes them truthfully.
// What the validator takes must keep its promises and make the same envelope's header again.
#include <google/protobuf/stubs/logging.h>

#include <cstdio>
#include <cstdlib>

#include "lib/base/crc32c.h"
#include "lib/trace/columns_compression.h"
#include "lib/trace/event_chunk_test_support.h"
#include "lib/wire/chunk_envelope.h"

namespace {

// Of texts that are no UTF-8 protobuf would write a line each.
[[maybe_unused]] const auto kQuiet = google::protobuf::SetLogHandler(nullptr);

void Check(bool good, const std::string& what) {
  if (good) return;
  fprintf(stderr, "violated requirement: %s\n", what.c_str());
  abort();
}

void CompressAndRecordSize(neurontrace::v1::ChunkEnvelope& envelope) {
  using namespace neurontrace;
  v1::ChunkHeader header;
  static DecodedChunk chunk;
  if (!header.ParseFromString(envelope.header())) return;
  if (!chunk.Decode(envelope.columns()).ok() || chunk.size() == 0) return;
  header.set_columns_bytes(static_cast<uint32_t>(envelope.columns().size()));
  header.set_event_count(static_cast<uint32_t>(chunk.size()));
  header.set_first_timestamp_ns(chunk.timestamp_ns().front());
  header.set_last_timestamp_ns(chunk.timestamp_ns().back());
  envelope.set_header(header.SerializeAsString());
  envelope.set_columns(CompressColumns(envelope.columns()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace neurontrace;
  v1::ChunkEnvelope envelope;
  if (!envelope.ParseFromArray(data, static_cast<int>(size))) return 0;
  if (envelope.stream_ref() % 2 != 0) CompressAndRecordSize(envelope);
  const uint32_t header_crc = Crc32c(envelope.header().data(), envelope.header().size());
  envelope.set_crc32c(
      ExtendCrc32c(header_crc, envelope.columns().data(), envelope.columns().size()));
  static ChunkValidator validator;
  const auto header = validator.Validate(envelope);
  if (!header.ok()) {
    Check(validator.chunk().size() == 0, "no events after a refusal");
    return 0;
  }
  Check(validator.chunk().size() == header->event_count, "count");
  const std::string broken = BrokenPromise(validator.chunk());
  Check(broken.empty(), broken);
  v1::ChunkEnvelope again;
  ToEnvelope(Chunk{*header, envelope.columns()}, envelope.stream_ref(), &again);
  const auto same = ParseEnvelopeHeader(again);
  Check(same.ok(), std::string(same.status().message()));
  return 0;
}
