// SPDX-License-Identifier: Apache-2.0
// Anything at all as a stored row of clocks, or as the record of their fit: refused, or clocks that
// can be read at every time and come back from their own bytes.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "aggregator/clocks/clock_fit_record.h"
#include "aggregator/clocks/clock_rows.h"
#include "aggregator/clocks/clock_rows_test_support.h"

namespace {

void Check(bool good, const char* what) {
  if (good) return;
  fprintf(stderr, "broken promise: %s\n", what);
  abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace neurontrace;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  if (const auto record = DecodeClockFitRecord(bytes); record.ok()) {
    const auto again = DecodeClockFitRecord(EncodeClockFitRecord(*record));
    Check(again.ok() && *again == *record, "a record makes the same record again");
  }
  const auto clocks = DecodeClockRows({bytes});
  if (!clocks.ok()) return 0;
  Check(clocks->instances.size() + clocks->devices.size() + clocks->order.size() == 1,
        "a row is of one clock, or check");
  for (const InstanceClock& clock : clocks->instances) ReadEverywhere(clock);
  const auto rows = EncodeClockRows(*clocks);
  const auto again = DecodeClockRows(rows);
  Check(again.ok() && EncodeClockRows(*again) == rows, "clocks make the same clocks again");
  return 0;
}
