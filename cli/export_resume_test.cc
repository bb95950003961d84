// SPDX-License-Identifier: Apache-2.0
// Goal: an export that breaks off continues, by itself or with the same command, and what has the
// real name is the export as if nothing had been. Method: the command line against a service whose
// calls break where the test says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/command_test_support.h"
#include "lib/base/sha256.h"

namespace neurontrace::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr size_t kPieceBytes = 7;

// The exports of an aggregator, as they are however often they are made.
struct FakeExports {
  std::map<std::string, std::string> files;
  std::vector<size_t> breaks;  // the n-th call ends after so many bytes, with `code`
  grpc::StatusCode code = grpc::StatusCode::UNAVAILABLE;
  bool is_old = false;  // knows of nothing that is held
  std::vector<v1::ExportRequest> asked;
  size_t sent = 0;  // by all calls

  grpc::Status Answer(const v1::ExportRequest& request,
                      grpc::ServerWriter<v1::ExportReply>& writer) {
    size_t left = asked.size() < breaks.size() ? breaks[asked.size()] : SIZE_MAX;
    asked.push_back(request);
    v1::ExportReply reply;
    reply.mutable_progress()->set_chunks_total(1);
    writer.Write(reply);
    uint32_t number = 0;
    for (const auto& [name, text] : files) {
      const size_t held = HeldOf(request, name);
      reply.set_held_bytes(held);
      reply.set_file(name);
      writer.Write(reply);
      if (held != 0 && !IsAsHeld(request, name, text)) {
        reply.set_held_differs(name);
        writer.Write(reply);
        return {grpc::StatusCode::ABORTED, "restart with --no-resume"};
      }
      reply.set_file_number(number++);
      for (size_t at = held; at < text.size();) {
        if (left == 0) return {code, "the network is gone"};
        const size_t size = std::min({kPieceBytes, text.size() - at, left});
        reply.set_data(text.substr(at, size));
        writer.Write(reply);
        at += size;
        left -= size;
        sent += size;
      }
      if (left == 0) return {code, "the network is gone"};
      reply.set_file_end(true);
      writer.Write(reply);
    }
    reply.mutable_done();
    writer.Write(reply);
    return grpc::Status::OK;
  }

 private:
  size_t HeldOf(const v1::ExportRequest& request, const std::string& name) const {
    for (const v1::HeldFile& file : request.held()) {
      if (!is_old && file.name() == name) return file.bytes();
    }
    return 0;
  }
  static bool IsAsHeld(const v1::ExportRequest& request, const std::string& name,
                       const std::string& text) {
    for (const v1::HeldFile& file : request.held()) {
      if (file.name() != name) continue;
      Sha256 hash;
      hash.Update(text.substr(0, file.bytes()));
      return file.bytes() <= text.size() && hash.Finish() == file.sha256();
    }
    return true;
  }
};

class ExportResumeTest : public CommandLineTest {
 protected:
  ExportResumeTest() {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
    exports_.files = {{"trace.json", Text(1'000)}};
    service_.export_script = [this](const grpc::ServerContext&, const v1::ExportRequest& request,
                                    grpc::ServerWriter<v1::ExportReply>& writer) {
      return exports_.Answer(request, writer);
    };
    export_retry_ms_ = 1;  // once
  }
  static std::string Text(size_t bytes, char first = 'a') {
    std::string text;
    for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(first + i % 23);
    return text;
  }
  int Export(std::vector<const char*> more = {}) {
    std::vector<const char*> words = {"export", kCaptureId, "-o", path_.c_str()};
    words.insert(words.end(), more.begin(), more.end());
    return RunCli(words);
  }
  // From now on the service has these breaks, and restarts its count.
  void Break(std::vector<size_t> at) {
    exports_.breaks = std::move(at);
    exports_.asked.clear();
    exports_.sent = 0;
  }
  // Leaves the first 300 bytes there.
  void LeaveSome(std::vector<const char*> more = {}) {
    Break({300, 0, 0, 0});
    ASSERT_EQ(Export(std::move(more)), kExitFailed);
    ASSERT_EQ(Read(path_ + ".part").size(), 300u) << err_;
    Break({});
  }
  static std::string Read(const std::string& path) {
    std::stringstream content;
    content << std::ifstream(path).rdbuf();
    return content.str();
  }
  size_t Entries() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(root_), {}));
  }

  const std::string root_ = testing::TempDir() + "/export_resume";
  const std::string path_ = root_ + "/trace.json";
  FakeExports exports_;
};

