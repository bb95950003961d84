// SPDX-License-Identifier: Apache-2.0
// Any bytes as a mapping file: cut, parsed and written into chunks without a crash; what the parser
// makes is what a chunk's reader accepts, and its lists hold as many numbers as each other.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "agent/source/framework/element_cutter.h"
#include "agent/source/framework/mapping_entry_parser.h"
#include "lib/trace/event_chunk.h"
#include "lib/trace/framework_mapping.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

void CheckMapping(bool good) {
  if (!good) std::abort();
}

bool IsListOfNumbers(std::string_view text) {
  return text.size() >= 2 && text.front() == '[' && text.back() == ']' &&
         text.substr(1, text.size() - 2).find_first_not_of("0123456789-,nul") ==
             std::string_view::npos;
}

void ParseMapping(std::string_view text) {
  ElementCutter cutter(
      [text](char* out, size_t size) mutable -> absl::StatusOr<size_t> {
        const size_t n = std::min(size, text.size());
        std::memcpy(out, text.data(), n);
        text.remove_prefix(n);
        return n;
      },
      {.window_bytes = 256, .array_key = "data"});
  MappingEntryParser parser(1'711'964'646'000'000'000);
  FrameworkEvent event;
  EventChunkBuilder builder;
  uint32_t appended = 0;
  for (;;) {
    const auto piece = cutter.Next();
    CheckMapping(piece.ok());
    if (piece->kind >= ElementCutter::Kind::kEnd) break;
    if (piece->kind != ElementCutter::Kind::kElement) continue;
    if (!parser.Parse(piece->text, event).ok()) continue;
    CheckMapping(event.shape.event_type == kFrameworkMappingEventType);
    CheckMapping(event.values.size() == 3 && event.shape.keys.size() == 3);
    const auto commas = [&](size_t i) {
      return std::count(event.values[i].text.begin(), event.values[i].text.end(), ',');
    };
    for (size_t i = 0; i < 3; ++i) {
      CheckMapping(IsListOfNumbers(event.values[i].text));
      CheckMapping(event.values[i].text.size() <= limits::kStringBytesMax);
      CheckMapping(commas(i) == commas(0));
    }
    const auto shape = builder.InternShape(event.shape);
    if (shape.ok() && builder.Append(*shape, event.fields, event.values).ok()) ++appended;
  }
  CheckMapping(builder.event_count() == appended);
  if (appended == 0) return;
  const EncodedColumns encoded = builder.Finish();
  DecodedChunk decoded;
  CheckMapping(decoded.Decode(encoded.bytes).ok());
  CheckMapping(decoded.size() == appended);
}

}  // namespace
}  // namespace neurontrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  neurontrace::ParseMapping({reinterpret_cast<const char*>(data), size});
  return 0;
}
