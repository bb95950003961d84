// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/xspace/xspace_names.h"

#include <fmt/format.h>

#include <ctime>

#include "aggregator/export/output_files.h"

namespace neurontrace {
namespace {

constexpr size_t kHostNameBytesMax = 128;

}  // namespace

std::string XSpaceRunName(uint64_t epoch_ns) {
  const auto seconds = static_cast<time_t>(epoch_ns / 1'000'000'000);
  tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}_{:02}_{:02}_{:02}_{:02}_{:02}", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::string XSpaceHostName(std::string_view instance_id) {
  std::string name(instance_id.substr(0, kHostNameBytesMax));
  for (char& c : name) {
    if (!IsOutputName(std::string_view(&c, 1)) && c != '.') c = '_';
  }
  return name.empty() || name.front() == '.' ? "host_" + name : name;
}

}  // namespace neurontrace
