// SPDX-License-Identifier: Apache-2.0
#include "lib/wire/grpc_set_up.h"

#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <openssl/crypto.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "lib/base/mutex.h"
#include "lib/trace/access_limits.h"

namespace neurontrace {
namespace {

// Limits the lines a second, and counts the others.
struct Gate {
  Mutex mutex;
  GrpcLogWriter write NT_GUARDED_BY(mutex) = nullptr;
  int64_t second NT_GUARDED_BY(mutex) = 0;
  uint32_t written NT_GUARDED_BY(mutex) = 0;
  uint64_t left_out NT_GUARDED_BY(mutex) = 0;
};

Gate& TheGate() {
  // Never destroyed: gRPC's threads may outlive the objects that main destroys.
  static Gate* const gate = new Gate;
  return *gate;
}

// Writes one line of a library's log, or counts it if this second has had its share. The first line
// of a later second is preceded by the number of lines that were left out. The file is shown
// without its folders.
void Pass(const char* who, std::string_view message, std::string_view file, int line) {
  const size_t slash = file.rfind('/');
  Gate& gate = TheGate();
  const int64_t second = std::chrono::duration_cast<std::chrono::seconds>(
                             std::chrono::steady_clock::now().time_since_epoch())
                             .count();
  const MutexLock lock(gate.mutex);
  if (gate.write == nullptr) return;
  if (second != gate.second) {
    gate.second = second;
    gate.written = 0;
    if (gate.left_out > 0) {
      gate.write(fmt::format("{}: {} more lines", who, gate.left_out));
      gate.left_out = 0;
    }
  }
  if (gate.written == limits::kGrpcLogLinesPerSecond) {
    ++gate.left_out;
    return;
  }
  ++gate.written;
  gate.write(fmt::format("{}: {} ({}:{})", who, message,
                         file.substr(slash == std::string_view::npos ? 0 : slash + 1), line));
}

// The listener of failed handshakes.
struct HandshakeLog {
  Mutex mutex;  // held while the listener is called
  HandshakeListener listener NT_GUARDED_BY(mutex);
};

HandshakeLog& GlobalHandshakeLog() {
  // Never destroyed, see TheGate.
  static HandshakeLog* const handshake_log = new HandshakeLog;
  return *handshake_log;
}

// Parses a line of gRPC's log such as "Handshake failed with fatal error SSL_ERROR_SSL:
// error:0A000086:SSL routines::certificate…." Passes the rest of the line, the reason, to the
// listener. Other lines are ignored.
void ParseHandshakeFailure(std::string_view message) {
  constexpr std::string_view kFailed = "Handshake failed with fatal error ";
  if (!message.starts_with(kFailed)) return;
  message.remove_prefix(kFailed.size());
  HandshakeLog& handshake_log = GlobalHandshakeLog();
  const MutexLock lock(handshake_log.mutex);
  if (handshake_log.listener) handshake_log.listener(message);
}

// The log functions of gRPC and protobuf. They are called on any thread.
void PassGrpc(gpr_log_func_args* line) {
  ParseHandshakeFailure(line->message);
  Pass("gRPC", line->message, line->file, line->line);
}

// If a text of a call is not UTF-8, protobuf's log is the only place that names the field.
void PassProtobuf(google::protobuf::LogLevel, const char* file, int line,
                  const std::string& message) {
  Pass("protobuf", message, file, line);
}

}  // namespace

void SetHandshakeListener(HandshakeListener listener) {
  HandshakeLog& handshake_log = GlobalHandshakeLog();
  const MutexLock lock(handshake_log.mutex);
  handshake_log.listener = std::move(listener);
}

void SetUpGrpc(GrpcLogWriter write) {
  {
    Gate& gate = TheGate();
    const MutexLock lock(gate.mutex);
    gate.write = write;
    gate.written = 0;
    gate.left_out = 0;
  }
  gpr_set_log_function(PassGrpc);
  google::protobuf::SetLogHandler(PassProtobuf);
  // gRPC's threads make handshakes until the process ends, and must not find OpenSSL's tables freed
  // by an exit handler.
  OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
}

}  // namespace neurontrace
