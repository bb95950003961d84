// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/decode/json_index.h"

#include <algorithm>
#include <utility>

#include <simdjson.h>

#include "lib/base/clean_text.h"
#include "lib/base/status.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// Capacity kept from document to document; the index takes four bytes for each byte of text.
constexpr size_t kKeptCapacityBytes = size_t{4} << 20;
// simdjson tracks nesting only in its second stage, which is not used.
constexpr size_t kUnusedDepth = 1;

// Replaces every byte that belongs to no UTF-8 sequence by '?', and returns how many there were.
// The length stays, so offsets remain valid.
uint64_t RepairUtf8(char* text, size_t size) {
  uint64_t repaired = 0;
  for (size_t at = 0; at < size;) {
    const size_t bytes = Utf8SequenceBytes({text + at, size - at});
    if (bytes == 0) {
      text[at] = '?';
      ++repaired;
    }
    at += bytes == 0 ? 1 : bytes;
  }
  return repaired;
}

// Returns the first place where the text is not even a sequence of tokens. simdjson reports only
// that there is one, and reads a backslash outside strings as an escape.
std::optional<JsonIndex::Fault> FirstFault(const char* text, size_t size) {
  bool in_string = false;
  bool escaped = false;
  size_t begin = 0;
  for (size_t i = 0; i < size; ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (!in_string) {
      if (c == '\\') return JsonIndex::Fault{i, "a backslash outside a string"};
      if (c == '"') {
        in_string = true;
        begin = i;
      }
    } else if (c < 0x20) {
      break;
    } else if (escaped) {
      escaped = false;
    } else if (c == '\\') {
      escaped = true;
    } else if (c == '"') {
      in_string = false;
    }
  }
  if (!in_string) return std::nullopt;
  return JsonIndex::Fault{begin,
                          "a string is truncated or contains an unescaped control character"};
}

}  // namespace

// Keeps simdjson out of the header. The implementation is that of the processor's widest
// instructions.
struct JsonIndex::Stage {
  std::unique_ptr<simdjson::internal::dom_parser_implementation> parser;
};

JsonIndex::JsonIndex() : stage_(std::make_unique<Stage>()) {}
JsonIndex::~JsonIndex() = default;

absl::Status JsonIndex::Reserve(size_t size) {
  auto& parser = stage_->parser;
  const size_t held = parser == nullptr ? 0 : parser->capacity();
  if (held >= size && (held <= kKeptCapacityBytes || size > kKeptCapacityBytes)) {
    return absl::OkStatus();
  }
  // Memory grows by doubling up to the limit of what is kept. A larger text gets its exact size,
  // which the next smaller one gives back.
  const size_t capacity = std::max(size, std::min(held * 2, kKeptCapacityBytes));
  parser.reset();
  const auto error = simdjson::get_active_implementation()->create_dom_parser_implementation(
      capacity, kUnusedDepth, parser);
  if (error != simdjson::SUCCESS) {
    parser.reset();
    return ResourceExhausted("not enough memory to index a document of {} bytes", size);
  }
  return absl::OkStatus();
}

absl::Status JsonIndex::Build(char* text, size_t size) {
  tokens_ = {};
  fault_.reset();
  repaired_bytes_ = 0;
  if (size > limits::kFetchDocumentBytesMax) {
    return InvalidArgument("the document has {} bytes; the limit is {}", size,
                           limits::kFetchDocumentBytesMax);
  }
  if (size == 0) return InvalidArgument("the document is empty");
  RETURN_IF_ERROR(Reserve(size));
  // At most one repair and one cut; a cut shows no new kind of fault.
  size_t end = size;
  for (int attempt = 0; attempt < 3; ++attempt) {
    auto& parser = *stage_->parser;
    const auto error =
        parser.stage1(reinterpret_cast<const uint8_t*>(text), end, simdjson::stage1_mode::regular);
    if (error == simdjson::SUCCESS) {
      tokens_ = {parser.structural_indexes.get(), parser.n_structural_indexes};
      return absl::OkStatus();
    }
    if (error == simdjson::EMPTY || end == 0) break;
    if (error == simdjson::UTF8_ERROR) {
      repaired_bytes_ += RepairUtf8(text, end);
      continue;
    }
    std::optional<Fault> fault = FirstFault(text, end);
    if (!fault) {
      return InvalidArgument("the document cannot be indexed: {}", simdjson::error_message(error));
    }
    end = fault->offset;
    fault_ = std::move(fault);
    text[end] = '\0';  // what stands where the tokens end must not look like one
    if (end == 0) break;
  }
  if (fault_) return absl::OkStatus();
  return InvalidArgument("the document contains no JSON");
}

}  // namespace neurontrace
