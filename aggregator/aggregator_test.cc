// SPDX-License-Identifier: Apache-2.0
// A whole aggregator on a directory of its own, with agents and operators that speak to it as real
// ones do. Nothing waits but for answers, each with a deadline.
#include "aggregator/aggregator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "aggregator/aggregator_test_support.h"
#include "lib/base/temporary_directory.h"
#include "lib/trace/agent_info.h"
#include "lib/wire/conversions.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Listens on 127.0.0.1:PORT, so that nobody else can.
int ListenOn(const std::string& address) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&place), sizeof place), 0);
  EXPECT_EQ(listen(fd, 1), 0);
  return fd;
}

class AggregatorTest : public ::testing::Test {
 protected:
  AggregatorTest() { Start(); }

  void Start() {
    aggregator_.reset();
    auto aggregator = Aggregator::Start(
        {.listen = "127.0.0.1:0", .health_address = "127.0.0.1:0", .store = directory_ / "store"},
        {.log = log_, .read_config = nullptr});
    ASSERT_TRUE(aggregator.ok()) << aggregator.status();
    aggregator_ = *std::move(aggregator);
  }

  const std::string& address() const { return aggregator_->address(); }

  TemporaryDirectory directory_;
  ProgramLog log_{"aggregator"};
  std::unique_ptr<Aggregator> aggregator_;
};

TEST_F(AggregatorTest, ServesThePageWhereAsked) {
  EXPECT_EQ(aggregator_->page_url(), "");
  const auto start = [this](const std::string& store, const std::string& view_address) {
    return Aggregator::Start({.listen = "127.0.0.1:0",
                              .health_address = "127.0.0.1:0",
                              .view_address = view_address,
                              .store = directory_ / store},
                             {.log = log_, .read_config = nullptr});
  };
  aggregator_.reset();
  aggregator_ = start("store", "127.0.0.1:0").value();
  const std::string url = aggregator_->page_url();
  EXPECT_THAT(url, StartsWith("http://127.0.0.1:"));
  const std::string taken = url.substr(std::string("http://").size(), url.find("/?") - 7);
  aggregator_.reset();
  // gRPC has one listener for handshakes, so two aggregators of a process follow each other.
  const int socket = ListenOn(taken);
  EXPECT_THAT(start("other", taken).status().message(), HasSubstr("cannot listen on " + taken));
  close(socket);
  EXPECT_TRUE(start("other", taken).ok()) << "the one that failed has closed its store";
}

