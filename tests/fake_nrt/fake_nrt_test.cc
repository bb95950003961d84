// SPDX-License-Identifier: Apache-2.0
// The simulated runtime keeps to what is known of the real one: rings, drain-once, JSON, misuse.
// Each test opens and closes the one runtime of this process through the C interface.
#include "tests/fake_nrt/fake_nrt.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <simdjson.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/fake_nrt/decimal.h"
#include "tests/fake_nrt/nrt_api.h"

namespace neurontrace {
namespace {

using simdjson::dom::element;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Seen {
  uint64_t nc_idx;
  uint64_t nc_local_id;
  bool operator==(const Seen&) const = default;
};

class FakeNrtTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("NEURON_RT_NUM_CORES", "4", 1);
    setenv("NEURON_RT_VIRTUAL_CORE_SIZE", "2", 1);
    ASSERT_EQ(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), NRT_SUCCESS);
    form_ = fake_nrt_define("nrt_execute", "start", nullptr, 0);
    misuse_before_ = fake_nrt_misuse_count();
  }
  void TearDown() override {
    EXPECT_EQ(fake_nrt_live_buffers(), 0u);
    nrt_close();
    unsetenv("NEURON_RT_INSPECT_ENABLE");
  }

  uint64_t NewMisuse() {
    const uint64_t before = std::exchange(misuse_before_, fake_nrt_misuse_count());
    return misuse_before_ - before;
  }

  NRT_STATUS Start(uint64_t max_events, int only_nc = -1, const char* without = nullptr) {
    nrt_sys_trace_config_t* config = nullptr;
    EXPECT_EQ(nrt_sys_trace_config_allocate(&config), NRT_SUCCESS);
    nrt_sys_trace_config_set_max_events_per_nc(config, max_events);
    for (uint32_t nc = 0; only_nc >= 0 && nc < 128; ++nc) {
      nrt_sys_trace_config_set_capture_enabled_for_nc(config, nc, static_cast<int>(nc) == only_nc);
    }
    if (without != nullptr) {
      EXPECT_EQ(nrt_sys_trace_config_set_capture_enabled_for_event_type(config, without, false),
                NRT_SUCCESS);
    }
    const NRT_STATUS status = nrt_sys_trace_start(config);
    nrt_sys_trace_config_free(config);
    return status;
  }

  bool Emit(uint32_t nc, uint64_t timestamp_ns = 1755115507555000000) {
    const fake_nrt_event event = {.form = form_, .nc_idx = nc, .timestamp_ns = timestamp_ns};
    return fake_nrt_emit(&event, nullptr);
  }

  std::string Fetch(const nrt_sys_trace_fetch_options_t* options = nullptr) {
    char* buffer = nullptr;
    size_t bytes = 0;
    EXPECT_EQ(nrt_sys_trace_fetch_events(&buffer, &bytes, options), NRT_SUCCESS);
    if (buffer == nullptr) return "";
    EXPECT_EQ(std::char_traits<char>::length(buffer), bytes);
    std::string text(buffer, bytes);
    nrt_sys_trace_buffer_free(buffer);
    return text;
  }

  std::vector<Seen> FetchSeen(const nrt_sys_trace_fetch_options_t* options = nullptr) {
    std::vector<Seen> seen;
    simdjson::dom::parser parser;
    const std::string text = Fetch(options);
    for (const element event : parser.parse(text)["events"].get_array()) {
      seen.push_back({uint64_t{event["nc_idx"]}, uint64_t{event["nc_local_id"]}});
    }
    return seen;
  }

  const fake_nrt_form* form_ = nullptr;
  uint64_t misuse_before_ = 0;
};

