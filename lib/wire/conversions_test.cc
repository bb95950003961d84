// SPDX-License-Identifier: Apache-2.0
// Goal: values survive the way over the wire, what a peer may not send is refused by name, and what
// we send is never refused. The values of the enums are compared by the compiler.
#include "lib/wire/conversions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/trace/limits.h"
#include "lib/wire/agent_hello.h"
#include "lib/wire/wire_test_support.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

template <typename Value, typename Message>
constexpr bool Same(Value value, Message message) {
  return static_cast<int>(value) == static_cast<int>(message);
}

static_assert(Same(StreamKind::kUnspecified, v1::STREAM_KIND_UNSPECIFIED));
static_assert(Same(StreamKind::kNeuronCore, v1::STREAM_KIND_NEURON_CORE));
static_assert(Same(StreamKind::kFramework, v1::STREAM_KIND_FRAMEWORK));
static_assert(Same(StreamKind::kHost, v1::STREAM_KIND_HOST));
static_assert(Same(StreamKind::kAnnotation, v1::STREAM_KIND_ANNOTATION));
static_assert(v1::StreamKind_MAX == v1::STREAM_KIND_ANNOTATION);

static_assert(Same(RankSource::kUnspecified, v1::RANK_SOURCE_UNSPECIFIED));
static_assert(Same(RankSource::kCommunicator, v1::RANK_SOURCE_COMMUNICATOR));
static_assert(Same(RankSource::kEvent, v1::RANK_SOURCE_EVENT));
static_assert(Same(RankSource::kPjrt, v1::RANK_SOURCE_PJRT));
static_assert(Same(RankSource::kGlobalDeviceId, v1::RANK_SOURCE_GLOBAL_DEVICE_ID));
static_assert(Same(RankSource::kTorchrun, v1::RANK_SOURCE_TORCHRUN));
static_assert(Same(RankSource::kConfigured, v1::RANK_SOURCE_CONFIGURED));
static_assert(Same(RankSource::kMpi, v1::RANK_SOURCE_MPI));
static_assert(Same(RankSource::kSlurm, v1::RANK_SOURCE_SLURM));
static_assert(Same(RankSource::kFrameworkFile, v1::RANK_SOURCE_FRAMEWORK_FILE));
static_assert(v1::RankSource_MAX == v1::RANK_SOURCE_FRAMEWORK_FILE);

static_assert(Same(LossPlace::kUnspecified, v1::LOSS_PLACE_UNSPECIFIED));
static_assert(Same(LossPlace::kRuntimeRing, v1::LOSS_PLACE_RUNTIME_RING));
static_assert(Same(LossPlace::kTapBuffer, v1::LOSS_PLACE_TAP_BUFFER));
static_assert(Same(LossPlace::kDecode, v1::LOSS_PLACE_DECODE));
static_assert(Same(LossPlace::kAgentQueue, v1::LOSS_PLACE_AGENT_QUEUE));
static_assert(Same(LossPlace::kSpool, v1::LOSS_PLACE_SPOOL));
static_assert(Same(LossPlace::kWireRefusal, v1::LOSS_PLACE_WIRE_REFUSAL));
static_assert(Same(LossPlace::kStore, v1::LOSS_PLACE_STORE));
static_assert(Same(LossPlace::kRetention, v1::LOSS_PLACE_RETENTION));
static_assert(v1::LossPlace_MAX == v1::LOSS_PLACE_RETENTION);

static_assert(Same(LossReason::kUnknown, v1::LOSS_REASON_UNKNOWN));
static_assert(Same(LossReason::kOverwritten, v1::LOSS_REASON_OVERWRITTEN));
static_assert(Same(LossReason::kFull, v1::LOSS_REASON_FULL));
static_assert(Same(LossReason::kMalformed, v1::LOSS_REASON_MALFORMED));
static_assert(Same(LossReason::kLimit, v1::LOSS_REASON_LIMIT));
static_assert(Same(LossReason::kRefused, v1::LOSS_REASON_REFUSED));
static_assert(Same(LossReason::kExpired, v1::LOSS_REASON_EXPIRED));
static_assert(Same(LossReason::kNoTime, v1::LOSS_REASON_NO_TIME));
static_assert(v1::LossReason_MAX == v1::LOSS_REASON_NO_TIME);

