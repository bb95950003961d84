// SPDX-License-Identifier: Apache-2.0
// For tests: a runtime with state behind the NrtLibrary table, a clock that is advanced, and an
// agent at the other end of a unix socket. Everything runs on the test's thread unless a test says
// otherwise.
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tap/commands_test_support.h"
#include "tap/ring_test_support.h"
#include "tap/tap.h"

namespace neurontrace::tap {

// One runtime at a time: its functions are C functions without a context.
class TapTestRuntime {
 public:
  TapTestRuntime() { current_ = this; }
  ~TapTestRuntime() { current_ = nullptr; }

  NrtLibrary Table() const;

  // `count` events of about `event_bytes` on a core; its ring overwrites the oldest.
  void Emit(uint32_t core, uint64_t count) {
    uint64_t& waiting = backlog[core];
    waiting += count;
    if (waiting <= ring_events) return;
    sequence[core] += waiting - ring_events;
    overwritten += waiting - ring_events;
    waiting = ring_events;
  }

  uint32_t cores = 2;
  NrtStatus start_status = kNrtSuccess;
  NrtStatus fetch_status = kNrtSuccess;
  int failures_to_come = 0;  // of fetches, whatever fetch_status is
  bool running = false;
  int starts = 0;
  int stops = 0;
  int fetches = 0;
  int live_buffers = 0;
  int misuses = 0;  // calls without a trace, buffers given back twice
  size_t event_bytes = 350;
  uint64_t max_events_per_nc = 0;
  uint64_t ring_events = UINT64_MAX;
  uint64_t overwritten = 0;
  std::function<void(uint32_t core)> during_fetch;  // what happens while a fetch runs
  std::set<uint32_t> disabled_cores;
  std::set<std::string> disabled_types;
  std::map<uint32_t, uint64_t> backlog;
  std::map<uint32_t, uint64_t> sequence;  // of the next event fetched

 private:
  struct Options {
    uint64_t max_events = UINT64_MAX;
    uint64_t core = UINT64_MAX;
  };
  static NrtStatus Fetch(char** json, size_t* size, const NrtFetchOptions* options);

  static TapTestRuntime* current_;
  Options options_;  // of the one trace
};

// What the agent keeps of one connection.
class TapTestAgent {
 public:
  TapTestAgent();
  ~TapTestAgent();

  const std::string& path() const { return path_; }
  // Takes a waiting connection and its HELLO; false if there is none.
  bool Accept();
  void Hang();  // closes the connection
  void Send(const std::vector<uint8_t>& packet);
  // The STATUS messages that came so far.
  std::vector<TapStatus> ReadStatuses(std::vector<std::string>* details = nullptr);
  bool ConnectionEnded();
  bool WakeIsReadable();

  const TapHello& hello() const { return hello_; }
  ino_t buffer_inode() const;
  uint64_t buffer_blocks() const;  // memory that the buffer takes, in blocks
  TapBufferHeader* header() { return reinterpret_cast<TapBufferHeader*>(map_); }
  std::vector<TapTestRecord> Read();  // and commits
  std::map<std::string, std::string> ReadFacts();

 private:
  void Unmap();

  std::string directory_;
  std::string path_;
  int listener_ = -1;
  int connection_ = -1;
  int memfd_ = -1;
  int wake_ = -1;
  uint8_t* map_ = nullptr;
  uint64_t map_bytes_ = 0;
  TapHello hello_ = {};
};

class TapTest : public ::testing::Test {
 protected:
  TapTest();

  void Open(uint64_t ring_bytes = kTapRingBytesMin);
  // Steps, with the time standing still.
  void Step() { tap_->Step(); }
  void Advance(uint64_t ns) { now_ns_ += ns; }
  // nrt_init as the application would have called it, and an agent that has accepted the tap.
  void InitAndConnect();
  void StartCapture(uint8_t capture = 1);
  // The answers to commands that came so far, in order; changes of state left out.
  std::vector<TapResult> Answers() {
    std::vector<TapResult> answers;
    for (const TapStatus& status : agent_.ReadStatuses()) {
      if (status.command != 0) answers.push_back(static_cast<TapResult>(status.result));
    }
    return answers;
  }
  // An application thread takes the runtime back for `call`; stepped until it has it.
  void CallAsApp(RuntimeGate::Claim claim, const std::function<void()>& call);
  TapState State() { return static_cast<TapState>(tap_->buffer().header()->state.load()); }
  std::vector<TapTestRecord> ReadOfType(TapRecordType type);

  static uint64_t now_ns_;
  TapTestRuntime runtime_;
  TapTestAgent agent_;
  RuntimeGate gate_;
  WorkerFacts worker_facts_;
  NrtLibrary library_ = runtime_.Table();
  TapClock clock_;
  std::unique_ptr<Tap> tap_;
};

}  // namespace neurontrace::tap
