// SPDX-License-Identifier: Apache-2.0
// The clock service of a whole aggregator, with an agent that the test plays: access, probes over
// UDP and in a call, evidence that is stored and outlives a restart, and an epoch that continues.
#include "aggregator/clocks/clock_service.h"

#include <arpa/inet.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "aggregator/aggregator_test_support.h"
#include "lib/base/temporary_directory.h"
#include "lib/base/unique_fd.h"
#include "lib/clock/probe_packet.h"
#include "lib/trace/clock_evidence_codec.h"
#include "lib/trace/clock_evidence_limits.h"
#include "lib/wire/clock_messages.h"
#include "lib/wire/grpc_channel.h"
#include "neurontrace/v1/clock_gateway.grpc.pb.h"

namespace neurontrace {
namespace {

const HostBoot kHost{"i-1", "boot-1"};

ClockEvidence SomeEvidence(uint64_t raw_ns) {
  ClockEvidence evidence;
  evidence.snapshots = {{.raw_begin_ns = raw_ns, .raw_end_ns = raw_ns + 100}};
  return evidence;
}

class ClockServiceTest : public testing::Test {
 protected:
  ClockServiceTest() {
    options_.listen = "127.0.0.1:0";
    Start();
  }
  ~ClockServiceTest() override { Stop(); }

  void Start() {
    registry_ = std::make_unique<prometheus::Registry>();
    auto store = Store::Open(directory_.path(), {});
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    auto service = ClockService::Start(options_, {*store_, *registry_, random_, clock_});
    ASSERT_TRUE(service.ok()) << service.status();
    service_ = *std::move(service);
    grpc::ServerBuilder builder;
    int port = 0;
    ConfigureServer(builder);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service_->gateway());
    server_ = builder.BuildAndStart();
    stub_ = v1::ClockGateway::NewStub(MakeChannel("127.0.0.1:" + std::to_string(port), {}));
  }
  void Stop() {
    if (server_ != nullptr) {
      server_->Shutdown(std::chrono::system_clock::now());
      server_->Wait();
    }
    server_.reset();
    service_.reset();
    store_.reset();
  }
  static v1::ClockReport Hello() {
    v1::ClockReport report;
    ToProto(ClockIdentity{"agent-1", kHost.instance_id, kHost.boot_id}, report.mutable_hello());
    return report;
  }
  static v1::ClockReport Batch(uint64_t number, const std::string& observations) {
    v1::ClockReport report;
    report.mutable_evidence()->set_number(number);
    report.mutable_evidence()->set_age_ns(1'000'000);
    report.mutable_evidence()->set_observations(observations);
    return report;
  }

