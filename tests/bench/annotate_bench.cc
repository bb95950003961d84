// SPDX-License-Identifier: Apache-2.0
// What a pair of nvtxRangePush and nvtxRangePop costs its caller: without a tool, with the library
// while nothing is recorded, and while an agent records.
#include <benchmark/benchmark.h>

#include <string>

#include "annotate/annotator.h"
#include "annotate/nvtx_abi.h"

extern "C" int InitializeInjectionNvtx2(neurontrace::annotate::NvtxGetExportTable);

namespace neurontrace::annotate {
namespace {

NvtxFunction functions[16];
NvtxFunction* places[16];

// As NVTX's inline functions do: a null pointer is a tool that takes no such calls.
void Push(const char* message) {
  const auto push = reinterpret_cast<int (*)(const char*)>(
      functions[static_cast<unsigned>(NvtxCore::kRangePushA)]);
  if (push != nullptr) push(message);
}
void Pop() {
  const auto pop =
      reinterpret_cast<int (*)()>(functions[static_cast<unsigned>(NvtxCore::kRangePop)]);
  if (pop != nullptr) pop();
}

void Attach() {
  static NvtxCallbacks callbacks = {sizeof callbacks,
                                    [](int module, NvtxTable* table, unsigned* size) {
                                      if (module != kNvtxModuleCore) return 0;
                                      for (unsigned i = 0; i < 16; ++i) places[i] = &functions[i];
                                      *table = places;
                                      *size = 16;
                                      return 1;
                                    }};
  InitializeInjectionNvtx2([](uint32_t) -> const void* { return &callbacks; });
}

// As an agent that has read everything.
void Empty(Annotator& annotator) {
  for (uint32_t i = 0; i < kAnnotationRings; ++i) {
    auto& ring = *reinterpret_cast<AnnotationRingHeader*>(
        annotator.buffer() + kAnnotationHeaderBytes + i * kAnnotationRingSpan);
    ring.read_pos.store(ring.write_pos.load(std::memory_order_acquire), std::memory_order_release);
  }
}

void BM_PairWithoutTool(benchmark::State& state) {
  for (NvtxFunction& function : functions) function = nullptr;
  for (auto _ : state) {
    benchmark::DoNotOptimize(functions);
    Push("forward");
    Pop();
  }
}
BENCHMARK(BM_PairWithoutTool);

void BM_PairIdle(benchmark::State& state) {
  Attach();
  Annotator& annotator = ProcessAnnotator();
  annotator.CreateBuffer();
  annotator.SetRecording(true);
  annotator.SetRecording(false);
  for (auto _ : state) {
    Push("forward");
    Pop();
  }
}
BENCHMARK(BM_PairIdle);

// The argument is the length of the message. The ring is emptied so that no record is dropped.
void BM_PairRecording(benchmark::State& state) {
  Attach();
  Annotator& annotator = ProcessAnnotator();
  annotator.CreateBuffer();
  annotator.SetRecording(true);
  const std::string message(static_cast<size_t>(state.range(0)), 'm');
  int pairs = 0;
  for (auto _ : state) {
    Push(message.c_str());
    Pop();
    if (++pairs % 128 == 0) Empty(annotator);
  }
  annotator.SetRecording(false);
}
BENCHMARK(BM_PairRecording)->Arg(7)->Arg(64)->Arg(500);

// A thread that the agent is too slow for: every record is dropped and counted.
void BM_PairDropped(benchmark::State& state) {
  Attach();
  Annotator& annotator = ProcessAnnotator();
  annotator.CreateBuffer();
  annotator.SetRecording(true);
  for (int i = 0; i < 10'000; ++i) Push("forward");
  for (auto _ : state) {
    Push("forward");
    Pop();
  }
  annotator.SetRecording(false);
  Empty(annotator);
}
BENCHMARK(BM_PairDropped);

}  // namespace
}  // namespace neurontrace::annotate