TEST_F(FakeNrtTest, WritesExactDocument) {
  ASSERT_EQ(nrt_build_global_comm(3, 35, 64), NRT_SUCCESS);
  ASSERT_EQ(Start(1024), NRT_SUCCESS);
  const fake_nrt_field alloc[] = {
      {"allocated_bytes", FAKE_NRT_UNSIGNED}, {"is_aligned", FAKE_NRT_BOOL},
      {"peer_id", FAKE_NRT_SIGNED},           {"physical_address", FAKE_NRT_HEX_STRING},
      {"size", FAKE_NRT_DECIMAL_STRING},      {"text", FAKE_NRT_STRING},
      {"nested", FAKE_NRT_RAW_JSON}};
  const fake_nrt_event event = {
      .form = fake_nrt_define("some_future_event", "instant", alloc, 7),
      .nc_idx = 3,
      .has_nrta_seq_id = true,
      .thread_id = 1113601,
      .tracking_id = UINT64_MAX,
      .timestamp_ns = 1755115507555705000,
      .nrta_seq_id = 9007199254740993,
      .values = {1073741824, 0, static_cast<uint64_t>(-1), 0x7f3a00000000, 4,
                 fake_nrt_string("caf\u00e9 \"quoted\" \\ \x01 \U0001f600"),
                 fake_nrt_raw_json("{\"a\":[1,2.5,null]}")}};
  ASSERT_TRUE(fake_nrt_emit(&event, nullptr));
  EXPECT_EQ(Fetch(),
            "{\"events\":[{\"event_type\":\"some_future_event\",\"phase\":\"instant\","
            "\"id\":3377699720527872,\"nc_idx\":3,\"nc_local_id\":0,"
            "\"tracking_id\":18446744073709551615,\"thread_id\":1113601,\"worker_gid\":35,"
            "\"data\":{\"allocated_bytes\":1073741824,\"is_aligned\":false,\"peer_id\":-1,"
            "\"physical_address\":\"0x7f3a00000000\",\"size\":\"4\","
            "\"text\":\"caf\\u00e9 \\\"quoted\\\" \\\\ \\u0001 \\ud83d\\ude00\","
            "\"nested\":{\"a\":[1,2.5,null]}},\"timestamp_ns\":1755115507555705000,"
            "\"nrta_seq_id\":9007199254740993}],\"data_version\":2}");
  EXPECT_EQ(Fetch(), "{\"events\":[],\"data_version\":2}");
}

TEST_F(FakeNrtTest, KnowsTheWorkerOnlyAfterACommunicator) {
  ASSERT_EQ(Start(1024), NRT_SUCCESS);
  ASSERT_TRUE(Emit(1));
  EXPECT_THAT(Fetch(), ::testing::HasSubstr("\"worker_gid\":-1,\"data\":{}"));
  ASSERT_TRUE(Emit(1));
  ASSERT_EQ(nrt_load_collectives(nullptr, 0, 1, 1, 33, 64, nullptr), NRT_SUCCESS);
  EXPECT_THAT(Fetch(), ::testing::HasSubstr("\"worker_gid\":33,"));
  EXPECT_EQ(nrt_build_global_comm(4, 36, 64), NRT_INVALID);
}

TEST_F(FakeNrtTest, OverwritesTheOldestAndLeavesAHole) {
  ASSERT_EQ(Start(1), NRT_SUCCESS);  // the floor is 1024
  for (int i = 0; i < 10; ++i) Emit(0);
  EXPECT_EQ(FetchSeen().size(), 10u);
  for (int i = 0; i < 1024 + 7; ++i) Emit(0);
  const std::vector<Seen> seen = FetchSeen();
  ASSERT_EQ(seen.size(), 1024u);
  EXPECT_EQ(seen.front(), (Seen{0, 17}));
  EXPECT_EQ(seen.back(), (Seen{0, 1040}));
}

TEST_F(FakeNrtTest, NumbersAcceptedEventsOnly) {
  ASSERT_EQ(Start(4096, 2, "nrt_execute"), NRT_SUCCESS);
  EXPECT_FALSE(Emit(2));
  const fake_nrt_event other = {.form = fake_nrt_define("cc_running", "start", nullptr, 0),
                                .nc_idx = 2};
  fake_nrt_receipt receipt = {};
  EXPECT_TRUE(fake_nrt_emit(&other, &receipt));
  EXPECT_EQ(receipt.nc_local_id, 0u);
  EXPECT_FALSE(Emit(1));  // a core that is not captured
  EXPECT_THAT(FetchSeen(), ElementsAre(Seen{2, 0}));
}