static_assert(Same(WorkerState::kUnspecified, v1::WORKER_STATE_UNSPECIFIED));
static_assert(Same(WorkerState::kNotInitialised, v1::WORKER_STATE_NOT_INITIALISED));
static_assert(Same(WorkerState::kIdle, v1::WORKER_STATE_IDLE));
static_assert(Same(WorkerState::kStreaming, v1::WORKER_STATE_STREAMING));
static_assert(Same(WorkerState::kBusyOtherProfiler, v1::WORKER_STATE_BUSY_OTHER_PROFILER));
static_assert(Same(WorkerState::kRuntimeTooOld, v1::WORKER_STATE_RUNTIME_TOO_OLD));
static_assert(Same(WorkerState::kClosed, v1::WORKER_STATE_CLOSED));
static_assert(Same(WorkerState::kFailed, v1::WORKER_STATE_FAILED));
static_assert(Same(WorkerState::kNoTap, v1::WORKER_STATE_NO_TAP));
static_assert(v1::WorkerState_MAX == v1::WORKER_STATE_NO_TAP);

static_assert(Same(CaptureWorkerState::kUnspecified, v1::CAPTURE_WORKER_STATE_UNSPECIFIED));
static_assert(Same(CaptureWorkerState::kStarting, v1::CAPTURE_WORKER_STATE_STARTING));
static_assert(Same(CaptureWorkerState::kRecording, v1::CAPTURE_WORKER_STATE_RECORDING));
static_assert(Same(CaptureWorkerState::kStopping, v1::CAPTURE_WORKER_STATE_STOPPING));
static_assert(Same(CaptureWorkerState::kComplete, v1::CAPTURE_WORKER_STATE_COMPLETE));
static_assert(Same(CaptureWorkerState::kRefused, v1::CAPTURE_WORKER_STATE_REFUSED));
static_assert(Same(CaptureWorkerState::kLost, v1::CAPTURE_WORKER_STATE_LOST));
static_assert(Same(CaptureWorkerState::kArmed, v1::CAPTURE_WORKER_STATE_ARMED));
static_assert(Same(CaptureWorkerState::kSuspended, v1::CAPTURE_WORKER_STATE_SUSPENDED));
static_assert(v1::CaptureWorkerState_MAX == v1::CAPTURE_WORKER_STATE_SUSPENDED);

static_assert(Same(CaptureObstacle::kNone, v1::CAPTURE_OBSTACLE_NONE));
static_assert(Same(CaptureObstacle::kOtherProfiler, v1::CAPTURE_OBSTACLE_OTHER_PROFILER));
static_assert(Same(CaptureObstacle::kRuntimeTooOld, v1::CAPTURE_OBSTACLE_RUNTIME_TOO_OLD));
static_assert(Same(CaptureObstacle::kNoTap, v1::CAPTURE_OBSTACLE_NO_TAP));
static_assert(Same(CaptureObstacle::kNotInitialised, v1::CAPTURE_OBSTACLE_NOT_INITIALISED));
static_assert(Same(CaptureObstacle::kAgentLost, v1::CAPTURE_OBSTACLE_AGENT_LOST));
static_assert(Same(CaptureObstacle::kOtherCapture, v1::CAPTURE_OBSTACLE_OTHER_CAPTURE));
static_assert(Same(CaptureObstacle::kNoEventType, v1::CAPTURE_OBSTACLE_NO_EVENT_TYPE));
static_assert(Same(CaptureObstacle::kRuntimeRefused, v1::CAPTURE_OBSTACLE_RUNTIME_REFUSED));
static_assert(Same(CaptureObstacle::kNotArmed, v1::CAPTURE_OBSTACLE_NOT_ARMED));
static_assert(Same(CaptureObstacle::kEnded, v1::CAPTURE_OBSTACLE_ENDED));
static_assert(Same(CaptureObstacle::kNoAnswer, v1::CAPTURE_OBSTACLE_NO_ANSWER));
static_assert(v1::CaptureObstacle_MAX == v1::CAPTURE_OBSTACLE_NO_ANSWER);