// Whoever calls, with whatever program.
TEST_F(AggregatorTest, CauseOfCaptureComesFromAggregator) {
  TestOperator people(address());
  v1::Capture asked;
  for (const char* const key : {"trigger", " trigger ", "cause"}) {
    v1::CaptureSpec spec;
    spec.set_include_neuron(true);
    v1::KeyValue* const label = spec.add_labels();
    label->set_key(key);
    label->set_value("slow-step");
    const grpc::Status status = people.Start(spec, asked);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << key;
    EXPECT_THAT(status.error_message(), HasSubstr("reserved for the aggregator"));
  }
  v1::CaptureSpec spec;
  spec.set_include_neuron(true);
  spec.set_cause("trigger slow-step: step 7 took 9 s");
  EXPECT_EQ(people.Start(spec, asked).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(AggregatorTest, ACaptureFromStartToEnd) {
  TestAgent agent(address(), "a");
  TestOperator people(address());
  const v1::AgentOrder welcome = agent.Connect();
  ASSERT_TRUE(welcome.has_welcome());
  EXPECT_EQ(welcome.welcome().protocol_version(), kProtocolVersion);
  EXPECT_THAT(welcome.welcome().aggregator_id(), HasSubstr("agg-"));
  EXPECT_EQ(welcome.welcome().captures_size(), 0);

  v1::CaptureSpec spec;
  spec.set_include_neuron(true);
  v1::Capture asked;
  ASSERT_TRUE(people.Start(spec, asked).ok());
  EXPECT_EQ(asked.state(), v1::CAPTURE_STATE_ARMING);
  EXPECT_EQ(asked.spec().event_types(0), "^nrt_tensor_free");
  const CaptureId capture = *CaptureId::Parse(asked.capture_id());
  const v1::AgentOrder start = agent.ReadOrder();
  ASSERT_TRUE(start.has_start_capture());
  EXPECT_EQ(start.start_capture().capture_id(), capture.bytes());
  EXPECT_TRUE(start.start_capture().spec().include_neuron());
  EXPECT_TRUE(start.start_capture().arm());
  agent.ReportStatus(capture, CaptureWorkerState::kArmed);
  agent.ReportAgent(capture, 1, false);
  const v1::AgentOrder begin = agent.ReadOrder();
  ASSERT_TRUE(begin.has_begin_capture());
  EXPECT_EQ(begin.begin_capture().capture_id(), capture.bytes());
  EXPECT_GT(begin.begin_capture().begin().reference_ns(), asked.started_realtime_ns());
  agent.ReportStatus(capture, CaptureWorkerState::kRecording);

  EXPECT_EQ(agent.Upload(TestEnvelope(capture, "a", 0, 0)).next_sequence(), 1u);
  EXPECT_EQ(agent.Upload(TestEnvelope(capture, "a", 0, 1)).next_sequence(), 2u);
  EXPECT_EQ(agent.Upload(TestEnvelope(capture, "a", 3, 0)).next_sequence(), 1u);

  v1::Capture stopping;
  ASSERT_TRUE(people.Stop(capture.ToString(), stopping).ok());
  EXPECT_EQ(stopping.state(), v1::CAPTURE_STATE_STOPPING);
  EXPECT_TRUE(agent.ReadOrder().has_stop_capture());
  agent.Upload(TestEnvelope(capture, "a", 0, 2, /*end_of_stream=*/true, /*events=*/0));
  agent.Upload(TestEnvelope(capture, "a", 3, 1, /*end_of_stream=*/true, /*events=*/0));
  agent.ReportStatus(capture, CaptureWorkerState::kComplete, 24);
  agent.ReportAgent(capture, 1, true);

  const v1::Capture ended = people.WatchToEnd(capture);
  EXPECT_EQ(ended.state(), v1::CAPTURE_STATE_COMPLETE) << ended.ShortDebugString();
  EXPECT_EQ(ended.events(), 24u);
  EXPECT_EQ(ended.streams_size(), 0);
  v1::Capture shown;
  ASSERT_TRUE(people.Get(capture.ToString(), shown).ok());
  ASSERT_EQ(shown.streams_size(), 2);
  EXPECT_EQ(shown.streams(0).chunks(), 3u);
  EXPECT_EQ(shown.streams(0).events(), 16u);
  EXPECT_TRUE(shown.streams(0).ended());
  EXPECT_EQ(shown.streams(1).worker_gid(), 3);
  EXPECT_TRUE(shown.certificate().complete()) << shown.certificate().verdict();
  EXPECT_EQ(shown.certificate().account().expected(), 24u);
  EXPECT_EQ(people.List().captures(0).events(), 24u);
}

TEST_F(AggregatorTest, RetriesAreDroppedAndGapsAskedFor) {
  TestAgent agent(address(), "a");
  const CaptureId capture = TestOperator(address()).Start();
  agent.Upload(TestEnvelope(capture, "a", 0, 0));
  const v1::UploadAck again = agent.Upload(TestEnvelope(capture, "a", 0, 0));
  EXPECT_EQ(again.refusal(), v1::REFUSAL_CODE_NONE);
  EXPECT_EQ(again.next_sequence(), 1u);
  const v1::UploadAck gap = agent.Upload(TestEnvelope(capture, "a", 0, 3));
  EXPECT_EQ(gap.refusal(), v1::REFUSAL_CODE_GAP);
  EXPECT_EQ(gap.next_sequence(), 1u);
  // What was under way behind the gap is passed over; the stream continues where it was asked to.
  agent.Send(TestEnvelope(capture, "a", 0, 4));
  const v1::UploadAck resumed = agent.Upload(TestEnvelope(capture, "a", 0, 1));
  EXPECT_EQ(resumed.refusal(), v1::REFUSAL_CODE_NONE);
  EXPECT_EQ(resumed.next_sequence(), 2u);
  EXPECT_TRUE(agent.EndUpload().ok());
}

TEST_F(AggregatorTest, RefusesUnstorableChunkAndContinues) {
  TestAgent agent(address(), "a");
  const CaptureId capture = TestOperator(address()).Start();
  agent.Upload(TestEnvelope(capture, "a", 5, 0));
  v1::ChunkEnvelope damaged = TestEnvelope(capture, "a", 5, 1);
  damaged.mutable_columns()->back() ^= 1;
  const v1::UploadAck refused = agent.Upload(damaged);
  EXPECT_EQ(refused.refusal(), v1::REFUSAL_CODE_MALFORMED);
  EXPECT_EQ(refused.stream_ref(), 5u);
  EXPECT_EQ(refused.refused_sequence(), 1u);
  EXPECT_THAT(refused.message(), HasSubstr("checksum"));
  EXPECT_EQ(agent.Upload(TestEnvelope(capture, "a", 5, 1)).next_sequence(), 2u);

  const v1::UploadAck foreign = agent.Upload(TestEnvelope(capture, "b", 6, 0));
  EXPECT_EQ(foreign.refusal(), v1::REFUSAL_CODE_MALFORMED);
  EXPECT_THAT(foreign.message(), HasSubstr("was sent by agent a"));

  const v1::UploadAck unknown = agent.Upload(TestEnvelope(CaptureId(), "a", 7, 0));
  EXPECT_NE(unknown.refusal(), v1::REFUSAL_CODE_NONE);
  EXPECT_EQ(agent.Upload(TestEnvelope(capture, "a", 5, 2)).next_sequence(), 3u);
}

TEST_F(AggregatorTest, AnUploadWithoutANameIsRefused) {
  TestAgent agent(address(), "a");
  agent.OpenNamelessUpload();
  const grpc::Status status = agent.EndUpload();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("neurontrace-agent-id"));
}

TEST_F(AggregatorTest, ManyChunksOfManyStreamsAllArriveInOrder) {
  TestAgent agent(address(), "a");
  const CaptureId capture = TestOperator(address()).Start();
  constexpr uint64_t kChunks = 50;
  constexpr uint32_t kStreams = 8;
  agent.Upload(TestEnvelope(capture, "a", 0, 0));
  std::thread sender([&] {
    for (uint64_t sequence = 1; sequence < kChunks; ++sequence) {
      agent.Send(TestEnvelope(capture, "a", 0, sequence));
      for (uint32_t stream = 1; stream < kStreams; ++stream) {
        agent.Send(TestEnvelope(capture, "a", stream, sequence - 1));
      }
    }
  });
  std::map<uint32_t, uint64_t> acked;
  uint64_t sum = 0;
  while (sum < (kChunks - 1) * kStreams + 1) {
    const v1::UploadAck ack = agent.ReadAck();
    ASSERT_EQ(ack.refusal(), v1::REFUSAL_CODE_NONE) << ack.message();
    ASSERT_TRUE(ack.message().empty()) << ack.message();
    acked[ack.stream_ref()] = ack.next_sequence();
    sum = 0;
    for (const auto& [stream, next] : acked) sum += next;
  }
  sender.join();
  EXPECT_TRUE(agent.EndUpload().ok());
  v1::Capture shown;
  ASSERT_TRUE(TestOperator(address()).Get(capture.ToString(), shown).ok());
  EXPECT_EQ(shown.events(), ((kChunks - 1) * kStreams + 1) * 8);
}

TEST_F(AggregatorTest, ContinuesARunningCaptureAfterARestart) {
  const CaptureId capture = TestOperator(address()).Start();
  {
    TestAgent agent(address(), "a");
    EXPECT_EQ(agent.Connect().welcome().captures_size(), 1);
    agent.ReportAgent(capture, 1, false);
    agent.Upload(TestEnvelope(capture, "a", 2, 0));
    agent.Upload(TestEnvelope(capture, "a", 2, 1));
  }
  Start();
  TestAgent agent(address(), "a");
  TestOperator people(address());
  const v1::AgentOrder order = agent.Connect();
  ASSERT_EQ(order.welcome().captures_size(), 1);
  const v1::CaptureResume& resume = order.welcome().captures(0);
  EXPECT_EQ(resume.start().capture_id(), capture.bytes());
  EXPECT_FALSE(resume.stopping());
  ASSERT_EQ(resume.cursors_size(), 1);
  EXPECT_EQ(resume.cursors(0).next_sequence(), 2u);
  EXPECT_EQ(resume.cursors(0).source_position(), 4'096u);
  EXPECT_EQ(resume.cursors(0).source_skip(), 7u);
  EXPECT_EQ(resume.cursors(0).stream().nc_idx(), 2);
  EXPECT_EQ(agent.Upload(TestEnvelope(capture, "a", 2, 1)).next_sequence(), 2u);
  v1::Capture shown;
  ASSERT_TRUE(people.Get(capture.ToString(), shown).ok());
  EXPECT_EQ(shown.events(), 16u);
  EXPECT_EQ(people.Status().agents_known(), 1u);
}

TEST_F(AggregatorTest, RefusesAgentsOfFarProtocolVersions) {
  TestAgent agent(address(), "a");
  EXPECT_FALSE(agent.Connect(kProtocolVersion + 2).has_welcome());
  const grpc::Status status = agent.EndControl();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("update the aggregator"));
  TestAgent newer(address(), "b");
  EXPECT_TRUE(newer.Connect(kProtocolVersion + 1).has_welcome());
}

TEST_F(AggregatorTest, ASecondConnectionOfAnAgentEndsTheFirst) {
  TestAgent first(address(), "a");
  ASSERT_TRUE(first.Connect().has_welcome());
  TestAgent second(address(), "a");
  ASSERT_TRUE(second.Connect().has_welcome());
  EXPECT_FALSE(first.ReadOrder().has_welcome());
  EXPECT_EQ(first.EndControl().error_code(), grpc::StatusCode::ABORTED);
  TestOperator(address()).Start();
  EXPECT_TRUE(second.ReadOrder().has_start_capture());
}

TEST_F(AggregatorTest, ListsWorkersByJob) {
  TestAgent agent(address(), "a");
  agent.Connect();
  agent.ReportWorker("llama", 1);
  agent.ReportWorker("qwen", 2);
  // Reports are dealt with one after the other: once this order has come, both were.
  const CaptureId capture = TestOperator(address()).Start();
  agent.ReadOrder();
  agent.ReportAgent(capture, 1, false);
  TestOperator people(address());
  v1::ListWorkersReply workers;
  for (int i = 0; i < 200 && workers.workers_size() == 0; ++i) workers = people.Workers("qwen");
  ASSERT_EQ(workers.workers_size(), 1);
  EXPECT_EQ(workers.workers(0).identity().pid(), 2u);
  EXPECT_EQ(people.Workers("").workers_size(), 2);
  EXPECT_EQ(people.Status().workers(), 2u);
  EXPECT_EQ(people.Status().agents_connected(), 1u);
}

TEST_F(AggregatorTest, ListsWorkersByAnyNameOfTheirJob) {
  TestAgent agent(address(), "a");
  agent.Connect();
  v1::AgentReport report;
  ToProto(WorkerInfo{.identity = TestWorker("a", 1),
                     .state = WorkerState::kIdle,
                     .job = "10.0.0.1:63423",
                     .cores = {{.nc_idx = 0}},
                     .job_facts = {{"pod", "llama-0"}, {"slurm", "4711"}}},
          report.mutable_worker());
  agent.Report(report);
  TestOperator people(address());
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (people.Workers("").workers_size() == 0 && std::chrono::steady_clock::now() < deadline) {
  }
  for (const char* const name : {"10.0.0.1:63423", "4711", "slurm=4711", "pod=llama-0"}) {
    EXPECT_EQ(people.Workers(name).workers_size(), 1) << name;
  }
  for (const char* const name : {"llama-0", "slurm=4712", "4712"}) {
    EXPECT_EQ(people.Workers(name).workers_size(), 0) << name;
  }
}

// What a name that was mistyped selects is not silence for as long as it continues.
TEST_F(AggregatorTest, UnmatchedStandingCaptureListsWorkers) {
  TestOperator people(address());
  const CaptureId id = people.Start();
  v1::Capture capture;
  ASSERT_TRUE(people.Get(id.ToString(), capture).ok());
  ASSERT_EQ(capture.state(), v1::CAPTURE_STATE_RECORDING);
  ASSERT_EQ(capture.warnings_size(), 1);
  EXPECT_EQ(capture.warnings(0), "no worker matches yet; no agent is connected");
  EXPECT_EQ(people.List().captures(0).warnings_size(), 1);
}

TEST_F(AggregatorTest, ReportsErrorsToOperators) {
  TestOperator people(address());
  v1::CaptureSpec spec;
  v1::Capture capture;
  EXPECT_EQ(people.Start(spec, capture).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  spec.set_include_neuron(true);
  spec.add_event_types("a^b");
  const grpc::Status bad_filter = people.Start(spec, capture);
  EXPECT_EQ(bad_filter.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(bad_filter.error_message(), HasSubstr("a^b"));
  EXPECT_EQ(people.Get("0", capture).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(people.Get("", capture).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(people.Stop("0", capture).error_code(), grpc::StatusCode::NOT_FOUND);

  spec.clear_event_types();
  ASSERT_TRUE(people.Start(spec, capture).ok());
  EXPECT_EQ(capture.state(), v1::CAPTURE_STATE_NOT_BEGUN);
  EXPECT_THAT(capture.warnings(), ElementsAre(HasSubstr("no agent is connected")));
  const std::string first = capture.capture_id();
  ASSERT_TRUE(people.Start(spec, capture).ok());
  const std::string second = capture.capture_id();
  EXPECT_EQ(people.WatchToEnd(*CaptureId::Parse(second)).state(), v1::CAPTURE_STATE_NOT_BEGUN);
  const grpc::Status ambiguous = people.Get("0", capture);
  EXPECT_EQ(ambiguous.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(ambiguous.error_message(), HasSubstr(first));
  EXPECT_THAT(ambiguous.error_message(), HasSubstr(second));
}

TEST_F(AggregatorTest, ACaptureIsDeletedOnlyOnceItHasEnded) {
  TestAgent agent(address(), "a");
  TestOperator people(address());
  const CaptureId capture = people.Start();
  agent.Upload(TestEnvelope(capture, "a", 0, 0));
  EXPECT_EQ(people.Delete(capture.ToString()).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  v1::Capture stopped;
  ASSERT_TRUE(people.Stop(capture.ToString(), stopped).ok());
  EXPECT_EQ(people.WatchToEnd(capture).state(), v1::CAPTURE_STATE_INCOMPLETE);
  ASSERT_TRUE(people.Stop(capture.ToString(), stopped).ok());  // as it is
  EXPECT_EQ(stopped.state(), v1::CAPTURE_STATE_INCOMPLETE);
  EXPECT_THAT(stopped.warnings(), ElementsAre(HasSubstr("no worker matched")));
  EXPECT_TRUE(people.Delete(capture.ToString()).ok());
  EXPECT_THAT(people.List().captures(), IsEmpty());
  const v1::UploadAck late = agent.Upload(TestEnvelope(capture, "a", 0, 1));
  EXPECT_EQ(late.refusal(), v1::REFUSAL_CODE_UNKNOWN_CAPTURE);
}

TEST_F(AggregatorTest, StopsByItselfWhenTheDurationIsOver) {
  TestOperator people(address());
  const CaptureId capture = people.Start(/*duration_ns=*/50'000'000);
  const v1::Capture ended = people.WatchToEnd(capture);
  EXPECT_EQ(ended.state(), v1::CAPTURE_STATE_INCOMPLETE);
  EXPECT_GE(ended.stopped_realtime_ns() - ended.started_realtime_ns(), 50'000'000u);
}

v1::UpdateCaptureRequest Adding(const CaptureId& id, const std::string& tag) {
  v1::UpdateCaptureRequest request;
  request.set_capture_id(id.ToString());
  request.add_add_tags(tag);
  return request;
}

TEST_F(AggregatorTest, UpdatesRunningAndEndedCapturesThroughARestart) {
  v1::Capture capture;
  CaptureId id;
  {
    TestOperator people(address());
    id = people.Start();
    v1::UpdateCaptureRequest request = Adding(id, "baseline");
    request.set_capture_id(id.ToString().substr(0, 12));
    request.set_name("night run");
    ASSERT_TRUE(people.Update(request, capture).ok());
    EXPECT_EQ(capture.spec().name(), "night run");
    EXPECT_EQ(capture.state(), v1::CAPTURE_STATE_RECORDING);
    ASSERT_TRUE(people.Stop(id.ToString(), capture).ok());
    people.WatchToEnd(id);
    v1::UpdateCaptureRequest star;
    star.set_capture_id(id.ToString());
    star.set_starred(true);
    ASSERT_TRUE(people.Update(star, capture).ok());
    ASSERT_TRUE(people.Update(star, capture).ok());
    EXPECT_TRUE(capture.starred());
  }
  Start();
  TestOperator people(address());
  ASSERT_TRUE(people.Get(id.ToString(), capture).ok());
  EXPECT_EQ(capture.spec().name(), "night run");
  EXPECT_TRUE(capture.starred());
  EXPECT_THAT(capture.tags(), ElementsAre("baseline"));
  EXPECT_TRUE(people.List().captures(0).starred());
  ASSERT_TRUE(people.Delete(id.ToString()).ok());
  EXPECT_EQ(people.Update(Adding(id, "late"), capture).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(people.List().captures_size(), 0);  // nothing wrote its record again
}

TEST_F(AggregatorTest, RefusesUpdatesThatCannotBeMade) {
  TestOperator people(address());
  const CaptureId id = people.Start();
  v1::Capture capture;
  v1::UpdateCaptureRequest empty;
  empty.set_capture_id(id.ToString());
  EXPECT_EQ(people.Update(empty, capture).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  const grpc::Status bad = people.Update(Adding(id, "a,b"), capture);
  EXPECT_EQ(bad.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(bad.error_message(), HasSubstr("add_tags[0] has a comma"));
  v1::CaptureSpec spec;
  spec.set_include_neuron(true);
  spec.set_mode(v1::CAPTURE_MODE_PREVIEW);
  spec.set_duration_ns(60'000'000'000);
  v1::Capture preview;
  ASSERT_TRUE(people.Start(spec, preview).ok());
  const grpc::Status refused =
      people.Update(Adding(*CaptureId::Parse(preview.capture_id()), "kept"), capture);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(), HasSubstr("is a preview"));
}

TEST_F(AggregatorTest, UpdatesAtTheSameTimeKeepEachOthersTags) {
  constexpr int kPeople = 4;
  constexpr int kTagsOfEach = 8;  // together the limit of a capture
  TestOperator people(address());
  const CaptureId ended = people.Start();
  v1::Capture capture;
  const grpc::Status stopped = people.Stop(ended.ToString(), capture);
  ASSERT_TRUE(stopped.ok()) << stopped.error_message();
  people.WatchToEnd(ended);
  const CaptureId running = people.Start();  // only now: two would both want the same workers
  for (const CaptureId& id : {running, ended}) {
    std::vector<std::thread> threads;
    for (int person = 0; person < kPeople; ++person) {
      threads.emplace_back([&, person] {
        TestOperator own(address());
        for (int i = 0; i < kTagsOfEach; ++i) {
          v1::Capture reply;
          const std::string tag = std::to_string(person) + "-" + std::to_string(i);
          EXPECT_TRUE(own.Update(Adding(id, tag), reply).ok());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(people.Get(id.ToString(), capture).ok());
    EXPECT_EQ(capture.tags_size(), kPeople * kTagsOfEach);
  }
}

TEST_F(AggregatorTest, PreviewIsReportedOnceThenRemoved) {
  TestAgent agent(address(), "a");
  TestOperator people(address());
  agent.Connect();
  v1::CaptureSpec spec;
  spec.set_include_neuron(true);
  spec.set_mode(v1::CAPTURE_MODE_PREVIEW);
  spec.set_duration_ns(60'000'000'000);
  v1::Capture asked;
  ASSERT_TRUE(people.Start(spec, asked).ok());
  const CaptureId capture = *CaptureId::Parse(asked.capture_id());
  ASSERT_TRUE(agent.TakePart(capture));
  ASSERT_TRUE(agent.ReadOrder().has_stop_capture());
  v1::AgentReport report;
  ToProto(CaptureWorkerStatus{.capture_id = capture,
                              .worker = TestWorker("a"),
                              .state = CaptureWorkerState::kComplete,
                              .events_read = 4'000,
                              .bytes_read = 20'000},
          report.mutable_capture_worker());
  agent.Report(report);
  agent.ReportAgent(capture, 1, true);
  const v1::Capture ended = people.WatchToEnd(capture);
  EXPECT_EQ(ended.state(), v1::CAPTURE_STATE_COMPLETE);
  const v1::CapturePreview& preview = ended.preview();
  EXPECT_NEAR(preview.events_per_second(), 2'000, 200);
  EXPECT_NEAR(static_cast<double>(preview.bytes()), 600'000, 60'000);
  EXPECT_EQ(preview.most_instance_id(), "i-a");
  EXPECT_GT(preview.store_free_bytes(), 0u);
  EXPECT_EQ(preview.quota_left_bytes(), UINT64_MAX);
  for (int i = 0; i < 200 && people.List().captures_size() > 0; ++i) {
  }
  EXPECT_THAT(people.List().captures(), IsEmpty());
}

TEST(AggregatorConfig, TakesAddressesAndRefusesOthers) {
  int exit_code = -1;
  const auto parse = [&](std::vector<std::string> words) {
    std::vector<char*> argv;
    words.insert(words.begin(), "neurontrace-aggregator");
    for (std::string& word : words) argv.push_back(word.data());
    return ParseAggregatorConfig(static_cast<int>(argv.size()), argv.data(), exit_code);
  };
  EXPECT_EQ(parse({"--listen", "[::1]:0", "--store", "/s"})->listen, "[::1]:0");
  for (const char* bad : {"9400", "host", "host:", "host:70000", "::1:9400", ":9400", "host:1x"}) {
    EXPECT_FALSE(parse({"--listen", bad})) << bad;
    EXPECT_EQ(exit_code, 2) << bad;
  }
  EXPECT_FALSE(parse({"--store", ""}));
  EXPECT_FALSE(parse({"--no-such-flag"}));
  EXPECT_EQ(parse({"--quota-store-bytes", "5GiB"})->quotas.store_bytes, uint64_t{5} << 30);
  EXPECT_EQ(exit_code, 2);
  EXPECT_FALSE(parse({"--help"}));
  EXPECT_EQ(exit_code, 0);
}

TEST_F(AggregatorTest, TwoProducersOfOneStreamAreNoticed) {
  TestAgent agent(address(), "a");
  TestOperator people(address());
  agent.Connect();
  const CaptureId capture = people.Start();
  ASSERT_TRUE(agent.TakePart(capture));
  EXPECT_EQ(agent.Upload(TestEnvelope(capture, "a", 0, 0)).next_sequence(), 1u);
  // A retry, and then something else under its name; both get the answer that it is stored.
  EXPECT_EQ(agent.Upload(TestEnvelope(capture, "a", 0, 0)).next_sequence(), 1u);
  EXPECT_EQ(agent.Upload(TestEnvelope(capture, "a", 0, 0, false, 6)).next_sequence(), 1u);
  v1::Capture stopped;
  ASSERT_TRUE(people.Stop(capture.ToString(), stopped).ok());
  agent.ReadOrder();
  agent.ReportAgent(capture, 0, true);
  const v1::Capture ended = people.WatchToEnd(capture);
  EXPECT_THAT(ended.ShortDebugString(), HasSubstr("two producers share the stream"));
}

}  // namespace
}  // namespace neurontrace
