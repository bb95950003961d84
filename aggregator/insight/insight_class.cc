// SPDX-License-Identifier: Apache-2.0
#include "aggregator/insight/insight_class.h"

namespace neurontrace {

std::optional<InsightClass> InsightClassOf(DerivedType type) {
  switch (type) {
    case DerivedType::kExecute:
      return InsightClass::kExecute;
    case DerivedType::kPrepare:
      return InsightClass::kPrepare;
    case DerivedType::kPost:
      return InsightClass::kPost;
    case DerivedType::kRunning:
      return InsightClass::kRun;
    case DerivedType::kCollective:
      return InsightClass::kCollective;
    case DerivedType::kDeviceBarrier:
      return InsightClass::kDeviceBarrier;
    case DerivedType::kHostBarrier:
      return InsightClass::kHostBarrier;
    case DerivedType::kTensorTransfer:
      return InsightClass::kTransferIo;
    case DerivedType::kAllocate:
    case DerivedType::kDeallocate:
    case DerivedType::kTensorMemory:
      return InsightClass::kMemory;
    case DerivedType::kDeviceFault:
      return InsightClass::kError;
    case DerivedType::kOther:
    case DerivedType::kCopyIn:
    case DerivedType::kCopyOut:
    case DerivedType::kFramework:
      return std::nullopt;
  }
  return std::nullopt;
}

bool HasPhysicalParts(InsightClass kind) {
  return kind == InsightClass::kRun || kind == InsightClass::kCollective ||
         kind == InsightClass::kDeviceBarrier || kind == InsightClass::kHostBarrier;
}

bool EndsBefore(const InsightEvent& a, const InsightEvent& b) {
  if (a.end_ns != b.end_ns) return a.end_ns < b.end_ns;
  if (a.start_ns != b.start_ns) return a.start_ns > b.start_ns;
  return a.kind != InsightClass::kRun && b.kind == InsightClass::kRun;
}

}  // namespace neurontrace