static_assert(Same(CaptureMode::kStream, v1::CAPTURE_MODE_STREAM));
static_assert(Same(CaptureMode::kFlightRecorder, v1::CAPTURE_MODE_FLIGHT_RECORDER));
static_assert(Same(CaptureMode::kSnapshot, v1::CAPTURE_MODE_SNAPSHOT));
static_assert(Same(CaptureMode::kContinuous, v1::CAPTURE_MODE_CONTINUOUS));
static_assert(Same(CaptureMode::kPreview, v1::CAPTURE_MODE_PREVIEW));
static_assert(v1::CaptureMode_MAX == v1::CAPTURE_MODE_PREVIEW);

static_assert(Same(ClockDomain::kUnspecified, v1::CLOCK_DOMAIN_UNSPECIFIED));
static_assert(Same(ClockDomain::kHostRealtime, v1::CLOCK_DOMAIN_HOST_REALTIME));
static_assert(Same(ClockDomain::kOwn, v1::CLOCK_DOMAIN_OWN));
static_assert(v1::ClockDomain_MAX == v1::CLOCK_DOMAIN_OWN);

template <typename Message, typename Value>
absl::StatusOr<Value> OverTheWire(const Value& value) {
  Message sent, received;
  ToProto(value, &sent);
  if (!received.ParseFromString(sent.SerializeAsString())) return absl::InternalError("parse");
  return FromProto(received);
}

template <typename Message, typename Value>
void ExpectSame(const Value& value) {
  const auto back = OverTheWire<Message>(value);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(*back == value);
}

WorkerInfo SomeWorkerInfo() {
  WorkerInfo info;
  info.identity = SomeWorker();
  info.state = WorkerState::kStreaming;
  info.detail = "recording";
  info.command = "python3 train.py";
  info.job = "job-1";
  info.cores = {{0, {{RankSource::kTorchrun, 3, 8, "RANK=3"}}}, {255, {}}};
  info.runtime_version = "2.31.24.0";
  info.pid_claimed = true;
  info.warnings = {"a warning"};
  info.event_types = {"nrt_execute", "nc_exec_running"};
  info.job_facts = {{"label:team", "nlp"}, {"slurm", "4711"}};
  info.tap_capture = SomeCapture();
  return info;
}

CaptureSpec SomeSpec() {
  CaptureSpec spec;
  spec.name = "Größe";
  spec.selection.job = "job-1";
  spec.selection.instance_ids = {"i-1", "i-2"};
  spec.selection.neuron_cores = {0, 255};
  spec.filter.event_types = {"hardware", "^cc_running"};
  spec.timing.duration_ns = 5'000'000'000;
  spec.retention.ring_events_per_core = limits::kRingEventsPerCoreMax;
  spec.selection.job_facts = {{"slurm", "4711"}};
  spec.selection.worker_gids = {{0, 7}, {64, 64}};
  spec.filter.all_events = true;
  spec.labels = {{"ticket", "T-1"}};
  spec.conditions.require_percent = 90;
  spec.conditions.at_next_execution = true;
  spec.conditions.at_execution = 5;
  spec.conditions.executions = 6;
  spec.budget.stored_bytes_max = 7;
  spec.retention.duration_ns = 8;
  spec.retention.bytes = 9;
  spec.budget.core_ppm = 10'000;
  spec.budget.bytes_per_second = 11;
  spec.cause = "slow";
  spec.watch = true;
  return spec;
}