TEST_F(FakeNrtTest, FetchTakesOutWhatItIsAllowedTo) {
  ASSERT_EQ(Start(4096), NRT_SUCCESS);
  for (uint32_t i = 0; i < 6; ++i) Emit(i % 2);
  nrt_sys_trace_fetch_options_t* options = nullptr;
  ASSERT_EQ(nrt_sys_trace_fetch_options_allocate(&options), NRT_SUCCESS);
  nrt_sys_trace_fetch_options_set_max_events_per_nc(options, 2);
  EXPECT_THAT(FetchSeen(options), ElementsAre(Seen{0, 0}, Seen{0, 1}, Seen{1, 0}, Seen{1, 1}));
  nrt_sys_trace_fetch_options_set_nc_idx(options, 1);
  EXPECT_THAT(FetchSeen(options), ElementsAre(Seen{1, 2}));
  EXPECT_THAT(FetchSeen(options), IsEmpty());
  nrt_sys_trace_fetch_options_set_defaults(options);
  EXPECT_THAT(FetchSeen(options), ElementsAre(Seen{0, 2}));
  nrt_sys_trace_fetch_options_free(options);
  EXPECT_EQ(NewMisuse(), 0u);
}

TEST_F(FakeNrtTest, StopDropsUnfetchedEvents) {
  EXPECT_FALSE(Emit(0));
  ASSERT_EQ(Start(4096), NRT_SUCCESS);
  ASSERT_TRUE(Emit(0));
  ASSERT_EQ(nrt_sys_trace_stop(), NRT_SUCCESS);
  EXPECT_FALSE(Emit(0));
  char* buffer = nullptr;
  size_t bytes = 0;
  EXPECT_EQ(nrt_sys_trace_fetch_events(&buffer, &bytes, nullptr), NRT_FAILURE);
  EXPECT_EQ(nrt_sys_trace_stop(), NRT_FAILURE);
  ASSERT_EQ(Start(4096), NRT_SUCCESS);
  ASSERT_TRUE(Emit(0));
  EXPECT_THAT(FetchSeen(), ElementsAre(Seen{0, 0}));
  EXPECT_EQ(NewMisuse(), 0u);
}

TEST_F(FakeNrtTest, ReportsMisuseOfBuffersAndHandles) {
  ASSERT_EQ(Start(4096), NRT_SUCCESS);
  EXPECT_EQ(NewMisuse(), 0u);
  EXPECT_EQ(Start(4096), NRT_FAILURE);
  EXPECT_EQ(NewMisuse(), 1u);

  char stale = 0;
  char* buffer = &stale;
  size_t bytes = 0;
  EXPECT_EQ(nrt_sys_trace_fetch_events(&buffer, &bytes, nullptr), NRT_INVALID);
  EXPECT_EQ(NewMisuse(), 1u);

  nrt_sys_trace_buffer_free(&stale);
  EXPECT_EQ(NewMisuse(), 1u);
  buffer = nullptr;
  ASSERT_EQ(nrt_sys_trace_fetch_events(&buffer, &bytes, nullptr), NRT_SUCCESS);
  nrt_sys_trace_buffer_free(buffer);
  EXPECT_EQ(NewMisuse(), 0u);
  nrt_sys_trace_buffer_free(buffer);
  EXPECT_EQ(NewMisuse(), 1u);

  nrt_sys_trace_config_t* config = nullptr;
  ASSERT_EQ(nrt_sys_trace_config_allocate(&config), NRT_SUCCESS);
  nrt_sys_trace_config_free(config);
  nrt_sys_trace_config_set_max_events_per_nc(config, 4096);
  nrt_sys_trace_config_free(config);
  EXPECT_EQ(NewMisuse(), 2u);
}

TEST_F(FakeNrtTest, ReportsTraceCallsOutsideOfTheLifeCycle) {
  nrt_close();
  nrt_sys_trace_config_t* config = nullptr;
  EXPECT_EQ(nrt_sys_trace_config_allocate(&config), NRT_CLOSED);
  EXPECT_EQ(nrt_sys_trace_stop(), NRT_CLOSED);
  EXPECT_EQ(NewMisuse(), 2u);
  uint32_t count = 0;
  EXPECT_EQ(nrt_get_visible_vnc_count(&count), NRT_SUCCESS);
  EXPECT_EQ(count, 4u);
  ASSERT_EQ(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), NRT_SUCCESS);
  ASSERT_EQ(nrt_sys_trace_config_allocate(&config), NRT_SUCCESS);
  nrt_sys_trace_config_free(config);
  EXPECT_EQ(NewMisuse(), 0u);
}

