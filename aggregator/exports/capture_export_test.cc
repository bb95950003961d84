// SPDX-License-Identifier: Apache-2.0
// What is said of a file whose capture is damaged on disk: every format, from a real store.
#include "aggregator/exports/capture_export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "aggregator/certificate/make_certificate.h"
#include "aggregator/export/parquet/parquet_format.h"
#include "aggregator/exports/grpc_output_files.h"
#include "aggregator/storage/store_damage_test_support.h"
#include "aggregator/store/chunk_frame.h"
#include "lib/base/sha256.h"
#include "lib/trace/event_chunk.h"
#include "lib/trace/host_samples.h"
#include "lib/wire/chunk_envelope.h"
#include "lib/wire/export_options.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class CaptureExportTest : public StoreDamageTest {
 protected:
  // A capture that has ended, of whose two streams everything came.
  void FillWhole() {
    Fill(1, 2, 5);
    record_ = TestCapture(1);
    record_.state = CaptureState::kComplete;
    record_.started_realtime_ns = 1'000'000'000;
    record_.stopped_realtime_ns = record_.started_realtime_ns + 1'000'000'000;
    record_.ended_realtime_ns = 2'000;
    record_.agents = {{.agent_id = "a", .instance_id = "i-a", .finished = true}};
    {
      const auto store = OpenStore();
      for (uint32_t stream = 0; stream < 2; ++stream) {
        const ReceivedChunk last = RealChunk(1, stream, 5, true);
        record_.agents[0].instance_id = last.header.stream.worker.instance_id;
        record_.workers = {{.capture_id = record_.id,
                            .worker = last.header.stream.worker,
                            .state = CaptureWorkerState::kComplete,
                            .events_read = 2 * 5 * kEventsPerChunk,
                            .streams = 2}};
        ASSERT_TRUE(store->chunks().PutBatch({&last, 1}).ok());
      }
      ASSERT_TRUE(store->captures().Put(record_, true).ok());
    }
    Flush();
  }

  // Samples of a host from long before the first event of its workers.
  ReceivedChunk HostChunk() {
    EventChunkBuilder builder;
    const auto shape =
        builder.InternShape({.event_type = std::string(kHostMemoryEventType),
                             .phase = Phase::kCounter,
                             .present = FieldBit(Field::kTimestamp),
                             .keys = {{kHostUsedBytesKey, ValueType::kUint, KeyScope::kData},
                                      {kHostUsedPercentKey, ValueType::kDouble, KeyScope::kData}}});
    for (uint64_t i = 0; i < 4; ++i) {
      const std::array<AttributeValue, 2> values = {
          {{.bits = 1'000 + i}, {.bits = std::bit_cast<uint64_t>(12.5)}}};
      EXPECT_TRUE(builder.Append(*shape, {.timestamp_ns = 10 + i}, values).ok());
    }
    const EncodedColumns encoded = builder.Finish();
    Chunk chunk;
    chunk.header.capture_id = record_.id;
    chunk.header.stream = {.agent_id = "a",
                           .worker = {.instance_id = "i-a", .boot_id = "boot"},
                           .kind = StreamKind::kHost,
                           .nc_idx = limits::kNoNcIdx};
    chunk.header.event_count = encoded.event_count;
    chunk.header.first_timestamp_ns = encoded.first_timestamp_ns;
    chunk.header.last_timestamp_ns = encoded.last_timestamp_ns;
    chunk.header.columns_bytes = static_cast<uint32_t>(encoded.bytes.size());
    chunk.columns = CompressColumns(encoded.bytes);
    v1::ChunkEnvelope envelope;
    ToEnvelope(std::move(chunk), 99, &envelope);
    auto received = door().Admit(envelope, "a");
    EXPECT_TRUE(received.ok()) << received.status();
    return *std::move(received);
  }
  void PutHostChunk() {
    {
      const auto store = OpenStore();
      const ReceivedChunk chunk = HostChunk();
      ASSERT_TRUE(store->chunks().PutBatch({&chunk, 1}).ok());
    }
    Flush();
  }

  v1::ExportDone Export(const Store& store, v1::ExportFormat format) {
    v1::ExportRequest request;
    request.set_format(format);
    return Export(store, request);
  }
  v1::ExportDone Export(const Store& store, v1::ExportRequest request) {
    request.set_capture_id(record_.id.ToString());
    v1::ExportDone done;
    file_.clear();
    const ExportWriter write = [&](const v1::ExportReply& reply) {
      file_ += reply.data();
      if (reply.has_done()) done = reply.done();
      return true;
    };
    GrpcOutputFiles files(write);
    const absl::Status status =
        ExportStoredCapture(store, record_, request, clocks_, store_problem_, files, write);
    EXPECT_TRUE(status.ok()) << status;
    return done;
  }

  CaptureRecord record_;
  CaptureClocks clocks_;
  std::string store_problem_;
  std::string file_;
};

void KeepArtifact(Store& store, const CaptureId& capture, const ArtifactPlace& place) {
  Sha256 hash;
  hash.Update(place.name);
  const ArtifactReference reference{.capture_id = capture,
                                    .agent_id = "a",
                                    .place = place,
                                    .sha256 = hash.Finish(),
                                    .bytes = place.name.size()};
  ArtifactFiles& files = store.artifacts().files();
  if (!files.Has(reference.sha256)) {
    auto upload = files.Receive(reference.sha256, reference.bytes);
    ASSERT_TRUE(upload.ok()) << upload.status();
    ASSERT_TRUE((*upload)->Append(place.name).ok());
    ASSERT_TRUE((*upload)->Finish().ok());
  }
  EXPECT_EQ(store.artifacts().Refer(reference).value(), ArtifactStore::Outcome::kKept);
}

constexpr v1::ExportFormat kFormats[] = {
    v1::EXPORT_FORMAT_PERFETTO,     v1::EXPORT_FORMAT_JSON,         v1::EXPORT_FORMAT_EVENTS,
    v1::EXPORT_FORMAT_SUMMARY_TEXT, v1::EXPORT_FORMAT_SUMMARY_JSON, v1::EXPORT_FORMAT_CHROME_JSON,
    v1::EXPORT_FORMAT_XSPACE};

TEST_F(CaptureExportTest, CompleteCaptureIsCompleteInEveryFormat) {
  FillWhole();
  const auto store = OpenStore();
  for (const v1::ExportFormat format : kFormats) {
    const v1::ExportDone done = Export(*store, format);
    EXPECT_FALSE(done.capture_incomplete()) << v1::ExportFormat_Name(format);
    EXPECT_THAT(done.verdict(), StartsWith("complete")) << v1::ExportFormat_Name(format);
  }
}

TEST_F(CaptureExportTest, AChunkThatIsDamagedOnDiskMakesItsFilesIncompleteInEveryFormat) {
  FillWhole();
  FlipInBlobOf(1, 1, 3);
  const auto untouched = Snapshot();
  for (const v1::ExportFormat first : kFormats) {
    // What an earlier round made of it goes.
    std::filesystem::remove_all(path());
    std::filesystem::create_directory(path());
    for (const auto& [name, bytes] : untouched) WriteFile(path() + "/" + name, bytes);
    auto store = OpenStore();
    // Who meets the damage says so.
    const v1::ExportDone met = Export(*store, first);
    EXPECT_TRUE(met.capture_incomplete()) << v1::ExportFormat_Name(first);
    EXPECT_THAT(met.verdict(), HasSubstr("1 stored chunk cannot be read and is omitted"));
    ASSERT_GE(met.warnings_size(), 1);
    EXPECT_THAT(met.warnings(0), HasSubstr("is omitted"));
    // The capture's certificate knows it at once, also where a compaction of RocksDB's met the
    // damage first, so that the store takes no writes until it is opened again, as the aggregator
    // does then.
    EXPECT_FALSE(ReadCertificate(*store, record_).value().complete);
    if (store->must_reopen()) {
      store.reset();
      store = OpenStore();
    }
    // From then on it is a loss of the capture's.
    for (const v1::ExportFormat format : kFormats) {
      const v1::ExportDone done = Export(*store, format);
      EXPECT_TRUE(done.capture_incomplete()) << v1::ExportFormat_Name(format);
      EXPECT_THAT(done.verdict(), HasSubstr("8 of 80 events lost")) << done.verdict();
    }
  }
}

// Columns that RocksDB's checksums find nothing wrong with, and that cannot be decoded.
TEST_F(CaptureExportTest, TheCertificateRemembersChunksThatAReaderCouldNotDecode) {
  FillWhole();
  EditStore([](Database& database) {
    for (const uint64_t sequence : {1, 3}) {
      const std::string key = keys::Chunk(TestCaptureId(1), 1, sequence);
      std::string value = database.Get(Family::kChunks, key).value();
      // Where the compressed columns begin.
      const size_t at = ChunkFrame::kBytes + ChunkFrame::Decode(value)->header_bytes;
      for (size_t i = at; i < at + 4; ++i) value[i] = static_cast<char>(value[i] ^ 0x5a);
      ASSERT_TRUE(database.Put(Family::kChunks, key, value, true).ok());
    }
  });
  for (const v1::ExportFormat format : kFormats) {
    SCOPED_TRACE(v1::ExportFormat_Name(format));
    const auto store = OpenStore();
    EXPECT_TRUE(Export(*store, format).capture_incomplete());
    const Certificate certificate = ReadCertificate(*store, record_).value();
    EXPECT_FALSE(certificate.complete);
    ASSERT_EQ(certificate.findings.size(), 1u);
    EXPECT_THAT(certificate.findings[0], HasSubstr("2 stored chunks cannot be read"));
    EXPECT_THAT(certificate.verdict, StartsWith("incomplete"));
  }
}

TEST_F(CaptureExportTest, AWindowCountsFromTheFirstEventOfTheWorkers) {
  FillWhole();
  PutHostChunk();
  const auto store = OpenStore();
  v1::ExportRequest request;
  request.set_format(v1::EXPORT_FORMAT_JSON);
  request.set_window_start_is_relative(true);
  request.set_window_end_ns(500);
  request.set_window_end_is_relative(true);
  // The first chunk of each of two streams; what hosts did was before.
  EXPECT_EQ(Export(*store, request).total().spans(), 2 * kEventsPerChunk / 2);
  EXPECT_THAT(file_, HasSubstr("\"mem_usage\":[]"));
  request.set_window_end_ns(0);
  request.set_window_start_is_relative(false);
  EXPECT_EQ(Export(*store, request).total().spans(), 2 * 5 * kEventsPerChunk / 2);
  EXPECT_THAT(file_, HasSubstr("\"usage\":1003}"));
}

TEST_F(CaptureExportTest, EmptySelectionListsCaptureContents) {
  FillWhole();
  const auto store = OpenStore();
  const auto warning_of = [&](const std::function<void(v1::ExportRequest&)>& select) {
    v1::ExportRequest request;
    select(request);
    std::string words;
    for (const v1::ExportFormat format : kFormats) {
      request.set_format(format);
      const v1::ExportDone done = Export(*store, request);
      EXPECT_EQ(done.warnings_size(), 1) << v1::ExportFormat_Name(format);
      words = done.warnings_size() == 0 ? "" : done.warnings(0);
      EXPECT_THAT(words, StartsWith(kNothingSelected)) << v1::ExportFormat_Name(format);
    }
    return words.substr(kNothingSelected.size());
  };
  EXPECT_EQ(warning_of([](auto& request) { request.add_instance_ids("nope"); }),
            "the capture has no instance nope (it has i-a)");
  EXPECT_EQ(warning_of([](auto& request) { request.set_job("nope"); }),
            "the capture has no job nope (it has none with a name)");
  EXPECT_EQ(
      warning_of([](auto& request) {
        request.add_neuron_cores(77);
        request.add_worker_gids()->set_last(999);
        request.mutable_worker_gids(0)->set_first(998);
      }),
      "the capture has no core 77 (it has 0-1); the capture has no worker_gid 998-999 (it has "
      "0-1)");
  EXPECT_EQ(warning_of([](auto& request) {
              request.add_streams()->set_first(70);
              request.mutable_streams(0)->set_last(79);
            }),
            "the capture has no events in streams 70-79");
  EXPECT_EQ(warning_of([](auto& request) { request.add_event_types("nc_exec_runing"); }),
            "the capture has no event type nc_exec_runing (did you mean nc_exec_running?)");
  EXPECT_EQ(warning_of([](auto& request) {
              request.set_window_start_ns(200'000'000'000);
              request.set_window_start_is_relative(true);
            }),
            "the window starts 200.000 s after the capture's last event, which is 0.000 s after "
            "its first");
  EXPECT_EQ(warning_of([](auto& request) { request.set_window_end_ns(5); }),
            "the window ends 0.000 s before the capture's first event");
  EXPECT_EQ(warning_of([](auto& request) {
              request.add_neuron_cores(0);
              request.add_worker_gids()->set_first(1);
              request.mutable_worker_gids(0)->set_last(1);
            }),
            "no event of the capture matches all filters");
}

// The certificate in a file says why data that agents still have is missing.
TEST_F(CaptureExportTest, AFullStoreIsAFindingOfACaptureThatAwaitsData) {
  FillWhole();
  record_.state = CaptureState::kRecording;
  const auto store = OpenStore();
  store_problem_ = "no space left on device";
  Export(*store, v1::EXPORT_FORMAT_SUMMARY_JSON);
  EXPECT_THAT(file_, HasSubstr("agents keep and send again: no space left on device"));
  record_.state = CaptureState::kComplete;
  Export(*store, v1::EXPORT_FORMAT_SUMMARY_JSON);
  EXPECT_THAT(file_, Not(HasSubstr("no space left on device")));
}

TEST_F(CaptureExportTest, AWindowOfACaptureWithoutKnownTimesIsExplained) {
  record_ = TestCapture(1);
  const auto store = OpenStore();
  ASSERT_TRUE(store->captures().Put(record_, true).ok());
  ReceivedChunk chunk = RealChunk(1, 0, 0);
  chunk.header.clock_domain = ClockDomain::kOwn;
  ASSERT_TRUE(store->chunks().PutBatch({&chunk, 1}).ok());
  v1::ExportRequest request;
  request.set_format(v1::EXPORT_FORMAT_JSON);
  request.set_window_start_ns(1'700'000'000'000'000'000);
  const v1::ExportDone done = Export(*store, request);
  ASSERT_GT(done.warnings_size(), 0);
  EXPECT_EQ(done.warnings(0), std::string(kNothingSelected) +
                                  "no event of the capture has a time that a window can select");
}

TEST_F(CaptureExportTest, WindowBeyondAllTimesDoesNotWrap) {
  FillWhole();
  const auto store = OpenStore();
  v1::ExportRequest request;
  request.set_format(v1::EXPORT_FORMAT_JSON);
  request.set_window_end_is_relative(true);
  request.set_window_end_ns(UINT64_MAX - 5);
  EXPECT_EQ(Export(*store, request).total().spans(), 2 * 5 * kEventsPerChunk / 2);
  request.set_window_start_is_relative(true);
  request.set_window_start_ns(UINT64_MAX - 5);
  request.set_window_end_ns(0);
  request.set_capture_id(record_.id.ToString());
  const ExportWriter write = [](const v1::ExportReply&) { return true; };
  GrpcOutputFiles files(write);
  const absl::Status status =
      ExportStoredCapture(*store, record_, request, clocks_, "", files, write);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
}

TEST_F(CaptureExportTest, DamagedSamplesOfAHostMakeTheFilesIncompleteThatHaveThem) {
  FillWhole();
  PutHostChunk();
  const std::string header = HostChunk().header_bytes;
  size_t hurt = 0;
  for (const auto& file : Files(".blob")) {
    const size_t at = ReadFile(file).find(header);
    if (at == std::string::npos) continue;
    FlipAt(file, at + header.size() + 10);
    ++hurt;
  }
  ASSERT_EQ(hurt, 1u);
  const auto untouched = Snapshot();
  std::vector<v1::ExportFormat> formats = {v1::EXPORT_FORMAT_JSON, v1::EXPORT_FORMAT_PERFETTO,
                                           v1::EXPORT_FORMAT_CHROME_JSON};
  if (HasParquet()) formats.push_back(v1::EXPORT_FORMAT_PARQUET);
  for (const v1::ExportFormat format : formats) {
    std::filesystem::remove_all(path());
    std::filesystem::create_directory(path());
    for (const auto& [name, bytes] : untouched) WriteFile(path() + "/" + name, bytes);
    const auto store = OpenStore();
    const v1::ExportDone done = Export(*store, format);
    SCOPED_TRACE(v1::ExportFormat_Name(format));
    EXPECT_TRUE(done.capture_incomplete());
    EXPECT_THAT(done.verdict(), HasSubstr("1 stored chunk cannot be read and is omitted"));
    ASSERT_EQ(done.warnings_size(), 1);
    EXPECT_THAT(done.warnings(0), HasSubstr("i-a host"));
  }
}

TEST_F(CaptureExportTest, ListsTheDeviceProfilesAmongTheArtifacts) {
  FillWhole();
  const auto store = OpenStore();
  const std::pair<const char*, const char*> kPlaces[] = {
      {"i-a_pid_7", "profile_nc_1_session_4.ntff"},
      {"i-b_pid_8", "abc_instid_0_vnc_2.ntff"},
      {"i-b_pid_8", "profile_rank_3.ntff"},
      {"i-b_pid_8", "neff_abc_vnc_2.neff"}};
  for (const auto& [directory, name] : kPlaces) {
    KeepArtifact(*store, record_.id, *MakeArtifactPlace(directory, "", name));
  }
  v1::ExportRequest request;
  request.set_format(v1::EXPORT_FORMAT_JSON);
  const v1::ExportDone done = Export(*store, request);
  EXPECT_THAT(
      file_,
      HasSubstr(R"("device_profile_list":[)"
                "\n"
                R"({"device_profile_name":"i-a_pid_7_nc_1_session_4","instance_id":"i-a",)"
                R"("process_id":7,"nc_id":1,"session_id":4,)"
                R"("path":"i-a_pid_7/profile_nc_1_session_4.ntff"},)"
                "\n"
                R"({"device_profile_name":"i-b_pid_8_abc_instid_0_vnc_2","instance_id":"i-b",)"
                R"("process_id":8,"nc_id":2,"path":"i-b_pid_8/abc_instid_0_vnc_2.ntff"}],)"));
  ASSERT_EQ(done.warnings_size(), 1);
  EXPECT_THAT(done.warnings(0), HasSubstr("i-b_pid_8/profile_rank_3.ntff"));
  EXPECT_FALSE(done.capture_incomplete()) << done.verdict();
  request.add_instance_ids("i-a");
  request.add_neuron_cores(0);
  EXPECT_EQ(Export(*store, request).warnings_size(), 0);
  EXPECT_THAT(file_, HasSubstr("\"device_profile_list\":[],"));
}

}  // namespace
}  // namespace neurontrace
