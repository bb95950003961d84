// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace neurontrace {

// Which model an execution ran, by (stream, exec_id): hardware events often do not say it, the
// runtime's kbl_exec_pre before them does. Remembers the latest executions of each stream. One
// thread at a time.
class ModelNames {
 public:
  static constexpr size_t kExecutionsPerStream = 256;  // the older gives way
  static constexpr size_t kModelsMax = 4'096;          // further names are not remembered

  void Note(uint32_t stream, uint64_t exec_id, std::string_view model_name);
  // Empty where it is not known. Valid as long as this object.
  std::string_view Find(uint32_t stream, uint64_t exec_id) const;

 private:
  struct Execution {
    uint64_t exec_id = 0;
    uint32_t model = 0;  // index + 1 into models_; 0: none
  };

  absl::flat_hash_map<uint32_t, std::vector<Execution>> executions_;  // slot exec_id % size
  absl::flat_hash_map<std::string, uint32_t> model_numbers_;
  std::vector<std::unique_ptr<const std::string>> models_;
};

}  // namespace neurontrace
