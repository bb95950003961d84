// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rocksdb/env.h>

#include <cstdarg>
#include <mutex>
#include <string>

namespace neurontrace {

// Warnings and errors of RocksDB, into the log of the program. In place of RocksDB's own file LOG
// in the store: when its disk is full, RocksDB 7.8 aborts the process over the second line that it
// cannot write there. What is said again and again, as while a disk is full, is said once. Any
// thread may log.
class RocksDbLog final : public rocksdb::Logger {
 public:
  RocksDbLog() : rocksdb::Logger(rocksdb::InfoLogLevel::WARN_LEVEL) {}

  using rocksdb::Logger::Logv;
  void Logv(const char* format, va_list arguments) override;
  void LogHeader(const char*, va_list) override {}  // its options, at each start

 private:
  std::mutex mutex_;
  std::string last_place_;  // in RocksDB's code
};

}  // namespace neurontrace
