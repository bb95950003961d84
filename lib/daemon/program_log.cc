// SPDX-License-Identifier: Apache-2.0
#include "lib/daemon/program_log.h"

#include <fmt/format.h>
#include <spdlog/formatter.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/ringbuffer_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <mutex>
#include <utility>

#include "lib/base/clean_text.h"
#include "lib/base/json_string.h"
#include "lib/daemon/line_limiter.h"

namespace neurontrace {
namespace {

// spdlog has a type of its own for views.
std::string_view View(spdlog::string_view_t text) { return {text.data(), text.size()}; }

// Formats a line as a JSON object. Members are listed in the header.
class JsonFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    const auto since_epoch = message.time.time_since_epoch();
    const auto second = std::chrono::duration_cast<std::chrono::seconds>(since_epoch);
    const auto us =
        std::chrono::duration_cast<std::chrono::microseconds>(since_epoch - second).count();
    const std::time_t time = second.count();
    std::tm utc = {};
    gmtime_r(&time, &utc);
    std::string line = fmt::format(
        R"({{"time":"{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z","level":"{}","program":)",
        utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, us,
        View(spdlog::level::to_string_view(message.level)));
    AppendJsonString(View(message.logger_name), line);
    line += fmt::format(R"(,"thread":{})", message.thread_id);
    if (!message.source.empty()) {
      const std::string_view file(message.source.filename);
      line += R"(,"source":)";
      AppendJsonString(fmt::format("{}:{}", file.substr(file.rfind('/') + 1), message.source.line),
                       line);
    }
    line += R"(,"message":)";
    AppendJsonString(View(message.payload), line);
    line += "}\n";
    out.append(line.data(), line.data() + line.size());
  }
  // spdlog copies the formatter into each sink.
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonFormatter>();
  }
};

}  // namespace

std::unique_ptr<spdlog::formatter> MakeJsonFormatter() { return std::make_unique<JsonFormatter>(); }

using SinkBase = spdlog::sinks::base_sink<std::mutex>;  // tidy: allow(banned-word) spdlog's lock

// Writes lines that pass the limiter to stderr, and warnings to the ring too. base_sink holds its
// lock while sink_it_ runs, so that the limiter needs none.
class ProgramLog::Sink final : public SinkBase {
 public:
  uint64_t left_out() const { return left_out_; }
  std::vector<std::string> RecentWarnings() { return warnings_.last_formatted(); }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const std::string_view text = View(message.payload);
    // An operator who enables debug lines wants all of them.
    if (message.level < spdlog::level::info) return Write(message);
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    const LineLimiter::Verdict verdict =
        limiter_.Judge(text, static_cast<uint64_t>(std::chrono::nanoseconds(now).count()));
    left_out_ = limiter_.left_out();
    if (!verdict.passes) return;
    if (verdict.left_out == 0) return Write(message);
    const std::string more =
        fmt::format("{} ({} similar lines suppressed)", text, verdict.left_out);
    spdlog::details::log_msg told = message;
    told.payload = more;
    // spdlog's message refers to its text, so `more` must live until it is written.
    Write(told);
  }
  void flush_() override { stderr_.flush(); }
  void set_formatter_(std::unique_ptr<spdlog::formatter> formatter) override {
    stderr_.set_formatter(std::move(formatter));
  }

 private:
  void Write(const spdlog::details::log_msg& message) {
    // Lines quote text of others, which could begin a forged line or move a terminal's cursor.
    const std::string clean = CleanText(View(message.payload), limits::kLogLineBytesMax);
    spdlog::details::log_msg fit = message;
    fit.payload = clean;
    stderr_.log(fit);
    if (fit.level >= spdlog::level::warn) warnings_.log(fit);
  }

  LineLimiter limiter_;
  spdlog::sinks::ansicolor_stderr_sink_st stderr_;
  // With a lock of its own, as it is read without this sink's.
  spdlog::sinks::ringbuffer_sink_mt warnings_{limits::kLogWarningsKept};
  // Read by other threads without the sink's lock.
  std::atomic<uint64_t> left_out_ = 0;
};

ProgramLog::ProgramLog(const std::string& program) : sink_(std::make_shared<Sink>()) {
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(program, sink_));
}

void ProgramLog::SetLevel(const std::string& level) {
  spdlog::set_level(spdlog::level::from_str(level));
}

void ProgramLog::SetFormat(LogFormat format) {
  // The formatter of the sink, not of the logger: the ring keeps plain text.
  sink_->set_formatter(format == LogFormat::kJson ? MakeJsonFormatter()
                                                  : std::make_unique<spdlog::pattern_formatter>());
}

uint64_t ProgramLog::left_out() const { return sink_->left_out(); }

std::vector<std::string> ProgramLog::RecentWarnings() const {
  std::vector<std::string> lines = sink_->RecentWarnings();
  for (std::string& line : lines) line.erase(line.find_last_not_of('\n') + 1);
  return lines;
}

}  // namespace neurontrace
