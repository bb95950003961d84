// SPDX-License-Identifier: Apache-2.0
// A spool that version 1 wrote, kept in tests/golden/spool_v1, never to be rewritten: every
// later version delivers it. And what a version does that finds files of a later one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "agent/spool/spool_check.h"
#include "agent/upload/fake_node.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr char kCapture[] = "01HF7YBCBGET4W4R89FRS7D3GX";

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

class SpoolGoldenTest : public ::testing::Test {
 protected:
  SpoolGoldenTest() {
    node_.capture = *CaptureId::Parse(kCapture);
    node_.columns_bytes = 200;
  }
  void LoadGolden() {
    for (const auto& entry : fs::recursive_directory_iterator(NT_GOLDEN_SPOOL)) {
      if (!entry.is_regular_file()) continue;
      const std::string name = fs::relative(entry.path(), NT_GOLDEN_SPOOL).string();
      node_.disk.SetContents(std::string(FakeNode::kRoot) + "/" + name, ReadFile(entry.path()));
    }
    // Of a: 8 chunks; the aggregator has 3 of them. Of b: 8. Of c: 2, and it has ended. All of it
    // was said to be kept, so that the sources have nothing any more.
    for (const auto& [name, chunks] :
         std::map<std::string, uint64_t>{{"a", 8}, {"b", 8}, {"c", 2}}) {
      node_.sources[name].produced = chunks;
      node_.sources[name].running = false;
    }
    node_.sources["c"].ended = true;
  }
  std::string Directory() const { return std::string(FakeNode::kRoot) + "/" + kCapture; }

  FakeNode node_;
};

TEST_F(SpoolGoldenTest, SpoolOfVersionOneIsDelivered) {
  LoadGolden();
  ASSERT_TRUE(node_.Begin());
  EXPECT_EQ(node_.queue->counters().chunks_recovered, 15u);
  // The aggregator has the first three chunks of a.
  FakeUploadAggregator::Stream& a = node_.aggregator.streams["a"];
  a.cursor.stream.name = "-";  // no stream of this agent: the spool's cursor alone has to say it
  a.cursor.next_sequence = 3;
  a.cursor.events_before = a.stored = 30;
  node_.Welcome();
  node_.Run();
  EXPECT_EQ(node_.queue->chunks(), 0u);
  node_.ExpectConservation("golden");
  EXPECT_EQ(node_.LostEvents(), 0u);
  EXPECT_EQ(node_.aggregator.received, 15u);
}

TEST_F(SpoolGoldenTest, SegmentOfALaterVersionIsLeftAloneWhateverHappens) {
  LoadGolden();
  std::string later = *node_.disk.Contents(Directory() + "/00000001.seg");
  later[8] = 2;
  const std::string path = Directory() + "/00000099.seg";
  node_.disk.SetContents(path, later);
  ASSERT_TRUE(node_.Begin());
  EXPECT_EQ(node_.spool->recovered().segments_left_alone, 1u);
  node_.Welcome();
  node_.Run();
  node_.Produce("z");
  node_.Run();
  node_.uploader->ForgetAllBut({});
  node_.Run();
  EXPECT_EQ(node_.disk.Contents(path), later) << "though the capture is over";
  const auto report = CheckSpool(node_.disk, FakeNode::kRoot);
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->sound());
  ASSERT_EQ(report->segments.size(), 1u);
  EXPECT_TRUE(report->segments[0].later_version);
  EXPECT_THAT(report->ToText(), HasSubstr("later version of neurontrace-agent"));
  EXPECT_THAT(report->ToJson(), HasSubstr("\"later_version\":true"));
}

TEST_F(SpoolGoldenTest, SpoolOfAnotherAgentIsLeftAlone) {
  LoadGolden();
  node_.options.agent_id = "another";
  ASSERT_TRUE(node_.Begin());
  EXPECT_EQ(node_.queue->chunks(), 0u);
  const auto before = node_.disk.Contents(Directory() + "/00000001.seg");
  node_.uploader->ForgetAllBut({});
  node_.Run();
  EXPECT_EQ(node_.disk.Contents(Directory() + "/00000001.seg"), before);
}

TEST_F(SpoolGoldenTest, DamagedBeginningGoesToTheQuarantine) {
  LoadGolden();
  ASSERT_TRUE(node_.disk.FlipBit(Directory() + "/00000001.seg", 3));
  ASSERT_TRUE(node_.Begin());
  EXPECT_EQ(node_.spool->recovered().damaged_segments, 1u);
  EXPECT_TRUE(node_.disk.Contents(std::string(FakeNode::kRoot) + "/quarantine/" + kCapture +
                                  "-00000001.seg"));
}

TEST_F(SpoolGoldenTest, DamagedCursorCostsOnlySendingAgain) {
  LoadGolden();
  ASSERT_TRUE(node_.disk.FlipBit(Directory() + "/cursor", 100));
  ASSERT_TRUE(node_.Begin());
  node_.Welcome();
  node_.Run();
  node_.ExpectConservation("without a cursor");
  EXPECT_EQ(node_.LostEvents(), 0u);
}

}  // namespace
}  // namespace neurontrace
