// SPDX-License-Identifier: Apache-2.0
// Anything at all as the columns of a chunk. What the reader takes must keep every promise, and
// come back the same after being written again. The first byte says whether the rest is the
// columns (0) or their size in four bytes and a zstd frame of them (anything else).
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "lib/trace/event_chunk.h"
#include "lib/trace/event_chunk_test_support.h"

namespace neurontrace {
namespace {

void Check(bool good, const std::string& what) {
  if (good) return;
  fprintf(stderr, "violated requirement: %s\n", what.c_str());
  abort();
}

void Reencode(const DecodedChunk& chunk) {
  EventChunkBuilder builder;
  std::vector<OwnedEvent> events;
  for (size_t i = 0; i < chunk.size(); ++i) {
    events.push_back(Owned(chunk, i));
    if (!AppendTo(builder, events.back()).ok())
      return;  // a reader allows more than a builder makes
  }
  const EncodedColumns encoded = builder.Finish();
  DecodedChunk again;
  const absl::Status status = again.Decode(encoded.bytes);
  Check(status.ok(), status.ToString());
  Check(again.size() == events.size(), "count after writing again");
  for (size_t i = 0; i < events.size(); ++i) {
    const std::string difference = Difference(again, i, events[i]);
    Check(difference.empty(), difference + " after writing again");
  }
}

void Run(std::string_view columns) {
  DecodedChunk chunk;
  if (!chunk.Decode(columns).ok()) {
    Check(chunk.size() == 0 && chunk.shapes().empty(), "empty after an error");
    return;
  }
  const std::string broken = BrokenPromise(chunk);
  Check(broken.empty(), broken);
  Reencode(chunk);
  Check(chunk.Decode(columns, DecodedChunk::Attributes::kSkip).ok(), "skipping checks more");
}

}  // namespace
}  // namespace neurontrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 0) {
    neurontrace::Run(input);
    return 0;
  }
  uint32_t columns_bytes = 0;
  if (input.size() < sizeof(columns_bytes)) return 0;
  memcpy(&columns_bytes, input.data(), sizeof(columns_bytes));
  input.remove_prefix(sizeof(columns_bytes));
  std::string columns;
  if (neurontrace::UncompressColumns(input, columns_bytes, columns).ok()) neurontrace::Run(columns);
  return 0;
}
