// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "tests/export/export_fixture.h"

namespace neurontrace {

// A small capture with one of everything, and what it becomes against the files in tests/golden.
// NT_UPDATE_GOLDEN=1 in the environment writes them again.
class GoldenFixture : public ExportFixture {
 protected:
  void SetUp() override {
    AddExecution(AddCore("i-0a", 4711, 0, 32), 4);
    AddExecution(AddCore("i-0a", 4711, 1, 33), 6);
    AddExecution(AddCore("i-0b", 815, 0, -1), 4);
    source_.description().name = "golden";
    source_.description().warnings = {"i-0c did not take part"};
    source_.stream(1).losses = {{LossPlace::kRuntimeRing, LossReason::kOverwritten, 12, false,
                                 kBase + 400, kBase + 500, "holes in nc_local_id"}};
    AddFrameworkFile();
  }

  void AddExecution(uint32_t stream, uint64_t first_core) {
    const EventScript::Attributes execution = {{"exec_id", uint64_t{1}},
                                               {"model_id", uint64_t{10001}}};
    script_.Start("nrt_execute", kBase + 100, 1, 7,
                  {{"model_id", uint64_t{10001}}, {"model_name", std::string("llama")}}, 1);
    script_.Span("kbl_exec_pre", kBase + 110, kBase + 120, 2, 7,
                 {{"exec_id", uint64_t{1}}, {"model_name", std::string("llama")}});
    Close(stream);
    for (uint64_t core = first_core; core < first_core + 2; ++core) {
      script_.Span("nc_exec_running", kBase + 130 + core, kBase + 900 + core, 10 + core, 7,
                   {{"device_core_idx", core},
                    {"exec_id", uint64_t{1}},
                    {"nc_timestamp_ns", uint64_t{5'000}}},
                   {{"nc_timestamp_ns", uint64_t{5'770}}});
    }
    script_.Span("cc_running", kBase + 200, kBase + 300, 3, 7, {{"op_id", UINT64_MAX}});
    script_.Span("kbl_exec_wait", kBase + 120, kBase + 950, 4, 7, execution);
    script_.Span("nrt_tensor_read", kBase + 600, kBase + 1'200, 5, 7, {{"size", uint64_t{64}}});
    script_.Instant("timestamp_sync_point", kBase + 960, 0, 7,
                    {{"cpu_timestamp_ns", kBase + 955}, {"nc_timestamp_ns", uint64_t{5'800}}});
    script_.Stop("nrt_execute", kBase + 1'000, 1, 7, {{"status", uint64_t{0}}});
    script_.Start("nrt_load", kBase + 1'100, 6, 8);
    script_.Stop("nrt_tensor_write", kBase + 50, 9, 7);
    Close(stream);
  }

  void AddFrameworkFile() {
    const uint32_t stream = AddFile("i-0a", "worker0.pt.trace.json");
    const auto top = [](const std::string& name, EventScript::Value value) {
      return EventScript::Attribute{name, std::move(value), KeyScope::kTop};
    };
    const auto pid = top("pid", uint64_t{4711});
    script_.Add("M", Phase::kMetadata, kBase, 0, 5,
                {top("name", std::string("thread_name")), pid, {"name", std::string("main ")}});
    script_.Complete("cpu_op", kBase + 10, 0, 5,
                     {top("name", std::string("aten::mm")), pid, top("dur_ns", uint64_t{80})});
    script_.Add("ac2g", Phase::kFlowStart, kBase + 10, 0, 5, {pid, top("flow_id", uint64_t{3})});
    script_.Complete("kernel", kBase + 60, 0, 6,
                     {top("name", std::string("gemm")), pid, top("dur_ns", uint64_t{40})});
    script_.Add("ac2g", Phase::kFlowEnd, kBase + 60, 0, 6, {pid, top("flow_id", uint64_t{3})});
    Close(stream);
  }

  static void Compare(const std::string& name, std::string text) {
    const std::string version = NEURONTRACE_VERSION;  // changes without the formats
    for (size_t at = 0; (at = text.find(version, at)) != std::string::npos; at += 1) {
      text.replace(at, version.size(), "VERSION");
    }
    const std::string path = std::string(NT_GOLDEN_DIR) + "/" + name;
    if (std::getenv("NT_UPDATE_GOLDEN") != nullptr) std::ofstream(path, std::ios::binary) << text;
    std::ifstream file(path, std::ios::binary);
    const std::string expected((std::istreambuf_iterator<char>(file)),
                               std::istreambuf_iterator<char>());
    EXPECT_EQ(text, expected) << path;
  }
};

}  // namespace neurontrace