  TemporaryDirectory directory_;
  ClockService::Options options_;
  SystemClock clock_;
  SystemRandom random_;
  std::unique_ptr<prometheus::Registry> registry_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<ClockService> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::ClockGateway::Stub> stub_;
};

TEST_F(ClockServiceTest, StoresEvidenceThatOutlivesARestart) {
  {
    grpc::ClientContext context;
    const auto call = stub_->Report(&context);
    ASSERT_TRUE(call->Write(Hello()));
    v1::ClockOrder order;
    ASSERT_TRUE(call->Read(&order));
    ASSERT_TRUE(order.has_access());
    for (uint64_t number = 1; number <= 3; ++number) {
      ASSERT_TRUE(call->Write(Batch(number, EncodeClockEvidence(SomeEvidence(number * 1'000)))));
      ASSERT_TRUE(call->Read(&order));
      EXPECT_EQ(order.receipt().number(), number);
    }
    // What makes no sense is let go of, and the call continues.
    ASSERT_TRUE(call->Write(Batch(4, "nonsense")));
    ASSERT_TRUE(call->Read(&order));
    EXPECT_EQ(order.receipt().number(), 4u);
    call->WritesDone();
    EXPECT_TRUE(call->Finish().ok());
  }
  const uint32_t epoch = service_->timescale().epoch();
  const uint64_t reference_ns = service_->timescale().FromRaw(0);
  Stop();
  Start();
  EXPECT_EQ(service_->timescale().epoch(), epoch) << "the machine was not rebooted";
  EXPECT_EQ(service_->timescale().FromRaw(0), reference_ns);
  const auto evidence = store_->clocks().Read(kHost, {});
  ASSERT_TRUE(evidence.ok()) << evidence.status();
  ASSERT_EQ(evidence->snapshots.size(), 3u);
  EXPECT_EQ(evidence->snapshots[2].raw_begin_ns, 3'000u);
}

// An agent that makes up evidence, in many calls and of many boots.
TEST_F(ClockServiceTest, StoresNoMoreOfAnInstanceThanAllowed) {
  struct ClockDialogue {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReaderWriter<v1::ClockReport, v1::ClockOrder>> call;
  };
  SeededRandom random(1);
  ClockEvidence evidence;
  for (size_t i = 0; i < limits::kClockBatchEntriesMax; ++i) {
    const uint64_t raw = random.Next64() / 2;
    const uint64_t there = random.Next64() / 2;
    evidence.exchanges.push_back(
        {raw, there, there + random.Next64() / 4, raw + random.Next64() / 4, 1, ProbePath::kUdp});
  }
  const std::string observations = EncodeClockEvidence(evidence);
  const auto send = [&](const std::vector<std::string>& instances, uint64_t rounds) {
    std::vector<ClockDialogue> talks(instances.size());
    v1::ClockOrder order;
    for (size_t i = 0; i < talks.size(); ++i) {
      v1::ClockReport hello = Hello();
      hello.mutable_hello()->set_instance_id(instances[i]);
      hello.mutable_hello()->set_boot_id("boot-" + std::to_string(i));
      talks[i].call = stub_->Report(&talks[i].context);
      ASSERT_TRUE(talks[i].call->Write(hello) && talks[i].call->Read(&order));
    }
    for (uint64_t number = 1; number <= rounds; ++number) {
      for (ClockDialogue& talk : talks) ASSERT_TRUE(talk.call->Write(Batch(number, observations)));
      for (ClockDialogue& talk : talks) {
        ASSERT_TRUE(talk.call->Read(&order));
        EXPECT_EQ(order.receipt().number(), number) << "every batch is acknowledged";
      }
    }
    for (ClockDialogue& talk : talks) {
      talk.call->WritesDone();
      EXPECT_TRUE(talk.call->Finish().ok());
    }
  };
  const uint64_t rounds = 1 + limits::kClockHostBytesAtOnceMax / observations.size() / 16;
  send(std::vector<std::string>(17, "i-liar"), rounds);
  send({"i-other"}, 1);
  uint64_t of_liar = 0;
  uint64_t of_other = 0;
  const auto hosts = store_->clocks().Hosts();
  ASSERT_TRUE(hosts.ok());
  for (const HostBoot& host : *hosts) {
    const uint64_t bytes = store_->clocks().ExtentOf(host, {})->bytes;
    if (host.instance_id == "i-liar") of_liar += bytes;
    if (host.instance_id == "i-other") of_other += bytes;
  }
  EXPECT_LE(of_liar, limits::kClockHostBytesAtOnceMax + (uint64_t{1} << 20)) << "within minutes";
  EXPECT_GE(of_liar, limits::kClockHostBytesAtOnceMax / 2);
  EXPECT_EQ(of_other, observations.size());
  EXPECT_GT(ValuesOf(*registry_, "neurontrace_aggregator_clock_batches_over_limit_total").at(""),
            0);
}

TEST_F(ClockServiceTest, RefusesCallsWithoutAHello) {
  for (const bool empty : {true, false}) {
    grpc::ClientContext context;
    const auto call = stub_->Report(&context);
    v1::ClockReport report = Hello();
    report.mutable_hello()->clear_boot_id();
    ASSERT_TRUE(call->Write(empty ? v1::ClockReport() : report));
    v1::ClockOrder order;
    EXPECT_FALSE(call->Read(&order));
    EXPECT_EQ(call->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
}

TEST_F(ClockServiceTest, AnswersProbesWithTheKeyOfACall) {
  const UniqueFd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(service_->probe_port());
  ASSERT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  const auto probe = [&](ProbeCipher& cipher, uint64_t key_id, uint64_t sequence) {
    const ProbePacket question = cipher.Encode(ProbeQuestion{key_id, sequence});
    EXPECT_EQ(send(fd.get(), question.data(), question.size(), 0),
              static_cast<ssize_t>(question.size()));
  };
  grpc::ClientContext context;
  const auto call = stub_->Report(&context);
  ASSERT_TRUE(call->Write(Hello()));
  v1::ClockOrder order;
  ASSERT_TRUE(call->Read(&order));
  const auto grant = FromProto(order.access());
  ASSERT_TRUE(grant.ok());
  EXPECT_EQ(grant->udp_port, service_->probe_port());
  ProbeCipher cipher(grant->key);
  probe(cipher, grant->key_id, 1);
  pollfd readable{.fd = fd.get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(poll(&readable, 1, 10'000), 1);
  char packet[128];
  const ssize_t bytes = recv(fd.get(), packet, sizeof(packet), 0);
  const auto answer = cipher.DecodeAnswer({packet, static_cast<size_t>(bytes)});
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->reference_epoch, service_->timescale().epoch());
  call->WritesDone();
  EXPECT_TRUE(call->Finish().ok());
}

TEST_F(ClockServiceTest, AnswersInACall) {
  grpc::ClientContext context;
  const auto call = stub_->Ask(&context);
  for (uint64_t sequence = 1; sequence <= 3; ++sequence) {
    v1::ClockQuestion question;
    question.set_sequence(sequence);
    const uint64_t before = service_->timescale().NowNs();
    ASSERT_TRUE(call->Write(question));
    v1::ClockAnswer answer;
    ASSERT_TRUE(call->Read(&answer));
    EXPECT_EQ(answer.sequence(), sequence);
    EXPECT_EQ(answer.reference_epoch(), service_->timescale().epoch());
    EXPECT_LE(before, answer.reference_receive_ns());
    EXPECT_LE(answer.reference_receive_ns(), answer.reference_send_ns());
    EXPECT_LE(answer.reference_send_ns(), service_->timescale().NowNs());
  }
  call->WritesDone();
  EXPECT_TRUE(call->Finish().ok());
}

TEST_F(ClockServiceTest, PrunesOldEvidenceExceptForCaptures) {
  const uint64_t now_ns = clock_.RealtimeNs();
  const uint64_t hour_ns = 3'600'000'000'000;
  CaptureRecord capture;
  capture.id = *CaptureId::FromBytes("0123456789abcdef");
  capture.state = CaptureState::kComplete;
  capture.started_realtime_ns = now_ns - 40 * hour_ns;
  capture.ended_realtime_ns = now_ns - 39 * hour_ns;
  ASSERT_TRUE(store_->captures().Put(capture, true).ok());
  for (const uint64_t hours_ago : {1u, 23u, 25u, 39u, 40u, 42u}) {
    ASSERT_TRUE(store_->clocks()
                    .Put({{kHost, now_ns - hours_ago * hour_ns,
                           EncodeClockEvidence(SomeEvidence(1'000 - hours_ago))}})
                    .ok());
  }
  ASSERT_TRUE(service_->Prune().ok());
  const auto evidence = store_->clocks().Read(kHost, {});
  ASSERT_TRUE(evidence.ok());
  std::vector<uint64_t> hours;
  for (const ClockSnapshot& s : evidence->snapshots) hours.push_back(1'000 - s.raw_begin_ns);
  EXPECT_EQ(hours, (std::vector<uint64_t>{40, 39, 23, 1}));
}

}  // namespace
}  // namespace neurontrace
