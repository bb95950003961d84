// SPDX-License-Identifier: Apache-2.0
// The aggregator is killed with -9 while chunks flow, and started again, several times over. What
// it had acknowledged is there; what it had not is asked for; what comes twice is stored once.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "aggregator/aggregator_test_support.h"
#include "lib/trace/stream_cursor.h"

namespace neurontrace {
namespace {

constexpr uint32_t kStreams = 4;
constexpr uint64_t kChunksPerStream = 400;
constexpr uint32_t kEventsPerChunk = 8;

// The program in a process of its own.
class AggregatorProcess {
 public:
  explicit AggregatorProcess(const std::string& store) {
    std::array<int, 2> out{};
    EXPECT_EQ(pipe(out.data()), 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(out[1], STDOUT_FILENO);
      close(out[0]);
      execl(NEURONTRACE_AGGREGATOR, NEURONTRACE_AGGREGATOR, "--listen", "127.0.0.1:0", "--store",
            store.c_str(), "--health-address", "127.0.0.1:0", nullptr);
      _exit(127);
    }
    close(out[1]);
    const std::unique_ptr<FILE, int (*)(FILE*)> lines(fdopen(out[0], "r"), fclose);
    std::array<char, 256> line{};
    constexpr std::string_view kPrefix = "listening on ";
    while (fgets(line.data(), line.size(), lines.get()) != nullptr) {
      const std::string_view text(line.data());
      if (text.starts_with(kPrefix)) {
        address_ = text.substr(kPrefix.size(), text.find('\n') - kPrefix.size());
        return;
      }
    }
    ADD_FAILURE() << "the aggregator ended without listening";
  }
  ~AggregatorProcess() {
    if (pid_ > 0) End(SIGKILL);
  }

  const std::string& address() const { return address_; }
  // The exit code, or minus the signal.
  int End(int signal) {
    kill(pid_, signal);
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_ = 0;
  std::string address_;
};

class AggregatorRestart : public ::testing::Test {
 protected:
  AggregatorRestart() {
    std::string form = (std::filesystem::temp_directory_path() / "nt_restart_XXXXXX").string();
    directory_ = mkdtemp(form.data());
    Start();
    capture_ = TestOperator(process_->address()).Start();
    EXPECT_FALSE(capture_.empty());
  }
  ~AggregatorRestart() override {
    process_.reset();
    std::filesystem::remove_all(directory_);
  }

  void Start() {
    process_.reset();
    process_ = std::make_unique<AggregatorProcess>(directory_ + "/store");
  }

  // Connects, checks the cursors against what was acknowledged, and sends everything from a little
  // before them on. Ends when all is acknowledged, or the aggregator with `signal` once so many
  // chunks are.
  void Upload(uint64_t end_at, int signal) {
    TestAgent agent(process_->address(), "a");
    const v1::AgentOrder order = agent.Connect();
    ASSERT_EQ(order.welcome().captures_size(), 1);
    std::map<uint32_t, uint64_t> cursors;
    for (const v1::StreamCursor& cursor : order.welcome().captures(0).cursors()) {
      cursors[static_cast<uint32_t>(cursor.stream().nc_idx())] = cursor.next_sequence();
    }
    for (const auto& [stream, acked] : acked_) {
      EXPECT_GE(cursors[stream], acked) << "acknowledged and then lost, stream " << stream;
    }
    agent.ReportAgent(capture_, 1, false);
    agent.Send(TestEnvelope(capture_, "a", 0, Begin(cursors[0]), false, kEventsPerChunk));
    std::thread sender([&] {
      for (uint64_t sequence = 0; sequence < kChunksPerStream; ++sequence) {
        for (uint32_t stream = 0; stream < kStreams; ++stream) {
          const uint64_t begin = Begin(cursors[stream]) + (stream == 0 ? 1 : 0);
          if (sequence < begin) continue;
          agent.Send(TestEnvelope(capture_, "a", stream, sequence, false, kEventsPerChunk));
        }
      }
    });
    bool ended = false;
    while (!AllAcked()) {
      const v1::UploadAck ack = agent.ReadAck();
      if (!ack.message().empty()) {
        EXPECT_EQ(ack.refusal(), v1::REFUSAL_CODE_NONE) << ack.ShortDebugString();
        break;
      }
      acked_[ack.stream_ref()] = std::max(acked_[ack.stream_ref()], ack.next_sequence());
      uint64_t chunks = 0;
      for (const auto& [stream, next] : acked_) chunks += next;
      if (chunks >= end_at && !std::exchange(ended, true)) exit_code_ = process_->End(signal);
    }
    sender.join();
  }

  // Three chunks that are stored already come again.
  static uint64_t Begin(uint64_t cursor) { return cursor > 3 ? cursor - 3 : 0; }

  bool AllAcked() const {
    for (uint32_t stream = 0; stream < kStreams; ++stream) {
      const auto it = acked_.find(stream);
      if (it == acked_.end() || it->second < kChunksPerStream) return false;
    }
    return true;
  }

  void ExpectEverythingOnce() {
    v1::Capture capture;
    ASSERT_TRUE(TestOperator(process_->address()).Get(capture_.ToString(), capture).ok());
    EXPECT_EQ(capture.events(), uint64_t{kStreams} * kChunksPerStream * kEventsPerChunk);
    ASSERT_EQ(capture.streams_size(), static_cast<int>(kStreams));
    for (const v1::CaptureStream& stream : capture.streams()) {
      EXPECT_EQ(stream.chunks(), kChunksPerStream);
    }
  }

  std::string directory_;
  std::unique_ptr<AggregatorProcess> process_;
  CaptureId capture_;
  std::map<uint32_t, uint64_t> acked_;
  int exit_code_ = 1'000;
};

TEST_F(AggregatorRestart, KilledKeepsWhatItAcknowledgedOnce) {
  for (const uint64_t chunks : {1, 400, 1'200}) {
    Upload(chunks, SIGKILL);
    EXPECT_EQ(exit_code_, -SIGKILL);
    Start();
  }
  Upload(UINT64_MAX, 0);
  EXPECT_TRUE(AllAcked());
  ExpectEverythingOnce();
}

TEST_F(AggregatorRestart, TerminatedEndsWithZeroAndKeepsEverything) {
  Upload(500, SIGTERM);
  EXPECT_EQ(exit_code_, 0);
  Start();
  Upload(UINT64_MAX, 0);
  EXPECT_TRUE(AllAcked());
  ExpectEverythingOnce();
}

TEST_F(AggregatorRestart, ACaptureThatWasStoppingEndsAfterwards) {
  {
    TestAgent agent(process_->address(), "a");
    agent.Connect();
    agent.ReportAgent(capture_, 1, false);
    v1::Capture capture;
    ASSERT_TRUE(TestOperator(process_->address()).Stop(capture_.ToString(), capture).ok());
    EXPECT_TRUE(agent.ReadOrder().has_stop_capture());
  }
  process_->End(SIGKILL);
  Start();
  TestAgent agent(process_->address(), "a");
  const v1::AgentOrder order = agent.Connect();
  ASSERT_EQ(order.welcome().captures_size(), 1);
  EXPECT_TRUE(order.welcome().captures(0).stopping());
  agent.ReportStatus(capture_, CaptureWorkerState::kComplete, 0, 0);
  agent.ReportAgent(capture_, 1, true);
  const v1::Capture capture = TestOperator(process_->address()).WatchToEnd(capture_);
  EXPECT_EQ(capture.state(), v1::CAPTURE_STATE_COMPLETE) << capture.ShortDebugString();
}

}  // namespace
}  // namespace neurontrace