TEST_F(FakeNrtTest, ForkedChildIsNotInitialised) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    nrt_sys_trace_config_t* config = nullptr;
    const bool refused = nrt_sys_trace_config_allocate(&config) == NRT_UNINITIALIZED;
    _exit(refused && fake_nrt_misuse_count() == 1 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(FakeNrtTest, FreeAndUseAfterReleaseOfFetchBufferDie) {
  ASSERT_EQ(Start(4096), NRT_SUCCESS);
  char* buffer = nullptr;
  size_t bytes = 0;
  ASSERT_EQ(nrt_sys_trace_fetch_events(&buffer, &bytes, nullptr), NRT_SUCCESS);
  EXPECT_DEATH(std::free(buffer), "");
  nrt_sys_trace_buffer_free(buffer);
  EXPECT_DEATH(std::fputs(buffer, stderr), "");
}

TEST_F(FakeNrtTest, InspectHoldsTheOneCapture) {
  nrt_inspect_config_t* config = nullptr;
  const std::filesystem::path dir =
      std::filesystem::path(::testing::TempDir()) / ("fake_nrt_" + std::to_string(getpid()));
  ASSERT_EQ(nrt_inspect_config_allocate(&config), NRT_SUCCESS);
  EXPECT_EQ(nrt_inspect_begin_with_options(nullptr), NRT_INVALID);
  ASSERT_EQ(nrt_inspect_config_set_output_dir(config, dir.c_str()), NRT_SUCCESS);
  ASSERT_EQ(nrt_inspect_config_set_activity(config, "all", false), NRT_SUCCESS);
  ASSERT_EQ(nrt_inspect_config_set_activity(config, "system_profile", true), NRT_SUCCESS);
  ASSERT_EQ(nrt_inspect_begin_with_options(config), NRT_SUCCESS);  // inspect is off: no capture
  EXPECT_FALSE(Emit(0));
  ASSERT_EQ(nrt_inspect_config_set_enable_inspect(config, true), NRT_SUCCESS);
  ASSERT_EQ(nrt_inspect_begin_with_options(config), NRT_SUCCESS);
  EXPECT_EQ(nrt_inspect_config_free(config), NRT_SUCCESS);
  EXPECT_TRUE(Emit(0));
  EXPECT_TRUE(Emit(0));
  EXPECT_EQ(Start(4096), NRT_FAILURE);
  EXPECT_EQ(NewMisuse(), 1u);
  EXPECT_EQ(FetchSeen().size(), 2u);
  EXPECT_EQ(NewMisuse(), 1u);  // those were not ours
  ASSERT_EQ(nrt_inspect_stop(), NRT_SUCCESS);
  std::ifstream file(dir / ("fake_inspect_pid_" + std::to_string(getpid()) + ".json"));
  std::stringstream summary;
  summary << file.rdbuf();
  EXPECT_EQ(summary.str(), "{\"accepted\":2,\"overwritten\":0,\"stolen\":2}\n");
  std::filesystem::remove_all(dir);
}

TEST_F(FakeNrtTest, InspectByEnvironmentBeginsInsideInit) {
  nrt_close();
  const std::filesystem::path dir =
      std::filesystem::path(::testing::TempDir()) / ("fake_nrt_env_" + std::to_string(getpid()));
  setenv("NEURON_RT_INSPECT_ENABLE", "1", 1);
  setenv("NEURON_RT_INSPECT_OUTPUT_DIR", dir.c_str(), 1);
  ASSERT_EQ(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), NRT_SUCCESS);
  EXPECT_TRUE(Emit(0));
  nrt_close();
  EXPECT_TRUE(
      std::filesystem::exists(dir / ("fake_inspect_pid_" + std::to_string(getpid()) + ".json")));
  unsetenv("NEURON_RT_INSPECT_ENABLE");
  unsetenv("NEURON_RT_INSPECT_OUTPUT_DIR");
  std::filesystem::remove_all(dir);
  ASSERT_EQ(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), NRT_SUCCESS);
  EXPECT_FALSE(Emit(0));
}

