// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// What NVTX (version 3) and a tool that it loads exchange, as far as this library uses it: layouts
// and numbers, declared here and not copied, after the public headers of github.com/NVIDIA/NVTX
// (nvToolsExt.h, nvtxDetail/nvtxTypes.h; Apache-2.0 WITH LLVM-exception). They are fixed by NVTX's
// promise that a program and a tool may be of different versions.
namespace neurontrace::annotate {

// nvtxEventAttributes_v2. A caller that was built with an older version sets a smaller `size`.
struct NvtxAttributes {
  uint16_t version;
  uint16_t size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type;
  int32_t reserved;
  union {
    uint64_t u64;
    int64_t i64;
    double f64;
    uint32_t u32;
    int32_t i32;
    float f32;
  } payload;
  int32_t message_type;
  union {
    const char* ascii;
    const wchar_t* wide;
    const void* registered;
  } message;
};
static_assert(sizeof(NvtxAttributes) == 48 && offsetof(NvtxAttributes, message) == 40);

inline constexpr int32_t kNvtxColorArgb = 1;
inline constexpr int32_t kNvtxPayloadUint64 = 1;
inline constexpr int32_t kNvtxPayloadInt64 = 2;
inline constexpr int32_t kNvtxPayloadDouble = 3;
inline constexpr int32_t kNvtxPayloadUint32 = 4;
inline constexpr int32_t kNvtxPayloadInt32 = 5;
inline constexpr int32_t kNvtxPayloadFloat = 6;
inline constexpr int32_t kNvtxMessageAscii = 1;
inline constexpr int32_t kNvtxMessageWide = 2;
inline constexpr int32_t kNvtxMessageRegistered = 3;
// What push and pop return where levels are not known.
inline constexpr int kNvtxNoPushPopTracking = -2;

// A table has pointers to the places of NVTX's function pointers; a tool that sets one receives
// these calls. Places may be null, and tables of other versions shorter or longer.
using NvtxFunction = void (*)();
using NvtxTable = NvtxFunction**;

// NvtxExportTableCallbacks, which is table number 1.
struct NvtxCallbacks {
  size_t struct_size;
  int (*get_module_function_table)(int module, NvtxTable* table, unsigned* size);
};
inline constexpr uint32_t kNvtxCallbacksTable = 1;
using NvtxGetExportTable = const void* (*)(uint32_t table);

// Modules, and the indices of their functions.
inline constexpr int kNvtxModuleCore = 1;
enum class NvtxCore : unsigned {
  kMarkEx = 1,
  kMarkA = 2,
  kMarkW = 3,
  kRangeStartEx = 4,
  kRangeStartA = 5,
  kRangeStartW = 6,
  kRangeEnd = 7,
  kRangePushEx = 8,
  kRangePushA = 9,
  kRangePushW = 10,
  kRangePop = 11,
  kNameCategoryA = 12,
  kNameCategoryW = 13,
};
inline constexpr int kNvtxModuleCore2 = 5;
enum class NvtxCore2 : unsigned {
  kDomainMarkEx = 1,
  kDomainRangeStartEx = 2,
  kDomainRangeEnd = 3,
  kDomainRangePushEx = 4,
  kDomainRangePop = 5,
  kDomainNameCategoryA = 8,
  kDomainNameCategoryW = 9,
  kDomainRegisterStringA = 10,
  kDomainRegisterStringW = 11,
  kDomainCreateA = 12,
  kDomainCreateW = 13,
};

}  // namespace neurontrace::annotate
