// SPDX-License-Identifier: Apache-2.0
#include "tests/fake_nrt/own_profiler.h"

#include <dlfcn.h>

#include <string_view>

#include "tests/fake_nrt/nrt_api.h"

namespace neurontrace {
namespace {

constexpr int64_t kFetchIntervalNs = 50'000'000;

template <typename Function>
Function* Find(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}
// The declared function's own type, found by its name at run time.
#define FIND_NRT(name) Find<decltype(name)>(#name)

uint64_t CountEvents(std::string_view document) {
  uint64_t count = 0;
  constexpr std::string_view kKey = "\"nc_local_id\":";
  for (size_t at = document.find(kKey); at != std::string_view::npos;
       at = document.find(kKey, at + kKey.size())) {
    ++count;
  }
  return count;
}

}  // namespace

void OwnProfiler::Fetch() {
  auto* fetch = FIND_NRT(nrt_sys_trace_fetch_events);
  auto* release_buffer = FIND_NRT(nrt_sys_trace_buffer_free);
  char* buffer = nullptr;
  size_t bytes = 0;
  if (fetch == nullptr || fetch(&buffer, &bytes, nullptr) != NRT_SUCCESS) return;
  fetched_ += CountEvents({buffer, bytes});
  if (documents_.is_open()) documents_.write(buffer, static_cast<std::streamsize>(bytes)) << '\n';
  release_buffer(buffer);
}

void OwnProfiler::Start() {
  if (options_.kind != OwnProfilerOptions::Kind::kNone) thread_ = std::thread([this] { Run(); });
}

void OwnProfiler::Finish() {
  if (!thread_.joinable()) return;
  finish_.Raise();
  thread_.join();
}

void OwnProfiler::Run() {
  const int64_t begin_ns = TrueNow() + options_.delay_ns;
  if (finish_.WaitUntil(begin_ns)) return;
  if (options_.kind == OwnProfilerOptions::Kind::kSysTrace) {
    RunSysTrace(begin_ns + options_.duration_ns);
  } else {
    RunInspect(begin_ns + options_.duration_ns);
  }
}

void OwnProfiler::RunSysTrace(int64_t end_ns) {
  auto* allocate = FIND_NRT(nrt_sys_trace_config_allocate);
  auto* set_max_events = FIND_NRT(nrt_sys_trace_config_set_max_events_per_nc);
  auto* free_config = FIND_NRT(nrt_sys_trace_config_free);
  auto* start = FIND_NRT(nrt_sys_trace_start);
  auto* stop = FIND_NRT(nrt_sys_trace_stop);
  nrt_sys_trace_config_t* config = nullptr;
  if (allocate == nullptr || allocate(&config) != NRT_SUCCESS) {
    refused_ = true;
    return;
  }
  set_max_events(config, options_.max_events_per_nc);
  refused_ = start(config) != NRT_SUCCESS;
  free_config(config);
  if (refused_) return;
  if (!options_.documents.empty()) documents_.open(options_.documents);
  while (TrueNow() < end_ns && !finish_.WaitUntil(TrueNow() + kFetchIntervalNs)) {
    Fetch();
  }
  Fetch();
  stop();
}

void OwnProfiler::RunInspect(int64_t end_ns) {
  nrt_inspect_config_t* config = nullptr;
  if (nrt_inspect_config_allocate(&config) != NRT_SUCCESS) {
    refused_ = true;
    return;
  }
  nrt_inspect_config_set_enable_inspect(config, true);
  nrt_inspect_config_set_sys_trace_max_events_per_nc(config, options_.max_events_per_nc);
  nrt_inspect_config_set_output_dir(config, options_.output_dir.c_str());
  refused_ = nrt_inspect_begin_with_options(config) != NRT_SUCCESS;
  nrt_inspect_config_free(config);
  if (refused_) return;
  finish_.WaitUntil(end_ns);
  nrt_inspect_stop();
}

}  // namespace neurontrace
