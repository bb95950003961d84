// SPDX-License-Identifier: Apache-2.0
// Goal: each check of packets, sequences and interned texts finds what it is for, and
// nothing in a trace that is sound. Method: traces made by hand.
#include <zlib.h>

#include "lib/validate/trace_maker.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Compress(const std::string& bytes) {
  uLongf size = compressBound(bytes.size());
  std::string out(size, '\0');
  EXPECT_EQ(compress2(reinterpret_cast<Bytef*>(out.data()), &size,
                      reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), Z_BEST_SPEED),
            Z_OK);
  out.resize(size);
  return out;
}

class TracePackets : public TraceMaker {
 protected:
  void Compressed(const std::string& bytes) {
    Packet([&](protozero::pbf_writer& packet) { packet.add_bytes(50, bytes); });
  }
};

TEST_F(TracePackets, ASoundTraceHasNoFindings) {
  Row();
  Intern(2, 1, "step");
  Event(kBegin, 2, 5, [](auto& event) { event.add_uint64(10, 1); });
  Event(kInstant, 2, 1, Named("here"));
  Event(kEnd, 2, 10);
  const TraceReport report = Validate();
  EXPECT_THAT(ChecksOf(report), IsEmpty());
  EXPECT_EQ(report.summary.packets, 7u);
  EXPECT_EQ(report.summary.sequences, 1u);
  EXPECT_EQ(report.summary.sequence_headers, 1u);
  EXPECT_EQ(report.summary.slices, 1u);
  EXPECT_EQ(report.summary.instants, 1u);
  EXPECT_EQ(report.summary.interned_texts, 1u);
  EXPECT_EQ(report.summary.first_ns, 1'005u);
  EXPECT_EQ(report.summary.last_ns, 1'016u);
  EXPECT_TRUE(report.summary.is_realtime);
  EXPECT_EQ(report.summary.file_bytes, trace_.size());
}

TEST_F(TracePackets, ReportsPositionOfFindings) {
  Header();
  const size_t offset = trace_.size();
  Event(kEnd, 7, 1);
  const TraceReport report = Validate();
  ASSERT_FALSE(report.findings.findings().empty());
  EXPECT_EQ(report.findings.findings()[0].at.packet, 2u);
  EXPECT_EQ(report.findings.findings()[0].at.offset, offset);
}

TEST_F(TracePackets, KeepsTenFindingsOfAKindAndCountsAll) {
  Row();
  for (int i = 0; i < 50; ++i) Event(kEnd, 2, 1);
  const TraceReport report = Validate();
  EXPECT_EQ(report.findings.errors(), 50u);
  EXPECT_EQ(report.findings.findings().size(), 10u);
}

TEST_F(TracePackets, Framing) {
  EXPECT_THAT(Checks(), ElementsAre("framing"));  // empty
  trace_ = "{\"traceEvents\": []}";
  EXPECT_THAT(Validate().findings.findings()[0].words, HasSubstr("JSON"));
  trace_ = std::string("\x28\xb5\x2f\xfd") + "rest";
  EXPECT_THAT(Validate().findings.findings()[0].words, HasSubstr("zstd"));
  trace_.clear();
  Header();
  const std::string sound = trace_;
  trace_ = sound + std::string("\x12\x03") + "abc" + sound;  // another field, passed over
  EXPECT_THAT(Checks(), ElementsAre("framing"));
  EXPECT_EQ(Validate().summary.packets, 2u);
  trace_ = sound + std::string("\x0b");  // a group: nothing can be told apart
  EXPECT_THAT(Checks(), ElementsAre("framing"));
  trace_ = sound + sound.substr(0, sound.size() - 1);
  EXPECT_THAT(Validate().findings.findings()[0].words, HasSubstr("ends inside a packet"));
  trace_ = sound + "\x0a\xff\xff\xff\xff\x0f";
  EXPECT_THAT(Validate().findings.findings()[0].words, HasSubstr("nothing is read"));
}

TEST_F(TracePackets, APacketThatDoesNotParse) {
  Header();
  trace_ += Framed("\x5a\x7f");  // an event of 127 bytes without a single one of them
  EXPECT_THAT(Checks(), ElementsAre("packet"));
  trace_ += Framed("\x07");
  EXPECT_EQ(Validate().findings.count(TraceCheck::kPacket), 2u);
}

TEST_F(TracePackets, PacketsOfPackets) {
  Row();
  const std::string outer = trace_;
  trace_.clear();
  Event(kBegin, 2, 5);
  Event(kEnd, 2, 10);
  const std::string inner = trace_;
  trace_ = outer;
  Compressed(Compress(inner));
  const TraceReport report = Validate();
  EXPECT_THAT(ChecksOf(report), IsEmpty());
  EXPECT_EQ(report.summary.slices, 1u);
  EXPECT_EQ(report.summary.compressed_packets, 1u);
  EXPECT_EQ(report.summary.packets, 6u);
  const std::string sound = trace_;

  Compressed(Compress(inner).substr(0, 10));
  EXPECT_THAT(Checks(), ElementsAre("compression"));
  trace_ = sound;
  Compressed("no zlib stream");
  EXPECT_THAT(Checks(), ElementsAre("compression"));
  trace_ = sound;
  Compressed(Compress("no packet"));
  EXPECT_THAT(Checks(), ElementsAre("compression"));
  trace_ = sound;
  Compressed(Compress(Framed(Message([](auto& packet) { packet.add_bytes(50, "x"); }))));
  EXPECT_THAT(Validate().findings.findings()[0].words, HasSubstr("contain compressed packets"));
}

TEST_F(TracePackets, ReportsUncheckedFeaturesOnce) {
  Row();
  for (int i = 0; i < 2; ++i) {
    Packet([](auto& packet) { packet.add_bytes(133, "compressed with zstd"); });
    Packet([](auto& packet) {
      packet.add_uint32(98, 7);  // another machine's
      packet.add_message(11, std::string("no event"));
    });
  }
  const TraceReport report = Validate();
  EXPECT_THAT(ChecksOf(report), ElementsAre("unchecked"));
  ASSERT_EQ(report.findings.findings().size(), 2u);
  EXPECT_EQ(report.findings.count(TraceCheck::kUnchecked), 2u);
  EXPECT_THAT(report.findings.findings()[0].words, HasSubstr("compressed with zstd (field 133)"));
  EXPECT_THAT(report.findings.findings()[1].words, HasSubstr("other machines (machine_id)"));
}

TEST_F(TracePackets, MoreFieldsThanAreHeld) {
  Header();
  trace_ += Framed(Message([](auto& packet) {
    for (int i = 0; i < (1 << 20) + 1; ++i) packet.add_uint32(300, 1);
  }));
  EXPECT_THAT(Checks(), ElementsAre("limit"));
}

TEST_F(TracePackets, CompressedPacketsThatAreTooLarge) {
  Header();
  std::string noise(900'000, '\0');
  uint32_t state = 1;
  for (char& c : noise) c = static_cast<char>((state = state * 1'664'525u + 1'013'904'223u) >> 24);
  Compressed(Compress(Framed(Message([&](auto& packet) { packet.add_bytes(300, noise); }))));
  EXPECT_THAT(Checks(), ElementsAre("compressed_size"));
  trace_.clear();
  Header();
  const std::string large =
      Framed(Message([](auto& packet) { packet.add_bytes(300, std::string(30 << 20, '\0')); }));
  Compressed(Compress(large + large + large));  // 90 MiB of nothing
  Compressed("no zlib stream");                 // whose packets are alone
  const TraceReport report = Validate();
  EXPECT_THAT(ChecksOf(report), ElementsAre("compression", "limit"));
  EXPECT_EQ(report.findings.count(TraceCheck::kLimit), 1u);
  EXPECT_EQ(report.findings.count(TraceCheck::kCompression), 1u);
}

TEST_F(TracePackets, APacketThatIsTooLargeIsPassedOver) {
  Header();
  const std::string large = Message([](auto& packet) {
    packet.add_uint32(10, kSequence);
    packet.add_bytes(300, std::string((64u << 20) + 1, '\0'));
  });
  trace_ += Framed(large);
  Header();
  const TraceReport report = Validate();
  EXPECT_THAT(ChecksOf(report), ElementsAre("limit"));
  EXPECT_EQ(report.findings.count(TraceCheck::kLimit), 1u);
  EXPECT_EQ(report.summary.packets, 3u);
  EXPECT_EQ(report.summary.sequence_headers, 2u) << "what follows is read";
  EXPECT_EQ(report.summary.uncompressed_bytes, trace_.size());
  trace_.resize(trace_.size() - (1u << 20));
  EXPECT_THAT(Checks(), ElementsAre("framing", "limit"));
}

TEST_F(TracePackets, SequenceId) {
  for (const uint32_t field : {11, 12, 59}) {
    trace_.clear();
    Packet([&](auto& packet) { packet.add_message(field, std::string()); }, false);
    EXPECT_THAT(Checks(), ElementsAre("sequence_id")) << field;
  }
  trace_.clear();
  Packet([](auto& packet) { packet.add_uint32(13, 2); }, false);
  EXPECT_THAT(Checks(), ElementsAre("sequence_id"));
}

TEST_F(TracePackets, SequenceState) {
  Packet([](auto& packet) { packet.add_uint32(13, 2); });
  EXPECT_THAT(Checks(), ElementsAre("sequence_state"));
  trace_.clear();
  Packet([](auto& packet) { packet.add_message(12, std::string()); });
  EXPECT_THAT(Checks(), ElementsAre("sequence_state"));
  trace_.clear();
  Packet([](auto& packet) { packet.add_bool(41, true); });  // as before there were flags
  Packet([](auto& packet) { packet.add_uint32(13, 2); });
  EXPECT_THAT(Checks(), IsEmpty());
}

TEST_F(TracePackets, LostPacketsAreAWarning) {
  Header();
  Packet([](auto& packet) { packet.add_bool(42, true); });
  const TraceReport report = Validate();
  EXPECT_THAT(ChecksOf(report), ElementsAre("packet_loss"));
  EXPECT_EQ(report.summary.packet_losses, 1u);
  EXPECT_EQ(report.findings.errors(), 0u);
}

// What was lost may have had something that later packets rely on: Perfetto waits for a header.
TEST_F(TracePackets, AfterALossTheStateIsGone) {
  Row();
  const std::string sound = trace_;
  Packet([](auto& packet) { packet.add_bool(42, true); });
  Event(kInstant, 2, 1);
  TraceReport report = Validate();
  EXPECT_THAT(ChecksOf(report), ElementsAre("sequence_state", "packet_loss"));
  EXPECT_EQ(report.summary.instants, 0u);
  EXPECT_THAT(report.findings.findings()[1].words, HasSubstr("since packets were lost"));
  Header(2'000);
  Event(kInstant, 2, 1);
  report = Validate();
  EXPECT_EQ(report.findings.count(TraceCheck::kSequenceState), 1u);
  EXPECT_EQ(report.summary.instants, 1u);
  trace_ = sound;
  Packet([](auto& packet) {  // a header after a loss
    packet.add_bool(42, true);
    packet.add_uint32(13, 1);
  });
  Packet([](auto& packet) { packet.add_uint32(13, 2); });
  EXPECT_THAT(Checks(), ElementsAre("packet_loss"));
}

TEST_F(TracePackets, AcceptsStatelessPacketsWithoutState) {
  Process(1, 1);
  Thread(2, 1, 100);
  Packet([](auto& packet) { packet.add_message(6, Snapshot({{1, 5'000}, {6, 100}})); });
  Packet([](auto& packet) {
    packet.add_uint64(8, 110);
    packet.add_uint32(58, 6);
    packet.add_message(12, std::string());  // its content is ignored
    packet.add_message(11, Message([](auto& event) {
                         event.add_uint32(9, kInstant);
                         event.add_uint64(11, 2);
                       }));
  });
  const TraceReport report = Validate();
  EXPECT_THAT(ChecksOf(report), ElementsAre("sequence_state"));
  EXPECT_EQ(report.summary.instants, 1u);
}

TEST_F(TracePackets, Times) {
  Row();
  const std::string sound = trace_;
  Packet([](auto& packet) {
    packet.add_message(11, Message([](auto& event) { event.add_uint32(9, kInstant); }));
  });
  EXPECT_THAT(Checks(), ElementsAre("timestamp"));
  trace_ = sound;
  Event(kInstant, 2, UINT64_MAX / 2);
  EXPECT_THAT(Checks(), ElementsAre("timestamp_range"));
  trace_ = sound;
  Packet([](auto& packet) {
    packet.add_uint64(8, 5);
    packet.add_uint32(58, 65);  // a clock that no snapshot has
  });
  EXPECT_THAT(Checks(), ElementsAre("clock"));
}

TEST_F(TracePackets, InternedTexts) {
  Row();
  const std::string sound = trace_;
  Intern(2, 0, "nothing");
  EXPECT_THAT(Checks(), ElementsAre("interned"));
  trace_ = sound;
  Intern(2, 1, "one");
  Intern(2, 1, "one");  // the same again is no harm
  EXPECT_THAT(Checks(), IsEmpty());
  Intern(2, 1, "two");
  EXPECT_THAT(Checks(), ElementsAre("interned"));
  trace_ = sound;
  Intern(2, 1, "one");
  Header(2'000);  // its numbers restart
  Intern(2, 1, "two");
  EXPECT_THAT(Checks(), IsEmpty());
}

TEST_F(TracePackets, NumbersOfNothing) {
  Row();
  const std::string sound = trace_;
  const std::vector<Fill> events = {
      [](auto& event) { event.add_uint64(10, 9); },
      [](auto& event) { event.add_uint64(3, 9); },
      [](auto& event) { event.add_message(4, Message([](auto& a) { a.add_uint64(1, 9); })); },
      [](auto& event) { event.add_message(4, Message([](auto& a) { a.add_uint64(17, 9); })); },
  };
  for (const Fill& event : events) {
    trace_ = sound;
    Event(kInstant, 2, 1, event);
    EXPECT_THAT(Checks(), ElementsAre("interned_missing"));
    Intern(2, 9, "a");  // after its use is too late
    Intern(1, 9, "a");
    Intern(3, 9, "a");
    Intern(29, 9, "a");
    EXPECT_THAT(Checks(), ElementsAre("interned_missing"));
    Event(kInstant, 2, 1, event);
    EXPECT_EQ(Validate().findings.errors(), 1u);
  }
}

}  // namespace
}  // namespace neurontrace
