// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <spdlog/common.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace spdlog {
class formatter;
}

namespace neurontrace {

enum class LogFormat {
  kText,  // [2026-11-14 22:13:20.123] [agent] [warning] words
  kJson,  // an object a line: docs/operations.md has its members
};

// The formatter of LogFormat::kJson. Members are time (RFC 3339, UTC, microseconds), level, program
// (the logger's name), thread (the kernel's id), source (file:line, where it is known), message.
std::unique_ptr<spdlog::formatter> MakeJsonFormatter();

// The log of this process, on stderr. From when it is made it is what spdlog writes to, through a
// LineLimiter; debug lines pass it, as who asks for them wants them all. It outlives all that logs.
// Any thread.
class ProgramLog {
 public:
  // `program`: as lines name it.
  explicit ProgramLog(const std::string& program);

  void SetLevel(const std::string& level);  // debug, info, warn or error
  void SetFormat(LogFormat format);

  // Lines that were not written, as there were too many like them.
  uint64_t left_out() const;
  // The newest warnings and errors, the oldest first, as text.
  std::vector<std::string> RecentWarnings() const;

 private:
  class Sink;
  const std::shared_ptr<Sink> sink_;
};

}  // namespace neurontrace
