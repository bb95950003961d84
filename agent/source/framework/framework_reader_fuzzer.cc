// SPDX-License-Identifier: Apache-2.0
// Any bytes as a trace file: cut, parsed and written into chunks without a crash; the same pieces
// come out however the bytes arrive, sound elements are never taken for damaged, and every element
// is an event or a loss. Events have times within the bounds, and no span has two ends.
#include <simdjson.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "agent/source/framework/element_cutter.h"
#include "agent/source/framework/span_joiner.h"
#include "agent/source/framework/trace_event_parser.h"
#include "lib/trace/event_chunk.h"

namespace neurontrace {
namespace {

void Check(bool good) {
  if (!good) std::abort();
}

ElementCutter::Input Feed(std::string_view text, size_t step) {
  return [text, step](char* out, size_t size) mutable -> absl::StatusOr<size_t> {
    const size_t n = std::min({step, size, text.size()});
    std::memcpy(out, text.data(), n);
    text.remove_prefix(n);
    return n;
  };
}

// As few as a short input can exceed.
constexpr size_t kPieceBytesMax = 64;

// One line a piece.
std::vector<std::string> Cut(std::string_view text, size_t step, size_t window_bytes) {
  ElementCutter cutter(Feed(text, step),
                       {.window_bytes = window_bytes, .piece_bytes_max = kPieceBytesMax});
  std::vector<std::string> lines;
  for (;;) {
    const auto piece = cutter.Next();
    Check(piece.ok());
    if (piece->kind == ElementCutter::Kind::kNotYet) continue;
    lines.push_back(std::to_string(static_cast<int>(piece->kind)) + std::string(piece->key) + "=" +
                    std::string(piece->text));
    if (piece->kind >= ElementCutter::Kind::kEnd) return lines;
    lines.back() += " to byte " + std::to_string(cutter.position());
    Check(lines.size() <= text.size());
  }
}

// Sound JSON is never taken for damaged.
void CheckReader(std::string_view text) {
  constexpr size_t kDepthMax = 64;
  simdjson::dom::parser parser;
  const simdjson::padded_string padded(text);
  simdjson::dom::element value;
  if (parser.allocate(text.size() + 1, kDepthMax) != simdjson::SUCCESS) return;
  if (parser.parse(padded).get(value) != simdjson::SUCCESS) return;
  const std::string list = "[" + std::string(text) + "," + std::string(text) + "]";
  ElementCutter cutter(Feed(list, 7));
  size_t elements = 0;
  for (auto kind = ElementCutter::Kind::kNotYet; kind < ElementCutter::Kind::kEnd;) {
    const auto piece = cutter.Next();
    Check(piece.ok());
    kind = piece->kind;
    Check(kind != ElementCutter::Kind::kDamaged && kind != ElementCutter::Kind::kStray);
    elements += kind == ElementCutter::Kind::kElement;
  }
  Check(elements == 2);
}

// So few that a short input exceeds them.
constexpr SpanJoiner::Limits kJoinerLimits = {.spans = 4, .bytes = 64};

void ParseAll(std::string_view text) {
  ElementCutter cutter(Feed(text, text.size() + 1), {.window_bytes = 256});
  const TimeBounds bounds = {.first_ns = 1'700'000'000'000'000'000};
  TraceEventParser parser(1'711'964'646'000'000'000, 1'711'964'646'000'000'005, bounds);
  SpanJoiner joiner(kJoinerLimits);
  uint64_t element = 0;
  uint64_t begun = 0;
  uint64_t joined = 0;
  FrameworkEvent event;
  EventChunkBuilder builder;
  uint32_t appended = 0;
  for (;;) {
    const auto piece = cutter.Next();
    Check(piece.ok());
    if (piece->kind >= ElementCutter::Kind::kEnd) break;
    if (piece->kind != ElementCutter::Kind::kElement) continue;
    const absl::Status status = parser.Parse(piece->text, event);
    if (!status.ok() && !absl::IsOutOfRange(status)) continue;
    const bool is_begin = event.edge.kind == SpanEdge::Kind::kBegin;
    const SpanJoiner::Outcome outcome = joiner.Join(element++, event, !status.ok());
    begun += is_begin;
    joined += outcome == SpanJoiner::Outcome::kJoined;
    Check((outcome == SpanJoiner::Outcome::kNone) == (event.edge.kind == SpanEdge::Kind::kNone));
    if (!status.ok()) continue;
    Check(event.fields.timestamp_ns >= bounds.first_ns &&
          event.fields.timestamp_ns <= bounds.last_ns);
    Check(event.values.size() == event.shape.keys.size());
    const auto shape = builder.InternShape(event.shape);
    if (shape.ok() && builder.Append(*shape, event.fields, event.values).ok()) ++appended;
  }
  Check(joiner.unended().count <= begun && joined <= begun && joiner.given_up() <= begun);
  Check(builder.event_count() == appended);
  if (appended == 0) return;
  // What the parser makes is what a chunk's reader accepts.
  const EncodedColumns encoded = builder.Finish();
  DecodedChunk decoded;
  Check(decoded.Decode(encoded.bytes).ok());
  Check(decoded.size() == appended);
}

}  // namespace
}  // namespace neurontrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto whole = neurontrace::Cut(text, size + 1, size + 1);
  // A small window grows with longer elements.
  neurontrace::Check(neurontrace::Cut(text, 1, 16) == whole);
  neurontrace::CheckReader(text);
  neurontrace::ParseAll(text);
  return 0;
}
