// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/mapping_entry_parser.h"

#include <simdjson.h>

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "agent/source/framework/element_cutter.h"
#include "agent/source/framework/json_scalar.h"
#include "lib/base/status.h"
#include "lib/trace/framework_limits.h"
#include "lib/trace/framework_mapping.h"
#include "lib/trace/limits.h"

// The operations of an entry become three lists of equal length, which a reader zips together
// again.
namespace neurontrace {
namespace {

namespace ondemand = simdjson::ondemand;

// Returns the status for an element that simdjson cannot read as an entry.
absl::Status BadEntry(simdjson::error_code error) {
  return InvalidArgument("not a mapping entry: {}", simdjson::error_message(error));
}

// An integer, or a text of one.
struct MappingNumber {
  JsonScalar scalar;  // kUint, kInt or kNull
  std::string_view digits;
  bool is_quoted = false;
};

// Returns an integer with or without quotation marks, or null; nothing for any other value.
std::optional<MappingNumber> ReadNumber(ondemand::value value) {
  MappingNumber number;
  std::string_view token = value.raw_json_token();
  // simdjson's raw tokens include the white space that follows.
  token = token.substr(0, token.find_last_not_of(" \n\r\t") + 1);
  number.is_quoted = token.size() >= 2 && token.front() == '"';
  if (number.is_quoted) token = token.substr(1, token.size() - 2);
  const auto scalar = ParseJsonScalar(token);
  if (!scalar) return std::nullopt;
  const bool is_null = scalar->type == ValueType::kNull && !number.is_quoted;
  if (scalar->type != ValueType::kUint && scalar->type != ValueType::kInt && !is_null) {
    return std::nullopt;
  }
  number.scalar = *scalar;
  number.digits = token;
  return number;
}

// The numbers of an operation, in the order in which they are stored.
constexpr std::array kKeys = {kMappingSequenceKey, kMappingThreadKey, kMappingStreamKey};

}  // namespace

struct MappingEntryParser::Impl {
  uint64_t time_ns = 0;
  ondemand::parser parser;
  // One JSON array for each number, over the operations of the entry. Columns of equal length keep
  // the number of attributes constant, however many operations an entry has.
  std::array<std::string, kKeys.size()> lists;
  size_t operations = 0;

  // Appends the numbers of one operation to the lists. Fails as Parse does.
  absl::Status ReadOperation(ondemand::object operation) {
    if (operations++ == limits::kMappingOperationsPerEntryMax) {
      return ResourceExhausted("the entry has more than {} operations",
                               limits::kMappingOperationsPerEntryMax);
    }
    std::array<std::string_view, kKeys.size()> found;
    for (auto result : operation) {
      ondemand::field field;
      if (const auto error = std::move(result).get(field)) return BadEntry(error);
      std::string_view key;
      if (const auto error = field.unescaped_key().get(key)) return BadEntry(error);
      for (size_t i = 0; i < kKeys.size(); ++i) {
        if (key != kKeys[i]) continue;
        const auto number = ReadNumber(field.value());
        if (!number) return InvalidArgument("not a mapping entry: {} is not an integer", key);
        // The text rather than the value, so that numbers beyond 64 bits survive.
        found[i] = number->digits;
      }
    }
    for (size_t i = 0; i < kKeys.size(); ++i) {
      if (operations > 1) lists[i] += ',';
      lists[i] += found[i].empty() ? std::string_view("null") : found[i];
    }
    return absl::OkStatus();
  }

  // Reads the list of operations, which may be empty.
  absl::Status ReadOperations(ondemand::value value) {
    ondemand::array array;
    if (value.get_array().get(array) != simdjson::SUCCESS) {
      return InvalidArgument("not a mapping entry: framework_op_exec_ids is not a list");
    }
    for (auto result : array) {
      ondemand::object operation;
      if (const auto error = result.get_object().get(operation)) return BadEntry(error);
      RETURN_IF_ERROR(ReadOperation(operation));
    }
    return absl::OkStatus();
  }
};

MappingEntryParser::MappingEntryParser(uint64_t time_ns) : impl_(std::make_unique<Impl>()) {
  impl_->time_ns = time_ns;
}
MappingEntryParser::~MappingEntryParser() = default;
MappingEntryParser::MappingEntryParser(MappingEntryParser&&) noexcept = default;
MappingEntryParser& MappingEntryParser::operator=(MappingEntryParser&&) noexcept = default;

absl::Status MappingEntryParser::Parse(std::string_view element, FrameworkEvent& event) {
  event.shape = {};
  event.fields = {};
  event.values.clear();
  impl_->operations = 0;
  // The buffers are reused, so that an entry costs no allocation in the usual case.
  for (std::string& list : impl_->lists) list = "[";

  const simdjson::padded_string_view padded(element.data(), element.size(),
                                            element.size() + ElementCutter::kPaddingBytes);
  ondemand::document document;
  if (const auto error = impl_->parser.iterate(padded).get(document)) return BadEntry(error);
  ondemand::object object;
  if (const auto error = document.get_object().get(object)) return BadEntry(error);
  std::optional<MappingNumber> id;
  bool has_operations = false;
  // In document order, as On Demand values can be read only once.
  for (auto result : object) {
    ondemand::field field;
    if (const auto error = std::move(result).get(field)) return BadEntry(error);
    std::string_view key;
    if (const auto error = field.unescaped_key().get(key)) return BadEntry(error);
    if (key == "nrta_seq_id") {
      id = ReadNumber(field.value());
    } else if (key == "framework_op_exec_ids" && !std::exchange(has_operations, true)) {
      RETURN_IF_ERROR(impl_->ReadOperations(field.value()));
    }
  }
  if (!id || id->scalar.type != ValueType::kUint) {
    return InvalidArgument("not a mapping entry: nrta_seq_id must be a whole number of at least 0");
  }
  if (!has_operations)
    return InvalidArgument("not a mapping entry: framework_op_exec_ids is missing");

  event.shape.event_type = kFrameworkMappingEventType;
  event.shape.phase = Phase::kMetadata;
  event.shape.present = FieldBit(Field::kTimestamp) | FieldBit(Field::kNrtaSeqId);
  if (id->is_quoted) event.shape.quoted = FieldBit(Field::kNrtaSeqId);
  event.fields.timestamp_ns = impl_->time_ns;
  event.fields.nrta_seq_id = id->scalar.value.bits;
  for (size_t i = 0; i < kKeys.size(); ++i) {
    impl_->lists[i] += ']';
    event.shape.keys.push_back({kKeys[i], ValueType::kJson, KeyScope::kData});
    event.values.push_back({0, impl_->lists[i]});
  }
  return absl::OkStatus();
}

}  // namespace neurontrace
