// SPDX-License-Identifier: Apache-2.0
#include "tests/export/seen_capture.h"

#include <algorithm>
#include <array>
#include <ostream>

#include "lib/base/clean_text.h"

namespace neurontrace {

void PrintTo(const SeenEvent& event, std::ostream* out) {
  *out << "id " << event.id << " \"" << event.name.substr(0, 60) << "\" "
       << (event.category.empty() ? "" : "of \"" + event.category.substr(0, 60) + "\" ")
       << event.instance_id << " pid " << event.process_id << " nc " << event.nc_idx << " tid "
       << event.thread_id << " [" << event.start_ns << ", " << event.end_ns << "]"
       << (event.is_instant ? " instant" : "") << (event.is_open ? " open" : "")
       << (event.is_start_lost ? " start lost" : "") << " seq " << event.nrta_seq_id;
  for (const auto& [key, value] : event.attributes) {
    *out << " " << key << "=" << value.substr(0, 40);
  }
}

void PrintTo(const SeenSample& sample, std::ostream* out) {
  *out << sample.instance_id << " " << sample.series << " at " << sample.at_ns << ": "
       << sample.value;
}

std::string_view BareName(std::string_view name) {
  static constexpr std::array<std::string_view, 3> kBefore = {"data.", "top.", "stop_"};
  const auto is_before = [&name](std::string_view before) { return name.starts_with(before); };
  while (true) {
    const auto before = std::find_if(kBefore.begin(), kBefore.end(), is_before);
    if (before == kBefore.end()) return name;
    name.remove_prefix(before->size());
  }
}

bool IsHostileAttribute(std::string_view name, std::string_view value) {
  const std::string_view bare = BareName(name);
  return bare.starts_with(kAttributePrefix) || value.starts_with(kValuePrefix) ||
         std::find(kExecutionNames.begin(), kExecutionNames.end(), bare) != kExecutionNames.end();
}

void ReadAttribute(std::string_view name, std::string_view value, SeenEvent& seen) {
  if (!IsHostileAttribute(name, value)) return;
  seen.attributes.emplace(ValidUtf8(BareName(name)), ValidUtf8(value));
}

std::string ValidUtf8(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const size_t bytes = Utf8SequenceBytes(text);
    if (bytes == 0) {
      valid += "\xef\xbf\xbd";
      text.remove_prefix(1);
    } else {
      valid += text.substr(0, bytes);
      text.remove_prefix(bytes);
    }
  }
  return valid;
}

}  // namespace neurontrace