TEST_F(FakeNrtTest, ListsEventTypesInHeapMemory) {
  const char** types = nullptr;
  size_t count = 0;
  ASSERT_EQ(nrt_sys_trace_get_event_types(&types, &count), NRT_SUCCESS);
  const std::vector<std::string> names(types, types + count);
  EXPECT_THAT(names, ::testing::IsSupersetOf({"nrt_execute", "timestamp_sync_point"}));
  for (size_t i = 0; i < count; ++i) std::free(const_cast<char*>(types[i]));
  std::free(types);

  nrt_sys_trace_config_t* config = nullptr;
  ASSERT_EQ(nrt_sys_trace_config_allocate(&config), NRT_SUCCESS);
  EXPECT_EQ(nrt_sys_trace_config_set_capture_enabled_for_event_type(config, "no_such", true),
            NRT_INVALID);
  ASSERT_EQ(nrt_sys_trace_config_set_capture_enabled_for_event_type(config, "hw_notify", false),
            NRT_SUCCESS);
  size_t enabled = 0;
  ASSERT_EQ(nrt_sys_trace_config_get_enabled_event_types(config, &types, &enabled), NRT_SUCCESS);
  EXPECT_EQ(enabled, count - 1);
  nrt_sys_trace_free_event_types(types, enabled);
  nrt_sys_trace_config_free(config);
}

TEST_F(FakeNrtTest, FetchRunsBesideEmissionWithoutLossOrDoubles) {
  constexpr uint64_t kPerCore = 20'000;
  ASSERT_EQ(Start(kPerCore * 2), NRT_SUCCESS);
  std::vector<std::thread> emitters;
  for (uint32_t nc = 0; nc < 4; ++nc) {
    emitters.emplace_back([this, nc] {
      for (uint64_t i = 0; i < kPerCore; ++i) Emit(nc, i);
    });
  }
  std::array<uint64_t, 4> next = {};
  uint64_t total = 0;
  while (total < 4 * kPerCore) {
    for (const Seen& seen : FetchSeen()) {
      ASSERT_EQ(seen.nc_local_id, next[seen.nc_idx]++);
      ++total;
    }
  }
  for (std::thread& emitter : emitters) emitter.join();
  EXPECT_THAT(FetchSeen(), IsEmpty());
}

TEST(FakeNrtSymbols, CarryTheRuntimesVersion) {
  EXPECT_NE(dlvsym(RTLD_DEFAULT, "nrt_sys_trace_fetch_events", "NRT_2.0.0"), nullptr);
  EXPECT_NE(dlvsym(RTLD_DEFAULT, "nrt_inspect_begin", "NRT_2.0.0"), nullptr);
}

TEST(DecimalTest, WritesEveryLengthOfNumber) {
  char text[32];
  uint64_t value = 0;
  for (int digits = 1; digits <= 20; ++digits) {
    for (const uint64_t number : {value, value + 1, value * 9, value - 1}) {
      char* end = WriteDecimal(text, number);
      EXPECT_EQ(std::string(text, end), std::to_string(number));
    }
    value = value == 0 ? 10 : value * 10;
  }
  EXPECT_EQ(std::string(text, WriteDecimal(text, UINT64_MAX)), std::to_string(UINT64_MAX));
}

TEST(FakeNrtTopology, TakesCoresThatIncreaseAndNoOthers) {
  setenv("NEURON_RT_VISIBLE_CORES", "4,5,6-7", 1);
  uint32_t count = 0;
  EXPECT_EQ(nrt_get_visible_vnc_count(&count), NRT_SUCCESS);
  EXPECT_EQ(count, 4u);
  setenv("NEURON_RT_VISIBLE_CORES", "0,2,4-5", 1);
  EXPECT_EQ(nrt_get_visible_vnc_count(&count), NRT_SUCCESS);
  EXPECT_EQ(count, 4u);
  for (const char* wrong : {"5,4", "3-1", "x", "", "63-64"}) {
    setenv("NEURON_RT_VISIBLE_CORES", wrong, 1);
    const bool empty = *wrong == '\0';  // the same as unset
    EXPECT_EQ(nrt_get_visible_vnc_count(&count), empty ? NRT_SUCCESS : NRT_INVALID) << wrong;
  }
  unsetenv("NEURON_RT_VISIBLE_CORES");
}

}  // namespace
}  // namespace neurontrace
