// SPDX-License-Identifier: Apache-2.0
// What is said of the samples of a host, over plain records: they are no worker, count in no sum,
// and what is missing of them is a finding.
#include "aggregator/certificate/host_certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace neurontrace {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class HostCertificatesTest : public ::testing::Test {
 protected:
  HostCertificatesTest() {
    record_.state = CaptureState::kComplete;
    record_.started_realtime_ns = 1'000'000'000;
    record_.stopped_realtime_ns = record_.started_realtime_ns + 1'000'000'000;
    record_.agents = {{.agent_id = "agent-a", .instance_id = "i-a", .finished = true}};
    streams_.resize(2);
    core().identity = Identity(7, StreamKind::kNeuronCore);
    core().events = core().captured = 1;
    host().identity = Identity(0, StreamKind::kHost);
    host().events = host().captured = 2;
    core().ended = host().ended = true;
    record_.workers = {{.worker = core().identity.worker,
                        .state = CaptureWorkerState::kComplete,
                        .events_read = 1,
                        .streams = 1}};
  }
  static StreamIdentity Identity(uint32_t pid, StreamKind kind) {
    return {.agent_id = "agent-a",
            .worker = {.instance_id = "i-a", .boot_id = "b", .pid = pid},
            .kind = kind};
  }
  StreamRecord& core() { return streams_[0]; }
  StreamRecord& host() { return streams_[1]; }
  Certificate Make() const {
    return MakeCertificate({.record = record_, .streams = streams_, .workers = {}});
  }

  CaptureRecord record_;
  std::vector<StreamRecord> streams_;
};

TEST_F(HostCertificatesTest, AreNoWorkersAndCountInNoSum) {
  const Certificate certificate = Make();
  EXPECT_TRUE(certificate.complete) << certificate.verdict;
  EXPECT_THAT(certificate.workers, SizeIs(1));
  EXPECT_EQ(certificate.account.stored, 1u);
  ASSERT_THAT(certificate.hosts, SizeIs(1));
  EXPECT_EQ(certificate.hosts[0].account.stored, 2u);
}

TEST_F(HostCertificatesTest, LostSamplesAreAFinding) {
  host().losses = {{.place = LossPlace::kSpool, .reason = LossReason::kFull, .events = 3}};
  host().captured = 5;
  const Certificate certificate = Make();
  EXPECT_FALSE(certificate.complete);
  EXPECT_EQ(certificate.account.lost, 0u);
  EXPECT_THAT(certificate.findings,
              Contains("host samples of i-a: 3 of 5 events lost: 3 in the spool (full)"));
  EXPECT_THAT(certificate.verdict, HasSubstr("host samples of i-a"));
}

TEST_F(HostCertificatesTest, StreamWithoutItsEndIsAFindingOnceItsAgentHasFinished) {
  host().ended = false;
  EXPECT_TRUE(Make().hosts[0].cut_short);
  EXPECT_THAT(Make().findings, Contains(HasSubstr("did not arrive completely; 2 events")));
  record_.agents[0].finished = false;
  EXPECT_FALSE(Make().hosts[0].cut_short) << "the report of the agent covers it";
  record_.agents[0].finished = true;
  record_.state = CaptureState::kRecording;
  EXPECT_FALSE(Make().hosts[0].cut_short) << "the capture is still running";
}

TEST_F(HostCertificatesTest, TimeWithoutAgentIsRemarkOnly) {
  // As an agent that was restarted tells it.
  StreamRecord stored{.number = 1, .identity = host().identity};
  ChunkHeader header;
  header.stream = stored.identity;
  header.event_count = 3;
  header.first_timestamp_ns = 1'000'000'000;
  header.last_timestamp_ns = 2'000'000'000;
  stored.Add(header, 100, {});
  header.sequence = 1;
  header.events_before = 3;
  header.losses = {{.place = LossPlace::kAgentQueue,
                    .reason = LossReason::kUnknown,
                    .first_timestamp_ns = 2'000'000'000,
                    .last_timestamp_ns = 6'000'000'000,
                    .detail = "no host samples: the agent was restarted"}};
  header.end_of_stream = true;
  stored.Add(header, 100, {});
  host() = stored;
  const Certificate certificate = Make();
  EXPECT_TRUE(certificate.complete) << certificate.verdict;
  EXPECT_THAT(certificate.findings, IsEmpty());
  EXPECT_THAT(certificate.notes,
              Contains("the host i-a was not sampled continuously: 1 gap, 4.0 s in total"));
}

TEST_F(HostCertificatesTest, GapWithUnknownEndIsRemarkOnly) {
  // As an agent tells it that continued without its aggregator.
  StreamRecord stored{.number = 1, .identity = host().identity};
  ChunkHeader header;
  header.stream = stored.identity;
  header.event_count = 3;
  header.first_timestamp_ns = 7'000'000'000;
  header.last_timestamp_ns = 8'000'000'000;
  header.losses = {{.place = LossPlace::kAgentQueue,
                    .reason = LossReason::kUnknown,
                    .first_timestamp_ns = 2'000'000'000,
                    .last_timestamp_ns = 2'000'000'000,
                    .detail = "no host samples until the next one"}};
  header.end_of_stream = true;
  stored.Add(header, 100, {});
  host() = stored;
  const Certificate certificate = Make();
  EXPECT_TRUE(certificate.complete) << certificate.verdict;
  EXPECT_EQ(certificate.hosts[0].gaps, 0u);
  EXPECT_THAT(certificate.notes,
              Contains("the host i-a was not sampled continuously: 1 gap with an unknown end"));
}

TEST_F(HostCertificatesTest, StreamThatWasEndedAfterItsTimeIsWhole) {
  StreamRecord stored{.number = 1, .identity = host().identity};
  ChunkHeader header;
  header.stream = stored.identity;
  header.losses = {{.place = LossPlace::kAgentQueue,
                    .reason = LossReason::kUnknown,
                    .detail = "no host samples from here on: the host was rebooted"}};
  header.end_of_stream = true;
  stored.Add(header, 100, {});
  host() = stored;
  const Certificate certificate = Make();
  EXPECT_TRUE(certificate.complete) << certificate.verdict;
  EXPECT_EQ(certificate.hosts[0].gaps, 0u) << "the length of the gap is unknown";
}

}  // namespace
}  // namespace neurontrace
