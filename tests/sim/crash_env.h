// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rocksdb/env.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace neurontrace {

// A disk in memory under RocksDB: between an Open of the database and the next, everything goes
// through one CrashEnv; a crash ends it for good and leaves of each file what was synced, and of
// the rest a part that may be damaged. Deterministic by the seed. RocksDB calls it from threads of
// its own.
class CrashDisk {
 public:
  using Contents = std::map<std::string, std::string>;  // of files, by path
  // With these files in `directory`; none without a directory.
  CrashDisk(uint64_t seed, const std::string& directory, const Contents& contents);
  ~CrashDisk();
  CrashDisk(const CrashDisk&) = delete;
  CrashDisk& operator=(const CrashDisk&) = delete;

  // For the next process; the one before has crashed or closed.
  rocksdb::Env* Open();
  // The process dies: nothing that it still does reaches the disk. With `power_lost` what was not
  // synced is lost. To be called before its database is closed.
  void Crash(bool power_lost);

  // Until healed, what grows a file fails.
  enum class Fault { kNone, kNoSpace, kIoError };
  void SetFault(Fault fault);
  Fault fault() const;
  // What is in `directory` now, but for locks.
  Contents Read(const std::string& directory) const;

 private:
  class Files;
  class Writable;
  struct State;

  const std::shared_ptr<State> state_;
  std::unique_ptr<rocksdb::Env> memory_;
  std::unique_ptr<rocksdb::Env> env_;
  std::shared_ptr<Files> files_;
};

}  // namespace neurontrace
