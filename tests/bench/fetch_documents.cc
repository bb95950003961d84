// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/fetch_documents.h"

#include <fmt/format.h>

#include <iterator>

#include "lib/base/random.h"

namespace neurontrace {
namespace {

constexpr const char* kModel = "/home/ubuntu/models/llama-3.1-8b-instruct/graph_4f1c2a9e.neff";

// What one core is doing: enough state for ids and times to look alive.
struct Core {
  uint64_t id = 0;
  uint64_t now_ns = 1'755'115'507'555'000'000;
  uint64_t execution = 0;
  uint32_t step = 0;
};

std::string Data(uint32_t step, const Core& core, Random& random) {
  const uint64_t exec = core.execution;
  switch (step) {
    case 0:
    case 1:
      return fmt::format(R"("model_id":1578576049,"model_name":"{}")", kModel);
    case 2:
    case 3:
    case 5:
      return fmt::format(R"("exec_id":{},"model_id":1578576049,"model_name":"{}")", exec, kModel);
    case 4:
      return fmt::format(R"("peer_id":{},"exec_id":{},"nec_dev_id":3)", random.Next64() % 64, exec);
    case 6:
      return fmt::format(
          R"("device_core_idx":12,"exec_id":{},"nc_timestamp_ns":{},"model_id":1578576049,"model_name":"{}")",
          exec, core.now_ns - 1'755'000'000'000'000'000, kModel);
    case 7:
      return fmt::format(
          R"("gid":35,"op_id":{},"exec_id":{},"nc_timestamp_ns":{},"algorithm":"ring")",
          random.Next64() % 36, exec, core.now_ns - 1'755'000'000'000'000'000);
    case 8:
    case 9:
      return fmt::format(R"("tensor_id":{},"size":{})", random.Next64(),
                         (random.Next64() % 64) * 4096);
    case 10:
      return fmt::format(R"("mem_type":1,"mem_handle":{},"offset":{},"size":{})",
                         0x7f3a00000000 + random.Next64() % 4096 * 4096, random.Next64() % 4096,
                         (random.Next64() % 64) * 4096);
    default:
      return fmt::format(R"("exec_id":{},"nc_timestamp_ns":{},"cpu_timestamp_ns":{})", exec,
                         core.now_ns - 1'755'000'000'000'000'000, core.now_ns);
  }
}

constexpr const char* kTypes[] = {"nrt_execute",      "kmgr_exec_core",  "kbl_exec_pre",
                                  "kbl_exec_core",    "enc_barrier",     "kbl_exec_wait",
                                  "nc_exec_running",  "cc_running",      "nrt_tensor_read",
                                  "nrt_tensor_write", "dmem_buf_copyin", "timestamp_sync_point"};
constexpr uint32_t kTypeCount = std::size(kTypes);

void AppendEvent(uint32_t nc_idx, Core& core, Random& random, std::string& out) {
  const uint32_t type = core.step / 2;
  const bool start = core.step % 2 == 0;
  const uint64_t id = (uint64_t{nc_idx} << 50) + core.id;
  core.now_ns += 200 + random.Next64() % 20'000;
  const char* const phase = type == kTypeCount - 1 ? "instant" : start ? "start" : "stop";
  fmt::format_to(
      std::back_inserter(out),
      R"({{"event_type":"{}","phase":"{}","id":{},"nc_idx":{},"nc_local_id":{},"tracking_id":{},)"
      R"("thread_id":{},"worker_gid":{},"data":{{{}}},"timestamp_ns":{},"nrta_seq_id":{}}})",
      kTypes[type], phase, id, nc_idx, core.id, id - (start ? 0 : 1), 1'113'600 + nc_idx,
      nc_idx + 32, start || type >= 6 ? Data(type, core, random) : "", core.now_ns, core.execution);
  ++core.id;
  if (++core.step == 2 * kTypeCount) {
    core.step = 0;
    ++core.execution;
  }
}

}  // namespace

FetchDocuments MakeFetchDocuments(uint32_t cores, uint32_t documents,
                                  uint32_t events_per_document) {
  SeededRandom random(7);
  std::vector<Core> state(cores);
  FetchDocuments made;
  for (uint32_t d = 0; d < documents; ++d) {
    std::string text = R"({"events":[)";
    for (uint32_t e = 0; e < events_per_document; ++e) {
      if (e > 0) text += ',';
      AppendEvent(d % cores, state[d % cores], random, text);
    }
    text += R"(],"data_version":2})";
    made.sizes.push_back(text.size());
    made.bytes += text.size();
    made.events += events_per_document;
    text.append(64, '\0');
    made.texts.push_back(std::move(text));
  }
  return made;
}

}  // namespace neurontrace
