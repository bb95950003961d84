// SPDX-License-Identifier: Apache-2.0
// What signals do while a file is being written, and who asks how often when nobody answers.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "cli/command_test_support.h"

namespace neurontrace::cli {
namespace {

// Every thread of the process leaves signals to the command under test, as in the program: there
// none is made before it looks after them.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGINT);
    sigaddset(&mask, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &mask, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

class InterruptDeathTest : public BlockedSignals, public CommandLineTest {
 protected:
  InterruptDeathTest() {
    // The child is the program again with this test alone: threads of others do not take the
    // signal.
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }

  // Interrupts the program when some of the file is there, and again once the call is cancelled, as
  // often as that.
  void InterruptExport(int signal, int times) {
    service_.export_script = [this, signal, times](const grpc::ServerContext& call,
                                                   const v1::ExportRequest&,
                                                   grpc::ServerWriter<v1::ExportReply>& writer) {
      v1::ExportReply reply;
      reply.set_file("trace.json");
      writer.Write(reply);
      reply.set_data(std::string(1u << 20, 'x'));
      writer.Write(reply);
      Poll([this] { return ReceivedBytes() != 0; });
      for (int i = 0; i < times; ++i) {
        kill(getpid(), signal);
        Poll([&call] { return call.IsCancelled(); });
      }
      if (times > 1) Poll([] { return false; });  // the answer does not end
      return grpc::Status(grpc::StatusCode::CANCELLED, "nothing listens");
    };
  }
  static void Poll(const std::function<bool()>& is_so) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!is_so() && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // tidy: poll
    }
  }
  // What is on the disk of the file, under whatever temporary name.
  uint64_t ReceivedBytes() const {
    uint64_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      if (entry.path().extension() == ".part") bytes += entry.file_size();
    }
    return bytes;
  }
  bool HasLeavings() const {
    return std::filesystem::exists(path_ + ".part") &&
           std::filesystem::exists(path_ + ".part.request") && !std::filesystem::exists(path_);
  }

  // In a child: ends it with the command's exit code, and says what the command said.
  [[noreturn]] void RunAndExit(const std::vector<const char*>& arguments) {
    const int code = RunCli(arguments);
    fputs(err_.c_str(), stderr);
    std::_Exit(code);
  }

  const std::filesystem::path directory_ = testing::TempDir() + "/cli_interrupt";
  const std::string path_ = (directory_ / "trace.json").string();
};

TEST_F(InterruptDeathTest, InterruptedExportKeepsCapture) {
  InterruptExport(SIGINT, 1);
  EXPECT_EXIT(RunAndExit({"capture", "--duration", "1s", "-o", path_.c_str()}),
              testing::ExitedWithCode(kExitFailed),
              "interrupted: .*trace.json is not written(.|\n"
              ")*trace.json.part: the command below resumes it(.|\n"
              ")*stored all the same(.|\n"
              ")*neurontrace export 01JD8Z2M6WQJ4V1T0S3R5XK7PA -o .*trace.json");
  EXPECT_TRUE(HasLeavings());
}

TEST_F(InterruptDeathTest, InterruptedExportLeavesResumableFiles) {
  InterruptExport(SIGTERM, 1);
  EXPECT_EXIT(RunAndExit({"export", kCaptureId, "-o", path_.c_str()}),
              testing::ExitedWithCode(kExitFailed),
              "interrupted: .*trace.json is not written(.|\n)*the same command resumes it");
  EXPECT_TRUE(HasLeavings());
}

TEST_F(InterruptDeathTest, NonResumableExportLeavesNothing) {
  InterruptExport(SIGINT, 1);
  EXPECT_EXIT(RunAndExit({"export", kCaptureId, "--no-resume", "-o", path_.c_str()}),
              testing::ExitedWithCode(kExitFailed), "interrupted: .*trace.json is not written");
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST_F(InterruptDeathTest, SecondInterruptExitsImmediately) {
  InterruptExport(SIGINT, 2);
  EXPECT_EXIT(RunAndExit({"export", kCaptureId, "-o", path_.c_str()}),
              testing::ExitedWithCode(kExitFailed), "");
  EXPECT_TRUE(HasLeavings());
}

TEST_F(InterruptDeathTest, SecondInterruptRemovesTemporaryFiles) {
  InterruptExport(SIGINT, 2);
  EXPECT_EXIT(RunAndExit({"export", kCaptureId, "--no-resume", "-o", path_.c_str()}),
              testing::ExitedWithCode(kExitFailed), "");
  EXPECT_FALSE(std::filesystem::exists(path_ + ".part"));
}

class WatchTest : public CommandLineTest {};

// A proxy without anybody behind it answers at once.
TEST_F(WatchTest, PausesBeforeItAsksAgain) {
  service_.got = service_.capture;
  service_.got->set_state(v1::CAPTURE_STATE_RECORDING);
  service_.watch_refusals = 2;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(RunCli({"captures", "watch", kCaptureId}), kExitDone) << err_;
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(400));
}

}  // namespace
}  // namespace neurontrace::cli
