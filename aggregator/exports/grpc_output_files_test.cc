// SPDX-License-Identifier: Apache-2.0
// Goal: several files through one stream of replies, in pieces, with names that are fit to be sent.
#include "aggregator/exports/grpc_output_files.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "aggregator/exports/resume_state.h"
#include "lib/base/sha256.h"
#include "lib/base/status.h"
#include "lib/trace/export_limits.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

TEST(GrpcOutputFilesTest, PiecesNameTheirFile) {
  std::vector<v1::ExportReply> replies;
  const ExportWriter write = [&](const v1::ExportReply& reply) {
    replies.push_back(reply);
    return true;
  };
  GrpcOutputFiles files(write);
  auto first = files.Open("a/one.bin");
  auto second = files.Open("two.bin");
  ASSERT_TRUE(first.ok() && second.ok());
  ASSERT_TRUE((*second)->Write(std::string(limits::kExportMessageBytes + 1, 'x')).ok());
  ASSERT_TRUE((*first)->Write("abc").ok());
  ASSERT_TRUE((*first)->Close().ok());
  ASSERT_EQ(replies.size(), 6u);
  EXPECT_EQ(replies[0].file(), "a/one.bin");
  EXPECT_EQ(replies[0].file_number(), 0u);
  EXPECT_EQ(replies[1].file(), "two.bin");
  EXPECT_EQ(replies[1].file_number(), 1u);
  EXPECT_EQ(replies[2].file_number(), 1u);
  EXPECT_EQ(replies[2].data().size(), limits::kExportMessageBytes);
  EXPECT_EQ(replies[3].data(), "x");
  EXPECT_EQ(replies[4].file_number(), 0u);
  EXPECT_EQ(replies[4].data(), "abc");
  EXPECT_TRUE(replies[5].file_end());
  EXPECT_EQ(replies[5].file_number(), 0u);
}

TEST(GrpcOutputFilesTest, RejectsNamesAndReportsDisconnect) {
  bool listens = true;
  const ExportWriter write = [&](const v1::ExportReply&) { return listens; };
  GrpcOutputFiles files(write);
  for (const char* name : {"", "/a", "a/", "../a", "a/./b", "a b", "a\\b", "a\nb"}) {
    EXPECT_EQ(files.Open(name).status().code(), absl::StatusCode::kInvalidArgument) << name;
  }
  EXPECT_FALSE(files.Open(std::string(limits::kExportNameBytesMax + 1, 'a')).ok());
  auto file = files.Open("a");
  ASSERT_TRUE(file.ok());
  EXPECT_FALSE(files.Open("a").ok()) << "twice";
  listens = false;
  EXPECT_EQ((*file)->Write("x").code(), absl::StatusCode::kCancelled);
  EXPECT_EQ((*file)->Close().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(files.Open("b").status().code(), absl::StatusCode::kCancelled);
}

// What was received and what is sent together are the file, wherever the one ended.
class HeldTest : public testing::Test {
 protected:
  static v1::HeldFile Held(const std::string& name, const std::string& text) {
    Sha256 hash;
    hash.Update(text);
    v1::HeldFile held;
    held.set_name(name);
    held.set_bytes(text.size());
    held.set_sha256(hash.Finish());
    return held;
  }
  // Writes `text` in pieces as the only file; what was sent of it is in sent_.
  absl::Status Send(const v1::ExportRequest& request, const std::string& text, size_t piece) {
    sent_.clear();
    replies_.clear();
    auto held = ResumeState::Of(request);
    RETURN_IF_ERROR(held.status());
    const ExportWriter write = [&](const v1::ExportReply& reply) {
      sent_ += reply.data();
      replies_.push_back(reply);
      return true;
    };
    GrpcOutputFiles files(write, *std::move(held));
    ASSIGN_OR_RETURN(const std::unique_ptr<OutputFile> file, files.Open("a"));
    for (size_t at = 0; at < text.size(); at += piece) {
      RETURN_IF_ERROR(file->Write(std::string_view(text).substr(at, piece)));
    }
    RETURN_IF_ERROR(file->Close());
    EXPECT_EQ(files.bytes_sent(), text.size());
    return files.CheckHeld();
  }

  std::string sent_;
  std::vector<v1::ExportReply> replies_;
};

TEST_F(HeldTest, SendsRestOfUnchangedFile) {
  const std::string text = "what an export of this capture is";
  for (size_t size = 1; size <= text.size(); ++size) {
    for (const size_t piece : {size_t{1}, size_t{7}, size_t{1'000}}) {
      v1::ExportRequest request;
      *request.add_held() = Held("a", text.substr(0, size));
      ASSERT_TRUE(Send(request, text, piece).ok());
      EXPECT_EQ(sent_, text.substr(size));
      EXPECT_EQ(replies_.front().held_bytes(), size);
      EXPECT_TRUE(replies_.back().file_end());
    }
  }
}

TEST_F(HeldTest, ReportsChangedFileAndSendsNothing) {
  v1::ExportRequest request;
  *request.add_held() = Held("a", "another beginning");
  for (const char* const text : {"what an export is, and longer", "short", "another beginnin"}) {
    EXPECT_EQ(Send(request, text, 3).code(), absl::StatusCode::kAborted) << text;
    EXPECT_EQ(sent_, "") << text;
    EXPECT_EQ(replies_.back().held_differs(), "a");
  }
  // A file that is not made any more.
  *request.mutable_held(0) = Held("gone", "x");
  EXPECT_EQ(Send(request, "text", 3).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(replies_.back().held_differs(), "gone");
}

TEST_F(HeldTest, RejectsInvalidValues) {
  const auto refuse = [](const std::vector<v1::HeldFile>& files) {
    v1::ExportRequest request;
    for (const v1::HeldFile& file : files) *request.add_held() = file;
    return ResumeState::Of(request).status().code();
  };
  v1::HeldFile wrong = Held("a", "text");
  wrong.set_sha256("short");
  EXPECT_EQ(refuse({wrong}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refuse({Held("../a", "text")}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refuse({Held("a", "")}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refuse({Held("a", "x"), Held("a", "y")}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refuse(std::vector(limits::kExportHeldFilesMax + 1, Held("a", "x"))),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(HeldTest, ManyBytesAreNotFew) {
  v1::ExportRequest request;
  for (const char* name : {"a", "b"}) {
    *request.add_held() = Held(name, "x");
    request.mutable_held(request.held_size() - 1)->set_bytes(UINT64_MAX - 3);
  }
  EXPECT_EQ(ResumeState::Of(request)->bytes(), UINT64_MAX);
}

}  // namespace
}  // namespace neurontrace
