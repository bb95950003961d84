// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/rocksdb_log.h"

#include <spdlog/spdlog.h>

#include <array>
#include <cstdio>
#include <cstring>

namespace neurontrace {
namespace {

constexpr size_t kLineBytesMax = 1024;  // longer: cut
constexpr size_t kPlaceBytes = 48;      // severity, file and line

}  // namespace

void RocksDbLog::Logv(const char* format, va_list arguments) {
  std::array<char, kLineBytesMax> line = {};
  std::vsnprintf(line.data(), line.size(), format, arguments);
  const std::string place(line.data(), strnlen(line.data(), kPlaceBytes));
  const std::lock_guard lock(mutex_);
  if (place == last_place_) return;
  last_place_ = place;
  spdlog::warn("rocksdb: {}", line.data());
}

}  // namespace neurontrace
