// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <spdlog/common.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/trace/daemon_limits.h"

namespace spdlog {
class formatter;
}

namespace neurontrace {

// Decides which log lines are written, so that what goes wrong again and again neither fills a disk
// nor pushes out what else is said: see limits::kLogLinesOfKindAtOnce. Two token buckets, one of
// the line's kind and one of all lines. One thread at a time.
class LineLimiter {
 public:
  struct Verdict {
    bool passes = false;
    uint64_t left_out = 0;  // lines of this kind since the last one that passed
  };
  // `text` is the line without its time. Time only goes forward.
  Verdict Judge(std::string_view text, uint64_t monotonic_ns);

  // Lines that did not pass, since the start.
  uint64_t left_out() const { return left_out_; }

 private:
  struct Bucket {
    bool Take(uint64_t monotonic_ns, uint32_t at_once, uint32_t per_second);

    double tokens = 0;
    uint64_t filled_ns = 0;
  };
  struct Kind {
    uint64_t hash = 0;  // 0: nobody's
    Bucket bucket;
    uint64_t left_out = 0;
  };

  std::array<Kind, limits::kLogKinds> kinds_;  // by hash
  Bucket all_;
  bool began_ = false;
  uint64_t left_out_ = 0;
};

enum class LogFormat {
  kText,  // [2026-11-14 22:13:20.123] [agent] [warning] words
  kJson,  // an object a line: docs/operator/health.md has its members
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