TEST(ConversionsTest, ValuesSurviveTheWire) {
  ExpectSame<v1::WorkerIdentity>(SomeWorker());
  ExpectSame<v1::StreamIdentity>(SomeStream());
  ExpectSame<v1::RankEvidence>(RankEvidence{RankSource::kSlurm, 1, 2, "SLURM_PROCID=1"});
  ExpectSame<v1::RankEvidence>(RankEvidence{RankSource::kConfigured, 1, 2, "a guess", true, true});
  ExpectSame<v1::Loss>(Loss{LossPlace::kTapBuffer, LossReason::kFull, 0, true, 1, 2, "full"});
  ExpectSame<v1::CaptureSpec>(SomeSpec());
  ExpectSame<v1::WorkerInventory>(SomeWorkerInfo());
  ExpectSame<v1::CaptureWorkerStatus>(CaptureWorkerStatus{
      SomeCapture(), SomeWorker(), CaptureWorkerState::kLost, "killed", 10, 9, 1, true, true, 4});
  ExpectSame<v1::CaptureWorkerStatus>(CaptureWorkerStatus{.capture_id = SomeCapture(),
                                                          .worker = SomeWorker(),
                                                          .state = CaptureWorkerState::kArmed,
                                                          .obstacle = CaptureObstacle::kNoAnswer,
                                                          .bytes_read = 1,
                                                          .begun_realtime_ns = 2,
                                                          .begin_offset_ns = -3,
                                                          .begun_as_planned = true,
                                                          .first_execution = 4,
                                                          .highest_first_execution = 7,
                                                          .lowest_newest_execution = 8,
                                                          .newest_execution = 5,
                                                          .cores_without_execution = 9,
                                                          .reaches_back_ns = 6,
                                                          .joined_late = true});
  CaptureSpec snapshot;
  snapshot.mode = CaptureMode::kSnapshot;
  snapshot.timing.last_ns = 20'000'000'000;
  snapshot.timing.flight_recorder = SomeCapture();
  ExpectSame<v1::CaptureSpec>(snapshot);
  ExpectSame<v1::CaptureBegin>(CaptureBegin{1, 2, 3, 4, 5});
  ExpectSame<v1::StreamCursor>(StreamCursor{SomeStream(), 9, 1 << 30, 3, true, 70'000,
                                            SomeChunk().header.losses_before, 71'001});
  ExpectSame<v1::GoneBefore>(PrecedingGap{LossPlace::kSpool, LossReason::kFull});
  ChunkHeader stand_in = SomeChunk().header;
  stand_in.event_count = 0;
  stand_in.replaced = Loss{.place = LossPlace::kSpool, .reason = LossReason::kFull, .events = 2};
  ExpectSame<v1::ChunkHeader>(stand_in);
  ChunkHeader canary = SomeChunk().header;
  canary.event_count = 0;
  canary.losses.clear();
  canary.remarks.clear();
  canary.end_of_stream = false;
  canary.canary_realtime_ns = 1'700'000'000'000'000'000;
  ExpectSame<v1::ChunkHeader>(canary);
  ChunkHeader replaced = canary;
  replaced.replaced = Loss{.place = LossPlace::kSpool, .reason = LossReason::kFull};
  EXPECT_FALSE(OverTheWire<v1::ChunkHeader>(replaced)->is_canary());
  canary.event_count = 1;
  EXPECT_FALSE(OverTheWire<v1::ChunkHeader>(canary).ok());
  ExpectSame<v1::ChunkHeader>(SomeChunk().header);
  ChunkHeader own = SomeChunk().header;
  own.clock_domain = ClockDomain::kOwn;
  own.stream.kind = StreamKind::kFramework;
  ExpectSame<v1::ChunkHeader>(own);
  own.stream.kind = StreamKind::kNeuronCore;
  EXPECT_FALSE(OverTheWire<v1::ChunkHeader>(own).ok());
  ExpectSame<v1::AgentHello>(AgentInfo{1, "a", "0.1.0", "i-1", "imds", "boot", "host", "trn2"});
}

// What comes from outside may be anything; a message with a string that is not UTF-8 would be
// refused by the other side as a whole.
TEST(ConversionsTest, AcceptsEverythingSent) {
  const std::string anomalous(5000, '\xe6');
  WorkerInfo info = SomeWorkerInfo();
  info.detail = info.command = info.job = info.runtime_version = anomalous;
  info.warnings.assign(limits::kWorkerWarningsMax + 5, anomalous);
  info.identity.container_id = anomalous;
  info.cores.assign(limits::kCoresPerWorkerMax + 1, {0, {}});
  info.cores[0].rank_evidence.assign(limits::kRankEvidencePerStreamMax + 1,
                                     {RankSource::kMpi, 1, 2, anomalous});
  const auto back = OverTheWire<v1::WorkerInventory>(info);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->command, std::string(limits::kDetailBytesMax, '?'));
  EXPECT_EQ(back->warnings.size(), limits::kWorkerWarningsMax);
  EXPECT_EQ(back->cores[0].rank_evidence.size(), limits::kRankEvidencePerStreamMax);

  ChunkHeader header = SomeChunk().header;
  header.producer_version = header.stream.name = header.stream.agent_id = anomalous;
  ASSERT_TRUE(OverTheWire<v1::ChunkHeader>(header).ok());

  AgentInfo agent;
  agent.host_name = anomalous;
  EXPECT_TRUE(OverTheWire<v1::AgentHello>(agent).ok());
}

TEST(ConversionsTest, LossesBeyondTheLimitAreSummedIntoTheLast) {
  ChunkHeader header = SomeChunk().header;
  header.losses.assign(limits::kLossesPerChunkMax,
                       {LossPlace::kRuntimeRing, LossReason::kOverwritten, 1, false, 0, 50, ""});
  header.losses.push_back(
      {LossPlace::kRuntimeRing, LossReason::kOverwritten, 10, false, 70, 80, ""});
  header.losses.push_back({LossPlace::kRuntimeRing, LossReason::kUnknown, 0, true, 60, 65, ""});
  const auto back = OverTheWire<v1::ChunkHeader>(header);
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_EQ(back->losses.size(), limits::kLossesPerChunkMax);
  const Loss& last = back->losses.back();
  EXPECT_EQ(last.events, 11u);
  EXPECT_TRUE(last.events_unknown);
  EXPECT_EQ(last.first_timestamp_ns, 60u);
  EXPECT_EQ(last.last_timestamp_ns, 80u);
}

template <typename Message, typename Value>
void ExpectRefused(const Value& value, const std::function<void(Message&)>& change,
                   const std::string& word) {
  Message message;
  ToProto(value, &message);
  change(message);
  const auto back = FromProto(message);
  EXPECT_TRUE(absl::IsInvalidArgument(back.status())) << word << ": " << back.status();
  EXPECT_THAT(std::string(back.status().message()), HasSubstr(word));
}

TEST(ConversionsTest, RejectsInvalidIdentityByField) {
  const std::string long_text(limits::kIdentityStringBytesMax + 1, 'x');
  using Stream = v1::StreamIdentity;
  const auto refused = [](const std::function<void(Stream&)>& change, const std::string& word) {
    ExpectRefused<Stream>(SomeStream(), change, word);
  };
  refused([&](Stream& m) { m.set_agent_id(long_text); }, "stream.agent_id");
  refused([&](Stream& m) { m.set_name(long_text); }, "stream.name");
  refused([&](Stream& m) { m.mutable_worker()->set_boot_id(long_text); }, "worker.boot_id");
  refused([&](Stream& m) { m.mutable_worker()->set_container_id(long_text); }, "container_id");
  refused([](Stream& m) { m.set_agent_id("age\x01nt"); },
          "stream.agent_id has a control character");
  refused([](Stream& m) { m.set_name("a\nb"); }, "stream.name has a control character");
  refused([](Stream& m) { m.mutable_worker()->clear_instance_id(); },
          "worker.instance_id is empty");
  refused([](Stream& m) { m.clear_kind(); }, "stream.kind");
  refused([](Stream& m) { m.set_kind(static_cast<v1::StreamKind>(-1)); }, "stream.kind");
  refused([](Stream& m) { m.set_nc_idx(limits::kCoresPerWorkerMax); }, "stream.nc_idx");
  Stream message;
  ToProto(SomeStream(), &message);
  for (const int32_t nc_idx : {-2, INT32_MIN, INT32_MAX}) {
    message.set_nc_idx(nc_idx);
    EXPECT_FALSE(FromProto(message).ok()) << nc_idx;
  }
  message.set_nc_idx(-1);
  const auto of_worker = FromProto(message);
  ASSERT_TRUE(of_worker.ok()) << of_worker.status();
  EXPECT_EQ(of_worker->nc_idx, limits::kNoNcIdx);
}

// Written before the field had a sign: a varint of 32 bits.
TEST(ConversionsTest, TakesNoCoreAsItWasWrittenBefore) {
  v1::StreamIdentity message;
  ToProto(SomeStream(), &message);
  message.clear_nc_idx();
  std::string bytes = message.SerializeAsString();
  bytes += std::string("\x20\xff\xff\xff\xff\x0f", 6);
  v1::StreamIdentity parsed;
  ASSERT_TRUE(parsed.ParseFromString(bytes));
  EXPECT_EQ(parsed.nc_idx(), -1);
}

TEST(ConversionsTest, RejectsInvalidHeaderByField) {
  using Header = v1::ChunkHeader;
  const auto refused = [](const std::function<void(Header&)>& change, const std::string& word) {
    ExpectRefused<Header>(SomeChunk().header, change, word);
  };
  refused([](Header& m) { m.set_capture_id("short"); }, "capture id");
  refused([](Header& m) { m.set_sequence(UINT64_MAX); }, "header.sequence");
  refused([](Header& m) { m.mutable_losses(0)->clear_place(); }, "loss.place");
  refused([](Header& m) { m.mutable_losses(0)->set_reason(static_cast<v1::LossReason>(99)); },
          "loss.reason");
  refused([](Header& m) { m.mutable_losses(0)->set_detail(std::string(1025, 'x')); },
          "loss.detail");
  refused([](Header& m) { m.mutable_rank_evidence(0)->set_worker_gid(-1); }, "worker_gid");
  refused([](Header& m) { m.mutable_rank_evidence(0)->clear_source(); }, "rank_evidence.source");
  refused(
      [](Header& m) {
        while (m.losses_size() <= static_cast<int>(limits::kLossesPerChunkMax)) {
          *m.add_losses() = m.losses(0);
        }
      },
      "header.losses");
  refused(
      [](Header& m) {
        while (m.rank_evidence_size() <= static_cast<int>(limits::kRankEvidencePerStreamMax)) {
          *m.add_rank_evidence() = m.rank_evidence(0);
        }
      },
      "header.rank_evidence");
}

// What would be sent without its control characters is held without them, too: it is logged, shown
// and compared with what comes back.
TEST(ConversionsTest, StoresTextsAsSent) {
  const auto detail = [](auto message, auto value) {
    ToProto(value, &message);
    message.set_detail("a\nb\x1b[2J");
    return FromProto(message)->detail;
  };
  const std::string clean = "a?b?[2J";
  EXPECT_EQ(detail(v1::RankEvidence(), RankEvidence{RankSource::kSlurm, 1, 2, ""}), clean);
  EXPECT_EQ(detail(v1::Loss(), Loss{LossPlace::kTapBuffer, LossReason::kFull}), clean);
  EXPECT_EQ(detail(v1::WorkerInventory(), SomeWorkerInfo()), clean);
  EXPECT_EQ(detail(v1::CaptureWorkerStatus(),
                   CaptureWorkerStatus{SomeCapture(), SomeWorker(), CaptureWorkerState::kLost}),
            clean);

  v1::WorkerInventory worker;
  ToProto(SomeWorkerInfo(), &worker);
  worker.set_command("python3\n");
  worker.set_job("job\r1");
  worker.set_runtime_version("2\x7f");
  worker.set_warnings(0, "\t");
  const auto info = FromProto(worker);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->command, "python3?");
  EXPECT_EQ(info->job, "job?1");
  EXPECT_EQ(info->runtime_version, "2?");
  EXPECT_THAT(info->warnings, ::testing::ElementsAre("?"));

  v1::CaptureSpec spec;
  ToProto(SomeSpec(), &spec);
  spec.set_cause("slow\n");
  EXPECT_EQ(FromProto(spec)->cause, "slow?");
}

