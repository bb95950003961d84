// SPDX-License-Identifier: Apache-2.0
// Any bytes as an XSpace: looked through and read to the end without a crash and in bounded work; a
// second reading from the middle gives out what the first one did from there on, and what is given
// out fits into chunks.
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "agent/source/framework/xspace_reader.h"
#include "agent/source/framework/xspace_test_support.h"
#include "lib/trace/event_chunk.h"

namespace neurontrace {
namespace {

void Check(bool good) {
  if (!good) std::abort();
}

// One line an element.
std::vector<std::string> ReadAll(std::string_view bytes, const XSpaceFacts& facts, uint64_t first) {
  XSpaceReader reader(xspace_test::InputOf(bytes), facts, first);
  EventChunkBuilder builder;
  uint32_t appended = 0;
  std::vector<std::string> lines;
  // A line's or a plane's fields are read twice, and each call looks at many.
  for (size_t calls = 0;; ++calls) {
    Check(calls <= 4 * bytes.size() + 16);
    const XSpaceReader::Kind kind = reader.Next();
    if (kind == XSpaceReader::Kind::kEnd) break;
    if (kind == XSpaceReader::Kind::kNotYet) continue;
    if (kind == XSpaceReader::Kind::kLoss) {
      Check(reader.loss().events > 0 || reader.loss().events_unknown);
      lines.push_back(reader.loss().detail);
      continue;
    }
    const FrameworkEvent& event = reader.event();
    Check(event.values.size() == event.shape.keys.size());
    std::string line = std::to_string(event.fields.timestamp_ns);
    for (const AttributeValue& value : event.values) {
      line += ' ' + std::to_string(value.bits) + std::string(value.text);
    }
    lines.push_back(std::move(line));
    const auto shape = builder.InternShape(event.shape);
    if (shape.ok() && builder.Append(*shape, event.fields, event.values).ok()) ++appended;
  }
  Check(reader.Next() == XSpaceReader::Kind::kEnd);
  if (appended > 0) {
    DecodedChunk decoded;
    Check(decoded.Decode(builder.Finish().bytes).ok());
    Check(decoded.size() == appended);
  }
  return lines;
}

}  // namespace
}  // namespace neurontrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  neurontrace::LooksLikeXSpace(bytes.substr(0, 16), size);
  const neurontrace::XSpaceFacts facts = neurontrace::xspace_test::FactsOf(bytes);
  const auto all = neurontrace::ReadAll(bytes, facts, 0);
  const auto rest = neurontrace::ReadAll(bytes, facts, all.size() / 2);
  neurontrace::Check(
      std::vector<std::string>(all.begin() + static_cast<long>(all.size() / 2), all.end()) == rest);
  return 0;
}