TEST_F(ExportResumeTest, ResumesAutomaticallyAfterAggregatorRestart) {
  export_retry_ms_ = 60'000;
  Break({300, 0, 200});
  EXPECT_EQ(Export(), kExitDone) << err_;
  EXPECT_EQ(Read(path_), exports_.files["trace.json"]);
  EXPECT_EQ(exports_.asked.size(), 4u);
  EXPECT_EQ(exports_.sent, 1'000u) << "nothing twice";
  EXPECT_EQ(exports_.asked[3].held(0).bytes(), 500u);
  EXPECT_THAT(err_, HasSubstr("the network is gone; retrying"));
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(ExportResumeTest, GivesUpAndSameCommandResumes) {
  LeaveSome();
  EXPECT_THAT(err_, HasSubstr("is kept in " + path_ + ".part: the same command resumes it"));
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_EQ(Export(), kExitDone) << err_;
  EXPECT_THAT(err_, HasSubstr("resuming " + path_ + ".part"));
  EXPECT_EQ(exports_.sent, 700u);
  EXPECT_EQ(Read(path_), exports_.files["trace.json"]);
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(ExportResumeTest, NeverResumesOtherRequest) {
  LeaveSome();
  EXPECT_EQ(Export({"--clock-arguments"}), kExitDone) << err_;
  EXPECT_EQ(exports_.asked[0].held_size(), 0);
  EXPECT_EQ(exports_.sent, 1'000u);
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(ExportResumeTest, RestartsOnRequestAndLeavesNothing) {
  LeaveSome();
  EXPECT_EQ(Export({"--no-resume"}), kExitDone) << err_;
  EXPECT_EQ(exports_.sent, 1'000u);
  EXPECT_EQ(Entries(), 1u);
  std::filesystem::remove(path_);
  LeaveSome();
  Break({300, 0, 0, 0});
  EXPECT_EQ(Export({"--no-resume"}), kExitFailed);
  EXPECT_THAT(err_, Not(HasSubstr("continues")));
  EXPECT_EQ(Entries(), 0u);
}

TEST_F(ExportResumeTest, AnotherBeginningIsNotJoined) {
  LeaveSome();
  exports_.files["trace.json"] = Text(1'000, 'A');
  EXPECT_EQ(Export(), kExitDone) << err_;
  EXPECT_THAT(err_, HasSubstr("trace.json: the export changed since the partial download"));
  EXPECT_EQ(Read(path_), exports_.files["trace.json"]);
  std::filesystem::remove(path_);
  LeaveSome();
  std::fstream(path_ + ".part", std::ios::in | std::ios::out) << "changed on the disk";
  EXPECT_EQ(Export(), kExitDone) << err_;
  EXPECT_THAT(err_, HasSubstr("the export starts over"));
  EXPECT_EQ(Read(path_), exports_.files["trace.json"]);
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(ExportResumeTest, AnAggregatorThatKnowsOfNothingHeldSendsAllOfIt) {
  LeaveSome();
  exports_.is_old = true;
  EXPECT_EQ(Export(), kExitDone) << err_;
  EXPECT_EQ(exports_.sent, 1'000u);
  EXPECT_EQ(Read(path_), exports_.files["trace.json"]);
}

TEST_F(ExportResumeTest, DirectoriesResumeFileByFile) {
  exports_.files = {{"a.pb", Text(400)}, {"deep/b.pb", Text(500, 'b')}, {"deep/c.pb", Text(90)}};
  Break({600, 0, 0, 0});
  const std::string directory = root_ + "/run";
  const std::vector<const char*> words = {"export", kCaptureId, "--format",
                                          "xspace", "-o",       directory.c_str()};
  EXPECT_EQ(RunCli(words), kExitFailed);
  EXPECT_EQ(Read(directory + ".part/deep/b.pb").size(), 200u);
  Break({});
  EXPECT_EQ(RunCli(words), kExitDone) << err_;
  EXPECT_EQ(exports_.asked[0].held_size(), 2);
  EXPECT_EQ(exports_.sent, 390u);
  for (const auto& [name, text] : exports_.files) EXPECT_EQ(Read(directory + "/" + name), text);
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(ExportResumeTest, FailedExportLeavesNothing) {
  exports_.code = grpc::StatusCode::NOT_FOUND;
  Break({300});
  EXPECT_EQ(Export(), kExitFailed);
  EXPECT_EQ(exports_.asked.size(), 1u);
  EXPECT_EQ(Entries(), 0u);
  // Nor does what had not begun, or is of another moment each time.
  exports_.code = grpc::StatusCode::UNAVAILABLE;
  Break({0, 0, 0});
  EXPECT_EQ(Export(), kExitFailed);
  EXPECT_EQ(Entries(), 0u);
  Break({300, 0, 0});
  EXPECT_EQ(Export({"--from", "-5m"}), kExitFailed);
  EXPECT_EQ(Entries(), 0u);
}

TEST_F(ExportResumeTest, StandardOutputIsNotResumed) {
  Break({300});
  EXPECT_EQ(RunCli({"export", kCaptureId, "--format", "json", "-o", "-"}), kExitFailed);
  EXPECT_EQ(exports_.asked.size(), 1u);
  EXPECT_EQ(out_, Text(300));
}

TEST_F(ExportResumeTest, DoesNotRestartForever) {
  LeaveSome();
  int calls = 0;
  service_.export_script = [&calls](const grpc::ServerContext&, const v1::ExportRequest&,
                                    grpc::ServerWriter<v1::ExportReply>& writer) {
    ++calls;
    v1::ExportReply reply;
    reply.set_held_differs("trace.json");
    writer.Write(reply);
    return grpc::Status(grpc::StatusCode::ABORTED, "trace.json changes");
  };
  EXPECT_EQ(Export(), kExitFailed);
  EXPECT_LT(calls, 10);
  EXPECT_EQ(Entries(), 0u);
}

}  // namespace
}  // namespace neurontrace::cli
