// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "aggregator/timeline/timeline_record.h"

namespace neurontrace {

// Bytes of a name that is kept longer than its batch. Real names are shorter, while a text of a
// chunk may have 64 KiB.
inline constexpr size_t kKeptNameBytesMax = 256;
// Returns the name or its first kKeptNameBytesMax bytes at most, without splitting a UTF-8
// character. Points into `name`.
std::string_view KeptName(std::string_view name);

// What is shown as an event's model_name. A plain value that points into the record or into
// ModelNames.
struct ModelAttribute {
  std::string_view name;
  // Set if the event's own attribute is not a text: it is shown unchanged, in place of `name`.
  const ShapeKey* key = nullptr;
  uint64_t value = 0;
};

// Knows which model an execution ran, by (stream, exec_id): hardware events often lack the name,
// while the runtime's kbl_exec_pre before them has it. Remembers the latest executions of each
// stream, with names shortened by KeptName. Used by one thread at a time, or shared once it no
// longer changes.
class ModelNames {
 public:
  // A newer execution replaces an older one with the same exec_id modulo this number.
  static constexpr size_t kExecutionsPerStream = 256;
  // Distinct names. Executions of further models stay without a name.
  static constexpr size_t kModelsMax = 4'096;

  // Returns the event's own name or, for an nc_exec_running without one, the name of its execution.
  // Returns nullopt if there is nothing to show. Must be called once for each record in the
  // timeline's order, because it remembers the names that kbl_exec_pre carries.
  std::optional<ModelAttribute> Of(const TimelineRecord& record);

  // Remembers a name, unless it is empty or one too many.
  void Record(uint32_t stream, uint64_t exec_id, std::string_view model_name);
  // Returns the name, or an empty text if it is not known. The text lives as long as this object.
  std::string_view Find(uint32_t stream, uint64_t exec_id) const;

 private:
  struct Execution {
    uint64_t exec_id = 0;
    uint32_t model = 0;  // index + 1 into models_; 0: none
  };

  absl::flat_hash_map<uint32_t, std::vector<Execution>> executions_;  // slot exec_id % size
  absl::flat_hash_map<std::string_view, uint32_t> model_numbers_;     // of texts in models_
  std::vector<std::unique_ptr<const std::string>> models_;
};

}  // namespace neurontrace