TEST(ConversionsTest, RejectsInvalidAgentInfoByField) {
  const AgentInfo agent{1, "a", "0.1.0", "i-1", "imds", "boot", "host", "trn2"};
  const auto refused = [&](const std::function<void(v1::AgentHello&)>& change,
                           const std::string& word) {
    ExpectRefused<v1::AgentHello>(agent, change, word);
  };
  refused([](v1::AgentHello& m) { m.set_agent_id("a\nb"); }, "hello.agent_id has a control");
  refused([](v1::AgentHello& m) { m.set_host_name("\x1b[2J"); }, "hello.host_name has a control");
  refused([](v1::AgentHello& m) { m.set_boot_id(std::string(600, 'x')); },
          "hello.boot_id has 600 bytes");
}

TEST(ConversionsTest, RejectsInvalidRequestByField) {
  using Spec = v1::CaptureSpec;
  const auto refused = [](const std::function<void(Spec&)>& change, const std::string& word) {
    ExpectRefused<Spec>(SomeSpec(), change, word);
  };
  refused([](Spec& m) { m.add_neuron_cores(256); }, "spec.neuron_cores has core 256");
  refused([](Spec& m) { m.add_event_types("^"); }, "event type filter");
  refused([](Spec& m) { m.add_event_types("nrt\x7f"); }, "event type filter");
  refused([](Spec& m) { m.set_ring_events_per_core(1); }, "spec.ring_events_per_core is 1");
  refused([](Spec& m) { m.set_require_percent(101); }, "spec.require_percent is 101");
  refused([](Spec& m) { m.set_mode(static_cast<v1::CaptureMode>(9)); }, "spec.mode");
  refused([](Spec& m) { m.set_mode(v1::CAPTURE_MODE_CONTINUOUS); }, "executions");
  refused([](Spec& m) { m.add_job_facts()->set_value("4711"); }, "a key is empty");
  refused([](Spec& m) { m.add_worker_gids()->set_first(-1); }, "spec.worker_gids");
  refused([](Spec& m) { m.set_flight_recorder("short"); }, "16");
  refused([](Spec& m) { m.add_instance_ids(std::string(600, 'x')); }, "spec.instance_ids");
  refused(
      [](Spec& m) {
        m.set_include_neuron(false);
        m.set_include_framework(false);
      },
      "nothing is recorded");
  ExpectRefused<v1::WorkerInventory>(
      SomeWorkerInfo(), [](v1::WorkerInventory& m) { m.mutable_cores(0)->set_nc_idx(256); },
      "core.nc_idx");
  ExpectRefused<v1::WorkerInventory>(
      SomeWorkerInfo(), [](v1::WorkerInventory& m) { m.clear_state(); }, "worker.state");
}

}  // namespace
}  // namespace neurontrace
