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

// Bytes of a name that is kept beyond its batch. Honest ones are shorter; a text may have 64 KiB.
inline constexpr size_t kKeptNameBytesMax = 256;
// The name, or its beginning: cut between characters where it is UTF-8. Points into `name`.
std::string_view KeptName(std::string_view name);

// What is to be shown as an event's model_name. A plain value.
struct ModelAttribute {
  std::string_view name;
  // An attribute of the event that is no text: it stands as it is, in place of `name`.
  const ShapeKey* key = nullptr;
  uint64_t value = 0;
};

// Which model an execution ran, by (stream, exec_id): hardware events often do not say it, the
// runtime's kbl_exec_pre before them does. Remembers the latest executions of each stream, and of
// names what KeptName leaves. One thread at a time.
class ModelNames {
 public:
  static constexpr size_t kExecutionsPerStream = 256;  // the older gives way
  static constexpr size_t kModelsMax = 4'096;          // further names are not remembered

  // The event's own name, or, of nc_exec_running, what is known; nullopt: there is nothing to show.
  // To be called once for each record, in their order: it notes what kbl_exec_pre says.
  std::optional<ModelAttribute> Of(const TimelineRecord& record);

  void Note(uint32_t stream, uint64_t exec_id, std::string_view model_name);
  // Empty where it is not known. Valid as long as this object.
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
